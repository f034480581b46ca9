//! The requests of an LSM tree: which SSTs are written at the same time, and which are removed together.
//!
//! Levels of SSTs of one size, each level ten times as large as the one above, in the order of their keys. A
//! write-ahead log and memtables feed level 0; its four oldest SSTs are merged with all of level 1, and an SST of any
//! other level with those of the next that its keys overlap. The merged SSTs are removed when the last of the new
//! ones is written. Several merges run at a time, at the levels that exceed their sizes most; they write single
//! blocks in random turns.

use drive_model::Random;
use std::collections::VecDeque;

/// The number of a file, and its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct File {
    pub number: u32,
    pub blocks: u32,
}

/// The file system that a tree writes to.
pub trait Files {
    /// Begins a file.
    fn create(&mut self, number: u32);
    /// Writes the next blocks of a file.
    fn append(&mut self, number: u32, blocks: u32);
    /// Closes a file, which is not written to any more.
    fn close(&mut self, number: u32);
    /// Removes a file.
    fn remove(&mut self, number: u32);
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Table {
    file: File,
    busy: bool,
}

/// A merge under way, or a memtable being written.
#[derive(Debug)]
struct Job {
    to: usize,
    inputs: Vec<(usize, u32)>,
    /// Index in level `to` at which the new SSTs are inserted.
    place: usize,
    outputs: VecDeque<u32>,
    done: Vec<File>,
    open: Option<(u32, u32)>,
}

pub struct Tree<F> {
    pub files: F,
    random: Random,
    /// Blocks of an SST, and of a memtable and its log.
    table_blocks: u32,
    /// The number of SSTs that each level should have, from level 0 on.
    targets: Vec<usize>,
    /// Level 0 is in the order of age, the newest SST first.
    levels: Vec<Vec<Table>>,
    jobs: Vec<Job>,
    merges: usize,
    log: Option<(u32, u32)>,
    next_number: u32,
}

/// SSTs of level 0 at which it is merged, and at which the user's writes stall.
const LEVEL_0: usize = 4;
const STALL: usize = 12;

impl<F: Files> Tree<F> {
    /// An empty tree that will have `tables` SSTs, with at most `merges` merges at a time.
    pub fn new(files: F, table_blocks: u32, tables: usize, merges: usize, random: Random) -> Self {
        let upper = [LEVEL_0, 4, 40, 400];
        let last = tables - upper.iter().skip(1).sum::<usize>();
        let targets: Vec<usize> = upper.into_iter().chain([last]).collect();
        Self {
            files,
            random,
            table_blocks,
            levels: vec![Vec::new(); targets.len()],
            targets,
            jobs: Vec::new(),
            merges,
            log: None,
            next_number: 0,
        }
    }

    fn create(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        self.files.create(number);
        number
    }

    /// Writes keys in order: one SST after the other, which move to the last level without being rewritten.
    pub fn fill(&mut self, tables: usize) {
        for _ in 0..tables {
            let number = self.create();
            for _ in 0..self.table_blocks {
                self.files.append(number, 1);
            }
            self.files.close(number);
            let file = File {
                number,
                blocks: self.table_blocks,
            };
            if let Some(level) = self.levels.last_mut() {
                level.push(Table { file, busy: false });
            }
        }
    }

    /// Writes one block of a merge, a memtable or the log, drawn at random.
    pub fn step(&mut self) {
        while self.merging() < self.merges && self.begin_merge() {}
        let streams = self.jobs.len() + 1;
        let stream = self.random.below(streams as u64) as usize;
        if stream < self.jobs.len() {
            self.step_job(stream);
        } else if self.levels[0].len() < STALL || self.jobs.is_empty() {
            self.step_log();
        } else {
            let job = self.random.below(self.jobs.len() as u64) as usize;
            self.step_job(job);
        }
    }

    fn merging(&self) -> usize {
        self.jobs.iter().filter(|job| job.to > 0).count()
    }

    fn step_log(&mut self) {
        let (number, blocks) = match self.log.take() {
            Some(log) => log,
            None => (self.create(), 0),
        };
        self.files.append(number, 1);
        if blocks + 1 < self.table_blocks {
            self.log = Some((number, blocks + 1));
            return;
        }
        // The memtable is full: it is written out, and then its log is removed.
        self.files.close(number);
        self.jobs.push(Job {
            to: 0,
            inputs: vec![(usize::MAX, number)],
            place: 0,
            outputs: [self.table_blocks].into(),
            done: Vec::new(),
            open: None,
        });
    }

    fn step_job(&mut self, index: usize) {
        let (number, left) = match self.jobs[index].open.take() {
            Some(open) => open,
            None => {
                let number = self.create();
                let job = &mut self.jobs[index];
                let blocks = job.outputs.pop_front().unwrap_or(1);
                job.done.push(File { number, blocks });
                (number, blocks)
            }
        };
        self.files.append(number, 1);
        if left > 1 {
            self.jobs[index].open = Some((number, left - 1));
            return;
        }
        self.files.close(number);
        if self.jobs[index].outputs.is_empty() {
            let job = self.jobs.swap_remove(index);
            self.end(job);
        }
    }

    fn end(&mut self, job: Job) {
        for (level, number) in &job.inputs {
            self.files.remove(*number);
            if let Some(tables) = self.levels.get_mut(*level) {
                tables.retain(|table| table.file.number != *number);
            }
        }
        let level = &mut self.levels[job.to];
        let place = job.place.min(level.len());
        let done = job.done.into_iter().map(|file| Table { file, busy: false });
        level.splice(place..place, done);
    }

    /// Begins a merge at the level that exceeds its size most, if any does.
    fn begin_merge(&mut self) -> bool {
        let last = self.levels.len() - 1;
        let score = |level: usize| {
            let free = self.levels[level].iter().filter(|t| !t.busy).count();
            free as f64 / self.targets[level] as f64
        };
        let mut order: Vec<usize> = (0..last).filter(|level| score(*level) >= 1.0).collect();
        order.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
        order.into_iter().any(|level| self.merge(level))
    }

    fn merge(&mut self, level: usize) -> bool {
        for _ in 0..8 {
            let (above, below) = (self.levels[level].len(), self.levels[level + 1].len());
            let (from, until, place, end) = if level == 0 {
                (above.saturating_sub(LEVEL_0), above, 0, below)
            } else {
                let from = self.random.below(above as u64) as usize;
                let (place, end) = (from * below / above, (from + 1) * below / above);
                (from, from + 1, place, end)
            };
            let upper = &self.levels[level][from..until];
            let lower = &self.levels[level + 1][place..end];
            if upper.iter().chain(lower).any(|table| table.busy) {
                continue;
            }
            let blocks = |tables: &[Table]| tables.iter().map(|t| t.file.blocks).sum::<u32>();
            // Once the last level has all keys, new entries replace old ones there.
            let grows = level + 2 < self.levels.len() || below < self.targets[level + 1];
            let mut left = blocks(lower);
            if grows {
                // Keys that are in both levels make the last SST smaller.
                let twice = self.random.below(u64::from(self.table_blocks)) as u32;
                left += blocks(upper).saturating_sub(twice);
            }
            let mut outputs = VecDeque::new();
            while left > 0 {
                outputs.push_back(left.min(self.table_blocks));
                left -= left.min(self.table_blocks);
            }
            let mut inputs = Vec::new();
            for (level, range) in [(level, from..until), (level + 1, place..end)] {
                for table in &mut self.levels[level][range] {
                    table.busy = true;
                    inputs.push((level, table.file.number));
                }
            }
            if outputs.is_empty() {
                outputs.push_back(1);
            }
            self.jobs.push(Job {
                to: level + 1,
                inputs,
                place,
                outputs,
                done: Vec::new(),
                open: None,
            });
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NoFiles;

    impl Files for NoFiles {
        fn create(&mut self, _number: u32) {}
        fn append(&mut self, _number: u32, _blocks: u32) {}
        fn close(&mut self, _number: u32) {}
        fn remove(&mut self, _number: u32) {}
    }

    /// What stays in level 0 is newer than level 1, for a read looks there first.
    #[test]
    fn a_merge_of_level_0_takes_the_oldest_ones() {
        let mut tree = Tree::new(NoFiles, 1, 1_000, 1, Random::new(1));
        let mut written = Vec::new();
        for _ in 0..6 {
            tree.step_log();
            written.push(tree.next_number);
            tree.step_job(0);
        }
        assert!(tree.merge(0));
        let numbers = tree.jobs[0].inputs.iter().map(|(_, number)| *number);
        let mut merged: Vec<u32> = numbers.collect();
        merged.sort_unstable();
        assert_eq!(merged, written[..LEVEL_0]);
    }
}
