//! The extents that a map had at different times, laid over each other: where two overlap, the later one shows. Pure.

use object::Extent;
use std::collections::BTreeMap;

/// The visible parts of the extents of one map.
#[derive(Default)]
pub(super) struct Layers {
    extents: Vec<(u64, Extent)>,
    /// Visible parts by their first byte: the end, and the index of the extent.
    pieces: BTreeMap<u64, (u64, usize)>,
}

/// A run of a map's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stretch<'a> {
    pub length: u64,
    /// The extent that shows and the first byte of it that does; `None`: no extent.
    pub extent: Option<(&'a Extent, u64)>,
}

impl Layers {
    /// Lays an extent over all earlier ones.
    pub fn lay(&mut self, start: u64, extent: Extent) {
        let end = start.saturating_add(extent.length);
        self.cut(start);
        self.cut(end);
        let covered: Vec<u64> = self.pieces.range(start..end).map(|(at, _)| *at).collect();
        for at in covered {
            self.pieces.remove(&at);
        }
        if start < end {
            self.pieces.insert(start, (end, self.extents.len()));
            self.extents.push((start, extent));
        }
    }

    /// Splits the piece that `at` lies within, if any.
    fn cut(&mut self, at: u64) {
        if let Some((_, piece)) = self.pieces.range_mut(..at).next_back()
            && piece.0 > at
        {
            let (end, which) = *piece;
            piece.0 = at;
            self.pieces.insert(at, (end, which));
        }
    }

    /// The bytes `from..to` of the map, in order and without gaps.
    pub fn stretches(&self, from: u64, to: u64) -> Vec<Stretch<'_>> {
        let mut found = Vec::new();
        let mut next = from;
        let first = self.pieces.range(..=from).next_back().map(|(at, _)| *at);
        for (start, (end, which)) in self.pieces.range(first.unwrap_or(from)..to) {
            let (low, high) = ((*start).max(next), (*end).min(to));
            if low >= high {
                continue;
            }
            if low > next {
                let length = low - next;
                found.push(Stretch {
                    length,
                    extent: None,
                });
            }
            let (at, extent) = &self.extents[*which];
            found.push(Stretch {
                length: high - low,
                extent: Some((extent, low - at)),
            });
            next = high;
        }
        if next < to {
            let length = to - next;
            found.push(Stretch {
                length,
                extent: None,
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Content;

    /// Compared with a map of single bytes.
    #[test]
    fn the_last_one_shows() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..300 {
            let (mut layers, mut bytes) = (Layers::default(), [None; 60]);
            for _ in 0..random.usize(..12) {
                let (start, length) = (random.u64(..50), random.u64(1..10));
                // Start and length identify an extent.
                let content = Content::Hole;
                layers.lay(start, Extent { length, content });
                for at in start..start + length {
                    bytes[at as usize] = Some((start, length));
                }
            }
            let (from, to) = (random.u64(..30), random.u64(30..60));
            let mut at = from;
            for stretch in layers.stretches(from, to) {
                assert!(stretch.length > 0);
                for offset in 0..stretch.length {
                    let expected = bytes[(at + offset) as usize];
                    let found = stretch
                        .extent
                        .map(|(extent, skip)| (at - skip, extent.length));
                    assert_eq!(found, expected, "byte {}", at + offset);
                }
                at += stretch.length;
            }
            assert_eq!(at, to);
        }
    }
}
