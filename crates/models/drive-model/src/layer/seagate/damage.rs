//! Blocks that are unreadable after a power cut in the overwrite of a band.

use serde::{Deserialize, Serialize};
use std::ops::Range;

#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Damage {
    ranges: Vec<Range<u64>>,
}

impl Damage {
    pub fn add(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.ranges.push(range);
        }
    }

    /// The first damaged block of a range.
    pub fn first(&self, lba: u64, blocks: u64) -> Option<u64> {
        let touched = |r: &&Range<u64>| r.start < lba + blocks && lba < r.end;
        let first = |r: &Range<u64>| r.start.max(lba);
        self.ranges.iter().filter(touched).map(first).min()
    }

    /// Removes blocks that were rewritten, which makes them readable.
    pub fn overwritten(&mut self, lba: u64, blocks: u64) {
        if self.first(lba, blocks).is_none() {
            return;
        }
        let end = lba + blocks;
        let rest = |r: &Range<u64>| [r.start..r.end.min(lba), r.start.max(end)..r.end];
        self.ranges = (self.ranges.iter().flat_map(rest))
            .filter(|r| !r.is_empty())
            .collect();
    }
}

/// The blocks that an interrupted overwrite leaves unreadable (figure 2.23). Each track overlaps the next one when it
/// is written: so after the end of `written`, the rest of its track holds old data under the previous track, and the
/// next track has lost the part next to `written`. Blocks from `band_end` on are safe, because a wider gap separates
/// the bands.
pub(super) fn torn(
    written: Range<u64>,
    track: u64,
    track_blocks: u64,
    band_end: u64,
) -> [Range<u64>; 2] {
    let end = written.end;
    let next_track = track + track_blocks;
    // The previous track was written only if the stream began there.
    let rest = if written.start < track {
        end..next_track.min(band_end)
    } else {
        end..end
    };
    let begun = written.start.max(track);
    let overlapped = next_track + (begun - track)..(next_track + (end - track)).min(band_end);
    let overlapped = if overlapped.start < overlapped.end {
        overlapped
    } else {
        end..end
    };
    [rest, overlapped]
}
