//! The block map of a file: its extents, holes and preallocated ranges. Pure.

use crate::ranges::Ranges;
use std::collections::BTreeMap;

/// Most blocks of one extent.
pub const MAX_EXTENT: usize = 4096;

/// Consecutive blocks of a file that are consecutive in a zone too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The zone, by the drive's number.
    pub zone: u32,
    /// The first block, counted in the zone.
    pub offset: u32,
    /// CRC-32C of each block.
    pub sums: Vec<u32>,
}

impl Extent {
    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.sums.len() as u64
    }
}

/// A range of blocks of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The zone, by the drive's number.
    pub zone: u32,
    /// The first block, counted in the zone.
    pub offset: u32,
    /// Number of blocks.
    pub blocks: u32,
}

/// The extents that a change of a map removed and added, as places in zones.
#[derive(Default, Debug)]
pub struct Changes {
    /// Places of removed extents, each as a whole.
    pub removed: Vec<Place>,
    /// Places of added extents, each as a whole, with its first block in the file.
    pub added: Vec<(u64, Place)>,
}

/// Amount of preallocated space of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Preallocated {
    /// Number of blocks.
    pub blocks: u64,
    /// Number of ranges, which do not touch.
    pub ranges: u64,
}

/// The extents of a file by their first block. Blocks outside all extents are holes, and some holes are preallocated.
#[derive(Clone, Default, Debug)]
pub struct Map {
    extents: BTreeMap<u64, Extent>,
    preallocated: Ranges,
}

fn place(extent: &Extent) -> Place {
    Place {
        zone: extent.zone,
        offset: extent.offset,
        blocks: extent.sums.len() as u32,
    }
}

impl Map {
    /// All extents in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Extent)> {
        self.extents.iter().map(|(block, extent)| (*block, extent))
    }

    /// Number of blocks in extents.
    pub fn blocks(&self) -> u64 {
        self.extents.values().map(Extent::blocks).sum()
    }

    /// Whether a block lies in an extent.
    pub fn has(&self, block: u64) -> bool {
        self.find(block).is_some()
    }

    /// The extent that contains a block, and the first block of the extent in the file.
    pub fn find(&self, block: u64) -> Option<(u64, &Extent)> {
        let (start, extent) = self.extents.range(..=block).next_back()?;
        (block - start < extent.blocks()).then_some((*start, extent))
    }

    /// The next block at or after `block` that lies in an extent.
    pub fn next_data(&self, block: u64) -> Option<u64> {
        if self.has(block) {
            return Some(block);
        }
        self.extents.range(block..).next().map(|(start, _)| *start)
    }

    /// Preallocated holes in order, each as first block and end (exclusive).
    pub fn preallocated(&self) -> impl Iterator<Item = (u64, u64)> {
        self.preallocated.iter()
    }

    /// Amount of preallocated space.
    pub fn preallocated_size(&self) -> Preallocated {
        Preallocated {
            blocks: self.preallocated.total(),
            ranges: self.preallocated.count(),
        }
    }

    /// Whether a block is a preallocated hole.
    pub fn is_preallocated(&self, block: u64) -> bool {
        self.preallocated.has(block)
    }

    /// Holes in `from..to` that are not preallocated, each as first block and end (exclusive).
    pub fn bare_holes(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let mut holes = Vec::new();
        let mut at = from;
        while at < to {
            if let Some((start, extent)) = self.find(at) {
                at = start + extent.blocks();
                continue;
            }
            let end = self.next_data(at).map_or(to, |next| next.min(to));
            holes.extend(self.preallocated.gaps(at, end));
            at = end;
        }
        holes
    }

    /// Marks the holes of `from..to` as preallocated.
    pub fn preallocate(&mut self, from: u64, to: u64) {
        for (from, to) in self.bare_holes(from, to) {
            self.preallocated.insert(from, to);
        }
    }

    /// Whether one extent begins before `from` and ends after `to`, so that a hole there splits it.
    pub fn is_split_by(&self, from: u64, to: u64) -> bool {
        let found = self.find(from);
        found.is_some_and(|(start, extent)| start < from && start + extent.blocks() > to)
    }

    /// Makes `from..to` a hole that is not preallocated.
    pub fn cut(&mut self, from: u64, to: u64) -> Changes {
        let mut changes = Changes::default();
        if from >= to {
            return changes;
        }
        self.preallocated.remove(from, to);
        let before = self.find(from).map_or(from, |(start, _)| start);
        let touched: Vec<u64> = self
            .extents
            .range(before..to)
            .map(|(start, _)| *start)
            .collect();
        for start in touched {
            let Some(extent) = self.extents.remove(&start) else {
                continue;
            };
            let end = start + extent.blocks();
            changes.removed.push(place(&extent));
            let mut keep = |from: u64, to: u64| {
                if from < to {
                    let skip = (from - start) as usize;
                    let part = Extent {
                        zone: extent.zone,
                        offset: extent.offset + skip as u32,
                        sums: extent.sums[skip..(to - start) as usize].to_vec(),
                    };
                    changes.added.push((from, place(&part)));
                    self.extents.insert(from, part);
                }
            };
            keep(start, from.min(end));
            keep(to.max(start), end);
        }
        changes
    }

    /// Inserts an extent at `block` in place of whatever was there. It is merged with the extent before it if that
    /// one precedes it on the drive too.
    pub fn put(&mut self, block: u64, extent: Extent) -> Changes {
        let mut changes = self.cut(block, block + extent.blocks());
        if let Some((start, before)) = self.extents.range_mut(..block).next_back()
            && start + before.blocks() == block
            && before.zone == extent.zone
            && u64::from(before.offset) + before.blocks() == u64::from(extent.offset)
            && before.sums.len() + extent.sums.len() <= MAX_EXTENT
            && !changes.added.iter().any(|(added, _)| added == start)
        {
            changes.removed.push(place(before));
            before.sums.extend_from_slice(&extent.sums);
            changes.added.push((*start, place(before)));
            return changes;
        }
        changes.added.push((block, place(&extent)));
        self.extents.insert(block, extent);
        changes
    }

    /// Removes all extents.
    pub fn clear(&mut self) -> Changes {
        let removed = self.extents.values().map(place).collect();
        self.extents.clear();
        self.preallocated = Ranges::default();
        Changes {
            removed,
            added: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_says_of_each_block_what_a_table_of_blocks_says() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut map, mut table) = (Map::default(), vec![None; 64]);
        let mut live = std::collections::BTreeSet::new();
        for turn in 0..2_000_u32 {
            let from = random.u64(0..60);
            let to = random.u64(from + 1..=64);
            let changes = if random.bool() {
                (from..to).for_each(|block| table[block as usize] = None);
                map.cut(from, to)
            } else {
                let offset = turn * 64;
                for block in from..to {
                    table[block as usize] = Some((offset + (block - from) as u32, block as u32));
                }
                let sums = (from as u32..to as u32).collect();
                let zone = 3;
                map.put(from, Extent { zone, offset, sums })
            };
            for place in changes.removed {
                // What was replaced and added again within one change appears in both.
                live.remove(&(place.offset, place.blocks));
            }
            for (_, place) in changes.added {
                live.insert((place.offset, place.blocks));
            }
            for block in 0..64 {
                let found = map.find(block).map(|(start, extent)| {
                    let at = (block - start) as usize;
                    (extent.offset + at as u32, extent.sums[at])
                });
                assert_eq!(found, table[block as usize], "block {block}");
            }
            let is_data = |block: &u64| table[*block as usize].is_some();
            assert_eq!(map.blocks(), (0..64).filter(is_data).count() as u64);
            assert_eq!(map.next_data(from), (from..64).find(is_data));
            let all: std::collections::BTreeSet<_> = map
                .iter()
                .map(|(_, extent)| (extent.offset, extent.sums.len() as u32))
                .collect();
            assert_eq!(all, live);
        }
    }
}
