//! A conformance suite for implementations of [`ZonedDevice`]: each command in each condition, limits, ranges,
//! data.
//!
//! A deviation panics with the rule that was broken. Emulated drives are created for every case with the
//! geometry that it needs, and have to follow the rule book to the letter. A real drive ([`run_on`]) keeps its
//! geometry: cases that it cannot run are left out, and where the standards leave a choice it may differ; both
//! are noted.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Test code that other crates run too.

mod commands;
mod data;
mod host;
mod leeway;
mod limits;
mod preferred;
mod ranges;

use device::ZonedDevice;
use leeway::Leeway;
use std::rc::Rc;
use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId, ZoneKind,
};

pub use host::run_on;

/// Makes a zone read-only or offline, on drives that support it.
pub type BreakZone = Box<dyn Fn(ZoneId, ZoneCondition)>;

/// A drive under test.
pub struct Subject {
    /// The drive, new and empty.
    pub device: Box<dyn ZonedDevice>,
    /// Breaks zones of the drive; if `None`, cases that need broken zones are left out.
    pub break_zone: Option<BreakZone>,
}

/// Runs the whole suite on drives that `make` creates with the geometry it is given.
pub fn run(make: &dyn Fn(Geometry) -> Subject) {
    run_cases(&|geometry| {
        let Subject { device, break_zone } = make(geometry);
        Some(Bench {
            device,
            break_zone,
            leeway: None,
        })
    });
}

/// Prepares the drive for a case, or returns `None` if the drive cannot run it.
type Make<'a> = &'a dyn Fn(Geometry) -> Option<Bench>;

fn run_cases(make: Make) {
    commands::run(make);
    limits::run(make);
    ranges::run(make);
    data::run(make);
    preferred::run(make);
}

/// The geometry of most cases: two conventional zones, ten sequential ones of 16 blocks, 12 of which can be
/// written, no limits.
fn geometry() -> Geometry {
    const BLOCK: u32 = 4096;
    Geometry {
        block_size: BLOCK,
        zone_size: 16 * u64::from(BLOCK),
        zone_capacity: 12 * u64::from(BLOCK),
        zone_count: 12,
        conventional_zones: 2,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 4 * BLOCK,
    }
}

/// A drive with the helpers that cases are written in.
struct Bench {
    device: Box<dyn ZonedDevice>,
    break_zone: Option<BreakZone>,
    /// `Some` for a real drive.
    leeway: Option<Rc<Leeway>>,
}

impl Bench {
    fn new(make: Make, geometry: Geometry) -> Option<Self> {
        make(geometry)
    }

    /// Bytes of a block.
    fn block(&self) -> u64 {
        self.device.geometry().block_size.into()
    }

    /// Blocks from one zone to the next.
    fn zone_blocks(&self) -> u64 {
        self.device.geometry().zone_size / self.block()
    }

    /// Blocks of a sequential zone that can be written.
    fn capacity(&self) -> u64 {
        self.device.geometry().zone_capacity / self.block()
    }

    /// The first sequential zone.
    fn first(&self) -> u32 {
        self.device.geometry().conventional_zones
    }

    /// The first sequential zones.
    fn some(&self) -> [u32; 4] {
        [0, 1, 2, 3].map(|n| self.first() + n)
    }

    /// The last two conventional zones.
    fn conventional(&self) -> Option<[u32; 2]> {
        let first = self.first();
        if first < 2 {
            self.note("left out: conventional zones, the drive has none");
            return None;
        }
        Some([first - 2, first - 1])
    }

    fn has_append(&self) -> bool {
        self.device.geometry().max_append_bytes != 0
    }

    /// Number of zones that a case may make active besides those that simulate a smaller limit.
    fn room(&self) -> u32 {
        self.leeway
            .as_ref()
            .and_then(|leeway| leeway.room.get())
            .unwrap_or(u32::MAX)
    }

    /// Adds a note to the result on a real drive.
    fn note(&self, note: &str) {
        if let Some(leeway) = &self.leeway {
            leeway.note(note);
        }
    }

    /// Reports that a command ended otherwise than the rule book says. On an emulated drive this panics; on a
    /// real one the deviation may be allowed, and violations are collected so that all are reported at once.
    #[track_caller]
    fn differs(&self, command: &str, condition: &str, expected: &str, found: &str) {
        match &self.leeway {
            Some(leeway) => leeway.differs(command, condition, expected, found),
            None => panic!("{command} in {condition}: expected {expected}, found {found}"),
        }
    }

    /// Whether a command succeeded that a real drive may refuse.
    #[track_caller]
    fn done(&self, command: &str, condition: &str, result: Result<(), ZoneError>) -> bool {
        let Err(error) = result else { return true };
        self.differs(command, condition, "success", error.kind());
        false
    }

    /// Opens an empty zone at the limit, for which another one has to be closed. If the drive does not do so
    /// itself, closes `other` first.
    #[track_caller]
    fn open_in_place_of(&self, zone: u32, other: u32) {
        if !self.done("open", "em at the open limit", self.open(zone)) {
            self.close(other).unwrap();
            self.open(zone).unwrap();
        }
    }

    /// Closes an open zone without data and makes sure that it is empty.
    #[track_caller]
    fn close_untouched(&self, zone: u32) {
        self.close(zone).unwrap();
        let found = self.descriptor(zone).condition;
        if found != ZoneCondition::Empty {
            self.differs("close", "oe 0", "em 0", &format!("{} 0", found.short()));
            self.reset(zone).unwrap();
        }
    }

    /// Zeros the conventional zones of a real drive, which keep the data of earlier cases.
    fn blank_conventional(&self) {
        if self.leeway.is_some() {
            let zeros = vec![0; self.device.geometry().zone_size as usize];
            for zone in self.conventional().into_iter().flatten() {
                self.device.write(self.at(zone, 0), &zeros).unwrap();
            }
        }
    }

    fn at(&self, zone: u32, block: u64) -> ByteOffset {
        self.device
            .geometry()
            .absolute(ZoneAddress::new(ZoneId(zone), block * self.block()))
    }

    fn pattern(&self, zone: u32, block: u64, blocks: u64) -> Vec<u8> {
        pattern(self.block(), zone, block, blocks)
    }

    fn write(&self, zone: u32, block: u64, blocks: u64) -> Result<(), ZoneError> {
        self.device
            .write(self.at(zone, block), &self.pattern(zone, block, blocks))
    }

    /// Appends the pattern that a write to the same blocks would write. On a real drive without zone append it
    /// is that write.
    fn append(&self, zone: u32, blocks: u64) -> Result<ByteOffset, ZoneError> {
        let block = self.descriptor(zone).write_pointer / self.block();
        if self.leeway.is_some() && !self.has_append() {
            let block = block.min(self.capacity() - 1);
            return self
                .write(zone, block, blocks)
                .map(|()| self.at(zone, block));
        }
        self.device
            .append(ZoneId(zone), &self.pattern(zone, block, blocks))
    }

    fn read(&self, zone: u32, block: u64, blocks: u64) -> Result<Vec<u8>, ZoneError> {
        let mut buffer = vec![0xee; (blocks * self.block()) as usize];
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
        let zones = self.device.report(ZoneId(self.first()), count).unwrap();
        zones
            .iter()
            .map(|zone| zone.condition.short())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Asserts the conditions of the first sequential zones. Which zone is closed for another is a drive's own
    /// choice, so on a real one implicitly open and closed count as equal.
    #[track_caller]
    fn expect(&self, expected: &str) {
        let found = self.conditions(expected.split(' ').count() as u32);
        if self.leeway.is_some() {
            let blurred = |text: &str| text.replace("oi", "**").replace("cl", "**");
            assert_eq!(blurred(&found), blurred(expected), "{found}");
        } else {
            assert_eq!(found, expected);
        }
    }
}

/// A pattern of bytes that depends on zone and block and contains no zero.
fn pattern(block_size: u64, zone: u32, block: u64, blocks: u64) -> Vec<u8> {
    let byte = |at: u64| ((u64::from(zone) * 31 + at / block_size * 7 + at % 251) % 255) as u8 + 1;
    (block * block_size..(block + blocks) * block_size)
        .map(byte)
        .collect()
}

#[track_caller]
fn fails<T>(done: Result<T, ZoneError>, expected: &str) {
    match done {
        Ok(_) => panic!("had to fail ({expected})"),
        Err(error) => assert_eq!(error.kind(), expected, "{error}"),
    }
}
