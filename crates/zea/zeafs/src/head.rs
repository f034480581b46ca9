//! The head: an empty frame with the file system's UUID, in two copies at the start of a conventional zone.
//!
//! It marks the metadata areas as valid. A conventional zone is never reset, so an area in it may outlive the file
//! system. Without the head, areas count only if the drive has not been erased since ([`crate::newest::Newest::find`]).

use crate::error::{Error, Result};
use crate::format::FORMAT_VERSION;
use crate::format::frame::{Decoded, Frame, HEADER, checksum};
use device::ZonedDevice;
use zone::{ByteOffset, Geometry};

/// Number of copies, one in each block.
pub(crate) const COPIES: u32 = 2;

/// The frame of an empty file system.
pub(crate) const fn nothing(uuid: [u8; 16], g: &Geometry) -> Frame {
    Frame {
        uuid,
        epoch: 0,
        number: 0,
        length: 0,
        durable: 0,
        block_size: g.block_size,
        zone_count: g.zone_count,
        zone_capacity: g.zone_capacity,
    }
}

/// Writes the head, on a drive with conventional zones.
pub(crate) fn write(device: &dyn ZonedDevice, uuid: [u8; 16]) -> Result<()> {
    let block = nothing(uuid, device.geometry()).encode(&[]);
    device.write(ByteOffset(0), &block.repeat(COPIES as usize))?;
    Ok(())
}

/// The copies that can be read.
fn blocks(device: &dyn ZonedDevice) -> Result<Vec<Vec<u8>>> {
    let block = device.geometry().block_size;
    let mut blocks = Vec::new();
    for copy in 0..COPIES {
        let mut bytes = vec![0; block as usize];
        match device.read(ByteOffset(u64::from(copy * block)), &mut bytes) {
            Ok(()) => blocks.push(bytes),
            Err(error) if appender::is_of_zone(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(blocks)
}

/// Whether a copy begins with the magic, of whatever version.
pub(crate) fn is_there(device: &dyn ZonedDevice) -> Result<bool> {
    let is_ours = |block: &Vec<u8>| !matches!(Frame::decode(block), Decoded::Nothing);
    Ok(blocks(device)?.iter().any(is_ours))
}

/// The UUID that all frames must have; either copy suffices. `None` if no copy is valid.
///
/// # Errors
/// A copy has another format version.
pub(crate) fn uuid(device: &dyn ZonedDevice) -> Result<Option<[u8; 16]>> {
    for block in blocks(device)? {
        let is_whole = |sum| block.get(..HEADER).map(checksum) == Some(sum);
        match Frame::decode(&block) {
            Decoded::Header(frame, sum) if is_whole(sum) => return Ok(Some(frame.uuid)),
            Decoded::OtherVersion(found, _, sum) if is_whole(sum) => {
                return Err(Error::UnsupportedVersion {
                    found,
                    supported: FORMAT_VERSION,
                });
            }
            _ => {}
        }
    }
    Ok(None)
}
