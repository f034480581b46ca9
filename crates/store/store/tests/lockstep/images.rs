//! Damage anywhere on a drive: flipped bits, exchanged blocks, zeroed ranges. Nothing panics, no object reads as
//! anything but itself, and if a check finds nothing, nothing is missing. Only the last commit before an unclean stop
//! may be missing.

use super::carry_out::everything;
use super::difference::{check_parts, difference};
use super::kinds::Prepared;
use super::world::World;
use crate::common::{put, seed};
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{MountOptions, Store};
use zone::{ZoneId, ZoneKind};

const BLOCK: usize = 4096;

/// The bytes of all zones that are not empty.
#[derive(Clone)]
struct Image {
    zones: Vec<(ZoneId, Vec<u8>)>,
}

impl Image {
    fn of(drive: &MemoryDrive) -> Self {
        let geometry = drive.geometry();
        let zones = geometry.zones().filter_map(|zone| {
            let report = drive.report_zone(zone).unwrap();
            let length = match report.kind {
                ZoneKind::Conventional => geometry.zone_capacity,
                _ => report.write_pointer,
            };
            if length == 0 {
                return None;
            }
            let mut bytes = vec![0; length as usize];
            drive.read(geometry.start(zone), &mut bytes).unwrap();
            bytes.iter().any(|byte| *byte != 0).then_some((zone, bytes))
        });
        Self {
            zones: zones.collect(),
        }
    }

    /// Zone index and offset of a random block that is not all zeros.
    fn place(&self, random: &mut Rng) -> (usize, usize) {
        loop {
            let zone = random.usize(..self.zones.len());
            let bytes = &self.zones[zone].1;
            let at = random.usize(..bytes.len() / BLOCK) * BLOCK;
            if bytes[at..at + BLOCK].iter().any(|byte| *byte != 0) {
                return (zone, at);
            }
        }
    }

    /// Damages one block: flips a bit, zeroes it, or copies another block over it. Describes the damage.
    fn damage_a_block(&mut self, random: &mut Rng) -> String {
        let ((zone, at), (other, from)) = (self.place(random), self.place(random));
        let copy = self.zones[other].1[from..from + BLOCK].to_vec();
        let (name, other) = (self.zones[zone].0, self.zones[other].0);
        let block = &mut self.zones[zone].1[at..at + BLOCK];
        match random.u8(..4) {
            0 | 1 => {
                let bit = random.usize(..BLOCK * 8);
                block[bit / 8] ^= 1 << (bit % 8);
                format!("bit {bit} of {name}+{at}")
            }
            2 => {
                block.copy_from_slice(&copy);
                format!("{other}+{from} at {name}+{at}")
            }
            _ => {
                block.fill(0);
                format!("zeros at {name}+{at}")
            }
        }
    }

    /// Larger damage: exchanges two blocks or zeroes a range. Describes the damage.
    fn damage_more(&mut self, random: &mut Rng) -> String {
        let ((zone, at), (other, to)) = (self.place(random), self.place(random));
        let names = (self.zones[zone].0, self.zones[other].0);
        if random.bool() {
            let first = self.zones[zone].1[at..at + BLOCK].to_vec();
            let second = self.zones[other].1[to..to + BLOCK].to_vec();
            self.zones[zone].1[at..at + BLOCK].copy_from_slice(&second);
            self.zones[other].1[to..to + BLOCK].copy_from_slice(&first);
            return format!("{}+{at} and {}+{to}", names.0, names.1);
        }
        let bytes = &mut self.zones[zone].1[at..];
        let length = (BLOCK << random.u8(..5)).min(bytes.len());
        bytes[..length].fill(0);
        format!("{length} zeros at {}+{at}", names.0)
    }

    /// Damages the image as much as the store can tell from a shorter history: after an unclean stop, damage to several
    /// of the last log records looks as if they had never been written.
    fn damage(&mut self, is_clean: bool, random: &mut Rng) -> Vec<String> {
        if !is_clean {
            return vec![self.damage_a_block(random)];
        }
        let hits = 1 << random.u8(..4);
        let mut hit = || match random.bool() {
            true => self.damage_a_block(random),
            false => self.damage_more(random),
        };
        (0..hits).map(|_| hit()).collect()
    }

    /// A copy of `drive` with the bytes of this image.
    fn on(&self, drive: &MemoryDrive) -> MemoryDrive {
        let copy = drive.snapshot();
        for (zone, bytes) in &self.zones {
            if copy.geometry().kind(*zone) != ZoneKind::Conventional {
                copy.reset(*zone).unwrap();
            }
            copy.write(copy.geometry().start(*zone), bytes).unwrap();
        }
        copy
    }
}

/// What a damaged drive still has: "refused", "whole" or "in part". An error describes damage that no check finds, or
/// an object with other bytes.
fn look(prepared: &Prepared, drive: MemoryDrive, may: &[World]) -> Result<&'static str, String> {
    let copy = Arc::new(drive.snapshot());
    let Ok(store) = prepared.mount(Arc::new(drive)) else {
        let accepting = MountOptions {
            read_only: true,
            accept_damage: true,
            ..prepared.plan.options(0)
        };
        if let Ok(store) = Store::mount(copy, accepting) {
            let _ = store.fsck(true, &mut |_, _| {});
            let _ = everything(&store);
        }
        return Ok("refused");
    };
    let is_whole = everything(&store).is_ok_and(|found| may.contains(&found));
    check_parts(&store, may)?;
    let report = store.fsck(true, &mut |_, _| {});
    if !is_whole && report.is_ok_and(|report| report.is_clean()) {
        let found = everything(&store).map_err(|e| format!("a check finds nothing, a read {e}"))?;
        return Err(format!(
            "a check does not find that {}",
            difference(&found, &may[0])
        ));
    }
    // Puts and cleaning succeed or return an error.
    let _ = put(&store, "afterwards", &[7; 9000]);
    let _ = store.seal_open_zones();
    while matches!(store.clean_one(), Ok(true)) {}
    check_parts(&store, may)?;
    Ok(if is_whole { "whole" } else { "in part" })
}

#[test]
fn damage_anywhere_is_never_answered_as_data() {
    let rounds = std::env::var("ZONESTORE_CASES").ok();
    let rounds: u64 = rounds.map_or(150, |rounds| rounds.parse().unwrap());
    let mut seen = BTreeMap::new();
    for number in 0..4 {
        let is_clean = number % 2 == 0;
        let prepared = Prepared::new(seed() * 16 + number, is_clean);
        let drive = prepared.image();
        let mut may = vec![prepared.world.clone()];
        if !is_clean {
            may.push(prepared.earlier.clone());
        }
        let image = Image::of(&drive);
        for round in 0..rounds {
            let mut random = Rng::with_seed(seed() << 32 | number << 24 | round);
            let mut damaged = image.clone();
            let how = damaged.damage(is_clean, &mut random);
            let found = look(&prepared, damaged.on(&drive), &may);
            let found = found.unwrap_or_else(|what| {
                panic!("{:?}, round {round}: {what}: {how:?}", prepared.plan)
            });
            *seen.entry((is_clean, found)).or_insert(0) += 1;
        }
    }
    println!("stopped cleanly or not, what was found, how often: {seen:?}");
    assert!(seen.len() >= 5, "{seen:?}");
}
