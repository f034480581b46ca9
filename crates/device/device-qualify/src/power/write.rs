//! Sends the commands of a round until somebody or something ends it.

use super::content;
use super::round::{Round, Step};
use device::ZonedDevice;
use zone::{ZoneError, ZoneResult};

/// Sends commands until `flushed` answers false, which is told of every flush that the drive has answered: it must note
/// the number durably before it answers. The drive's reset of a zone is flushed before anything else counts, as is
/// everything.
///
/// # Errors
/// The drive's, or `E` of `flushed`.
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

/// Empties the round's zones, so that an earlier one's content is never taken for this one's, and all others that are
/// active: the limit of active zones is the test's.
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
