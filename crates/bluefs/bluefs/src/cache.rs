//! Runs of files that were read, in memory, within a budget of bytes.
//!
//! A run is named by its file's inode, by how often that file had been truncated, and by its place in the
//! file; not by where it lies on the drive. Inodes are never used again, and bytes that are on the
//! drive change only by a truncation: so what was found under a name once is right for ever, whatever
//! becomes of the zone, and what a truncation or a removal leaves behind can only be in the way.

use bytes::Bytes;
use cache::{Cache, CacheStatistics};
use std::ops::Range;

/// Bytes of a file that are kept together.
pub(crate) const RUN: u64 = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    inode: u64,
    truncates: u32,
    run: u64,
}

/// Shared by all files of a mount.
pub(crate) struct BlockCache(Cache<Key>);

impl BlockCache {
    /// Of at most `budget` bytes; one that could not hold a run holds nothing.
    pub fn new(budget: u64) -> Self {
        Self(Cache::new(budget, RUN))
    }

    pub const fn is_on(&self) -> bool {
        self.0.is_on()
    }

    pub fn statistics(&self) -> CacheStatistics {
        self.0.statistics()
    }

    /// The run that holds `range`, if it reaches that far.
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

    /// Keeps the run that begins at `start`: all of it, or as much as the file has so far.
    pub fn put(&self, inode: u64, truncates: u32, start: u64, bytes: Bytes) {
        let run = start / RUN;
        let key = Key {
            inode,
            truncates,
            run,
        };
        self.0.put(key, bytes);
    }

    /// Keeps the runs that begin in what was written at `start` of a file.
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

    /// Forgets a file of `size` bytes that can be read no more, or only under another name.
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
