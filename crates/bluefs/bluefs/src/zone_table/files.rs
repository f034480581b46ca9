//! Index from zones to the files with data in them.

use std::collections::BTreeMap;
use zone::ZoneId;

/// Number of extents (of a log: segments) of each file in each zone. One entry for each pair of zone and inode, so
/// never more entries than extents.
#[derive(Default, Debug)]
pub(super) struct Files(BTreeMap<(ZoneId, u64), u32>);

impl Files {
    pub fn add(&mut self, zone: ZoneId, inode: u64, extents: u32) {
        if extents > 0 {
            *self.0.entry((zone, inode)).or_default() += extents;
        }
    }

    /// Subtracts extents of a file. False, without a change, if the file has fewer there.
    pub fn remove(&mut self, zone: ZoneId, inode: u64, extents: u32) -> bool {
        let Some(known) = self.0.get_mut(&(zone, inode)) else {
            return false;
        };
        let Some(left) = known.checked_sub(extents) else {
            return false;
        };
        *known = left;
        if left == 0 {
            self.0.remove(&(zone, inode));
        }
        true
    }

    /// Inodes of the files in a zone, with the number of their extents there.
    pub fn of_zone(&self, zone: ZoneId) -> impl Iterator<Item = (u64, u32)> {
        let here = self.0.range((zone, 0)..=(zone, u64::MAX));
        here.map(|((_, inode), extents)| (*inode, *extents))
    }
}
