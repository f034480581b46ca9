//! Which part of a Caveat-Scriptor drive to clean. Pure.

use std::ops::Range;

/// Runs of live blocks by address, with what lies below each.
#[derive(Debug)]
pub struct Windows {
    /// Start, length, live blocks in front of it, and room in gaps in front of it.
    runs: Vec<(u64, u64, u64, u64)>,
    /// Blocks that an allocation needs free behind it.
    footer: u64,
    /// Blocks in all.
    end: u64,
}

impl Windows {
    /// Of runs in order that do not overlap, below `end`.
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

    /// Live blocks below `at`, and the room that gaps would lose if they began there.
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

    /// Of all parts of `size` blocks that begin behind a live run or at 0 and do not touch `barrier`, the one
    /// where moving at most `most` live blocks elsewhere gains the most room; `None` if that is none anywhere.
    pub fn best(&self, size: u64, most: u64, barrier: &Range<u64>) -> Option<Range<u64>> {
        let ends = self.runs.iter().map(|(start, length, ..)| start + length);
        let starts = std::iter::once(0).chain(ends);
        let windows = starts.filter_map(|start| {
            let window = start..start + size;
            if window.end > self.end || (window.start < barrier.end && barrier.start < window.end) {
                return None;
            }
            let (from, to) = (self.below(window.start), self.below(window.end));
            let live = to.0 - from.0;
            // What is kept free loses what moves there, and the gaps are no more by themselves.
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
        let nowhere = 1000..1001;
        assert_eq!(windows.best(40, 36, &nowhere), Some(20..60));
        assert_eq!(windows.best(40, 27, &nowhere), None);
        assert_eq!(windows.best(40, 36, &(50..55)), Some(0..40));
        let full = Windows::new([(0, 100)].into_iter(), 4, 100);
        assert_eq!(full.best(40, 36, &nowhere), None);
    }
}
