//! Read cache: runs of files in memory, within a budget of bytes.
//!
//! A run is identified by its file's inode, the file's count of truncations, and its offset in the file, not by its
//! place on the drive. Inodes are never reused, and bytes on the drive change only by a truncation: so an entry stays
//! correct whatever becomes of the zone. Entries of truncated or removed files only take up memory.

use bytes::Bytes;
use cache::{Cache, CacheStatistics};
use std::ops::Range;

/// Bytes of a file that are cached together.
pub(crate) const RUN: u64 = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    inode: u64,
    truncates: u32,
    run: u64,
}

/// The read cache of a mount, shared by all its files.
pub(crate) struct BlockCache(Cache<Key>);

impl BlockCache {
    /// A cache of at most `budget` bytes. If a run does not fit, the cache is off.
    pub fn new(budget: u64) -> Self {
        Self(Cache::new(budget, RUN))
    }

    pub const fn is_on(&self) -> bool {
        self.0.is_on()
    }

    pub fn statistics(&self) -> CacheStatistics {
        self.0.statistics()
    }

    /// The run that holds `range`; `None` if it is not cached or does not reach that far.
    pub fn get(&self, inode: u64, truncates: u32, range: &Range<u64>) -> Option<Bytes> {
        let run = range.start / RUN;
        let wanted = usize::try_from(range.end - run * RUN).unwrap_or(usize::MAX);
        let key = Key {
            inode,
            truncates,
            run,
        };
        self.0.get(&key, wanted)
    }

    /// Caches the run that begins at `start`: all of it, or the part that the file has so far.
    pub fn put(&self, inode: u64, truncates: u32, start: u64, bytes: Bytes) {
        let run = start / RUN;
        let key = Key {
            inode,
            truncates,
            run,
        };
        self.0.put(key, bytes);
    }

    /// Caches the runs that begin in `bytes`, which were written at `start` of a file.
    pub fn put_written(&self, inode: u64, truncates: u32, start: u64, bytes: &[u8]) {
        let first = start.next_multiple_of(RUN);
        let skipped = usize::try_from(first - start).unwrap_or(usize::MAX);
        let bytes = bytes.get(skipped..).unwrap_or_default();
        if self.is_on() {
            let runs = bytes.chunks(RUN as usize);
            for (at, run) in (first..).step_by(RUN as usize).zip(runs) {
                self.put(inode, truncates, at, Bytes::copy_from_slice(run));
            }
        }
    }

    /// Removes the runs of a file of `size` bytes, which was removed or truncated.
    pub fn forget(&self, inode: u64, truncates: u32, size: u64) {
        self.0.forget((0..size.div_ceil(RUN)).map(|run| Key {
            inode,
            truncates,
            run,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(byte: u8, length: u64) -> Bytes {
        vec![byte; length as usize].into()
    }

    #[test]
    fn a_run_is_found_only_by_its_whole_name_and_as_far_as_it_goes() {
        let cache = BlockCache::new(100 * RUN);
        cache.put(7, 1, RUN, run(9, 100));
        let at = |from: u64, to: u64| RUN + from..RUN + to;
        assert!(cache.get(7, 1, &at(0, 100)).is_some());
        assert!(cache.get(7, 1, &at(0, 101)).is_none());
        assert!(cache.get(7, 0, &at(0, 100)).is_none());
        assert!(cache.get(8, 1, &at(0, 100)).is_none());
        assert!(cache.get(7, 1, &(0..100)).is_none());
        // A file that grows has its last run replaced.
        cache.put(7, 1, RUN, run(9, 200));
        assert!(cache.get(7, 1, &at(100, 200)).is_some());
        cache.forget(7, 1, RUN + 200);
        assert!(cache.get(7, 1, &at(0, 1)).is_none());
        assert_eq!(cache.statistics().held_bytes, 0);
    }
}
