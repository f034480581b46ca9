//! Chooses the part of a Caveat-Scriptor drive to clean. Pure.

use crate::ranges::Ranges;
use std::ops::Range;

/// Runs of live blocks by address, with cumulative sums that make every part of the drive quick to rate.
#[derive(Debug)]
pub struct Windows {
    /// Start, length, live blocks before the run, and room in gaps before the run.
    runs: Vec<(u64, u64, u64, u64)>,
    /// Number of blocks that an allocation needs free after it.
    footer: u64,
    /// Number of blocks on the drive.
    end: u64,
}

impl Windows {
    /// Takes runs in order, as start and length, which do not overlap and end by `end`.
    pub fn new(runs: impl Iterator<Item = (u64, u64)>, footer: u64, end: u64) -> Self {
        let (mut live, mut room, mut behind) = (0, 0, 0);
        let runs = runs.map(|(start, length)| {
            room += (start - behind).saturating_sub(footer);
            let run = (start, length, live, room);
            live += length;
            behind = start + length;
            run
        });
        Self {
            runs: runs.collect(),
            footer,
            end,
        }
    }

    /// Live blocks below `at`, and room in the gaps below it, counted as if a gap began at `at`.
    fn below(&self, at: u64) -> (u64, u64) {
        let count = self.runs.partition_point(|(start, ..)| *start < at);
        let before = count.checked_sub(1).map(|last| self.runs[last]);
        let (start, length, live, room) = before.unwrap_or((0, 0, 0, 0));
        let behind = start + length;
        if at <= behind {
            return (live + (at - start), room);
        }
        let end = self.runs.get(count).map_or(self.end, |run| run.0);
        let room_from = |from: u64| (end - from).saturating_sub(self.footer);
        (live + length, room + room_from(behind) - room_from(at))
    }

    /// The part of `size` blocks whose cleaning gains the most room while it moves at most `most` live blocks
    /// elsewhere; `None` if no part gains any. Parts begin at 0 or after a live run, and have no block of `barriers`.
    pub fn best(&self, size: u64, most: u64, barriers: &Ranges) -> Option<Range<u64>> {
        let ends = self.runs.iter().map(|(start, length, ..)| start + length);
        let starts = std::iter::once(0).chain(ends);
        let windows = starts.filter_map(|start| {
            let window = start..start + size;
            if window.end > self.end || barriers.overlap(&window) {
                return None;
            }
            let (from, to) = (self.below(window.start), self.below(window.end));
            let live = to.0 - from.0;
            // The reserve loses the blocks that move to it, and the part's gaps are no room of their own any more.
            let lost = live + self.footer + (to.1 - from.1);
            (live <= most && lost < size).then(|| (size - lost, window))
        });
        let best = windows.max_by_key(|(gain, window)| (*gain, std::cmp::Reverse(window.start)));
        best.map(|(_, window)| window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emptiest_part_is_the_best_unless_its_room_can_be_used_as_it_is() {
        // Gaps of 3 within 20..60, of which none holds a footer of 4 and a block more; then a large one.
        let runs = [(0, 20), (23, 7), (33, 7), (43, 7), (53, 27), (100, 10)];
        let windows = Windows::new(runs.into_iter(), 4, 110);
        let nowhere = Ranges::default();
        let mut barriers = Ranges::default();
        barriers.insert(50, 55);
        assert_eq!(windows.best(40, 36, &nowhere), Some(20..60));
        assert_eq!(windows.best(40, 27, &nowhere), None);
        assert_eq!(windows.best(40, 36, &barriers), Some(0..40));
        let full = Windows::new([(0, 100)].into_iter(), 4, 100);
        assert_eq!(full.best(40, 36, &nowhere), None);
    }
}
