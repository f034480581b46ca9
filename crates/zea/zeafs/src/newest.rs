//! Finds the newest checkpoint on a drive and replays the frames after it. Writes nothing.

use crate::area::{Area, Found, areas};
use crate::error::{Error, Result};
use crate::format::frame::Frame;
use crate::head;
use crate::replayed::Replayed;
use device::ZonedDevice;
use zone::{ZoneCondition, ZoneId};

/// The file system as of the last valid frame.
#[derive(Debug)]
pub(crate) struct Newest {
    pub areas: [Area; 2],
    /// The zones for files.
    pub zones: Vec<ZoneId>,
    /// Index of the area that holds the last frame.
    pub current: usize,
    pub replayed: Replayed,
    /// Why a part of the areas that may hold a newer state was not read.
    pub unread: Option<Error>,
}

impl Newest {
    /// Reads the metadata areas and replays the newest.
    ///
    /// Without a copy of the head, an area counts only if an extent that it names is on the drive: another program may have
    /// made something else of the drive since. Erasing it wipes the head and the start of the first area, so that nothing
    /// is there then.
    ///
    /// # Errors
    /// There is no file system, or one of another version or shape; it is damaged; or the drive's error, also if only
    /// what may be a newer state cannot be read.
    pub fn find(device: &dyn ZonedDevice) -> Result<Self> {
        let mut found = Self::readable(device)?;
        found.unread.take().map_or(Ok(found), Err)
    }

    /// As [`Self::find`], but leaves out what cannot be read.
    pub fn readable(device: &dyn ZonedDevice) -> Result<Self> {
        Self::read(device, true)
    }

    /// As [`Self::readable`], but if `is_searched` is false, reads each area only up to the end of its frames: damage is
    /// taken for that end, and [`Self::unread`] is `None`.
    pub fn read(device: &dyn ZonedDevice, is_searched: bool) -> Result<Self> {
        // A drive that is too small cannot hold a file system of ours.
        let (areas, zones) = areas(device.geometry())?;
        if areas[0].is_sequential {
            return Self::of(device, areas, zones, None, is_searched);
        }
        let uuid = head::uuid(device)?;
        let has_head = uuid.is_some() || head::is_there(device)?;
        let is_there = has_head || areas[0].begins(device)?;
        let has_extent = |area: &Area| area.has_extent(device, &zones);
        let is_proven = has_head || has_extent(&areas[0])? || has_extent(&areas[1])?;
        let at = areas[0].address(0);
        let found = match is_proven {
            true => Self::of(device, areas, zones, uuid, is_searched),
            false => Err(Error::NotFormatted),
        };
        found.map_err(|error| match error {
            Error::NotFormatted if is_there => Error::Corrupt {
                at,
                what: "heads or extents of the file system",
                expected: 1,
                found: 0,
            },
            error => error,
        })
    }

    /// As [`Self::read`], of the file system with this UUID. Without one, all frames must have the same.
    fn of(
        device: &dyn ZonedDevice,
        areas: [Area; 2],
        zones: Vec<ZoneId>,
        uuid: Option<[u8; 16]>,
        is_searched: bool,
    ) -> Result<Self> {
        let mut found: Vec<(usize, Found)> = Vec::new();
        let mut errors = [None, None];
        for (place, area) in areas.iter().enumerate() {
            let (here, error) = area.read(device)?;
            errors[place] = error;
            let is_ours = |found: &Found| uuid.is_none_or(|uuid| found.last.uuid == uuid);
            found.extend(here.filter(is_ours).map(|found| (place, found)));
        }
        if !areas[0].is_sequential
            && let [(_, one), (place, other)] = &found[..]
            && one.last.uuid != other.last.uuid
        {
            return Err(Error::Corrupt {
                at: areas[*place].address(0),
                what: "file systems without a head",
                expected: 1,
                found: 2,
            });
        }
        found.sort_by_key(|(_, found)| found.last.epoch);
        let Some((current, newest)) = found.pop() else {
            let error = errors.into_iter().flatten().next();
            return Err(error.unwrap_or(Error::NotFormatted));
        };
        let has_older = !found.is_empty();
        same_shape(&newest.last, device)?;
        let mut unread = None;
        let ends = areas.iter().enumerate().zip(errors);
        for ((place, area), error) in ends.filter(|_| is_searched) {
            let is_current = place == current;
            let behind = if is_current { newest.end } else { 0 };
            // A whole checkpoint that is older shows that the area has nothing newer.
            let may_be_newer = is_current || !has_older;
            let searched = area.refuse_later(device, behind, &newest.last);
            let error = match (searched, error) {
                (Ok(unreadable), Some(_))
                    if !is_current && area.is_older(device, &newest.last, unreadable)? =>
                {
                    None
                }
                (Err(found), error)
                    if !found.is_unreadable() && (error.is_none() || !may_be_newer) =>
                {
                    return Err(found);
                }
                (searched, error) => error.or(searched.err()),
            };
            if may_be_newer {
                unread = unread.or(error);
            }
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
            unread,
        })
    }
}

impl Area {
    /// Whether an extent of a file is where the area says, in a zone that a reset would have emptied.
    fn has_extent(&self, device: &dyn ZonedDevice, zones: &[ZoneId]) -> Result<bool> {
        let (found, error) = self.read(device)?;
        let Some(found) = found else {
            return error.map_or(Ok(false), Err);
        };
        let replayed = match Replayed::of(device, found.frames, self.address(0), zones) {
            Err(error) if error.is_damage() => return Ok(false),
            replayed => replayed?,
        };
        for (inode, piece) in replayed.map.pieces() {
            if device.report_zone(piece.at.zone)?.condition == ZoneCondition::ReadOnly {
                continue;
            }
            match zea::extent_at(device, piece.at, piece.length) {
                Ok(extent) if extent.address.0 == inode => return Ok(true),
                Err(zea::Error::Drive(error)) if !appender::is_of_zone(&error) => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        Ok(false)
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
