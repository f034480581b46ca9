//! Tells a drive that does not answer from one that cannot read some zones.

use crate::{Error, Result};
use device::ZonedDevice;
use zone::ZoneId;

/// So many places are tried, which lie all over the drive.
const PLACES: usize = 8;

/// Whether the drive reads anything: one that does not answer says nothing about its zones.
pub(crate) fn answers(device: &dyn ZonedDevice) -> bool {
    let geometry = device.geometry();
    let Ok(zones) = device.report(ZoneId(0), geometry.zone_count) else {
        return false;
    };
    // What was not written reads as zeros, and nobody asks the drive for it.
    let on_drive =
        |zone: &&zone::ZoneDescriptor| !zone.write_pointer_valid() || zone.write_pointer > 0;
    let zones: Vec<_> = zones.iter().filter(on_drive).collect();
    let step = zones.len().div_ceil(PLACES).max(1);
    let mut block = vec![0; geometry.block_size as usize];
    let mut tried = zones.iter().step_by(step);
    zones.is_empty() || tried.any(|zone| device.read(geometry.start(zone.id), &mut block).is_ok())
}

/// Passes on the error of a read if the drive does not answer: then it does not tell of damage.
pub(crate) fn check_answers(device: &dyn ZonedDevice, error: impl Into<Error>) -> Result<()> {
    match answers(device) {
        true => Ok(()),
        false => Err(error.into()),
    }
}
