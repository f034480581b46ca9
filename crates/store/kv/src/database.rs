//! What a database can do.

use crate::{Batch, Durability, Error, Result};
use cache::CacheStatistics;
use std::time::Duration;

/// Makes the files of a database better than they were, if it can; asked with the error that was met.
pub type Heal = Box<dyn Fn(&Error) -> bool + Send + Sync>;

/// An open database. Every method may be called from many threads, and may block.
pub trait Database: Send + Sync {
    /// Carries out a batch.
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()>;

    /// A key's value.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// All keys from `lower` up to but without `upper`, in order, as they are now.
    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_>;

    /// The cache of blocks, indexes and filters, if there is one.
    fn cache(&self) -> CacheStatistics {
        CacheStatistics::default()
    }

    /// Writes out what is only in memory and in the log, so that the log is not needed any more.
    fn flush(&self) -> Result<()>;

    /// Compacts everything.
    fn compact(&self) -> Result<()>;

    /// Flushes and waits until nothing is left to compact, so that the space of what was deleted is
    /// given back; true if that is reached within `patience`.
    fn settle(&self, patience: Duration) -> Result<bool>;

    /// Bytes that have to be free before any are given back: what [`Self::flush`] may write first, where
    /// that grows with what is stored.
    fn flush_bytes(&self) -> u64 {
        0
    }

    /// Bytes of what it keeps for long. Logs are not among them, nor what a compaction is writing.
    fn stored_bytes(&self) -> u64;

    /// Whether what removes a row is stored beside it until both have come to the last of several levels.
    fn has_levels(&self) -> bool {
        false
    }

    /// Bytes of files that are only kept for walks that began earlier.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Whether it is writing out or compacting, or about to: space will come back without being asked for.
    fn is_compacting(&self) -> bool {
        false
    }

    /// From now on, `heal` is asked by work in the background that meets damage; true: that work is worth trying again.
    fn on_damage(&self, heal: Heal) {
        drop(heal);
    }

    /// Damage that is met from now on has both copies compared once more, also if the last time was in vain: what could not be
    /// read may be readable again, and there may be new damage that the other copy mends.
    fn heal_again(&self) {}

    /// One of the engine's own properties.
    fn property(&self, name: &str) -> Option<String>;

    /// Closes it; errors that a drop would swallow are answered.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Keys and values in order, on the state at the beginning of the walk; ends after the first error.
pub trait Cursor: Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> {
    /// Goes on at the first key that is not below `key`, forward or back.
    fn seek(&mut self, key: &[u8]);
}

/// A walk through the keys of a database.
pub type Scan<'a> = Box<dyn Cursor + Send + 'a>;
