//! Checks whether a known extent is at its address, by its metadata.

use crate::error::{Error, Result};
use crate::format::metadata::{Decoded, Metadata};
use crate::placed::Placed;
use crate::reading::label_of;
use device::ZonedDevice;
use zone::ZoneAddress;

/// The metadata of the extent of `length` bytes at `at`.
///
/// Reads the zone's label and the block after the extent, but no data, which may be damaged. Metadata is
/// written together with the data and after it, so on a drive that keeps a prefix of the writes the data was
/// written too.
///
/// # Errors
/// There is no such extent, or its metadata is damaged; or the drive's error.
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
    // A labelled zone has fewer than 2^32 blocks.
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
