//! The kernel's commands for zoned block devices (`linux/blkzoned.h`): report, open, close, finish
//! and reset. The only unsafe code of this back end; the structures are the kernel's, byte by byte.

use rustix::io::{Errno, retry_on_intr};
use rustix::ioctl::{Setter, Updater, ioctl, opcode};
use std::fs::File;

const SECTOR: u64 = 512;
const GROUP: u8 = 0x12;
/// Flag of a report: capacities are requested, and have been filled in (Linux 5.9 and later).
const WITH_CAPACITY: u32 = 1;
/// Most zones in one report: 32 KiB.
pub(super) const ZONES_AT_ONCE: usize = 512;

/// A zone as the kernel reports it, in bytes instead of sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KernelZone {
    pub start: u64,
    pub length: u64,
    pub capacity: u64,
    /// The write pointer, from the start of the drive.
    pub write_pointer: u64,
    pub kind: u8,
    pub condition: u8,
}

/// A zone management command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Management {
    Reset,
    Open,
    Close,
    Finish,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct BlkZone {
    start: u64,
    len: u64,
    wp: u64,
    kind: u8,
    cond: u8,
    non_seq: u8,
    reset: u8,
    resv: [u8; 4],
    capacity: u64,
    reserved: [u8; 24],
}

/// `struct blk_zone_report` without its zones; the command's number encodes the size of this part.
#[repr(C)]
#[derive(Clone, Copy)]
struct ReportHeader {
    sector: u64,
    nr_zones: u32,
    flags: u32,
}

#[repr(C)]
struct Report {
    header: ReportHeader,
    zones: [BlkZone; ZONES_AT_ONCE],
}

#[repr(C)]
struct BlkZoneRange {
    sector: u64,
    nr_sectors: u64,
}

const _: () = assert!(size_of::<BlkZone>() == 64);
const _: () = assert!(size_of::<ReportHeader>() == 16);
const _: () = assert!(size_of::<Report>() == 16 + 64 * ZONES_AT_ONCE);

const REPORT: rustix::ioctl::Opcode = opcode::read_write::<ReportHeader>(GROUP, 130);
const RESET: rustix::ioctl::Opcode = opcode::write::<BlkZoneRange>(GROUP, 131);
const OPEN: rustix::ioctl::Opcode = opcode::write::<BlkZoneRange>(GROUP, 134);
const CLOSE: rustix::ioctl::Opcode = opcode::write::<BlkZoneRange>(GROUP, 135);
const FINISH: rustix::ioctl::Opcode = opcode::write::<BlkZoneRange>(GROUP, 136);

const NO_ZONE: BlkZone = BlkZone {
    start: 0,
    len: 0,
    wp: 0,
    kind: 0,
    cond: 0,
    non_seq: 0,
    reset: 0,
    resv: [0; 4],
    capacity: 0,
    reserved: [0; 24],
};

/// Reports zones from the one that contains byte `at`, at most `count` and at most [`ZONES_AT_ONCE`].
pub(super) fn report(file: &File, at: u64, count: usize) -> Result<Vec<KernelZone>, Errno> {
    let most = count.min(ZONES_AT_ONCE);
    let mut report = Box::new(Report {
        header: ReportHeader {
            sector: at / SECTOR,
            nr_zones: most as u32,
            flags: 0,
        },
        zones: [NO_ZONE; ZONES_AT_ONCE],
    });
    retry_on_intr(|| {
        // SAFETY: the kernel reads the header, and writes it and at most `nr_zones` zones behind
        // it; the structure has room for as many and lives until the call is over.
        unsafe { ioctl(file, Updater::<REPORT, Report>::new(&mut report)) }
    })?;
    let told = (report.header.nr_zones as usize).min(most);
    let has_capacity = report.header.flags & WITH_CAPACITY != 0;
    let bytes = |sectors: u64| sectors.saturating_mul(SECTOR);
    let zones = report.zones[..told].iter().map(|zone| KernelZone {
        start: bytes(zone.start),
        length: bytes(zone.len),
        capacity: bytes(if has_capacity {
            zone.capacity
        } else {
            zone.len
        }),
        write_pointer: bytes(zone.wp),
        kind: zone.kind,
        condition: zone.cond,
    });
    Ok(zones.collect())
}

/// Carries out a command on the zone of `length` bytes at byte `start`.
pub(super) fn manage(
    file: &File,
    command: Management,
    start: u64,
    length: u64,
) -> Result<(), Errno> {
    retry_on_intr(|| {
        let range = BlkZoneRange {
            sector: start / SECTOR,
            nr_sectors: length / SECTOR,
        };
        // SAFETY: each of these commands only reads a `struct blk_zone_range`.
        unsafe {
            match command {
                Management::Reset => ioctl(file, Setter::<RESET, _>::new(range)),
                Management::Open => ioctl(file, Setter::<OPEN, _>::new(range)),
                Management::Close => ioctl(file, Setter::<CLOSE, _>::new(range)),
                Management::Finish => ioctl(file, Setter::<FINISH, _>::new(range)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_numbers_are_the_kernels() {
        // As `linux/blkzoned.h` expands on x86-64 and arm64.
        assert_eq!(REPORT, 0xc010_1282);
        assert_eq!(RESET, 0x4010_1283);
        assert_eq!(OPEN, 0x4010_1286);
        assert_eq!(CLOSE, 0x4010_1287);
        assert_eq!(FINISH, 0x4010_1288);
    }

    #[test]
    fn what_is_no_zoned_device_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        assert!(report(&file, 0, 1).is_err());
        assert!(manage(&file, Management::Reset, 0, 4096).is_err());
    }
}
