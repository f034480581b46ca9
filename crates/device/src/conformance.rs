//! What every zoned drive has to do, as a suite that any [`ZonedDevice`] can be put through: each
//! command in each condition, limits, ranges, data.
//!
//! A deviation panics and says which rule it broke. The suite makes a fresh drive for every case
//! and knows nothing of the drive but the trait.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Test code that other crates run too.

mod commands;
mod data;
mod limits;
mod preferred;
mod ranges;

use crate::ZonedDevice;
use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId, ZoneKind,
};

/// Makes a zone read-only or offline, where a drive can be told to.
pub type BreakZone = Box<dyn Fn(ZoneId, ZoneCondition)>;

/// A drive to be tried.
pub struct Subject {
    /// The drive, new and empty.
    pub device: Box<dyn ZonedDevice>,
    /// Without it, what depends on broken zones is left out.
    pub break_zone: Option<BreakZone>,
}

/// Runs the whole suite on drives that `make` makes of the geometry it is given.
pub fn run(make: &dyn Fn(Geometry) -> Subject) {
    commands::run(make);
    limits::run(make);
    ranges::run(make);
    data::run(make);
    preferred::run(make);
}

/// Bytes of a block in all cases.
const BLOCK: u64 = 4096;
/// Blocks of a zone, and those of them that can be written.
const ZONE_BLOCKS: u64 = 16;
const CAPACITY_BLOCKS: u64 = 12;
/// The first sequential zone; the ones before are conventional.
const FIRST: u32 = 2;

/// The drive of most cases: two conventional zones, ten sequential ones, no limits.
fn geometry() -> Geometry {
    Geometry {
        block_size: BLOCK as u32,
        zone_size: ZONE_BLOCKS * BLOCK,
        zone_capacity: CAPACITY_BLOCKS * BLOCK,
        zone_count: FIRST + 10,
        conventional_zones: FIRST,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 4 * BLOCK as u32,
    }
}

/// A drive with the words of the cases.
struct Bench {
    device: Box<dyn ZonedDevice>,
    break_zone: Option<BreakZone>,
}

impl Bench {
    fn new(make: &dyn Fn(Geometry) -> Subject, geometry: Geometry) -> Self {
        let Subject { device, break_zone } = make(geometry);
        Self { device, break_zone }
    }

    fn at(&self, zone: u32, block: u64) -> ByteOffset {
        self.device
            .geometry()
            .absolute(ZoneAddress::new(ZoneId(zone), block * BLOCK))
    }

    fn write(&self, zone: u32, block: u64, blocks: u64) -> Result<(), ZoneError> {
        self.device
            .write(self.at(zone, block), &pattern(zone, block, blocks))
    }

    /// Appends what a write to the same place would write.
    fn append(&self, zone: u32, blocks: u64) -> Result<ByteOffset, ZoneError> {
        let block = self.descriptor(zone).write_pointer / BLOCK;
        self.device
            .append(ZoneId(zone), &pattern(zone, block, blocks))
    }

    fn read(&self, zone: u32, block: u64, blocks: u64) -> Result<Vec<u8>, ZoneError> {
        let mut buffer = vec![0xee; (blocks * BLOCK) as usize];
        self.device
            .read(self.at(zone, block), &mut buffer)
            .map(|()| buffer)
    }

    fn open(&self, zone: u32) -> Result<(), ZoneError> {
        self.device.open(ZoneId(zone))
    }

    fn close(&self, zone: u32) -> Result<(), ZoneError> {
        self.device.close(ZoneId(zone))
    }

    fn finish(&self, zone: u32) -> Result<(), ZoneError> {
        self.device.finish(ZoneId(zone))
    }

    fn reset(&self, zone: u32) -> Result<(), ZoneError> {
        self.device.reset(ZoneId(zone))
    }

    fn descriptor(&self, zone: u32) -> ZoneDescriptor {
        self.device.report_zone(ZoneId(zone)).unwrap()
    }

    /// Conditions of the sequential zones from the first on, as `blkzone` abbreviates them.
    fn conditions(&self, count: u32) -> String {
        let zones = self.device.report(ZoneId(FIRST), count).unwrap();
        zones
            .iter()
            .map(|zone| zone.condition.short())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Bytes that tell their zone and block: 0 nowhere.
fn pattern(zone: u32, block: u64, blocks: u64) -> Vec<u8> {
    let byte = |at: u64| ((u64::from(zone) * 31 + at / BLOCK * 7 + at % 251) % 255) as u8 + 1;
    (block * BLOCK..(block + blocks) * BLOCK)
        .map(byte)
        .collect()
}

/// The name of an error's kind.
pub(crate) fn kind(error: &ZoneError) -> &'static str {
    match error {
        ZoneError::Unaligned { .. } => "unaligned",
        ZoneError::OutOfRange { .. } => "out of range",
        ZoneError::ZoneBoundary { .. } => "boundary",
        ZoneError::NotAtWritePointer { .. } => "not at write pointer",
        ZoneError::ZoneFull { .. } => "full",
        ZoneError::ReadOnly { .. } => "read-only",
        ZoneError::Offline { .. } => "offline",
        ZoneError::TooManyOpenZones { .. } => "too many open",
        ZoneError::TooManyActiveZones { .. } => "too many active",
        ZoneError::InvalidTransition { .. } => "invalid",
        ZoneError::Unsupported { .. } => "unsupported",
        ZoneError::Io { .. } => "I/O",
        ZoneError::PowerLost { .. } => "power lost",
    }
}

#[track_caller]
fn fails<T>(done: Result<T, ZoneError>, expected: &str) {
    match done {
        Ok(_) => panic!("had to fail ({expected})"),
        Err(error) => assert_eq!(kind(&error), expected, "{error}"),
    }
}
