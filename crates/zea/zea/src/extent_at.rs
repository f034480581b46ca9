//! Whether an extent that somebody knows of lies where he says.

use crate::error::{Error, Result};
use crate::format::metadata::{Decoded, Metadata};
use crate::placed::Placed;
use crate::reading::label_of;
use device::ZonedDevice;
use zone::ZoneAddress;

/// What the metadata behind an extent of `length` bytes at `at` says of it. Reads the zone's label and that block, and no
/// data: that may be damaged. Since metadata is written with the data and behind it, a drive that keeps what was written
/// first has had both.
///
/// # Errors
/// No such extent is there, or its metadata is damaged; or the drive.
pub fn extent_at(device: &dyn ZonedDevice, at: ZoneAddress, length: u64) -> Result<Placed> {
    let (label, report) = label_of(device, at.zone)?;
    let g = device.geometry();
    let none = || Error::NotAnExtent {
        lba: g.absolute(at),
        length,
    };
    let behind = length
        .checked_next_multiple_of(u64::from(g.block_size))
        .and_then(|bytes| at.offset.checked_add(bytes))
        .filter(|behind| behind.is_multiple_of(g.block_size.into()))
        .ok_or_else(none)?;
    // Fewer than 2^32 blocks, or there is no label.
    let block = u32::try_from(behind / u64::from(g.block_size)).map_err(|_| none())?;
    if block >= crate::reading::written_blocks(g, &report) {
        return Err(none());
    }
    let place = ZoneAddress::new(at.zone, behind);
    let mut bytes = vec![0; g.block_size as usize];
    device.read(g.absolute(place), &mut bytes)?;
    match Metadata::decode(&bytes, &label.run_id, block) {
        Decoded::Valid(metadata) => {
            let placed = Placed::of(&metadata, at.zone, g);
            match (placed.at, placed.length) == (at, length) {
                true => Ok(placed),
                false => Err(none()),
            }
        }
        Decoded::Damaged(told, found) => Err(Error::Corrupt {
            at: place,
            what: "metadata of an extent",
            expected: told.into(),
            found: found.into(),
        }),
        Decoded::Nothing => Err(none()),
    }
}
