//! Options for opening a database. Everything else is fixed by each engine.

/// Options for opening a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the database is made if the directory has none.
    pub create_if_missing: bool,
    /// Size of a memtable in bytes; a full one is written to an SST.
    pub write_buffer_bytes: u64,
    /// Target size of an SST in bytes; best a little under a zone's capacity.
    pub target_file_bytes: u64,
    /// Most bytes that a compaction below the first level reads, and so about the free space that it needs; 0 means 25
    /// SSTs.
    pub max_compaction_bytes: u64,
    /// Bytes of memory for cached blocks, indexes and filters.
    pub block_cache_bytes: u64,
    /// Most flushes and compactions at the same time.
    pub max_background_jobs: i32,
    /// Bytes of write-ahead logs after which old memtables are written out; 0 means four write
    /// buffers.
    pub max_wal_bytes: u64,
    /// Bytes of the manifest after which a new one is begun. An edit of a hundred bytes takes a block on the drive, so
    /// this should be far below a zone.
    pub max_manifest_bytes: u64,
    /// First bytes of the keys that accept [`crate::Batch::merge`], with the operator. A merge on any other key is an
    /// error.
    pub merge: Vec<(u8, MergeOperator)>,
    /// First bytes of keys that are mostly written in ascending order: an engine may insert them faster.
    pub ascending: Vec<u8>,
    /// Shapes of the prefixes that the keys of frequent scans share: the first bytes, with 0 for any byte that is the
    /// same in all keys of a scan. At most one for each first byte, which is not 0, and of 255 bytes at most. An engine
    /// may use them for filters: a scan from a key with such a prefix then ends with the last key of that prefix at the
    /// latest, and single keys may have no filter.
    pub scanned: Vec<Vec<u8>>,
    /// First bytes of keys that are read in large ranges: where most of them have been deleted, an engine compacts
    /// without being asked for space.
    pub listed: Vec<u8>,
    /// Whether nothing is written. The log is replayed into memory only, with the filter.
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
    /// When it is in the log's buffer: the next synced write makes it durable. If more than 1 MiB is buffered, a power
    /// cut may lose batches from the middle.
    Buffered,
}

/// How merged values are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MergeOperator {
    /// Values are arrays of little-endian 64-bit counters, added element by element with
    /// wrapping; a shorter one counts as if zeros followed.
    AddI64s,
}
