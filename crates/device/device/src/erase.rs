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
/// conventional zones are wiped too.
///
/// # Errors
/// The drive's error.
pub fn reset(
    drive: &dyn ZonedDevice,
    written: &[ZoneDescriptor],
    all: bool,
    done: &mut dyn FnMut(),
) -> ZoneResult<u64> {
    for zone in written {
        drive.reset(zone.id)?;
        done();
    }
    if all {
        wipe_conventional(drive)?;
    }
    drive.flush()?;
    Ok(written.iter().map(|zone| zone.write_pointer).sum())
}

/// Overwrites the first blocks of each conventional zone, where file systems keep their signatures: these zones
/// cannot be reset.
///
/// # Errors
/// The drive's error.
fn wipe_conventional(drive: &dyn ZonedDevice) -> ZoneResult<()> {
    let geometry = drive.geometry();
    let zeros = vec![0; (1 << 20).min(geometry.zone_size as usize)];
    for zone in 0..geometry.conventional_zones {
        let start = geometry.start(ZoneId(zone));
        drive.write(ByteOffset(start.0), &zeros)?;
    }
    Ok(())
}
