//! Finds and resets the written zones of a drive.

use crate::zoned_device::ZonedDevice;
use std::ops::Range;
use zone::{ByteOffset, ZoneDescriptor, ZoneId, ZoneResult};

/// Number of zones in one report, which bounds the memory for a drive of any size.
pub const REPORT_BATCH: u32 = 4096;

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

/// Resets `written` zones and returns how many bytes that frees; `done` is called after each. With `all`,
/// conventional zones are wiped too. A zone that fails does not keep the others from it.
///
/// # Errors
/// The drive's first error.
pub fn reset(
    drive: &dyn ZonedDevice,
    written: &[ZoneDescriptor],
    all: bool,
    done: &mut dyn FnMut(),
) -> ZoneResult<u64> {
    let mut result = Ok(());
    for zone in written {
        result = result.and(drive.reset(zone.id));
        done();
    }
    if all {
        result = result.and(wipe_conventional(drive));
    }
    result.and(drive.flush())?;
    Ok(written.iter().map(|zone| zone.write_pointer).sum())
}

/// Overwrites the first blocks of each conventional zone, where file systems keep their signatures: these zones
/// cannot be reset.
///
/// # Errors
/// The drive's first error.
fn wipe_conventional(drive: &dyn ZonedDevice) -> ZoneResult<()> {
    let geometry = drive.geometry();
    let zeros = vec![0; (1 << 20).min(geometry.zone_size as usize)];
    let mut result = Ok(());
    for zone in 0..geometry.conventional_zones {
        let start = geometry.start(ZoneId(zone));
        result = result.and(drive.write(ByteOffset(start.0), &zeros));
    }
    result
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::MemoryDrive;
    use crate::faults::{Fault, Faults, Plan};
    use std::io::ErrorKind;
    use zone::{Geometry, ZoneCommand, ZoneKind};

    #[test]
    fn a_zone_that_fails_does_not_keep_the_others() {
        let geometry = Geometry {
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 1 << 20,
            zone_count: 6,
            conventional_zones: 2,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        };
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
