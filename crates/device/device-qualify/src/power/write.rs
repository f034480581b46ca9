//! Sends the commands of a round to a drive until the caller or an error stops it.

use super::content;
use super::round::{Round, Step};
use device::ZonedDevice;
use zone::{ZoneError, ZoneResult};

/// Sends commands until `flushed` returns false.
///
/// `flushed` is called with the number of every completed flush, and must store it durably before it returns, unless the
/// round says that its log may lag.
/// Before the first command the round's zones are reset.
///
/// # Errors
/// The drive's error, or `E` of `flushed`.
pub fn write<E: From<ZoneError>>(
    device: &dyn ZonedDevice,
    round: &Round,
    flushed: &mut dyn FnMut(u64) -> Result<bool, E>,
) -> Result<(), E> {
    empty(device, round)?;
    let mut bytes = Vec::new();
    for step in round.steps() {
        match step {
            Step::Reset(zone) => device.reset(zone)?,
            Step::Write { at, blocks, number } => {
                bytes.resize((blocks * u64::from(round.block_bytes)) as usize, 0);
                content::fill(round, number, at, &mut bytes);
                device.write(device.geometry().absolute(at), &bytes)?;
            }
            Step::Flush { number } => {
                device.flush()?;
                if !flushed(number)? {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Resets the round's zones, so that the content of an earlier round is never taken for this one's, and all
/// other active zones, because the test uses the whole limit of active zones.
fn empty(device: &dyn ZonedDevice, round: &Round) -> ZoneResult<()> {
    let written = device::erase::written_zones(device, 0..device.geometry().zone_count)?;
    let first = round.first_zone;
    let ours = first..first + round.zones;
    for zone in written {
        if ours.contains(&zone.id.0) || zone.condition.is_active() {
            device.reset(zone.id)?;
        }
    }
    device.flush()
}
