//! How the database of the metadata is opened: its sizes follow from what is kept free for it.

use crate::format::key;
use crate::reservation::Reservation;
use bluefs::BlueFs;
use kv::{MergeOperator, Options};
use zone::Geometry;

/// Of the file system.
pub(crate) const DIRECTORY: &str = "/db";
/// What RocksDB tells of itself, for people, and how such a file is called once another one has taken its place. Nothing
/// reads them, and the next mount takes old ones away.
const TEXT_LOG: &str = "LOG";
const OLD_TEXT_LOG: &str = "LOG.old.";
/// RocksDB has no smaller memtables.
const MIN_TABLE: u64 = 64 << 10;
/// More in memory takes long to replay from the log.
const MAX_IN_MEMORY: u64 = 32 << 20;

/// The shape of what names begin with, 0 standing for any byte: those that begin alike, and so, are listed without a look
/// into tables that have none of them. Swift's drive daemon does that for each request (`swift-drive`). Of one such name
/// alone filters do not know, so that other names had better not have this shape.
pub const LISTED_NAME: &[u8; 48] =
    b"\0\0\0\0\0\0\0\0\0\0/\0\0\0/\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0/";

/// Bytes kept free for compaction.
fn headroom_bytes(geometry: &Geometry, copies: u32) -> u64 {
    u64::from(Reservation::headroom(geometry, copies)) * geometry.least_capacity()
}

/// Bytes in memory that are written out at once.
pub(crate) fn write_buffer_bytes(geometry: &Geometry, copies: u32) -> u64 {
    (headroom_bytes(geometry, copies) / 32).clamp(MIN_TABLE, MAX_IN_MEMORY)
}

/// For a drive of this geometry, with so many copies of the metadata.
pub(crate) fn kv_options(geometry: &Geometry, copies: u32, block_cache_bytes: u64) -> Options {
    // Compaction writes before it deletes, so that all sizes follow from what is kept free for it.
    let headroom = headroom_bytes(geometry, copies);
    let table = geometry.least_capacity().min(256 << 20) / 16 * 15;
    Options {
        create_if_missing: false,
        write_buffer_bytes: write_buffer_bytes(geometry, copies),
        target_file_bytes: table.min(headroom / 24).max(MIN_TABLE),
        // Half of what puts leave: zones are not full, logs go on meanwhile, and long names have large indexes.
        max_compaction_bytes: headroom / 8 * 3,
        block_cache_bytes,
        max_manifest_bytes: (geometry.least_capacity() / 32).clamp(32 << 10, 4 << 20),
        merge: vec![
            (key::FREELIST, MergeOperator::AddI64s),
            (key::SUPER, MergeOperator::AddI64s),
        ],
        // Numbers of maps and places only grow, and counters are added to again and again.
        ascending: vec![key::EXTENT, key::CLEANING, key::FREELIST, key::SUPER],
        // The extents of a map; names of a collection that begin alike, such as Swift's of one object.
        scanned: vec![key::map(0), key::onode(0, LISTED_NAME)],
        listed: vec![key::ONODE, key::HASHED_ONODE, key::OMAP, key::DOOMED],
        ..Options::default()
    }
}

/// Whether it is no loss what this file has lost.
pub(crate) fn is_text_log(path: &str) -> bool {
    let name = path
        .strip_prefix(DIRECTORY)
        .and_then(|p| p.strip_prefix('/'));
    name.is_some_and(|name| name == TEXT_LOG || name.starts_with(OLD_TEXT_LOG))
}

/// Takes text logs from files that are lost, and deletes those of them that nobody writes to any more. Answers how many were
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
