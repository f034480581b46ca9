//! Finds and resets the written zones of a drive, and the data in conventional ones.

use crate::zoned_device::ZonedDevice;
use std::ops::Range;
use zone::{ByteOffset, ZoneDescriptor, ZoneError, ZoneId, ZoneKind, ZoneResult};

/// Number of zones in one report, which bounds the memory for a drive of any size.
pub const REPORT_BATCH: u32 = 4096;

/// Bytes at the front of each conventional zone that an erase overwrites: superblocks, journals and runs of records begin
/// there, and other file systems have their signatures there.
const FRONT_BYTES: u64 = 1 << 20;

/// After so many errors of input or output one after the other it is looked whether the drive is gone or hangs: then each more
/// may take minutes.
const MOST_IN_A_ROW: u32 = 16;
const GONE: u32 = MOST_IN_A_ROW + 1;

/// Results of the commands of an erase.
struct Results {
    /// The first error.
    first: ZoneResult<()>,
    failed: usize,
    in_a_row: u32,
}

impl Results {
    fn note(&mut self, done: ZoneResult<()>) {
        self.in_a_row = match &done {
            Err(ZoneError::PowerLost { .. }) => GONE,
            Err(ZoneError::Io { .. }) => self.in_a_row + 1,
            // The drive answers.
            _ => 0,
        };
        self.failed += usize::from(done.is_err());
        if self.first.is_ok() {
            self.first = done;
        }
    }

    /// Whether the drive answers no more.
    fn is_gone(&mut self, drive: &dyn ZonedDevice) -> bool {
        if self.in_a_row == MOST_IN_A_ROW {
            let answers = drive.report(ZoneId(0), 1).is_ok();
            self.in_a_row = if answers { 0 } else { GONE };
        }
        self.in_a_row >= GONE
    }
}

/// The zones in `zones` that a reset would change.
///
/// # Errors
/// The drive cannot report them.
pub fn written_zones(
    drive: &dyn ZonedDevice,
    zones: Range<u32>,
) -> ZoneResult<Vec<ZoneDescriptor>> {
    let mut written = Vec::new();
    for first in zones.clone().step_by(REPORT_BATCH as usize) {
        let batch = drive.report(ZoneId(first), REPORT_BATCH.min(zones.end - first))?;
        let is_written =
            |zone: &ZoneDescriptor| zone.write_pointer > 0 || zone.condition.is_active();
        written.extend(batch.into_iter().filter(is_written));
    }
    Ok(written)
}

/// Whether the first MiB of a conventional zone, which has no write pointer, holds anything but zeros. One that is offline
/// holds nothing that could be read.
///
/// # Errors
/// The drive cannot read it.
pub fn has_data_in_front(drive: &dyn ZonedDevice, zone: ZoneId) -> ZoneResult<bool> {
    let geometry = drive.geometry();
    let mut front = vec![0; FRONT_BYTES.min(geometry.capacity(zone)) as usize];
    match drive.read(geometry.start(zone), &mut front) {
        Err(ZoneError::Offline { .. }) => return Ok(false),
        read => read?,
    }
    Ok(!codec::is_zero(&front))
}

/// Whether [`reset`] of all zones would destroy nothing: no zone is written, and conventional zones have no data in front.
///
/// # Errors
/// The drive cannot report its zones, or not read a conventional one.
pub fn is_empty(drive: &dyn ZonedDevice) -> ZoneResult<bool> {
    let geometry = drive.geometry();
    if !written_zones(drive, 0..geometry.zone_count)?.is_empty() {
        return Ok(false);
    }
    for zone in geometry.zones() {
        if geometry.kind(zone) == ZoneKind::Conventional && has_data_in_front(drive, zone)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Resets `written` zones and returns how many bytes that frees; `done` is called after each. With `all`,
/// conventional zones are wiped too, except those that are offline. A zone that fails does not keep the others from it,
/// but a drive that fails again and again ends it.
///
/// # Errors
/// The drive's first error; the log says how many there were.
pub fn reset(
    drive: &dyn ZonedDevice,
    written: &[ZoneDescriptor],
    all: bool,
    done: &mut dyn FnMut(),
) -> ZoneResult<u64> {
    let mut results = Results {
        first: Ok(()),
        failed: 0,
        in_a_row: 0,
    };
    for zone in written {
        if results.is_gone(drive) {
            break;
        }
        results.note(drive.reset(zone.id));
        done();
    }
    if all {
        wipe_conventional(drive, &mut results);
    }
    if !results.is_gone(drive) {
        results.note(drive.flush());
    }
    let (failed, ended) = (results.failed, results.is_gone(drive));
    if failed > 1 || ended {
        tracing::warn!(failed, ended_early = ended, "commands of an erase failed");
    }
    results.first?;
    Ok(written.iter().map(|zone| zone.write_pointer).sum())
}

/// Overwrites the front of each conventional zone: these zones cannot be reset. One that is offline is passed over.
fn wipe_conventional(drive: &dyn ZonedDevice, results: &mut Results) {
    let geometry = drive.geometry();
    let zeros = vec![0; FRONT_BYTES.min(geometry.zone_size) as usize];
    for zone in 0..geometry.conventional_zones {
        if results.is_gone(drive) {
            break;
        }
        let start = geometry.start(ZoneId(zone));
        results.note(match drive.write(ByteOffset(start.0), &zeros) {
            // What is in it can no longer be read.
            Err(ZoneError::Offline { .. }) => Ok(()),
            done => done,
        });
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::MemoryDrive;
    use crate::faults::{Fault, Faults, Plan};
    use std::io::ErrorKind;
    use zone::{Geometry, ZoneCommand, ZoneCondition};

    fn geometry(zone_count: u32) -> Geometry {
        Geometry {
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 1 << 20,
            zone_count,
            conventional_zones: 2,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        }
    }

    #[test]
    fn a_drive_that_is_gone_ends_an_erase() {
        let geometry = geometry(40);
        let fails = |command| Plan::at(command, 1, Fault::Io(ErrorKind::TimedOut));
        let of = |every_second: bool, answers: bool| {
            let drive = Faults::new(MemoryDrive::new(geometry.clone()).unwrap());
            for zone in geometry.zones() {
                drive.write(geometry.start(zone), &[1; 4096]).unwrap();
            }
            let written = written_zones(&drive, 0..40).unwrap();
            for zone in geometry
                .zones()
                .filter(|zone| !every_second || zone.0 % 2 == 0)
            {
                drive.add(fails(ZoneCommand::Reset).in_zone(zone));
            }
            drive.add(fails(ZoneCommand::Flush));
            if !answers {
                drive.add(fails(ZoneCommand::Report));
            }
            let mut done = 0;
            reset(&drive, &written, false, &mut || done += 1).unwrap_err();
            (done, drive.struck())
        };
        assert_eq!(of(false, false), (16, 17));
        // The last one is the flush.
        assert_eq!(of(false, true), (38, 39));
        assert_eq!(of(true, false), (38, 20));
    }

    #[test]
    fn a_drive_with_zones_that_are_offline_can_be_erased() {
        let geometry = geometry(6);
        let drive = MemoryDrive::new(geometry.clone()).unwrap();
        for zone in geometry.zones() {
            drive.write(geometry.start(zone), &[1; 4096]).unwrap();
        }
        for zone in [0, 3].map(ZoneId) {
            drive.set_condition(zone, ZoneCondition::Offline).unwrap();
        }
        let written = written_zones(&drive, 0..6).unwrap();
        assert_eq!(reset(&drive, &written, true, &mut || ()).unwrap(), 3 * 4096);
        let mut block = vec![1; 4096];
        drive.read(geometry.start(ZoneId(1)), &mut block).unwrap();
        assert_eq!(block, vec![0; 4096]);
        // What can be read has to be gone.
        drive
            .set_condition(ZoneId(1), ZoneCondition::ReadOnly)
            .unwrap();
        reset(&drive, &[], true, &mut || ()).unwrap_err();
    }

    #[test]
    fn a_zone_that_fails_does_not_keep_the_others() {
        let geometry = geometry(6);
        let drive = Faults::new(MemoryDrive::new(geometry.clone()).unwrap());
        for zone in geometry.zones() {
            drive.write(geometry.start(zone), &[1; 4096]).unwrap();
        }
        let written = written_zones(&drive, 0..6).unwrap();
        let fails = |command, kind| Plan::at(command, 1, Fault::Io(kind));
        drive.add(fails(ZoneCommand::Reset, ErrorKind::TimedOut).in_zone(ZoneId(3)));
        drive.add(fails(ZoneCommand::Write, ErrorKind::Other).in_zone(ZoneId(0)));
        drive.add(fails(ZoneCommand::Flush, ErrorKind::Other));
        let mut done = 0;
        let error = reset(&drive, &written, true, &mut || done += 1).unwrap_err();
        // The first one.
        assert!(error.to_string().contains("timed out"), "{error}");
        assert_eq!((done, drive.struck()), (4, 3));
        let left = written_zones(&drive, 0..6).unwrap();
        assert_eq!(left.iter().map(|zone| zone.id.0).collect::<Vec<_>>(), [3]);
        let mut block = vec![1; 4096];
        drive.read(geometry.start(ZoneId(1)), &mut block).unwrap();
        assert_eq!(block, vec![0; 4096]);
    }
}
