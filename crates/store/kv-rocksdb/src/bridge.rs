//! The interface to C++. Data passes as slices and small structs, errors as [`ffi::Outcome`].

use crate::healer::Healer;
use crate::replay::Filter;

#[allow(clippy::missing_safety_doc)]
#[cxx::bridge(namespace = "zonestore::kv")]
pub(crate) mod ffi {
    /// Kind of RocksDB's status.
    #[derive(Debug)]
    enum Kind {
        Ok,
        NoSpace,
        Corruption,
        NotFound,
        Busy,
        Invalid,
        Stopped,
        Io,
    }

    struct Outcome {
        kind: Kind,
        message: String,
    }

    struct Config {
        directory: String,
        create_if_missing: bool,
        read_only: bool,
        write_buffer_bytes: u64,
        target_file_bytes: u64,
        max_compaction_bytes: u64,
        block_cache_bytes: u64,
        max_wal_bytes: u64,
        max_manifest_bytes: u64,
        max_background_jobs: i32,
        merge_prefixes: Vec<u8>,
        /// Shapes of prefixes, each preceded by a byte with its length.
        ascending: Vec<u8>,
        scanned: Vec<u8>,
        /// First bytes of keys.
        listed: Vec<u8>,
    }

    /// Counters of the block cache; see `cache::CacheStatistics`.
    struct CacheCounts {
        budget_bytes: u64,
        held_bytes: u64,
        hits: u64,
        hit_bytes: u64,
        misses: u64,
        inserted_bytes: u64,
    }

    extern "Rust" {
        type Filter;
        fn begin(self: &mut Filter, log: &[u8], length: usize);
        fn key(self: &mut Filter, key: &[u8]);
        fn blob(self: &mut Filter, blob: &[u8]);
        fn end(self: &mut Filter) -> bool;

        type Healer;
        fn heal(self: &Healer, message: &str) -> bool;

        fn append_bytes(value: &mut Vec<u8>, bytes: &[u8]);
    }

    unsafe extern "C++" {
        include!("database.h");

        type Batch;
        fn new_batch() -> UniquePtr<Batch>;
        fn put(self: Pin<&mut Batch>, key: &[u8], value: &[u8]);
        fn remove(self: Pin<&mut Batch>, key: &[u8]);
        fn merge(self: Pin<&mut Batch>, key: &[u8], value: &[u8]);
        fn log_data(self: Pin<&mut Batch>, blob: &[u8]);

        type Cursor;
        fn valid(self: &Cursor) -> bool;
        fn seek(self: Pin<&mut Cursor>, key: &[u8]);
        fn next(self: Pin<&mut Cursor>);
        fn key(self: &Cursor) -> &[u8];
        fn value(self: &Cursor) -> &[u8];
        fn status(self: &Cursor) -> Outcome;

        type Database;
        fn open_database(
            fs: usize,
            config: &Config,
            filter: Box<Filter>,
            outcome: &mut Outcome,
        ) -> UniquePtr<Database>;
        fn write(self: &Database, batch: &Batch, synced: bool) -> Outcome;
        fn get(self: &Database, key: &[u8], value: &mut Vec<u8>, found: &mut bool) -> Outcome;
        fn scan(self: &Database, lower: &[u8], upper: &[u8], has_upper: bool) -> UniquePtr<Cursor>;
        fn flush(self: &Database) -> Outcome;
        fn compact(self: &Database) -> Outcome;
        fn settle(self: &Database, patience_ms: u64, settled: &mut bool) -> Outcome;
        fn on_damage(self: &Database, healer: Box<Healer>);
        fn cache(self: &Database) -> CacheCounts;
        fn property(self: &Database, name: &str, found: &mut bool) -> String;
        fn close(self: Pin<&mut Database>) -> Outcome;
    }
}

/// Called from C++, which can add to a vector only byte by byte, with four calls for each.
fn append_bytes(value: &mut Vec<u8>, bytes: &[u8]) {
    value.extend_from_slice(bytes);
}

// SAFETY: rocksdb::DB may be used from any thread and from many at once; `close` takes it alone.
unsafe impl Send for ffi::Database {}
// SAFETY: as above; all methods that take `&self` are const calls on a thread-safe DB.
unsafe impl Sync for ffi::Database {}
// SAFETY: a WriteBatch has no tie to a thread; shared references only read it.
unsafe impl Send for ffi::Batch {}
// SAFETY: as above.
unsafe impl Sync for ffi::Batch {}
// SAFETY: an iterator may move between threads; it is never used from two at once.
unsafe impl Send for ffi::Cursor {}
