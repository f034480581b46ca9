//! The interface of an open database.

use crate::{Batch, Durability, Error, Result};
use cache::CacheStatistics;
use std::time::Duration;

/// Called with an error that is damage: repairs the database's files if it can, and returns whether a retry is
/// worthwhile.
pub type Heal = Box<dyn Fn(&Error) -> bool + Send + Sync>;

/// An open database. Every method may be called from many threads, and may block.
pub trait Database: Send + Sync {
    /// Applies a batch atomically.
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()>;

    /// A key's value.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// All keys from `lower` up to `upper` (exclusive), in order, in the state at the time of the call.
    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_>;

    /// The cache of blocks, indexes and filters, if there is one.
    fn cache(&self) -> CacheStatistics {
        CacheStatistics::default()
    }

    /// Writes out what is only in memory and in the log, so that no log has to be replayed.
    fn flush(&self) -> Result<()>;

    /// Compacts all files.
    fn compact(&self) -> Result<()>;

    /// Flushes and waits until nothing is left to compact, so that the space of deleted rows is freed; false if that
    /// takes longer than `patience`.
    fn settle(&self, patience: Duration) -> Result<bool>;

    /// Bytes that may have to be written before any are freed: the size of what [`Self::flush`] writes first, where
    /// that grows with the stored data.
    fn flush_bytes(&self) -> u64 {
        0
    }

    /// Bytes of files in use, without logs and the output of running compactions.
    fn stored_bytes(&self) -> u64;

    /// Whether a deletion is stored as a row of its own until it has been compacted down to the last of several levels.
    fn has_levels(&self) -> bool {
        false
    }

    /// Bytes of files that are kept only for walks that began earlier.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Whether flushes or compactions are running or pending, so that space will be freed without a request.
    fn is_compacting(&self) -> bool {
        false
    }

    /// Makes background work call `heal` when it meets damage; if that returns true, the work is retried.
    fn on_damage(&self, heal: Heal) {
        drop(heal);
    }

    /// Lets the next damage have both copies compared again, even if that was in vain before: bytes may be readable
    /// again, or the damage may be new.
    fn heal_again(&self) {}

    /// Value of one of the engine's own properties.
    fn property(&self, name: &str) -> Option<String>;

    /// Closes the database, and returns errors that a drop would ignore.
    fn close(self: Box<Self>) -> Result<()>;
}

/// A walk over keys and values in order, in the state at its beginning; it ends after the first error.
pub trait Cursor: Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> {
    /// Continues at the first key that is not below `key`, forward or backward.
    fn seek(&mut self, key: &[u8]);
}

/// A walk over the keys of a database.
pub type Scan<'a> = Box<dyn Cursor + Send + 'a>;
