//! What a drive says: the newest checkpoint and the frames behind it, replayed. Writes nothing.

use crate::area::{Area, Found, areas};
use crate::error::{Error, Result};
use crate::file_map::FileMap;
use crate::format::frame::Frame;
use crate::format::operation::Piece;
use crate::head;
use device::ZonedDevice;
use zone::{Geometry, ZoneId};

/// The file system as of the last frame.
#[derive(Debug)]
pub(crate) struct Newest {
    pub areas: [Area; 2],
    /// The zones that are for files.
    pub zones: Vec<ZoneId>,
    /// The area that has it.
    pub current: usize,
    pub last: Frame,
    pub map: FileMap,
}

impl Newest {
    /// Finds it.
    ///
    /// # Errors
    /// There is none; it is of another version or shape; it is damaged; or the drive.
    pub fn find(device: &dyn ZonedDevice) -> Result<Self> {
        // Nothing of ours is on a drive that is too small for it.
        let (areas, zones) = areas(device.geometry())?;
        let uuid = match areas[0].is_sequential {
            true => None,
            false => Some(head::uuid(device)?),
        };
        let mut found: Vec<(usize, Found)> = Vec::new();
        for (place, area) in areas.iter().enumerate() {
            let here = area.read(device)?;
            let is_ours = |found: &Found| uuid.is_none_or(|uuid| found.last.uuid == uuid);
            found.extend(here.filter(is_ours).map(|found| (place, found)));
        }
        found.sort_by_key(|(_, found)| found.last.epoch);
        let (current, newest) = found.pop().ok_or(Error::NotFormatted)?;
        same_shape(&newest.last, device)?;
        for (place, area) in areas.iter().enumerate() {
            let behind = if place == current { newest.end } else { 0 };
            area.refuse_later(device, behind, &newest.last)?;
        }
        let mut map = FileMap::default();
        for operation in newest.operations {
            map.apply(operation).map_err(|_| Error::Corrupt {
                at: areas[current].address(0),
                what: "operations that do not follow from each other, epoch",
                expected: newest.last.epoch,
                found: newest.last.number,
            })?;
        }
        for piece in map.files.values().flat_map(|file| &file.pieces) {
            lies_in(piece, &zones, device.geometry())?;
        }
        Ok(Self {
            areas,
            zones,
            current,
            last: newest.last,
            map,
        })
    }
}

/// Whether a piece can lie where it is said to.
fn lies_in(piece: &Piece, zones: &[ZoneId], g: &Geometry) -> Result<()> {
    let end = piece.at.offset.checked_add(piece.stored);
    let is_possible = zones.binary_search(&piece.at.zone).is_ok()
        && end.is_some_and(|end| end <= g.zone_capacity)
        && piece.length <= piece.stored
        && piece.at.offset.is_multiple_of(u64::from(g.block_size));
    match is_possible {
        true => Ok(()),
        false => Err(Error::Corrupt {
            at: piece.at,
            what: "a piece that lies nowhere, bytes",
            expected: g.zone_capacity,
            found: piece.stored,
        }),
    }
}

/// Whether the drive still has the shape that it had.
fn same_shape(frame: &Frame, device: &dyn ZonedDevice) -> Result<()> {
    let g = device.geometry();
    let numbers = [
        (
            "block size",
            u64::from(frame.block_size),
            u64::from(g.block_size),
        ),
        (
            "number of zones",
            u64::from(frame.zone_count),
            u64::from(g.zone_count),
        ),
        ("zone capacity", frame.zone_capacity, g.zone_capacity),
    ];
    for (what, expected, found) in numbers {
        if expected != found {
            return Err(Error::GeometryChanged {
                what,
                expected,
                found,
            });
        }
    }
    Ok(())
}
