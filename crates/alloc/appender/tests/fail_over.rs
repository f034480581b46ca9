//! Appends go on in the next zone where one is full or fails, and end where no other zone would do.

#![allow(clippy::unwrap_used)]

use appender::{Left, Zones, append, padded, reset_if_written, reset_or_retire};
use device::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io;
use zone::{Geometry, ZoneAddress, ZoneCommand, ZoneError, ZoneId, ZoneKind};

const BLOCK: u64 = 512;

fn drive() -> Faults<MemoryDrive> {
    let geometry = Geometry {
        block_size: BLOCK as u32,
        zone_size: 4 * BLOCK,
        zone_capacity: 3 * BLOCK,
        zone_count: 8,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    };
    Faults::new(MemoryDrive::new(geometry).unwrap())
}

/// Zones in order, each with what is used of it.
struct InOrder<'a> {
    drive: &'a Faults<MemoryDrive>,
    zone: ZoneId,
    used: u64,
    /// How many were left because of a failure.
    failed: u32,
}

impl Zones for InOrder<'_> {
    type Open = ZoneId;
    type Error = ZoneError;
    const MAX_FAILED: u32 = 2;

    fn open(&mut self) -> Result<ZoneId, ZoneError> {
        Ok(self.zone)
    }

    fn leave(&mut self, open: ZoneId, why: Left<'_>) -> Result<(), ZoneError> {
        self.failed += u32::from(matches!(why, Left::Failed(_)));
        (self.zone, self.used) = (ZoneId(open.0 + 1), 0);
        Ok(())
    }

    fn drive_error(error: &ZoneError) -> Option<&ZoneError> {
        Some(error)
    }
}

fn zones(drive: &Faults<MemoryDrive>) -> InOrder<'_> {
    InOrder {
        drive,
        zone: ZoneId(0),
        used: 0,
        failed: 0,
    }
}

fn put(zones: &mut InOrder<'_>, bytes: &[u8]) -> Result<ZoneAddress, ZoneError> {
    append(zones, |zones, zone| {
        let at = ZoneAddress::new(*zone, zones.used);
        let blocks = padded(bytes, BLOCK as u32);
        if at.offset + blocks.len() as u64 > 3 * BLOCK {
            return Ok(None);
        }
        let place = zones.drive.geometry().absolute(at);
        zones.drive.write(place, &blocks)?;
        zones.used += blocks.len() as u64;
        Ok(Some(at))
    })
}

fn fails(drive: &Faults<MemoryDrive>, zone: u32) {
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Write, 1, fault).in_zone(ZoneId(zone)));
}

#[test]
fn what_finds_no_room_goes_to_the_next_zone() {
    let drive = drive();
    let mut zones = zones(&drive);
    let places: Vec<_> = (0..3)
        .map(|_| put(&mut zones, &[1; 600]).unwrap())
        .collect();
    assert_eq!(
        places,
        [0, 1, 2].map(|zone| ZoneAddress::new(ZoneId(zone), 0))
    );
    assert_eq!(
        put(&mut zones, &[1]).unwrap(),
        ZoneAddress::new(ZoneId(2), 2 * BLOCK)
    );
    assert_eq!(zones.failed, 0);
}

#[test]
fn what_fails_in_a_zone_is_tried_in_others_but_not_for_ever() {
    let drive = drive();
    fails(&drive, 0);
    fails(&drive, 1);
    let mut first = zones(&drive);
    assert_eq!(
        put(&mut first, &[1]).unwrap(),
        ZoneAddress::new(ZoneId(2), 0)
    );
    assert_eq!(first.failed, 2);
    fails(&drive, 2);
    let mut second = zones(&drive);
    assert!(put(&mut second, &[1]).is_err());
    assert_eq!(second.failed, 3, "the last one is left too");
}

#[test]
fn a_host_that_takes_no_write_is_no_fault_of_a_zone() {
    for kind in [
        io::ErrorKind::StorageFull,
        io::ErrorKind::ReadOnlyFilesystem,
    ] {
        let drive = drive();
        drive.add(Plan::from(ZoneCommand::Write, 1, Fault::Io(kind)));
        let mut zones = zones(&drive);
        let error = put(&mut zones, &[1]).unwrap_err();
        assert!(error.is_host_full() || error.is_host_read_only());
        assert_eq!(zones.failed, 0);
    }
}

#[test]
fn zones_whose_reset_fails_are_told_apart() {
    let drive = drive();
    let mut zones = zones(&drive);
    (0..3).for_each(|_| _ = put(&mut zones, &[1; 1000]).unwrap());
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Reset, 1, fault).in_zone(ZoneId(1)));
    let all = [0, 1, 2, 3].map(ZoneId);
    let resets = reset_or_retire(&all, |zone| reset_if_written(&drive, zone).map(drop)).unwrap();
    assert_eq!(resets.empty, [0, 2, 3].map(ZoneId));
    assert_eq!(resets.broken, [ZoneId(1)]);
    assert!(!reset_if_written(&drive, ZoneId(0)).unwrap(), "it is empty");
}
