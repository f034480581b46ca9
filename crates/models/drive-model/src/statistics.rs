//! What a drive has counted.

use crate::flash;
use crate::layer::Cleaning;
use crate::mechanics::Counts;
use crate::request::BLOCK_BYTES;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use zone::Bytes;

/// What the host asked and got, and what the heads did for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ModelStatistics {
    /// Reads of the host.
    pub reads: u64,
    /// Blocks that they read.
    pub read_blocks: u64,
    /// Writes of the host.
    pub writes: u64,
    /// Blocks that they wrote.
    pub written_blocks: u64,
    /// Flushes of the host.
    pub flushes: u64,
    /// What went over the heads.
    pub medium: Counts,
    /// What the drive did for itself.
    pub cleaning: Cleaning,
    /// What flash memory did.
    pub flash: flash::Counts,
}

impl ModelStatistics {
    /// What was counted since `earlier`, which is of the same drive.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            read_blocks: self.read_blocks - earlier.read_blocks,
            writes: self.writes - earlier.writes,
            written_blocks: self.written_blocks - earlier.written_blocks,
            flushes: self.flushes - earlier.flushes,
            medium: self.medium.since(&earlier.medium),
            cleaning: self.cleaning.since(&earlier.cleaning),
            flash: self.flash.since(&earlier.flash),
        }
    }

    /// What there is of what the drive did, for people: a name, and how much.
    pub fn in_words(&self) -> Vec<(&'static str, String)> {
        let blocks = |count: u64| Bytes(count * BLOCK_BYTES).to_string();
        let (medium, cleaning, flash) = (&self.medium, &self.cleaning, &self.flash);
        let facts = [
            ("seeks", medium.seeks, medium.seeks.to_string()),
            (
                "read from the medium",
                medium.read_blocks,
                blocks(medium.read_blocks),
            ),
            (
                "written to the medium",
                medium.written_blocks,
                blocks(medium.written_blocks),
            ),
            (
                "bands cleaned",
                cleaning.bands,
                format!(
                    "{}, {} of them while a write waited; in {:.1} s",
                    cleaning.bands,
                    cleaning.urgent_bands,
                    Span::from_nanos(cleaning.nanos).seconds()
                ),
            ),
            (
                "bands streamed",
                cleaning.streamed_bands,
                cleaning.streamed_bands.to_string(),
            ),
            (
                "programmed on flash",
                flash.programmed_blocks,
                format!(
                    "{}, {:.2} times what was written",
                    blocks(flash.programmed_blocks),
                    self.write_amplification()
                ),
            ),
            ("superblocks erased", flash.erases, flash.erases.to_string()),
        ];
        let counted = facts.into_iter().filter(|(_, count, _)| *count > 0);
        counted.map(|(name, _, text)| (name, text)).collect()
    }

    /// Blocks programmed for each block of the host's; 1 while it has written none.
    pub fn write_amplification(&self) -> f64 {
        if self.written_blocks == 0 {
            return 1.0;
        }
        self.flash.programmed_blocks as f64 / self.written_blocks as f64
    }
}
