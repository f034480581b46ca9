//! Whether what a frame names was on the drive when its power went.
//!
//! A drive keeps of each zone what was written first, and a zone is put to use when its reset is durable. So below a write
//! pointer lies what was written there; if it is not that any more, it is damage, which readers are told of. A zone that was
//! finished has no such end: there an extent's metadata tells, which goes out with its data and behind it. The host of a drive
//! in a file may have lost any blocks, so there the bytes are compared.

use crate::error::{Error, Result};
use crate::format::operation::Piece;
use crate::reader::read_pieces;
use device::{Keeps, ZonedDevice};
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneId};

/// Looks at pieces, at each once.
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

    /// Whether a piece of a file has arrived, so far as the drive tells; what cannot be read is for its readers to be told of.
    ///
    /// # Errors
    /// The drive.
    pub fn has(&mut self, inode: u64, piece: &Piece) -> Result<bool> {
        if let Some(seen) = self.seen.get(&piece.at) {
            return Ok(*seen);
        }
        let has = match self.look(inode, piece) {
            Err(error) if error.is_of_place() && !error.is_damage() => true,
            looked => looked?,
        };
        self.seen.insert(piece.at, has);
        Ok(has)
    }

    /// Whether the write pointer of the piece's zone is in front of its end: of a piece that was durable, because of a reset.
    ///
    /// # Errors
    /// The drive.
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
