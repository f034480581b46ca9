//! POSIX file systems for shingled drives (thesis of 2014 on Caveat-Scriptor at Carnegie Mellon). One only appends to
//! the bands of a zoned drive (Suresh, Gibson and Ganger, CMU-PDL-12-105; "Strict Append-SMRfs", section 2.2). The
//! other one allocates free extents of a drive that takes writes anywhere and damages what lies after them (chapter
//! 4).
//!
//! Data is written out of place. In bands, a cleaner reclaims dead space; on a Caveat-Scriptor drive, blocks that a
//! file loses are free after the next commit. All metadata is in memory, and durable as checkpoints and a journal: in
//! conventional zones, or in the first sequential ones if there are none, or in the unshingled part. Every block has
//! a checksum. A crash leaves the state of some commit, which is not older than the last sync.
//!
//! Memory: the buffer, which is bounded, and metadata: about 550 bytes an inode with its name, as much again once it
//! has data, and 5 bytes a block of data (`examples/memory.rs` measures it).

mod attributes;
mod bands;
mod check;
mod cleaner;
mod core;
mod data;
mod dirty;
mod error;
mod extents;
mod frame;
mod fs;
mod inode;
mod layout;
mod log;
mod map;
mod medium;
mod names;
mod options;
mod packing;
mod placement;
mod ranges;
mod record;
mod state;
mod tree;
mod window;
mod write_out;

pub use attributes::{SetAttributes, SetTime, SetXattr};
pub use caveat::Fit;
pub use check::Findings;
pub use core::Counts;
pub use error::{Error, Result};
pub use frame::VERSION;
pub use fs::{FileSystem, Listed, Space, Status, is_there, shape};
pub use inode::{Attributes, ROOT, Time};
pub use layout::Shape;
pub use medium::Medium;
pub use names::{NewInode, Rename};
pub use options::{MkfsOptions, MountOptions, Policy};
pub use placement::{BandSpace, ExtentSpace, Free};

/// Appends a group with these bytes as its records to the journal, whether they are valid or not, for the fuzz
/// target.
#[doc(hidden)]
pub fn append_to_journal(medium: &Medium, records: &[u8]) -> Result<()> {
    let (device, layout) = (medium.device(), medium.layout()?);
    let (mut found, ()) = log::Log::read(device, layout, 1, |_| (), |(), _| Ok(()))?;
    found.log.append(&[records.to_vec()])?;
    Ok(())
}

/// Runs every decoder of the metadata log, for the fuzz target: a frame's header, records, and a head.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    if let Ok(parsed) = frame::parse(bytes) {
        let _ = frame::is_whole(&parsed, bytes);
    }
    let mut reader = codec::Reader(bytes);
    while record::Record::decode(&mut reader).is_some_and(|record| {
        let mut again = Vec::new();
        record.encode(&mut again);
        record::Record::decode(&mut codec::Reader(&again)).as_ref() == Some(&record)
    }) {}
    let geometry = zone::Geometry {
        block_size: 4096,
        zone_size: 1 << 18,
        zone_capacity: 1 << 18,
        zone_count: 24,
        conventional_zones: 4,
        conventional_parts: 1,
        sequential_kind: zone::ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    };
    let _ = layout::Shape::decode(bytes, &geometry, 0);
}
