//! A model of a shingled drive that takes writes anywhere and records which blocks each may have damaged (thesis,
//! chapters 3 and 4.2). It has no data; [`crate::CaveatDevice`] does.

use crate::bits::Bits;
use thiserror::Error;

/// Parameters of a drive, the answer of `caveat_modesense`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Blocks of the drive.
    pub blocks: u64,
    /// Bytes of a block.
    pub block_size: u32,
    /// Drive isolation distance: a write damages at most this many blocks after its last one.
    pub isolation_distance: u64,
    /// Drive no-overlap range: a write leaves at least this many blocks after its first one undamaged.
    pub no_overlap_range: u64,
    /// Number of unshingled blocks at the start of the drive: no write to them damages anything.
    pub unshingled: u64,
}

impl Parameters {
    /// Blocks that a write of `first..end` may damage, as first and end (exclusive): from the first block after it
    /// outside the no-overlap range to the end of the isolation distance, which may exceed the drive.
    pub fn damage(&self, first: u64, end: u64) -> (u64, u64) {
        if end <= self.unshingled {
            return (end, end);
        }
        let from = (first + 1).saturating_add(self.no_overlap_range).max(end);
        (from, end.saturating_add(self.isolation_distance))
    }

    /// Bitmap of a new drive: every shingled block may be damaged.
    pub fn new_bitmap(&self) -> Bits {
        let mut damaged = Bits::new(self.blocks, true);
        damaged.set(0, self.unshingled, false);
        damaged
    }

    /// Checks that the parameters fit each other.
    ///
    /// # Errors
    /// [`CaveatError::Parameters`], [`CaveatError::Unshingled`], [`CaveatError::Distance`].
    pub const fn validate(&self) -> Result<(), CaveatError> {
        if self.unshingled > self.blocks {
            return Err(CaveatError::Unshingled {
                unshingled: self.unshingled,
                blocks: self.blocks,
            });
        }
        if self.isolation_distance > self.blocks {
            return Err(CaveatError::Distance {
                distance: self.isolation_distance,
                blocks: self.blocks,
            });
        }
        if self.no_overlap_range > self.isolation_distance {
            return Err(CaveatError::Parameters {
                range: self.no_overlap_range,
                distance: self.isolation_distance,
            });
        }
        Ok(())
    }
}

/// Why a request was not carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CaveatError {
    /// The request is empty, or reaches beyond the end of the drive.
    #[error("blocks {first}..{end} of a drive with {blocks}")]
    OutOfRange {
        /// The first block.
        first: u64,
        /// End of the request (exclusive).
        end: u64,
        /// Blocks of the drive.
        blocks: u64,
    },
    /// A block to be read was never written, or may have been damaged by a write to another block.
    #[error("block {block} may be damaged")]
    MaybeDamaged {
        /// The first such block.
        block: u64,
    },
    /// The unshingled part is larger than the drive.
    #[error("{unshingled} unshingled blocks of {blocks}")]
    Unshingled {
        /// Unshingled blocks.
        unshingled: u64,
        /// Blocks of the drive.
        blocks: u64,
    },
    /// The isolation distance exceeds the drive.
    #[error("an isolation distance of {distance} blocks on a drive with {blocks}")]
    Distance {
        /// The distance.
        distance: u64,
        /// Blocks of the drive.
        blocks: u64,
    },
    /// The no-overlap range exceeds the isolation distance.
    #[error("a no-overlap range of {range} exceeds the isolation distance, {distance}")]
    Parameters {
        /// The range.
        range: u64,
        /// The distance.
        distance: u64,
    },
}

/// Which blocks of a Caveat-Scriptor drive can be read, and where its head is.
#[derive(Clone, Debug)]
pub struct CaveatDrive {
    parameters: Parameters,
    /// Which blocks may be damaged.
    damaged: Bits,
    /// Position of the head: the block after the last one that was read or written.
    position: u64,
}

impl CaveatDrive {
    /// A new drive, of which every shingled block may be damaged.
    ///
    /// # Errors
    /// [`CaveatError::Parameters`].
    pub fn create(parameters: Parameters) -> Result<Self, CaveatError> {
        Self::open(parameters, parameters.new_bitmap())
    }

    /// A drive of which the blocks in `damaged` may be damaged.
    ///
    /// # Errors
    /// [`CaveatError::Parameters`].
    pub fn open(parameters: Parameters, damaged: Bits) -> Result<Self, CaveatError> {
        parameters.validate()?;
        Ok(Self {
            parameters,
            damaged,
            position: 0,
        })
    }

    /// The drive's parameters.
    pub const fn modesense(&self) -> Parameters {
        self.parameters
    }

    /// Position of the head: the block after the last one that was read or written.
    pub const fn position(&self) -> u64 {
        self.position
    }

    fn check(&self, first: u64, count: u64) -> Result<u64, CaveatError> {
        let blocks = self.parameters.blocks;
        let end = first.saturating_add(count);
        if count == 0 || end > blocks {
            return Err(CaveatError::OutOfRange { first, end, blocks });
        }
        Ok(end)
    }

    /// Writes blocks `first..first + count`. With these as i to j, blocks max(i + 1 + range, j + 1) to j + distance
    /// may be damaged afterwards.
    ///
    /// # Errors
    /// [`CaveatError::OutOfRange`]. Damage beyond the end of the drive is ignored.
    pub fn write(&mut self, first: u64, count: u64) -> Result<(), CaveatError> {
        let end = self.check(first, count)?;
        self.damaged.set(first, end, false);
        let (from, to) = self.parameters.damage(first, end);
        self.damaged.set(from, to, true);
        self.position = end;
        Ok(())
    }

    /// The first block of `first..end` that may be damaged; `None` if all can be read.
    pub fn damaged(&self, first: u64, end: u64) -> Option<u64> {
        self.damaged.next(first, end, true)
    }

    /// Reads blocks `first..first + count`.
    ///
    /// # Errors
    /// [`CaveatError::OutOfRange`], [`CaveatError::MaybeDamaged`].
    pub fn read(&mut self, first: u64, count: u64) -> Result<(), CaveatError> {
        let end = self.check(first, count)?;
        if let Some(block) = self.damaged(first, end) {
            return Err(CaveatError::MaybeDamaged { block });
        }
        self.position = end;
        Ok(())
    }

    /// Runs of blocks that can be read, as `caveat_dump` prints them: first and count.
    pub fn dump(&self) -> Vec<(u64, u64)> {
        self.damaged.runs(false).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(isolation_distance: u64, no_overlap_range: u64) -> CaveatDrive {
        let parameters = Parameters {
            blocks: 100,
            block_size: 4096,
            isolation_distance,
            no_overlap_range,
            unshingled: 0,
        };
        CaveatDrive::create(parameters).unwrap()
    }

    #[test]
    fn a_write_damages_what_lies_within_the_distance_and_outside_of_the_range() {
        let mut drive = drive(10, 4);
        drive.write(0, 60).unwrap();
        // One block: 21..=24 are within the range, 25..=30 may be damaged.
        drive.write(20, 1).unwrap();
        assert_eq!(drive.dump(), [(0, 25), (31, 29)]);
        assert_eq!(
            drive.read(24, 2),
            Err(CaveatError::MaybeDamaged { block: 25 })
        );
        drive.read(0, 25).unwrap();
        assert_eq!(drive.position(), 25);
        // A long one ends behind its range: all of the distance may be damaged.
        drive.write(40, 8).unwrap();
        assert_eq!(drive.dump(), [(0, 25), (31, 17), (58, 2)]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut drive = drive(10, 0);
        assert!(matches!(
            drive.write(95, 6),
            Err(CaveatError::OutOfRange { .. })
        ));
        assert!(matches!(
            drive.write(1, 0),
            Err(CaveatError::OutOfRange { .. })
        ));
        assert_eq!(
            drive.read(0, 1),
            Err(CaveatError::MaybeDamaged { block: 0 })
        );
        drive.write(95, 5).unwrap();
        let parameters = Parameters {
            no_overlap_range: 11,
            ..drive.modesense()
        };
        assert!(CaveatDrive::create(parameters).is_err());
        // In bytes, the second one is none.
        for isolation_distance in [101, 1 << 52] {
            let parameters = Parameters {
                isolation_distance,
                ..drive.modesense()
            };
            assert!(matches!(
                CaveatDrive::create(parameters),
                Err(CaveatError::Distance { .. })
            ));
        }
    }
}
