//! Objects of a store as one tar archive, which any tar reads (docs/format/store-archive.md).
//!
//! `pack` writes an archive of a part of a store or of all of it. A backup that builds on an earlier one ([`Since`])
//! holds only what has changed, and a list of everything. `import` adds an archive's objects to a store, `restore`
//! makes a store of a backup and those that build on it, and `check` only reads. No object of an archive becomes
//! visible in a store before its checksum has been verified, and it appears whole or not at all.

mod changes;
mod check;
mod entry;
mod error;
mod import;
mod input;
mod listing;
mod omap;
mod output;
mod pack;
mod path;
mod pax;
mod place;
mod progress;
mod remove;
mod restore;
mod since;
mod sum;
mod tar_block;
mod unpack;

pub use check::{Checked, check, check_chain};
pub use error::{Error, Result};
pub use import::{ImportOptions, Imported, Keeper, Place, Put, import};
pub use listing::{Kind, VERSION};
pub use pack::{PackOptions, Packed, Selection, pack, pack_moment};
pub use place::OWN;
pub use progress::check_finished;
pub use restore::{Restored, restore};
pub use since::Since;

/// Every decoder of the format, for the fuzz target.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    if let Some(block) = bytes.first_chunk() {
        let _ = tar_block::Member::decode(block);
    }
    let _ = (entry::Entry::decode(bytes, 512), omap::decode(bytes));
    let _ = unpack::ranges(bytes, u64::MAX);
    if let Some((lines, _)) = listing::split(bytes) {
        let _ = listing::decode::<listing::Head>(lines);
        let _ = listing::decode::<listing::Line>(lines);
    }
    let _ = check(bytes, &mut |_| {});
}
