//! Runs of files that were read, in memory, within a budget of bytes (S3-FIFO).
//!
//! A run is named by its file's inode, by how often that file had been truncated, and by its place in the
//! file; not by where it lies on the drive. Inodes are never used again, and bytes that are on the
//! drive change only by a truncation: so what was found under a name once is right for ever, whatever
//! becomes of the zone, and what a truncation or a removal leaves behind can only be in the way.

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a file that are kept together.
pub(crate) const RUN: u64 = 16 << 10;
/// What an entry costs besides its bytes, about.
const OVERHEAD: u64 = 128;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    inode: u64,
    truncates: u32,
    run: u64,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Key, Arc<Vec<u8>>> for Weight {
    fn weight(&self, _: &Key, run: &Arc<Vec<u8>>) -> u64 {
        run.len() as u64 + OVERHEAD
    }
}

/// Shared by all files of a mount.
pub(crate) struct BlockCache {
    runs: Option<Cache<Key, Arc<Vec<u8>>, Weight>>,
}

impl BlockCache {
    /// Of at most `budget` bytes; one that could not hold a run holds nothing.
    pub fn new(budget: u64) -> Self {
        let items = usize::try_from(budget / RUN).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(items)
            .weight_capacity(budget)
            .build();
        let runs = options.ok().filter(|_| items > 0).map(|options| {
            let hasher = DefaultHashBuilder::default();
            Cache::with_options(options, Weight, hasher, DefaultLifecycle::default())
        });
        Self { runs }
    }

    pub fn is_on(&self) -> bool {
        self.runs.is_some()
    }

    /// Bytes in it, and what they cost.
    pub fn bytes(&self) -> u64 {
        self.runs.as_ref().map_or(0, Cache::weight)
    }

    /// The run that holds `range`, if it reaches that far.
    pub fn get(&self, inode: u64, truncates: u32, range: &Range<u64>) -> Option<Arc<Vec<u8>>> {
        let run = range.start / RUN;
        let found = self.runs.as_ref()?.get(&Key {
            inode,
            truncates,
            run,
        })?;
        (run * RUN + found.len() as u64 >= range.end).then_some(found)
    }

    /// Keeps the run that begins at `start`: all of it, or as much as the file has so far.
    pub fn put(&self, inode: u64, truncates: u32, start: u64, bytes: Arc<Vec<u8>>) {
        if let Some(runs) = &self.runs {
            let run = start / RUN;
            runs.insert(
                Key {
                    inode,
                    truncates,
                    run,
                },
                bytes,
            );
        }
    }

    /// Keeps the runs that begin in what was written at `start` of a file.
    pub fn put_written(&self, inode: u64, truncates: u32, start: u64, bytes: &[u8]) {
        let first = start.next_multiple_of(RUN);
        let skipped = usize::try_from(first - start).unwrap_or(usize::MAX);
        let bytes = bytes.get(skipped..).unwrap_or_default();
        if self.is_on() {
            let runs = bytes.chunks(RUN as usize);
            for (at, run) in (first..).step_by(RUN as usize).zip(runs) {
                self.put(inode, truncates, at, Arc::new(run.to_vec()));
            }
        }
    }

    /// Forgets a file of `size` bytes that can be read no more, or only under another name.
    pub fn forget(&self, inode: u64, truncates: u32, size: u64) {
        if let Some(runs) = self.runs.as_ref().filter(|runs| !runs.is_empty()) {
            for run in 0..size.div_ceil(RUN) {
                runs.remove(&Key {
                    inode,
                    truncates,
                    run,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(byte: u8, length: u64) -> Arc<Vec<u8>> {
        Arc::new(vec![byte; length as usize])
    }

    #[test]
    fn stays_within_its_budget() {
        for budget in [RUN, 3 * RUN, 100 * RUN, 5000 * RUN] {
            let cache = BlockCache::new(budget);
            for i in 0..3 * budget / RUN {
                cache.put(i % 7, 0, i * RUN, run(1, RUN - i % 100));
                assert!(cache.bytes() <= budget, "{} of {budget}", cache.bytes());
            }
            assert!(
                cache.bytes() * 2 >= budget || budget < 4 * RUN,
                "{} of {budget}",
                cache.bytes()
            );
        }
        assert!(!BlockCache::new(0).is_on());
        assert!(!BlockCache::new(RUN - 1).is_on());
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
        assert_eq!(cache.bytes(), 0);
    }
}
