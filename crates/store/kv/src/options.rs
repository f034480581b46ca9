//! How a database is opened. Whatever is not here, an engine decides once.

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Make the database if the directory has none.
    pub create_if_missing: bool,
    /// Bytes in memory before they are written out as an SST.
    pub write_buffer_bytes: u64,
    /// Bytes of an SST; best a little under a zone's capacity.
    pub target_file_bytes: u64,
    /// Bytes that a compaction below the first level reads at most, and so about what it needs free;
    /// 0 means 25 SSTs.
    pub max_compaction_bytes: u64,
    /// Bytes of cached blocks, indexes and filters.
    pub block_cache_bytes: u64,
    /// Flushes and compactions at once.
    pub max_background_jobs: i32,
    /// Bytes of write-ahead logs after which old memtables are written out; 0 means four write
    /// buffers.
    pub max_wal_bytes: u64,
    /// Bytes of the manifest after which a new one begins. An edit of a hundred bytes costs a block
    /// on the drive, so that this wants to be far below a zone.
    pub max_manifest_bytes: u64,
    /// Which keys take [`crate::Batch::merge`], by their first byte. A merge on any other key is
    /// an error.
    pub merge: Vec<(u8, MergeOperator)>,
    /// First bytes of keys that mostly come in their order: an engine may put them faster.
    pub ascending: Vec<u8>,
    /// What the keys of a frequent scan have in common: their first bytes, of which 0 stands for any that is the same in
    /// all of them. At most one for each first byte, which is not 0, and of 255 bytes at most. An engine may know where
    /// there are none, and a scan from one such key goes to the last of them at most; of a single one of them it may know
    /// no more.
    pub scanned: Vec<Vec<u8>>,
    /// First bytes of keys that are read many at once, in order: where most of them have been deleted, an engine
    /// tidies up without being asked for space.
    pub listed: Vec<u8>,
    /// Open without writing anything. The log is replayed into memory only, with the filter.
    pub read_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: false,
            write_buffer_bytes: 16 << 20,
            target_file_bytes: 64 << 20,
            max_compaction_bytes: 0,
            block_cache_bytes: 32 << 20,
            max_background_jobs: 2,
            max_wal_bytes: 0,
            max_manifest_bytes: 4 << 20,
            merge: Vec::new(),
            ascending: Vec::new(),
            scanned: Vec::new(),
            listed: Vec::new(),
            read_only: false,
        }
    }
}

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// When it is on the drive; writers that wait at the same time share a flush.
    Synced,
    /// When it is in the log's buffer: the next synced write makes it durable. A power cut may lose
    /// batches from the middle of more than 1 MiB of buffered writes.
    Buffered,
}

/// How merged values come together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeOperator {
    /// Values are arrays of little-endian 64-bit counters, added element by element with
    /// wrapping; a shorter one counts as if zeros followed.
    AddI64s,
}
