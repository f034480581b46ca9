//! Files on a Caveat-Scriptor drive, each in one run of blocks (thesis, section 4.4). A write takes its blocks and,
//! as a footer, as many as it may damage after them; the footer is free again when the write has succeeded. So no
//! write damages live blocks.

use crate::drive::{CaveatDrive, CaveatError, Parameters};
use crate::free_list::{Fit, FreeList};

/// The blocks of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first block.
    pub start: u64,
    /// Number of blocks.
    pub length: u64,
}

/// A volume of files without names; its user keeps their [`Run`]s.
#[derive(Clone, Debug)]
pub struct Volume {
    drive: CaveatDrive,
    free: FreeList,
    fit: Fit,
    /// The block after the last allocation.
    last: u64,
    /// Blocks of all allocations.
    allocated: u64,
    /// Blocks of all files that were removed.
    cleaned: u64,
}

impl Volume {
    /// An empty volume on a new drive.
    ///
    /// # Errors
    /// [`CaveatError`]: the parameters contradict each other.
    pub fn new(parameters: Parameters, fit: Fit) -> Result<Self, CaveatError> {
        Ok(Self {
            drive: CaveatDrive::create(parameters)?,
            free: FreeList::new(parameters.blocks),
            fit,
            last: 0,
            allocated: 0,
            cleaned: 0,
        })
    }

    /// Writes a file of `length` blocks; `None` if no free extent holds it with its footer.
    ///
    /// # Errors
    /// [`CaveatError`], if the drive refuses a write that the allocator takes for possible.
    pub fn write(&mut self, length: u64) -> Result<Option<Run>, CaveatError> {
        let footer = self.drive.modesense().isolation_distance;
        let behind = match self.fit {
            Fit::LastAccessed => self.drive.position(),
            _ => self.last,
        };
        let Some(start) = self.free.take(length + footer, self.fit, behind) else {
            return Ok(None);
        };
        self.drive.write(start, length)?;
        self.free.give(start + length, footer);
        self.last = start + length;
        self.allocated += length;
        Ok(Some(Run { start, length }))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`CaveatError::MaybeDamaged`] if a later write damaged the file.
    pub fn read(&mut self, run: Run) -> Result<(), CaveatError> {
        self.drive.read(run.start, run.length)
    }

    /// Frees a file's blocks. Cleaning is implicit: they can be allocated at once.
    pub fn remove(&mut self, run: Run) {
        self.free.give(run.start, run.length);
        self.cleaned += run.length;
    }

    /// Number of free blocks.
    pub const fn free(&self) -> u64 {
        self.free.free()
    }

    /// Free blocks in extents too small for one block and its footer, live: `df` should not count them.
    pub fn unusable(&self) -> u64 {
        let footer = self.drive.modesense().isolation_distance;
        self.free.below(footer)
    }

    /// Blocks of all files ever written, and of all that were removed.
    pub const fn traffic(&self) -> (u64, u64) {
        (self.allocated, self.cleaned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is written, nothing that is live is ever damaged, also with no range that is spared.
        #[test]
        fn no_file_is_damaged(
            fit in 0..5_usize,
            distance in 0..20_u64,
            steps in prop::collection::vec((1..30_u64, any::<bool>(), any::<u8>()), 1..200),
        ) {
            let parameters = Parameters {
                blocks: 600,
                block_size: 4096,
                isolation_distance: distance,
                no_overlap_range: 0,
                unshingled: 0,
            };
            let mut volume = Volume::new(parameters, Fit::ALL[fit]).unwrap();
            let mut files: Vec<Run> = Vec::new();
            for (length, removes, which) in steps {
                if removes && !files.is_empty() {
                    volume.remove(files.swap_remove(usize::from(which) % files.len()));
                } else if let Some(run) = volume.write(length).unwrap() {
                    files.push(run);
                }
                for run in &files {
                    prop_assert_eq!(volume.read(*run), Ok(()));
                }
                let live: u64 = files.iter().map(|run| run.length).sum();
                prop_assert_eq!(volume.free() + live, 600);
            }
        }
    }
}
