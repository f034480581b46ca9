//! Finds the newest checkpoint on a drive and replays the frames after it. Writes nothing.

use crate::area::{Area, Found, areas};
use crate::error::{Error, Result};
use crate::format::frame::Frame;
use crate::head;
use crate::replayed::Replayed;
use device::ZonedDevice;
use zone::{ZoneAddress, ZoneId};

/// The file system as of the last valid frame.
#[derive(Debug)]
pub(crate) struct Newest {
    pub areas: [Area; 2],
    /// The zones for files.
    pub zones: Vec<ZoneId>,
    /// Index of the area that holds the last frame.
    pub current: usize,
    pub replayed: Replayed,
}

impl Newest {
    /// Reads the metadata areas and replays the newest.
    ///
    /// # Errors
    /// There is no file system, or one of another version or shape; it is damaged; or the drive's error.
    pub fn find(device: &dyn ZonedDevice) -> Result<Self> {
        // A drive that is too small cannot hold a file system of ours.
        let (areas, zones) = areas(device.geometry())?;
        let uuid = match areas[0].is_sequential {
            true => None,
            false => Some(head_of(device, &areas[0])?),
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
        let at = areas[current].address(0);
        let replayed = Replayed::of(device, newest.frames, at, &zones)?;
        if let Some(reset) = replayed.reset
            && areas[current].goes_on(device, newest.end, &newest.last)?
        {
            return Err(Error::Corrupt {
                at: areas[current].address(newest.end),
                what: "frame for which a zone was reset, zone",
                expected: newest.last.number + 1,
                found: u64::from(reset.zone.0),
            });
        }
        Ok(Self {
            areas,
            zones,
            current,
            replayed,
        })
    }
}

/// The UUID that all frames must have. Erasing a drive wipes the head and the areas; if only the head is
/// missing or incomplete, it is damaged.
fn head_of(device: &dyn ZonedDevice, behind: &Area) -> Result<[u8; 16]> {
    match head::uuid(device)? {
        Some(uuid) => Ok(uuid),
        None if head::is_there(device)? || behind.begins(device)? => Err(Error::Corrupt {
            at: ZoneAddress::new(behind.zone, 0),
            what: "whole copies of the head",
            expected: 1,
            found: 0,
        }),
        None => Err(Error::NotFormatted),
    }
}

/// Checks that the drive has the geometry that it was formatted with.
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
