//! Checks whether the extents that a frame names had reached the drive when its power failed.
//!
//! A drive keeps of each zone a prefix of the writes, and a zone is used only after its reset is durable. So
//! data below a write pointer was written there; if it is different now, it is damaged, and its readers get an
//! error. A finished zone has no such limit: there the extent's metadata is checked, which is written with its
//! data and after it. The host of a drive in a file may have lost any blocks, so there the bytes are compared.

use crate::error::{Error, Result};
use crate::format::operation::Piece;
use crate::reader::read_pieces;
use device::{Keeps, ZonedDevice};
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneId};

/// Checks pieces of files, each of them once.
pub(crate) struct Arrivals<'a> {
    device: &'a dyn ZonedDevice,
    seen: BTreeMap<ZoneAddress, bool>,
    zones: BTreeMap<ZoneId, ZoneDescriptor>,
}

impl<'a> Arrivals<'a> {
    pub const fn new(device: &'a dyn ZonedDevice) -> Self {
        let seen = BTreeMap::new();
        let zones = BTreeMap::new();
        Self {
            device,
            seen,
            zones,
        }
    }

    /// Whether a piece of a file has reached the drive, as far as the drive can tell. A piece that cannot be
    /// read counts as there; its readers get the error.
    ///
    /// # Errors
    /// The drive's error.
    pub fn has(&mut self, inode: u64, piece: &Piece) -> Result<bool> {
        if let Some(seen) = self.seen.get(&piece.at) {
            return Ok(*seen);
        }
        let has = match self.look(inode, piece) {
            Err(error) if error.is_unreadable() => true,
            looked => looked?,
        };
        self.seen.insert(piece.at, has);
        Ok(has)
    }

    /// Whether the write pointer of the piece's zone is below the piece's end. If the piece was durable, the
    /// zone has been reset.
    ///
    /// # Errors
    /// The drive's error.
    pub fn is_reset(&mut self, piece: &Piece) -> Result<bool> {
        let zone = self.zone(piece.at.zone)?;
        Ok(zone.write_pointer_valid() && zone.write_pointer < piece.end())
    }

    fn zone(&mut self, zone: ZoneId) -> Result<ZoneDescriptor> {
        if let Some(seen) = self.zones.get(&zone) {
            return Ok(*seen);
        }
        let seen = self.device.report_zone(zone)?;
        self.zones.insert(zone, seen);
        Ok(seen)
    }

    fn look(&mut self, inode: u64, piece: &Piece) -> Result<bool> {
        if self.is_reset(piece)? {
            return Ok(false);
        }
        let zone = self.zone(piece.at.zone)?;
        let tells = zone.write_pointer_valid();
        let keeps_prefixes = self.device.keeps() == Keeps::Prefixes;
        if keeps_prefixes && tells && zone.condition != ZoneCondition::Full {
            return Ok(true);
        }
        let extent = match zea::extent_at(self.device, piece.at, piece.length) {
            Err(zea::Error::Drive(error)) => return Err(error.into()),
            looked => looked.ok(),
        };
        let is_it =
            extent.is_some_and(|extent| (extent.address.0, extent.stored) == (inode, piece.stored));
        if !is_it || keeps_prefixes {
            return Ok(is_it);
        }
        match read_pieces(self.device, &[(piece.clone(), 0, piece.length)]) {
            Err(Error::Corrupt { .. }) => Ok(false),
            read => read.map(|_| true),
        }
    }
}
