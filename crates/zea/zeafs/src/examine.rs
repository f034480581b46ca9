//! Examines a file system without mounting it. Nothing is written.

use crate::area::{areas, most_metadata};
use crate::error::{Error, Result};
use crate::file_map::File;
use crate::format::operation::CHUNK;
use crate::head;
use crate::newest::Newest;
use crate::reader::{parts, read_pieces};
use device::ZonedDevice;
use std::collections::BTreeMap;
use zone::{Geometry, ZoneAddress, ZoneCondition, ZoneId};

/// Bytes of a checksum of a chunk.
const SUM: u64 = 4;

/// The file system as of its last commit, read-only.
#[derive(Debug)]
pub struct Examined {
    newest: Newest,
}

/// A file of an examined file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExaminedFile<'a> {
    /// Its name; the name of a directory ends with a slash.
    pub name: &'a str,
    /// Its size in bytes.
    pub size: u64,
    /// Number of its extents.
    pub extents: u64,
    /// Bytes that its extents take on the drive, including padding and metadata.
    pub stored: u64,
    file: &'a File,
}

impl ExaminedFile<'_> {
    /// The addresses of its extents, in the order of the file.
    pub fn places(&self) -> impl Iterator<Item = ZoneAddress> {
        self.file.pieces.iter().map(|piece| piece.at)
    }
}

impl Examined {
    /// Whether the drive's first bytes, or those of an area, are a file system of ours, of whatever version.
    ///
    /// # Errors
    /// The drive's error.
    pub fn is_there(device: &dyn ZonedDevice) -> Result<bool> {
        match areas(device.geometry()) {
            // One of the two zones may be unreadable.
            Ok((areas, _)) if areas[0].is_sequential => {
                match areas.map(|area| area.begins(device)) {
                    [Ok(true), _] | [_, Ok(true)] => Ok(true),
                    [one, other] => Ok(one? || other?),
                }
            }
            Ok((areas, _)) => Ok(head::is_there(device)?
                || areas[0].begins(device)?
                || areas[1].begins(device)?
                    && !matches!(Newest::read(device, false), Err(Error::NotFormatted))),
            Err(_) => Ok(false),
        }
    }

    /// Reads names and maps. What cannot be read is left out, see [`Self::unread`].
    ///
    /// # Errors
    /// There is no file system, or one of another version or shape; it is damaged; or the drive's error.
    pub fn of(device: &dyn ZonedDevice) -> Result<Self> {
        let newest = Newest::readable(device)?;
        Ok(Self { newest })
    }

    /// Why a part of the metadata was not read. It may hold a newer state than this one, so such a drive cannot be
    /// mounted.
    pub const fn unread(&self) -> Option<&Error> {
        self.newest.unread.as_ref()
    }

    /// The file system's identity, as hexadecimal digits.
    pub fn identity(&self) -> String {
        let uuid = self.newest.replayed.last.uuid.iter();
        uuid.map(|byte| format!("{byte:02x}")).collect()
    }

    /// The checkpoint's epoch, which grows with each checkpoint. A mount writes one.
    pub const fn epoch(&self) -> u64 {
        self.newest.replayed.last.epoch
    }

    /// As [`Self::epoch`] of the file system on the drive, without the search for damage, which reads the metadata areas to
    /// their ends.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn epoch_of(device: &dyn ZonedDevice) -> Result<u64> {
        Ok(Newest::read(device, false)?.replayed.last.epoch)
    }

    /// Number of frames after the last valid one. Extents that they name did not reach the drive, as after an
    /// interrupted sync.
    pub const fn left_out(&self) -> usize {
        self.newest.replayed.left_out
    }

    /// The zones for files.
    pub fn zones(&self) -> &[ZoneId] {
        &self.newest.zones
    }

    /// The zones of the two metadata areas.
    pub fn metadata_zones(&self) -> [ZoneId; 2] {
        self.newest.areas.map(|area| area.zone)
    }

    /// Most bytes of files for whose checksums the metadata has room; names and extents take some of it, too.
    pub fn most_bytes(&self, g: &Geometry) -> u64 {
        let room = self.newest.areas.map(|area| area.room);
        most_metadata(room[0].min(room[1]), g) / SUM * CHUNK
    }

    /// Live bytes of files in each zone, including padding and metadata of extents.
    pub fn live(&self) -> BTreeMap<ZoneId, u64> {
        let mut live = BTreeMap::new();
        for (_, piece) in self.newest.replayed.map.pieces() {
            *live.entry(piece.at.zone).or_default() += piece.stored;
        }
        live
    }

    /// All files, by name.
    pub fn files(&self) -> impl Iterator<Item = ExaminedFile<'_>> {
        let map = &self.newest.replayed.map;
        map.names.iter().filter_map(|(name, inode)| {
            let file = map.files.get(inode)?;
            Some(ExaminedFile {
                name,
                size: file.size,
                extents: file.pieces.len() as u64,
                stored: file.pieces.iter().map(|piece| piece.stored).sum(),
                file,
            })
        })
    }

    /// Compares the map with the drive: every piece must be below its zone's write pointer, in a readable zone
    /// for files, and overlap no other piece. Returns one sentence for each violation.
    ///
    /// # Errors
    /// The drive's error.
    pub fn contradictions(&self, device: &dyn ZonedDevice) -> Result<Vec<String>> {
        let mut found = Vec::new();
        let mut ends: BTreeMap<ZoneId, Vec<(u64, u64, &str)>> = BTreeMap::new();
        for file in self.files() {
            for piece in &file.file.pieces {
                let here = ends.entry(piece.at.zone).or_default();
                here.push((piece.at.offset, piece.stored, file.name));
            }
        }
        for (zone, mut pieces) in ends {
            pieces.sort_unstable();
            let written = match self.newest.zones.contains(&zone) {
                true => readable(device, zone)?,
                false => 0,
            };
            let mut free = 0;
            for (offset, stored, name) in pieces {
                let end = offset.saturating_add(stored);
                if offset < free || end > written {
                    found.push(format!(
                        "{name}: {stored} bytes at {offset} of zone {zone}, of which {written} are written"
                    ));
                }
                free = end;
            }
        }
        Ok(found)
    }

    /// The file of this name.
    pub fn file(&self, name: &str) -> Option<ExaminedFile<'_>> {
        self.files().find(|file| file.name == name)
    }

    /// Reads bytes of a file from `offset` on and verifies their checksums; returns fewer than `length` only at
    /// its end.
    ///
    /// # Errors
    /// A part is damaged or cannot be read.
    pub fn read(
        device: &dyn ZonedDevice,
        file: &ExaminedFile<'_>,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>> {
        let end = offset.saturating_add(length);
        read_pieces(device, &parts(file.file, offset, end))
    }

    /// Verifies the checksums of all bytes of a file; returns an error for each piece that is damaged or cannot
    /// be read.
    pub fn verify(device: &dyn ZonedDevice, file: &ExaminedFile<'_>) -> Vec<Error> {
        let pieces = file.file.pieces.iter().enumerate();
        let damage = pieces.filter_map(|(place, piece)| {
            let length = file.file.end_of(place) - piece.file_offset;
            read_pieces(device, &[(piece.clone(), 0, length)]).err()
        });
        damage.collect()
    }
}

/// Bytes of a zone that may have been written: all of them in a read-only zone, which has no valid write
/// pointer.
fn readable(device: &dyn ZonedDevice, zone: ZoneId) -> Result<u64> {
    let report = device.report_zone(zone)?;
    Ok(match report.condition {
        ZoneCondition::ReadOnly => device.geometry().zone_capacity,
        ZoneCondition::Offline => 0,
        _ => report.write_pointer,
    })
}
