//! Which files lie in which zone, so that nobody looks for them among all files.

use std::collections::BTreeMap;
use zone::ZoneId;

/// How many extents (of a log: segments) each file has in each zone. One entry for each pair of file and
/// zone, so never more than there are extents.
#[derive(Default, Debug)]
pub(super) struct Files(BTreeMap<(ZoneId, u64), u32>);

impl Files {
    pub fn add(&mut self, zone: ZoneId, inode: u64, extents: u32) {
        if extents > 0 {
            *self.0.entry((zone, inode)).or_default() += extents;
        }
    }

    /// False, and nothing has changed, if the file has less there.
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

    /// Files in a zone by their inodes, with their extents there.
    pub fn of_zone(&self, zone: ZoneId) -> impl Iterator<Item = (u64, u32)> {
        let here = self.0.range((zone, 0)..=(zone, u64::MAX));
        here.map(|((_, inode), extents)| (*inode, *extents))
    }
}
