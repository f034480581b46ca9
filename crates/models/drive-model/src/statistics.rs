//! Counters of a model.

use crate::flash;
use crate::layer::Cleaning;
use crate::mechanics::Counts;
use crate::request::BLOCK_BYTES;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use zone::Bytes;

/// Counters of a drive: requests of the host, and the work done for them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct ModelStatistics {
    /// Reads of the host.
    pub reads: u64,
    /// Blocks read by the host.
    pub read_blocks: u64,
    /// Writes of the host.
    pub writes: u64,
    /// Blocks written by the host.
    pub written_blocks: u64,
    /// Flushes of the host.
    pub flushes: u64,
    /// Work of a disk's heads.
    pub medium: Counts,
    /// Background work of the drive.
    pub cleaning: Cleaning,
    /// Work of the flash memory.
    pub flash: flash::Counts,
}

impl ModelStatistics {
    /// The difference to `earlier`, which is of the same drive.
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

    /// The counters that are not zero, for people: name and amount.
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

    /// Blocks programmed for each block that the host wrote; 1 if the host wrote none.
    pub fn write_amplification(&self) -> f64 {
        if self.written_blocks == 0 {
            return 1.0;
        }
        self.flash.programmed_blocks as f64 / self.written_blocks as f64
    }
}
