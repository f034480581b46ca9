//! Ages a Caveat-Scriptor volume: creates and removes files of weighted random sizes (thesis, section 5.3), to find
//! how much larger than its data the drive has to be. Pure: the seed decides everything, so that the same seed gives
//! the same run.

use crate::drive::{CaveatError, Parameters};
use crate::free_list::Fit;
use crate::volume::{Run, Volume};
use std::collections::VecDeque;
use std::str::FromStr;
use thiserror::Error;

/// Sizes of files in bytes, each with a weight.
#[derive(Clone, PartialEq, Debug)]
pub struct Sizes(Vec<(u64, f64)>);

/// Why [`Sizes`] cannot be parsed from a text.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SizesError {
    /// A line is not a size and a weight.
    #[error("line {line}: `{text}`: a size in bytes and a weight are needed, as in `4096 30`")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// The text has no line with a size and a weight above 0.
    #[error("no line has a size and a weight above 0")]
    Empty,
}

impl Sizes {
    /// The distribution of the thesis: files of 4 and 8 KiB have the heaviest weight, one of 4 MiB is rare. The
    /// thesis does not print the weights. These give the mean that its other numbers imply: 100,000 operations that
    /// fill 1 GiB at 4:1 and then replace, and allocate 2.5 GiB (section 5.3.1), write 42 KiB each time.
    pub fn thesis() -> Self {
        let weights = [30.0, 30.0, 15.0, 8.0, 6.0, 4.0, 2.0, 1.0, 0.5, 0.2, 0.1];
        let sizes = weights.iter().enumerate();
        Self(sizes.map(|(n, weight)| (4096 << n, *weight)).collect())
    }

    /// Weighted mean size, in bytes.
    pub fn mean(&self) -> f64 {
        let weights: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        let bytes: f64 = self
            .0
            .iter()
            .map(|(size, weight)| *size as f64 * weight)
            .sum();
        bytes / weights
    }

    /// The largest size in bytes; 0 if there is none.
    pub fn largest(&self) -> u64 {
        self.0.iter().map(|(size, _)| *size).max().unwrap_or(0)
    }

    fn draw(&self, random: &mut fastrand::Rng) -> u64 {
        let weights: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        let mut at = random.f64() * weights;
        for (size, weight) in &self.0 {
            at -= weight;
            if at < 0.0 {
                return *size;
            }
        }
        self.0.last().map_or(0, |(size, _)| *size)
    }
}

impl FromStr for Sizes {
    type Err = SizesError;

    /// Parses lines of a size in bytes and a weight; empty lines and lines that begin with `#` are skipped.
    fn from_str(text: &str) -> Result<Self, SizesError> {
        let mut sizes = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let mut words = line.split_whitespace();
            let size = words.next().and_then(|word| word.parse::<u64>().ok());
            let weight = words.next().and_then(|word| word.parse::<f64>().ok());
            match (size, weight, words.next()) {
                (Some(size), Some(weight), None) if weight >= 0.0 && weight.is_finite() => {
                    if weight > 0.0 {
                        sizes.push((size, weight));
                    }
                }
                _ => {
                    return Err(SizesError::Line {
                        line: n + 1,
                        text: line.to_owned(),
                    });
                }
            }
        }
        match sizes.is_empty() {
            true => Err(SizesError::Empty),
            false => Ok(Self(sizes)),
        }
    }
}

/// An operation of a [`Workload`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Create a file.
    Create {
        /// The file's number, unique in the workload.
        file: u64,
        /// The file's size.
        bytes: u64,
    },
    /// Remove a file.
    Remove {
        /// The file's number.
        file: u64,
    },
}

/// Decides which files are created and removed. Four are created for each one removed, until the next one does not
/// fit; from then on files are removed until it does.
#[derive(Clone, Debug)]
pub struct Workload {
    sizes: Sizes,
    random: fastrand::Rng,
    capacity: u64,
    unit: u64,
    /// Percentage of removals that take a random file; all others take the oldest.
    random_percent: u8,
    /// Existing files, the oldest first: number and bytes, rounded up to units.
    files: VecDeque<(u64, u64)>,
    live: u64,
    next: u64,
    /// Size of the file that could not be created for lack of room, in bytes; it is the next to be created.
    waiting: Option<u64>,
    is_steady: bool,
}

impl Workload {
    /// A workload of files of at most `capacity` bytes together, each rounded up to `unit`. Removals take a random
    /// file.
    pub fn new(sizes: Sizes, capacity: u64, unit: u64, seed: u64) -> Self {
        Self {
            sizes,
            random: fastrand::Rng::with_seed(seed),
            capacity,
            unit: unit.max(1),
            random_percent: 100,
            files: VecDeque::new(),
            live: 0,
            next: 0,
            waiting: None,
            is_steady: false,
        }
    }

    /// Makes `percent` of a hundred removals take a random file, and all others the oldest.
    #[must_use]
    pub const fn with_random_removals(mut self, percent: u8) -> Self {
        self.random_percent = percent;
        self
    }

    /// Bytes of all existing files, each rounded up to units.
    pub const fn live(&self) -> u64 {
        self.live
    }

    /// Whether the capacity was reached once.
    pub const fn is_steady(&self) -> bool {
        self.is_steady
    }

    /// The next operation; `None` only if the next file does not fit into an empty volume.
    pub fn step(&mut self) -> Option<Step> {
        let bytes = match self.waiting.take() {
            Some(bytes) => bytes,
            None => self.sizes.draw(&mut self.random),
        };
        let room = bytes.div_ceil(self.unit) * self.unit;
        let fits = self.live + room <= self.capacity;
        self.is_steady |= !fits;
        let removes = !fits || !self.is_steady && self.random.u8(0..5) == 0;
        if removes && !self.files.is_empty() {
            self.waiting = Some(bytes);
            let is_any = self.random.u8(0..100) < self.random_percent;
            let which = self.random.usize(0..self.files.len());
            let (file, room) = self.files.remove(if is_any { which } else { 0 })?;
            self.live -= room;
            return Some(Step::Remove { file });
        }
        if !fits {
            return None;
        }
        let file = self.next;
        self.next += 1;
        self.files.push_back((file, room));
        self.live += room;
        Some(Step::Create { file, bytes })
    }
}

/// Parameters of an aging run on a [`Volume`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aging {
    /// Blocks that files fill, the capacity of the workload.
    pub usable_blocks: u64,
    /// Bytes of a block.
    pub block_size: u32,
    /// The drive's isolation distance in blocks.
    pub isolation_distance: u64,
    /// Number of operations.
    pub operations: u64,
    /// Percentage of removals that take a random file; all others take the oldest.
    pub random_percent: u8,
    /// Seed of the [`Workload`].
    pub seed: u64,
}

/// State of a volume at the end of an aging run.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Aged {
    /// Blocks of the drive.
    pub total_blocks: u64,
    /// Free blocks at the end.
    pub free_blocks: u64,
    /// Of the free blocks, those in extents too small for one block and its footer.
    pub unusable_blocks: u64,
    /// Blocks of all files ever written.
    pub allocated_blocks: u64,
    /// Blocks of all files that were removed.
    pub cleaned_blocks: u64,
}

impl Aging {
    /// Parameters of the thesis: 1 GiB, 100,000 operations. It does not print which files are removed. If every
    /// removal took a random file, drives of nearly half as much again would be needed whatever the allocator,
    /// because the hole that a small file leaves has no room for another file and its footer. With one random removal
    /// of twenty, and all others of the oldest file, drives have the printed size at an isolation distance of 16.
    pub const fn thesis(isolation_distance: u64, seed: u64) -> Self {
        Self {
            usable_blocks: 262_144,
            block_size: 4096,
            isolation_distance,
            operations: 100_000,
            random_percent: 5,
            seed,
        }
    }

    /// Ages a drive of `total_blocks`; `None` if no free extent holds one of the files.
    ///
    /// # Errors
    /// [`CaveatError`], if the drive refuses a write that the allocator takes for possible.
    pub fn run(&self, fit: Fit, total_blocks: u64) -> Result<Option<Aged>, CaveatError> {
        let block = u64::from(self.block_size);
        let parameters = Parameters {
            blocks: total_blocks,
            block_size: self.block_size,
            isolation_distance: self.isolation_distance,
            no_overlap_range: 0,
            unshingled: 0,
        };
        let mut volume = Volume::new(parameters, fit)?;
        let capacity = self.usable_blocks * block;
        let mut workload = Workload::new(Sizes::thesis(), capacity, block, self.seed)
            .with_random_removals(self.random_percent);
        let mut runs: Vec<Option<Run>> = Vec::new();
        for _ in 0..self.operations {
            match workload.step() {
                Some(Step::Create { bytes, .. }) => match volume.write(bytes.div_ceil(block))? {
                    Some(run) => runs.push(Some(run)),
                    None => return Ok(None),
                },
                Some(Step::Remove { file }) => {
                    if let Some(run) = runs.get_mut(file as usize).and_then(Option::take) {
                        volume.remove(run);
                    }
                }
                None => break,
            }
        }
        let (allocated_blocks, cleaned_blocks) = volume.traffic();
        Ok(Some(Aged {
            total_blocks,
            free_blocks: volume.free(),
            unusable_blocks: volume.unusable(),
            allocated_blocks,
            cleaned_blocks,
        }))
    }

    /// The smallest drive on which [`Self::run`] finishes: its size beyond [`Self::usable_blocks`] in percent, tried
    /// in steps of `step`, and its final state. `None` if a drive of twice the usable blocks is too small.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn least(&self, fit: Fit, step: u64) -> Result<Option<(u64, Aged)>, CaveatError> {
        for percent in (0..=100).step_by(step.max(1) as usize) {
            let total = self.usable_blocks + self.usable_blocks * percent / 100;
            if let Some(aged) = self.run(fit, total)? {
                return Ok(Some((percent, aged)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_lines_of_sizes_and_weights() {
        let sizes: Sizes = "# bytes weight\n4096 3\n\n8192 1 # rare\n".parse().unwrap();
        assert_eq!((sizes.mean(), sizes.largest()), (5120.0, 8192));
        let wrong = "4096 3\nmuch".parse::<Sizes>().unwrap_err();
        assert!(matches!(wrong, SizesError::Line { line: 2, .. }));
        assert_eq!("4096 0".parse::<Sizes>(), Err(SizesError::Empty));
        let mean = Sizes::thesis().mean() / 1024.0;
        assert!((41.0..44.0).contains(&mean), "{mean}");
    }

    #[test]
    fn a_seed_decides_every_step_and_files_fill_what_they_may() {
        let steps = |seed| {
            let mut workload = Workload::new(Sizes::thesis(), 64 << 20, 4096, seed);
            let steps: Vec<_> = (0..5_000).map_while(|_| workload.step()).collect();
            assert!(workload.is_steady() && workload.live() <= 64 << 20);
            assert!(workload.live() > 60 << 20);
            steps
        };
        assert_eq!(steps(1), steps(1));
        assert_ne!(steps(1), steps(2));
        assert_eq!(steps(1).len(), 5_000);
    }

    #[test]
    fn an_aged_volume_is_full_but_for_what_was_added() {
        let aging = Aging {
            usable_blocks: 16_384,
            operations: 6_000,
            ..Aging::thesis(16, 3)
        };
        for fit in Fit::ALL {
            let (percent, aged) = aging.least(fit, 1).unwrap().unwrap();
            assert!((1..100).contains(&percent), "{}: {percent}", fit.name());
            assert!(aged.unusable_blocks < aged.free_blocks);
            assert!(aged.free_blocks >= aged.total_blocks - 16_384);
            assert_eq!(aging.run(fit, 16_384).unwrap(), None);
        }
    }
}
