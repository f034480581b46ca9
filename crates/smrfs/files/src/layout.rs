//! The layout of a drive: two slots for metadata, then zones for data. It follows from the drive's geometry alone.

use crate::error::{Error, Result};
use caveat::Parameters;
use codec::{Put, Reader};
use std::ops::Range;
use zone::{ByteOffset, Geometry, ZoneId, ZoneKind};

/// Least bytes of a slot.
const SLOT_LEAST: u64 = 512 << 10;
/// Least number of zones for data.
const DATA_LEAST: u32 = 8;

/// The parameters that a file system was made with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes of a block: the unit of checksums and of space.
    pub block_size: u32,
    /// Whether each file lies in one band as a whole, and no file is larger than a band.
    pub is_whole: bool,
    /// Whether the file system is for a Caveat-Scriptor drive.
    pub is_caveat: bool,
    /// Whether a Caveat-Scriptor drive is cleaned once no write fits any more.
    pub is_cleaned: bool,
    /// UUID of the file system.
    pub uuid: [u8; 16],
    /// Label of the file system, at most 255 bytes.
    pub label: String,
    /// Time of creation, in microseconds since 1970.
    pub created: u64,
}

/// A piece of a slot that one command can read or write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Byte offset on the drive.
    pub at: ByteOffset,
    /// Range of bytes of the slot.
    pub bytes: Range<u64>,
}

/// A slot for metadata: a range of bytes in one or more zones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Consecutive parts of the slot: byte offset on the drive, and length in bytes.
    runs: Vec<(ByteOffset, u64)>,
    /// Zones to be reset before the slot is rewritten.
    pub zones: Vec<ZoneId>,
}

impl Slot {
    /// Bytes of the slot.
    pub fn size(&self) -> u64 {
        self.runs.iter().map(|(_, length)| length).sum()
    }

    /// The pieces that `bytes` of the slot lie in.
    pub fn pieces(&self, bytes: Range<u64>) -> Vec<Piece> {
        let mut start = 0;
        let mut pieces = Vec::new();
        for (at, length) in &self.runs {
            let (from, to) = (bytes.start.max(start), bytes.end.min(start + length));
            if from < to {
                pieces.push(Piece {
                    at: ByteOffset(at.0 + from - start),
                    bytes: from..to,
                });
            }
            start += length;
        }
        pieces
    }
}

/// The layout of a drive; see the head of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The two slots for metadata.
    pub slots: [Slot; 2],
    /// The first zone for data.
    pub first_zone: u32,
    /// Number of zones for data.
    pub zones: u32,
}

impl Layout {
    /// The layout of a zoned drive. Metadata lies in the conventional zones, if there are any; otherwise in the first
    /// sequential zones, a 32nd of all zones or a megabyte.
    pub fn of(geometry: &Geometry) -> Result<Self> {
        let count = geometry.drive_zones();
        let conventional = geometry.conventional_zones;
        if conventional >= count {
            let what = "the drive has no sequential zones, which strict append needs; --isolation-distance \
                        makes it a Caveat-Scriptor drive";
            return Err(Error::Shape(what.into()));
        }
        let start = |zone: u32| geometry.start(ZoneId(zone));
        let slot = |from: u32, each: u32| {
            let zones = from..from + each;
            let capacity = |zone: u32| geometry.capacity(ZoneId(zone));
            Slot {
                runs: zones
                    .clone()
                    .map(|zone| (start(zone), capacity(zone)))
                    .collect(),
                zones: zones
                    .map(ZoneId)
                    .filter(|zone| geometry.kind(*zone) != ZoneKind::Conventional)
                    .collect(),
            }
        };
        // Each slot begins at a zone start, so that wiping the start of every zone leaves nothing of a slot.
        let (slots, first_zone) = if conventional > 1 {
            let each = conventional / 2;
            ([slot(0, each), slot(each, each)], conventional)
        } else {
            let least = SLOT_LEAST.div_ceil(geometry.zone_capacity.max(1));
            let each = count
                .div_ceil(64)
                .max(u32::try_from(least).unwrap_or(count));
            let each = each.min(count / 4);
            let first = conventional;
            let slots = [slot(first, each), slot(first + each, each)];
            (slots, first + 2 * each)
        };
        let zones = count.saturating_sub(first_zone);
        if zones < DATA_LEAST || slots[0].size() < SLOT_LEAST {
            return Err(Error::Shape(format!(
                "the drive is too small: {zones} zones for data and {} bytes for each copy of the metadata; \
                 at least {DATA_LEAST} zones and {SLOT_LEAST} bytes are needed",
                slots[0].size()
            )));
        }
        Ok(Self {
            slots,
            first_zone,
            zones,
        })
    }

    /// Checks that files can be written, cleaned and committed at once.
    ///
    /// # Errors
    /// [`Error::Shape`]: the drive allows too few active zones.
    pub fn check_active(&self, geometry: &Geometry) -> Result<()> {
        // One for users' data and one for moved data. The end of each copy of the metadata in sequential zones is
        // another one.
        let metadata = self.slots.iter().filter(|slot| !slot.zones.is_empty());
        let (most, least) = (geometry.max_active_zones, 2 + metadata.count() as u32);
        if (1..least).contains(&most) {
            return Err(Error::Shape(format!(
                "{least} active zones are needed, and the drive allows {most}"
            )));
        }
        Ok(())
    }
}

impl Layout {
    /// The layout of a Caveat-Scriptor drive. Each slot is one half of the unshingled part; the rest is one zone.
    pub fn of_caveat(parameters: &Parameters) -> Result<Self> {
        let block = u64::from(parameters.block_size);
        let each = parameters.unshingled / 2 * block;
        if each < SLOT_LEAST {
            return Err(Error::Options(format!(
                "the unshingled part of the drive is too small: {SLOT_LEAST} bytes are needed for each of two copies \
                 of the metadata"
            )));
        }
        let slot = |start: u64| Slot {
            runs: vec![(ByteOffset(start), each)],
            zones: Vec::new(),
        };
        Ok(Self {
            slots: [slot(0), slot(each)],
            first_zone: 0,
            zones: 1,
        })
    }
}

impl Shape {
    const WHOLE: u8 = 1;
    const CAVEAT: u8 = 2;
    const CLEANED: u8 = 4;

    /// The UUID in hexadecimal.
    pub fn uuid_text(&self) -> String {
        self.uuid.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn flags(&self) -> u8 {
        let flags = [
            (self.is_whole, Self::WHOLE),
            (self.is_caveat, Self::CAVEAT),
            (self.is_cleaned, Self::CLEANED),
        ];
        flags
            .iter()
            .map(|(is, flag)| if *is { *flag } else { 0 })
            .sum()
    }

    /// Checks that the parameters are possible on a drive.
    pub fn validate(&self, geometry: &Geometry) -> Result<()> {
        let size = self.block_size;
        if !size.is_power_of_two() || !(4096..=65_536).contains(&size) || size < geometry.block_size
        {
            return Err(Error::Options(format!(
                "blocks of {size} bytes: a power of two from 4096 to 65536 is needed, not below the drive's {}",
                geometry.block_size
            )));
        }
        if geometry.zone_capacity < 16 * u64::from(size) {
            return Err(Error::Shape("zones have to hold at least 16 blocks".into()));
        }
        if geometry.zone_capacity / u64::from(size) > u64::from(u32::MAX / 2) {
            return Err(Error::Shape("zones hold too many blocks".into()));
        }
        if self.is_cleaned && (self.is_whole || !self.is_caveat) {
            return Err(Error::Options(
                "cleaning when it is full is for files in segments on a Caveat-Scriptor drive"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Encodes the payload of a head: parameters, the drive's geometry, and the number of the slot.
    pub fn encode(&self, geometry: &Geometry, slot: u8) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.uuid);
        out.push(slot);
        out.push(self.flags());
        out.put_u32(self.block_size);
        out.put_u64(self.created);
        out.put_u32(geometry.block_size);
        out.put_u64(geometry.zone_size);
        out.put_u64(geometry.zone_capacity);
        out.put_u32(geometry.drive_zones());
        out.put_u32(geometry.conventional_zones);
        out.put_u16(self.label.len() as u16);
        out.extend_from_slice(self.label.as_bytes());
        out
    }

    /// Reads what [`Self::encode`] wrote; an error if it was written for another geometry or slot.
    pub fn decode(payload: &[u8], geometry: &Geometry, slot: u8) -> Result<Self> {
        let mut reader = Reader(payload);
        let damaged = || Error::metadata("a slot's head cannot be read");
        let shape = Self::fields(&mut reader, slot).ok_or_else(damaged)?;
        let found = (|| {
            Some((
                reader.u32()?,
                reader.u64()?,
                reader.u64()?,
                reader.u32()?,
                reader.u32()?,
            ))
        })();
        let is = (
            geometry.block_size,
            geometry.zone_size,
            geometry.zone_capacity,
            geometry.drive_zones(),
            geometry.conventional_zones,
        );
        let label = reader.string();
        if found.ok_or_else(damaged)? != is {
            return Err(Error::Shape(
                "the file system was made on a drive of another shape".into(),
            ));
        }
        let label = label.ok_or_else(damaged)?;
        let shape = Self { label, ..shape };
        shape.validate(geometry)?;
        Ok(shape)
    }

    fn fields(reader: &mut Reader<'_>, slot: u8) -> Option<Self> {
        let uuid = reader.take(16)?.try_into().ok()?;
        if reader.u8()? != slot {
            return None;
        }
        let flags = reader.u8()?;
        if flags & !(Self::WHOLE | Self::CAVEAT | Self::CLEANED) != 0 {
            return None;
        }
        Some(Self {
            block_size: reader.u32()?,
            created: reader.u64()?,
            is_whole: flags & Self::WHOLE != 0,
            is_caveat: flags & Self::CAVEAT != 0,
            is_cleaned: flags & Self::CLEANED != 0,
            uuid,
            label: String::new(),
        })
    }
}
