//! Groups of drives with parts of the same objects: how many of each group may clean at once, and which drives form a
//! shift and clean together because they have no object in common.

use super::shifts;
use std::collections::BTreeSet;

/// The groups and shifts of all drives. A group is a partition.
#[derive(Clone, Debug)]
pub struct Groups {
    limits: Vec<u32>,
    /// By drive: its groups.
    of: Vec<Vec<u32>>,
    shifts: Option<Vec<u32>>,
}

impl Groups {
    /// `groups` has the drives of each group and how many of these may clean at once; there are `drives` in all.
    /// `tiers` are the ways to divide all drives, as in `shifts::find`.
    pub fn new<'a>(
        drives: u32,
        groups: impl Iterator<Item = (&'a [u32], u32)> + Clone,
        tiers: &[Vec<u32>],
    ) -> Self {
        let shifts = shifts::find(groups.clone(), tiers);
        let mut of = vec![Vec::new(); drives as usize];
        let mut limits = Vec::new();
        for (number, (members, limit)) in (0..).zip(groups) {
            limits.push(limit);
            for drive in members.iter().collect::<BTreeSet<_>>() {
                of[*drive as usize].push(number);
            }
        }
        Self { limits, of, shifts }
    }

    /// The same groups with these shifts instead.
    #[must_use]
    pub fn with_shifts(self, shifts: Option<Vec<u32>>) -> Self {
        Self { shifts, ..self }
    }

    /// The groups of a drive.
    pub fn of(&self, drive: u32) -> &[u32] {
        self.of.get(drive as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether the drive is in any group.
    pub fn has(&self, drive: u32) -> bool {
        !self.of(drive).is_empty()
    }

    /// How many of a group may clean at once.
    pub fn limit(&self, group: usize) -> u32 {
        self.limits[group]
    }

    /// By group: how many of `drives` are in it.
    pub fn count<'a>(&self, drives: impl IntoIterator<Item = &'a u32>) -> Vec<u32> {
        let mut count = vec![0; self.limits.len()];
        for drive in drives {
            self.of(*drive)
                .iter()
                .for_each(|group| count[*group as usize] += 1);
        }
        count
    }

    /// Puts a drive that gets a part of the group's objects into the group.
    pub fn join(&mut self, drive: u32, group: u32) {
        let its = &mut self.of[drive as usize];
        if !its.contains(&group) {
            its.push(group);
        }
    }

    /// Whether drives have their turns by shifts.
    pub const fn has_shifts(&self) -> bool {
        self.shifts.is_some()
    }

    /// The number of shifts.
    pub fn shift_count(&self) -> Option<u32> {
        self.shifts.as_ref()?.iter().max().map(|last| last + 1)
    }

    /// The drive's shift.
    pub fn shift_of(&self, drive: u32) -> Option<u32> {
        self.shifts.as_ref()?.get(drive as usize).copied()
    }
}
