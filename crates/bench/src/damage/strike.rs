//! One damage to a drive: its place and its kind.

use super::world::World;
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneCommand, ZoneCondition, ZoneId, ZoneKind};

/// Kinds of damage to bytes.
#[derive(Clone, Copy, Debug)]
enum ToBytes {
    Bit,
    Byte,
    Zeroed,
    Stale,
    /// This block holds what was written to another one, which has it as well.
    Misdirected(ZoneAddress),
    /// This block and another one hold each other's bytes.
    Swapped(ZoneAddress),
}

/// Kinds of damage to a zone.
#[derive(Clone, Copy, Debug)]
enum ToZone {
    Offline,
    Unreadable,
    RolledBack,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Bytes(ToBytes, u64),
    Zone(ToZone),
}

/// A damage to a drive.
#[derive(Clone, Copy, Debug)]
pub struct Strike {
    at: ZoneAddress,
    what: What,
}

const BLOCK: u64 = 4096;
const MEGABYTE: u64 = 1 << 20;

/// Draws `count` damages to written places; metadata is hit more often than its share of the bytes.
pub fn strikes(world: &World, count: usize, random: &mut fastrand::Rng) -> Vec<Strike> {
    (0..count).map(|_| strike(world, random)).collect()
}

/// The damages in words.
pub fn words(strikes: &[Strike]) -> String {
    let each = strikes.iter().map(|s| match s.what {
        What::Bytes(what, length) => format!("{what:?} of {length} at {}", s.at),
        What::Zone(what) => format!("zone {} {what:?}", s.at.zone),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn place(world: &World, random: &mut fastrand::Rng) -> ZoneAddress {
    let in_metadata = random.u8(..10) < 6;
    let zones = world.now.geometry().zones();
    let zones = zones.filter(|zone| world.metadata.contains(zone) == in_metadata);
    let zones: Vec<ZoneId> = zones.filter(|zone| has_bytes(world, *zone)).collect();
    loop {
        let zone = zones[random.usize(..zones.len())];
        let at = ZoneAddress::new(zone, random.u64(..world.written(zone)));
        // Conventional zones are mostly empty: blocks of zeros are chosen less often there.
        let is_worth_it = world.now.geometry().kind(zone) != ZoneKind::Conventional
            || block_at(&world.now, at).iter().any(|byte| *byte != 0)
            || random.u8(..20) == 0;
        if is_worth_it {
            return at;
        }
    }
}

fn has_bytes(world: &World, zone: ZoneId) -> bool {
    world.written(zone) > 0
}

fn block_at(drive: &MemoryDrive, at: ZoneAddress) -> Vec<u8> {
    let at = ZoneAddress::new(at.zone, at.offset / BLOCK * BLOCK);
    read(drive, at, BLOCK)
}

fn read(drive: &MemoryDrive, at: ZoneAddress, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    drive.decay(at, bytes.len(), |found| bytes.copy_from_slice(found));
    bytes
}

fn strike(world: &World, random: &mut fastrand::Rng) -> Strike {
    let at = place(world, random);
    let block = ZoneAddress::new(at.zone, at.offset / BLOCK * BLOCK);
    let length = if random.bool() { BLOCK } else { MEGABYTE };
    let end = world.written(at.zone);
    let long = length.min(end - block.offset);
    let other = |random: &mut fastrand::Rng| {
        let other = place(world, random);
        ZoneAddress::new(other.zone, other.offset / BLOCK * BLOCK)
    };
    let (at, what) = match random.u8(..9) {
        0 => (at, What::Bytes(ToBytes::Bit, 1)),
        1 => (at, What::Bytes(ToBytes::Byte, 1)),
        2 => (block, What::Bytes(ToBytes::Zeroed, long)),
        3 => (block, What::Bytes(ToBytes::Stale, long)),
        4 => (
            block,
            What::Bytes(ToBytes::Misdirected(other(random)), BLOCK),
        ),
        5 => (block, What::Bytes(ToBytes::Swapped(other(random)), BLOCK)),
        6 => (block, What::Zone(ToZone::Offline)),
        7 => (block, What::Zone(ToZone::Unreadable)),
        _ => (block, What::Zone(ToZone::RolledBack)),
    };
    Strike { at, what }
}

impl Strike {
    /// The kind of damage in words.
    pub fn kind(&self) -> &'static str {
        match self.what {
            What::Bytes(ToBytes::Bit, _) => "bit",
            What::Bytes(ToBytes::Byte, _) => "byte",
            What::Bytes(ToBytes::Zeroed, BLOCK) => "4 KiB zeroed",
            What::Bytes(ToBytes::Zeroed, _) => "1 MiB zeroed",
            What::Bytes(ToBytes::Stale, BLOCK) => "4 KiB stale",
            What::Bytes(ToBytes::Stale, _) => "1 MiB stale",
            What::Bytes(ToBytes::Misdirected(_), _) => "misdirected write",
            What::Bytes(ToBytes::Swapped(_), _) => "two blocks swapped",
            What::Zone(ToZone::Offline) => "zone offline",
            What::Zone(ToZone::Unreadable) => "zone unreadable",
            What::Zone(ToZone::RolledBack) => "zone rolled back",
        }
    }

    /// Bytes of data that it may destroy; 0 if it hits metadata only.
    pub fn data_bytes(&self, world: &World) -> u64 {
        let of_data = |zone: ZoneId| !world.metadata.contains(&zone);
        let here = of_data(self.at.zone);
        match self.what {
            What::Bytes(ToBytes::Swapped(other), length) => {
                u64::from(here) * length + u64::from(of_data(other.zone)) * length
            }
            What::Bytes(_, length) if here => length,
            What::Zone(_) if here => world.written(self.at.zone),
            _ => 0,
        }
    }

    /// Whether it leaves a zone that takes writes but can never be read.
    pub fn stays_unreadable(&self) -> bool {
        matches!(self.what, What::Zone(ToZone::Unreadable))
    }

    /// Does the damage to a copy of the world's drive.
    pub fn hit(&self, world: &World, drive: &MemoryDrive, faults: &Faults<Arc<MemoryDrive>>) {
        let zone = self.at.zone;
        match self.what {
            What::Bytes(what, length) => self.hit_bytes(what, length, world, drive),
            What::Zone(ToZone::Offline) => {
                // Conventional zones go offline too, which a drive in memory takes.
                let _ = drive.set_condition(zone, ZoneCondition::Offline);
            }
            What::Zone(ToZone::Unreadable) => {
                let fault = Fault::Io(io::ErrorKind::Other);
                faults.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
            }
            What::Zone(ToZone::RolledBack) => roll_back(zone, world, drive),
        }
    }

    fn hit_bytes(&self, what: ToBytes, length: u64, world: &World, drive: &MemoryDrive) {
        let here = |bytes: &dyn Fn(&mut [u8])| drive.decay(self.at, length as usize, bytes);
        let bit = 1 << (self.at.offset % 8);
        match what {
            ToBytes::Bit => here(&|bytes| bytes[0] ^= bit),
            ToBytes::Byte => here(&|bytes| bytes[0] ^= bit | 0x55),
            ToBytes::Zeroed => here(&|bytes| bytes.fill(0)),
            ToBytes::Stale => {
                let stale = read(&world.earlier, self.at, length);
                here(&|bytes| bytes.copy_from_slice(&stale));
            }
            ToBytes::Misdirected(other) => {
                let others = read(drive, other, length);
                here(&|bytes| bytes.copy_from_slice(&others));
            }
            ToBytes::Swapped(other) => {
                let (mine, others) = (read(drive, self.at, length), read(drive, other, length));
                here(&|bytes| bytes.copy_from_slice(&others));
                drive.decay(other, length as usize, |bytes| bytes.copy_from_slice(&mine));
            }
        }
    }
}

/// Gives the zone the state that it had in the middle of the history.
fn roll_back(zone: ZoneId, world: &World, drive: &MemoryDrive) {
    let geometry = drive.geometry();
    let all = geometry.capacity(zone);
    if geometry.kind(zone) == ZoneKind::Conventional {
        let before = read(&world.earlier, ZoneAddress::new(zone, 0), all);
        drive.decay(ZoneAddress::new(zone, 0), all as usize, |bytes| {
            bytes.copy_from_slice(&before);
        });
        return;
    }
    let told = world.earlier.report_zone(zone);
    let before = told.map_or(0, |told| told.write_pointer);
    let bytes = read(&world.earlier, ZoneAddress::new(zone, 0), before);
    // A drive in memory refuses neither.
    let _ = drive.reset(zone);
    if !bytes.is_empty() {
        let _ = drive.write(geometry.start(zone), &bytes);
    }
    drive.power_cycle();
}
