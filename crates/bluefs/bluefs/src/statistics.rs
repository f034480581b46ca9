//! Counters of the bytes and operations that users asked for, and of those on the drive.

use cache::CacheStatistics;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes two structs from a list of counters: [`FsStatistics`], their values for users, and `Counters`, the atomic
/// counters.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of bytes and operations since the mount.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct FsStatistics {
            $($(#[$doc])* pub $name: u64,)*
            /// Counters of the read cache.
            pub cache: CacheStatistics,
        }

        #[derive(Default)]
        pub(crate) struct Counters {
            $(pub $name: AtomicU64,)*
        }

        impl Counters {
            pub fn add_mended(&self, places: u64) {
                self.mended_at_mount.fetch_add(places, Ordering::Relaxed);
            }

            pub fn snapshot(&self, cache: CacheStatistics) -> FsStatistics {
                FsStatistics {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    cache,
                }
            }
        }
    };
}

counters! {
    /// Bytes appended to logs by users.
    log_bytes_asked,
    /// Bytes written for logs, headers and padding included.
    log_bytes_written,
    /// Bytes appended to plain files by users.
    plain_bytes_asked,
    /// Bytes written for plain files, padding included.
    plain_bytes_written,
    /// Bytes of journal frames.
    journal_bytes_written,
    /// Bytes of superblocks.
    superblock_bytes_written,
    /// Bytes moved to make space, ahead of need or not.
    moved_bytes_written,
    /// Of these, bytes that were moved ahead of need.
    moved_ahead_bytes_written,
    /// Zones that were cleaned ahead of need.
    zones_cleaned_ahead,
    /// Flushes asked of the drive; flushes that wait for each other share one.
    flushes,
    /// Zones reset.
    resets,
    /// Copies that the mount repaired from the other copy or wrote again: shorter copies, damaged copies of the
    /// journal, lost superblocks.
    mended_at_mount,
    /// Places in which one copy was found damaged; its data has been written again or is going to be.
    copies_repaired,
    /// Reads begun by [`crate::Reader::read_later`].
    reads_later,
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

impl Counters {
    pub fn journal(&self, bytes: u64) {
        self.journal_bytes_written
            .fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn superblock(&self, bytes: u64) {
        self.superblock_bytes_written
            .fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes written for users: not for moving data, nor for metadata.
    pub fn users_written(&self) -> u64 {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        get(&self.log_bytes_written) + get(&self.plain_bytes_written)
    }
}
