//! Page-mapped translation with spare superblocks and greedy cleaning, as in a common solid-state drive.
//!
//! All blocks, those of the host and those that cleaning moves, go into one program unit after another in order of
//! arrival, so that concurrent streams share erase blocks. Of the free superblocks, the one with the fewest erases is
//! filled next. Data that is never overwritten stays in place, however little its erase blocks are worn.
//! Invariants: a slot is valid if and only if the map points to it; after a superblock was opened, at least one other
//! is free.

use super::array::Array;
use super::buffer::WriteBuffer;
use super::server::Class;
use crate::time::Time;
use serde::{Deserialize, Serialize};

const NOWHERE: u32 = u32::MAX;

/// Least number of superblocks in addition to those that the logical blocks fill: one that fills, one being cleaned,
/// those that are kept free, and one more, so that not all others can stay fully valid.
pub(super) const LEAST_SPARE: u32 = KEPT_FREE + 3;

/// Cleaning continues while no more superblocks than this are free.
const KEPT_FREE: u32 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Use {
    Free,
    Filling,
    Full,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Superblock {
    used: Use,
    valid: u32,
}

/// A superblock that is being cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Victim {
    superblock: u32,
    /// The next slot to examine.
    next: u32,
    /// Number of valid blocks when the victim was chosen.
    valid: u32,
    /// The last slot that was sensed, and the time.
    sensed: Option<(u64, Time)>,
}

/// Page-mapped translation; see the head of this file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PageMapped {
    /// The slot of each logical block.
    map: Vec<u32>,
    /// The logical block that each slot was written with.
    owner: Vec<u32>,
    superblocks: Vec<Superblock>,
    free: Vec<u32>,
    /// Slot of the next block, and end of its superblock.
    next: u32,
    end: u32,
    /// Number of the host's blocks in the unit that fills, and arrival of the last block in it.
    unit_host_blocks: u32,
    unit_at: Time,
    victim: Option<Victim>,
}

impl PageMapped {
    /// A drive without data. The array has at least [`LEAST_SPARE`] superblocks more than the blocks fill.
    pub(super) fn new(blocks: u32, array: &Array) -> Self {
        let superblock = Superblock {
            used: Use::Free,
            valid: 0,
        };
        let slots = array.superblocks() as usize * array.superblock_blocks() as usize;
        Self {
            map: vec![NOWHERE; blocks as usize],
            owner: vec![NOWHERE; slots],
            superblocks: vec![superblock; array.superblocks() as usize],
            free: (0..array.superblocks()).rev().collect(),
            next: 0,
            end: 0,
            unit_host_blocks: 0,
            unit_at: Time::START,
            victim: None,
        }
    }

    /// Number of logical blocks.
    pub const fn blocks(&self) -> u64 {
        self.map.len() as u64
    }

    /// Number of logical blocks with data.
    pub fn valid_blocks(&self) -> u64 {
        self.superblocks.iter().map(|s| u64::from(s.valid)).sum()
    }

    /// Reads blocks; those that were never written or are still in the buffer take no time.
    pub(super) fn read(&self, array: &mut Array, now: Time, lba: u64, blocks: u32) -> Time {
        let slots = &self.map[lba as usize..][..blocks as usize];
        let unit = array.unit_blocks();
        // At the end of a unit none is filling, and the next slot may be of a superblock with data.
        let filling = (!self.next.is_multiple_of(unit)).then_some(self.next / unit);
        let on_flash = |slot: u32| slot != NOWHERE && Some(slot / unit) != filling;
        let mut at = now;
        let mut done = 0;
        while done < slots.len() {
            let first = slots[done];
            if !on_flash(first) {
                done += 1;
                continue;
            }
            let follows = |(slot, wanted): &(&u32, u32)| **slot == *wanted && on_flash(**slot);
            let run = slots[done..].iter().zip(first..).take_while(follows);
            let run = run.count();
            at = at.max(array.read(now, u64::from(first), run as u64));
            done += run;
        }
        at
    }

    /// Writes a block of the host that arrived in the buffer at `at`.
    pub(super) fn write(
        &mut self,
        array: &mut Array,
        buffer: &mut WriteBuffer,
        at: Time,
        lba: u64,
    ) {
        self.discard(array, lba);
        self.unit_host_blocks += 1;
        let filled = self.place(array, buffer, at, lba as u32);
        if filled && self.free.len() <= KEPT_FREE as usize {
            self.clean(array, buffer, at);
        }
    }

    /// Invalidates the data of a block.
    pub(super) fn discard(&mut self, array: &Array, lba: u64) {
        let slot = std::mem::replace(&mut self.map[lba as usize], NOWHERE);
        if slot != NOWHERE {
            self.superblocks[(slot / array.superblock_blocks()) as usize].valid -= 1;
        }
    }

    /// Puts a block into the next slot; `true` if that completed a program unit.
    fn place(&mut self, array: &mut Array, buffer: &mut WriteBuffer, at: Time, lba: u32) -> bool {
        if self.next == self.end {
            self.open_next(array, buffer, at);
        }
        let slot = self.next;
        self.map[lba as usize] = slot;
        self.owner[slot as usize] = lba;
        let superblock = slot / array.superblock_blocks();
        self.superblocks[superblock as usize].valid += 1;
        self.unit_at = self.unit_at.max(at);
        self.next += 1;
        let filled = self.next.is_multiple_of(array.unit_blocks());
        if filled {
            let first = u64::from(self.next - array.unit_blocks());
            let end = array.program(Class::Normal, self.unit_at, first);
            buffer.leave(end, std::mem::take(&mut self.unit_host_blocks));
            self.unit_at = Time::START;
        }
        if self.next == self.end {
            self.superblocks[superblock as usize].used = Use::Full;
        }
        filled
    }

    /// Opens the free superblock with the fewest erases, and makes sure that another one is free. The blocks that
    /// have to move for that fit into the opened one.
    fn open_next(&mut self, array: &mut Array, buffer: &mut WriteBuffer, at: Time) {
        let wear = |i: &usize| (array.erases(self.free[*i]), self.free[*i]);
        let least = (0..self.free.len()).min_by_key(wear);
        let superblock = least.map_or(0, |index| self.free.swap_remove(index));
        self.superblocks[superblock as usize].used = Use::Filling;
        self.next = superblock * array.superblock_blocks();
        self.end = self.next + array.superblock_blocks();
        while self.free.is_empty() {
            self.move_one(array, buffer, at);
        }
    }

    /// Moves as many blocks for each program unit of the host as it takes for the victim to be empty when the space
    /// that it frees is used up.
    fn clean(&mut self, array: &mut Array, buffer: &mut WriteBuffer, at: Time) {
        let valid = u64::from(self.victim(array).valid);
        let dead = u64::from(array.superblock_blocks()) - valid;
        let share = (u64::from(array.unit_blocks()) * valid).div_ceil(dead.max(1));
        for _ in 0..share.max(1) {
            if !self.move_one(array, buffer, at) {
                return;
            }
        }
    }

    /// The superblock that is being cleaned; if there is none, chooses the full one with the fewest valid blocks.
    fn victim(&mut self, array: &Array) -> Victim {
        let superblocks = &self.superblocks;
        *self.victim.get_or_insert_with(|| {
            let all = superblocks.iter().enumerate();
            let least = all
                .filter(|(_, s)| s.used == Use::Full)
                .min_by_key(|(i, s)| (s.valid, array.erases(*i as u32)));
            let (superblock, valid) = least.map_or((0, 0), |(i, s)| (i as u32, s.valid));
            Victim {
                superblock,
                next: superblock * array.superblock_blocks(),
                valid,
                sensed: None,
            }
        })
    }

    /// Moves one block out of the victim. If none is left, erases the victim and returns `false`.
    fn move_one(&mut self, array: &mut Array, buffer: &mut WriteBuffer, at: Time) -> bool {
        let mut victim = self.victim(array);
        let end = (victim.superblock + 1) * array.superblock_blocks();
        let valid = |slot: &u32| {
            let lba = self.owner[*slot as usize];
            lba != NOWHERE && self.map[lba as usize] == *slot
        };
        let Some(slot) = (victim.next..end).find(valid) else {
            array.erase(at, victim.superblock);
            self.superblocks[victim.superblock as usize].used = Use::Free;
            self.free.push(victim.superblock);
            self.victim = None;
            return false;
        };
        let (lba, place) = (self.owner[slot as usize], u64::from(slot));
        let sensed = match victim.sensed {
            Some((before, sensed)) if array.same_page(before, place) => sensed,
            _ => array.sense(Class::Normal, at, place, 1),
        };
        victim.sensed = Some((place, sensed));
        victim.next = slot + 1;
        self.victim = Some(victim);
        let there = array.fetch(Class::Normal, sensed, place, 1);
        array.counts.moved_blocks += 1;
        self.discard(array, u64::from(lba));
        self.place(array, buffer, there, lba);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FlashDrive, FlashProfile, Management, ManagementShape};
    use super::*;
    use crate::model::Model;
    use crate::request::{Lba, Request};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Superblocks of 2 dies, 2 units each, of 4 blocks.
    fn drive(blocks: u64, superblocks: u32) -> FlashDrive {
        let mut profile = FlashProfile::named("ssd-15gb").unwrap();
        let flash = &mut profile.flash;
        (flash.channels, flash.dies_per_channel, flash.planes) = (1, 2, 2);
        (flash.page_bytes, flash.programs_per_block) = (8192, 2);
        profile.management = ManagementShape::PageMapped {
            capacity_bytes: blocks * 4096,
            superblocks,
        };
        profile.drive().unwrap()
    }

    fn check(drive: &FlashDrive, written: &BTreeSet<u64>) {
        let Management::Pages(pages) = drive.management() else {
            panic!("zones");
        };
        let all = drive.array().superblock_blocks();
        let mut valid = vec![0; pages.superblocks.len()];
        for (lba, slot) in (0u64..).zip(&pages.map) {
            assert_eq!(*slot != NOWHERE, written.contains(&lba), "{lba}");
            if *slot != NOWHERE {
                assert_eq!(u64::from(pages.owner[*slot as usize]), lba);
                valid[(slot / all) as usize] += 1;
            }
        }
        for (index, superblock) in (0u32..).zip(&pages.superblocks) {
            assert_eq!(superblock.valid, valid[index as usize], "{index}");
            let free = pages.free.contains(&index);
            assert_eq!(superblock.used == Use::Free, free, "{index}");
            assert!(!free || superblock.valid == 0, "{index}");
        }
        assert!(pages.next == pages.end || !pages.free.is_empty());
        let counts = drive.array().counts();
        let host = drive.statistics().written_blocks;
        let unit = u64::from(drive.array().unit_blocks());
        let placed = host + counts.moved_blocks;
        assert_eq!(counts.programmed_blocks, placed - placed % unit);
    }

    /// Number of blocks of `all` whose reads, one by one, sense no flash.
    fn unsensed(drive: &FlashDrive, all: &BTreeSet<u64>, now: Time) -> u32 {
        let senses = |lba: &u64| {
            let mut drive = drive.clone();
            let before = drive.array().counts().senses;
            drive.submit(Request::read(Lba(*lba), 1), now);
            drive.array().counts().senses > before
        };
        all.iter().filter(|lba| !senses(lba)).count() as u32
    }

    #[test]
    fn only_blocks_of_the_unit_that_fills_are_read_without_flash() {
        let mut drive = drive(320, 28);
        let (mut random, mut now) = (crate::Random::new(5), Time::START);
        let mut written = BTreeSet::new();
        for n in 0..900 {
            let lba = if n < 320 { n } else { random.below(320) };
            now = drive.submit(Request::write(Lba(lba), 1), now).at;
            written.insert(lba);
            if n < 440 && n % 7 != 0 {
                continue;
            }
            let Management::Pages(pages) = drive.management() else {
                panic!("zones");
            };
            let filling = pages.next % drive.array().unit_blocks();
            let found = unsensed(&drive, &written, now);
            // Blocks that were overwritten while their unit fills are there twice.
            assert!(found <= filling, "{found} of {filling} after {n} writes");
        }
    }

    #[test]
    fn a_block_without_data_hides_none_after_it() {
        let mut drive = drive(320, 28);
        let mut now = Time::START;
        for lba in 1..9 {
            now = drive.submit(Request::write(Lba(lba), 1), now).at;
        }
        let now = now + crate::Span::from_seconds(1.0);
        let read = |lba, blocks| {
            let done = drive.clone().submit(Request::read(Lba(lba), blocks), now);
            done.latency()
        };
        assert!(read(0, 9) >= read(1, 8), "{} {}", read(0, 9), read(1, 8));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_block_lies_in_one_place(
            spare in LEAST_SPARE..8,
            steps in prop::collection::vec((0..8u8, 0u64..320, 1u32..40), 1..150),
        ) {
            let mut drive = drive(320, 20 + spare);
            let mut written = BTreeSet::new();
            let mut now = Time::START;
            for (kind, lba, blocks) in steps {
                let blocks = blocks.min((320 - lba) as u32);
                let range = lba..lba + u64::from(blocks);
                let request = if kind == 0 {
                    written.retain(|lba| !range.contains(lba));
                    Request::trim(Lba(lba), blocks)
                } else {
                    written.extend(range);
                    Request::write(Lba(lba), blocks)
                };
                let done = drive.submit(request, now);
                prop_assert!(done.result.is_ok() && done.at > now);
                now = done.at;
                check(&drive, &written);
            }
        }
    }
}
