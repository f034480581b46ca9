//! What was asked of the file system and what it did to the drive.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes and operations since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FsStatistics {
    /// Bytes appended to logs by users.
    pub log_bytes_asked: u64,
    /// Bytes written for logs, headers and padding included.
    pub log_bytes_written: u64,
    /// Bytes appended to plain files by users.
    pub plain_bytes_asked: u64,
    /// Bytes written for plain files, padding included.
    pub plain_bytes_written: u64,
    /// Bytes of journal frames.
    pub journal_bytes_written: u64,
    /// Bytes of superblocks.
    pub superblock_bytes_written: u64,
    /// Bytes moved to make space, whether anybody waited for it or not.
    pub moved_bytes_written: u64,
    /// Of these, bytes that were moved ahead of need.
    pub moved_ahead_bytes_written: u64,
    /// Zones that were cleaned ahead of need.
    pub zones_cleaned_ahead: u64,
    /// Flushes asked of the drive; flushes that wait for each other share one.
    pub flushes: u64,
    /// Zones reset.
    pub resets: u64,
    /// Reads that were begun and waited for later.
    pub reads_later: u64,
    /// Runs of bytes that the cache had.
    pub cache_hits: u64,
    /// Runs that it was asked for and did not have.
    pub cache_misses: u64,
    /// Bytes that it holds now.
    pub cache_bytes: u64,
}

impl FsStatistics {
    /// All bytes that users appended.
    pub fn bytes_asked(&self) -> u64 {
        self.log_bytes_asked + self.plain_bytes_asked
    }

    /// All bytes that went to the drive.
    pub fn bytes_written(&self) -> u64 {
        self.log_bytes_written
            + self.plain_bytes_written
            + self.journal_bytes_written
            + self.superblock_bytes_written
            + self.moved_bytes_written
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub log_asked: AtomicU64,
    pub log_written: AtomicU64,
    pub plain_asked: AtomicU64,
    pub plain_written: AtomicU64,
    pub journal_written: AtomicU64,
    pub superblock_written: AtomicU64,
    pub moved_written: AtomicU64,
    pub moved_ahead: AtomicU64,
    pub cleaned_ahead: AtomicU64,
    pub flushes: AtomicU64,
    pub resets: AtomicU64,
    pub reads_later: AtomicU64,
    pub cache_hits: AtomicU64,
    pub cache_misses: AtomicU64,
}

impl Counters {
    pub fn journal(&self, bytes: u64) {
        self.journal_written.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn superblock(&self, bytes: u64) {
        self.superblock_written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes that were written for users: not to move data, nor for metadata.
    pub fn users_written(&self) -> u64 {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        get(&self.log_written) + get(&self.plain_written)
    }

    pub fn snapshot(&self) -> FsStatistics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FsStatistics {
            log_bytes_asked: get(&self.log_asked),
            log_bytes_written: get(&self.log_written),
            plain_bytes_asked: get(&self.plain_asked),
            plain_bytes_written: get(&self.plain_written),
            journal_bytes_written: get(&self.journal_written),
            superblock_bytes_written: get(&self.superblock_written),
            moved_bytes_written: get(&self.moved_written),
            moved_ahead_bytes_written: get(&self.moved_ahead),
            zones_cleaned_ahead: get(&self.cleaned_ahead),
            flushes: get(&self.flushes),
            resets: get(&self.resets),
            reads_later: get(&self.reads_later),
            cache_hits: get(&self.cache_hits),
            cache_misses: get(&self.cache_misses),
            cache_bytes: 0,
        }
    }
}
