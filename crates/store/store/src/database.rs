//! Options of the metadata's database: all sizes follow from the space that is kept free for compaction.

use crate::format::key;
use crate::reservation::Reservation;
use bluefs::BlueFs;
use kv::{MergeOperator, Options};
use zone::Geometry;

/// Directory of the database in BlueFS.
pub(crate) const DIRECTORY: &str = "/db";
/// RocksDB's log in text for people, and the prefix of such a file's name after it was replaced. No program reads them,
/// and the next mount removes old ones.
const TEXT_LOG: &str = "LOG";
const OLD_TEXT_LOG: &str = "LOG.old.";
/// Smallest memtable that RocksDB supports.
const MIN_TABLE: u64 = 64 << 10;
/// Largest memtable: more takes long to replay from the log.
const MAX_IN_MEMORY: u64 = 32 << 20;

/// Shape of the prefixes of names that filters are built for, 0 standing for any byte.
///
/// Names with the same prefix of this shape are listed without reading SSTs that have none. Swift's drive daemon lists
/// so for each request (`swift-drive`). Filters do not cover a single name of this shape, so that other names had
/// better not have it.
pub const LISTED_NAME: &[u8; 48] =
    b"\0\0\0\0\0\0\0\0\0\0/\0\0\0/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0/";

/// Bytes kept free for compaction.
fn headroom_bytes(geometry: &Geometry, copies: u32) -> u64 {
    u64::from(Reservation::headroom(geometry, copies)) * geometry.least_capacity()
}

/// Size of the memtable in bytes.
pub(crate) fn write_buffer_bytes(geometry: &Geometry, copies: u32) -> u64 {
    (headroom_bytes(geometry, copies) / 32).clamp(MIN_TABLE, MAX_IN_MEMORY)
}

/// Options for a drive of this geometry, with `copies` copies of the metadata.
pub(crate) fn kv_options(geometry: &Geometry, copies: u32, block_cache_bytes: u64) -> Options {
    // Compaction writes before it deletes, so all sizes follow from what is kept free for it.
    let headroom = headroom_bytes(geometry, copies);
    let table = geometry.least_capacity().min(256 << 20) / 16 * 15;
    Options {
        create_if_missing: false,
        write_buffer_bytes: write_buffer_bytes(geometry, copies),
        target_file_bytes: table.min(headroom / 24).max(MIN_TABLE),
        // Half of what puts leave free: zones are not full, logs grow meanwhile, and long names have large indexes.
        max_compaction_bytes: headroom / 8 * 3,
        block_cache_bytes,
        max_manifest_bytes: (geometry.least_capacity() / 32).clamp(32 << 10, 4 << 20),
        merge: vec![
            (key::FREELIST, MergeOperator::AddI64s),
            (key::SUPER, MergeOperator::AddI64s),
        ],
        // Numbers of maps and places only grow, and counters are merged again and again.
        ascending: vec![key::EXTENT, key::CLEANING, key::FREELIST, key::SUPER],
        // The extents of a map; names with a common prefix, such as Swift's of one object.
        scanned: vec![key::map(0), key::onode(0, LISTED_NAME)],
        listed: vec![key::ONODE, key::HASHED_ONODE, key::OMAP, key::DOOMED],
        ..Options::default()
    }
}

/// Whether the file is a text log of the database, whose loss does not matter.
pub(crate) fn is_text_log(path: &str) -> bool {
    let name = path
        .strip_prefix(DIRECTORY)
        .and_then(|p| p.strip_prefix('/'));
    name.is_some_and(|name| name == TEXT_LOG || name.starts_with(OLD_TEXT_LOG))
}

/// Removes text logs from the list of lost files, and deletes those that are no longer written. Returns how many were
/// deleted.
pub(crate) fn give_up_text_logs(fs: &BlueFs, lost: &mut Vec<String>) -> u64 {
    let mut deleted = 0;
    for path in lost.extract_if(.., |path| is_text_log(path)) {
        tracing::warn!(%path, "a text log of the database is damaged; nothing reads it");
        if !path.ends_with(TEXT_LOG) && fs.delete(&path).is_ok() {
            deleted += 1;
        }
    }
    deleted
}
