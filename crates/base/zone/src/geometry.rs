//! The fixed properties of a zoned drive: its zones, block size and limits.

use crate::{ByteOffset, Bytes, ZoneAddress, ZoneId};
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The kind of a zone (ZBC "zone type").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZoneKind {
    /// Any order of writes, no write pointer.
    Conventional,
    /// Writes only at the write pointer.
    SequentialWriteRequired,
    /// Has a write pointer; writes elsewhere are allowed and slow.
    SequentialWritePreferred,
}

/// The shape and the limits of a zoned drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Geometry {
    /// Bytes in a logical block: the unit and alignment of every read and write.
    pub block_size: u32,
    /// Bytes from one zone start to the next.
    pub zone_size: u64,
    /// Writable bytes of a sequential zone, ≤ `zone_size`. Conventional zones always hold `zone_size`.
    pub zone_capacity: u64,
    /// Number of zones; each part of a conventional zone counts as one.
    pub zone_count: u32,
    /// Number of conventional zones, which are the first ones.
    pub conventional_zones: u32,
    /// Number of equal zones that each conventional zone is used as: 1, or a power of two.
    ///
    /// The first part has the number of the zone itself. The other parts are numbered after the drive's last
    /// zone, so that sequential zones keep the numbers that the drive gives them. This is a property of the
    /// drive's use and is neither saved nor sent.
    #[serde(skip, default = "whole")]
    pub conventional_parts: u32,
    /// The kind of all other zones.
    pub sequential_kind: ZoneKind,
    /// Most zones open at once; 0 means no limit.
    pub max_open_zones: u32,
    /// Most zones active (open or closed) at once; 0 means no limit.
    pub max_active_zones: u32,
    /// Most bytes that one zone append takes; 0 means that the drive has no zone append.
    pub max_append_bytes: u32,
}

fn whole() -> u32 {
    1
}

/// Why a geometry is not valid.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GeometryError {
    /// The block size is no power of two from 512 to 65,536.
    #[error("block size {0} bytes is not a power of two from 512 to 65536")]
    BlockSize(u32),
    /// Zone size or capacity is zero, not a multiple of the block, or the capacity is larger.
    #[error(
        "zone size {size} bytes and capacity {capacity} bytes must be multiples of the block size, {block_size} bytes, the capacity from one block up to the size"
    )]
    ZoneSize {
        /// Bytes a zone.
        size: u64,
        /// Writable bytes a zone.
        capacity: u64,
        /// Bytes a block.
        block_size: u32,
    },
    /// No zones, or more conventional ones than zones, or the drive exceeds 2^63 bytes.
    #[error("{zone_count} zones with {conventional_zones} conventional ones is not a drive")]
    ZoneCount {
        /// All zones.
        zone_count: u32,
        /// Conventional ones.
        conventional_zones: u32,
    },
    /// The number of parts of a conventional zone is not a power of two, or the parts are not whole blocks.
    #[error("a conventional zone cannot be used as {0} zones")]
    Parts(u32),
    /// `sequential_kind` is conventional.
    #[error("the kind of sequential zones cannot be conventional")]
    SequentialKind,
    /// `max_open_zones` exceeds `max_active_zones`.
    #[error("max_open_zones {open} exceeds max_active_zones {active}")]
    Limits {
        /// max_open_zones.
        open: u32,
        /// max_active_zones.
        active: u32,
    },
    /// The append limit is not a multiple of the block size.
    #[error("max_append_bytes {0} is not a multiple of the block size")]
    Append(u32),
}

impl fmt::Display for Geometry {
    /// `64.00 GiB, 256 zones of 256 MiB, the first 3 conventional, at most 128 open`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, zone_size) = (Bytes(self.size_bytes()), Bytes(self.zone_size));
        write!(f, "{size}, {} zones of {zone_size}", self.drive_zones())?;
        if self.zone_capacity != self.zone_size {
            write!(f, " (capacity {})", Bytes(self.zone_capacity))?;
        }
        match self.conventional_zones {
            0 => f.write_str(", none conventional")?,
            1 => f.write_str(", the first one conventional")?,
            n => write!(f, ", the first {n} conventional")?,
        }
        match (self.max_open_zones, self.max_active_zones) {
            (0, 0) => Ok(()),
            (open, 0) => write!(f, ", at most {open} open"),
            (open, active) => write!(f, ", at most {open} open and {active} active"),
        }
    }
}

impl Geometry {
    /// Checks that the fields are consistent.
    pub fn validate(&self) -> Result<(), GeometryError> {
        if !self.block_size.is_power_of_two() || !(512..=65_536).contains(&self.block_size) {
            return Err(GeometryError::BlockSize(self.block_size));
        }
        let block = u64::from(self.block_size);
        if self.zone_capacity == 0
            || self.zone_capacity > self.zone_size
            || !self.zone_size.is_multiple_of(block)
            || !self.zone_capacity.is_multiple_of(block)
        {
            return Err(GeometryError::ZoneSize {
                size: self.zone_size,
                capacity: self.zone_capacity,
                block_size: self.block_size,
            });
        }
        let parts = self.conventional_parts;
        let extra = u64::from(self.conventional_zones) * u64::from(parts.max(1) - 1);
        if !parts.is_power_of_two()
            || !self.zone_size.is_multiple_of(u64::from(parts) * block)
            || extra > u64::from(self.zone_count)
        {
            return Err(GeometryError::Parts(parts));
        }
        let bytes = self.zone_size.checked_mul(u64::from(self.zone_count));
        if self.zone_count == 0
            || self.conventional_zones > self.drive_zones()
            || bytes.is_none_or(|b| b > i64::MAX as u64)
        {
            return Err(GeometryError::ZoneCount {
                zone_count: self.zone_count,
                conventional_zones: self.conventional_zones,
            });
        }
        if self.sequential_kind == ZoneKind::Conventional {
            return Err(GeometryError::SequentialKind);
        }
        if self.max_active_zones != 0 && self.max_open_zones > self.max_active_zones {
            return Err(GeometryError::Limits {
                open: self.max_open_zones,
                active: self.max_active_zones,
            });
        }
        if !u64::from(self.max_append_bytes).is_multiple_of(block) {
            return Err(GeometryError::Append(self.max_append_bytes));
        }
        Ok(())
    }

    /// Number of zones that the drive itself has, without the further parts of conventional ones.
    pub const fn drive_zones(&self) -> u32 {
        self.zone_count - self.conventional_zones * (self.conventional_parts - 1)
    }

    /// Number of conventional zones, each part counted.
    pub const fn conventional_count(&self) -> u32 {
        self.conventional_zones * self.conventional_parts
    }

    /// Number of zones that are not conventional.
    pub const fn sequential_count(&self) -> u32 {
        self.drive_zones() - self.conventional_zones
    }

    /// Bytes from the start of the drive to its end, including the gaps after zone capacities.
    pub const fn size_bytes(&self) -> u64 {
        self.zone_size * self.drive_zones() as u64
    }

    /// Bytes that can be written: the sum of all zone capacities.
    pub const fn capacity_bytes(&self) -> u64 {
        self.zone_size * self.conventional_zones as u64
            + self.zone_capacity * self.sequential_count() as u64
    }

    /// The kind of `zone`.
    pub const fn kind(&self, zone: ZoneId) -> ZoneKind {
        if zone.0 < self.conventional_zones || zone.0 >= self.drive_zones() {
            ZoneKind::Conventional
        } else {
            self.sequential_kind
        }
    }

    /// Bytes of `zone` that can be written.
    pub const fn capacity(&self, zone: ZoneId) -> u64 {
        match self.kind(zone) {
            ZoneKind::Conventional => self.conventional_capacity(),
            _ => self.zone_capacity,
        }
    }

    /// Bytes of a conventional zone, or of each of its parts.
    pub const fn conventional_capacity(&self) -> u64 {
        self.zone_size / self.conventional_parts as u64
    }

    /// The smallest capacity of any zone, of whichever kind.
    pub const fn least_capacity(&self) -> u64 {
        let conventional = self.conventional_capacity();
        if self.conventional_zones == 0 || self.zone_capacity < conventional {
            self.zone_capacity
        } else {
            conventional
        }
    }

    /// All zones in the order of their numbers.
    pub fn zones(&self) -> impl DoubleEndedIterator<Item = ZoneId> + ExactSizeIterator + use<> {
        (0..self.zone_count).map(ZoneId)
    }

    /// The drive's own zone that `zone` is or is a part of, and the index of the part.
    pub const fn zone_of_drive(&self, zone: ZoneId) -> (ZoneId, u32) {
        match zone.0.checked_sub(self.drive_zones()) {
            Some(part) if self.conventional_parts > 1 => {
                let more = self.conventional_parts - 1;
                (ZoneId(part / more), part % more + 1)
            }
            _ => (zone, 0),
        }
    }

    /// The zones that the conventional zone `whole` is used as.
    pub fn parts_of(&self, whole: ZoneId) -> impl Iterator<Item = ZoneId> + use<> {
        let more = self.conventional_parts - 1;
        let first = self.drive_zones() + whole.0 * more;
        std::iter::once(whole).chain((first..first + more).map(ZoneId))
    }

    /// The offset on the drive at which `zone` starts.
    pub const fn start(&self, zone: ZoneId) -> ByteOffset {
        let (zone, part) = self.zone_of_drive(zone);
        ByteOffset(self.zone_size * zone.0 as u64 + self.conventional_capacity() * part as u64)
    }

    /// The offset on the drive of an address inside a zone.
    pub const fn absolute(&self, at: ZoneAddress) -> ByteOffset {
        ByteOffset(self.start(at.zone).0 + at.offset)
    }

    /// The zone and offset of a byte of the drive; `None` after its end.
    pub fn address(&self, at: ByteOffset) -> Option<ZoneAddress> {
        let zone = u32::try_from(at.0 / self.zone_size)
            .ok()
            .filter(|z| *z < self.drive_zones())?;
        let offset = at.0 % self.zone_size;
        if zone >= self.conventional_zones {
            return Some(ZoneAddress::new(ZoneId(zone), offset));
        }
        let part = (offset / self.conventional_capacity()) as u32;
        let zone = match part {
            0 => zone,
            _ => self.drive_zones() + zone * (self.conventional_parts - 1) + part - 1,
        };
        let offset = offset % self.conventional_capacity();
        Some(ZoneAddress::new(ZoneId(zone), offset))
    }

    /// `bytes` rounded up to whole blocks.
    pub const fn round_up(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.block_size as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Geometry {
        Geometry {
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 3 << 18,
            zone_count: 10,
            conventional_zones: 2,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 4,
            max_active_zones: 6,
            max_append_bytes: 1 << 17,
        }
    }

    #[test]
    fn sums_capacities_by_kind() {
        let g = small();
        assert_eq!(g.validate(), Ok(()));
        assert_eq!(g.size_bytes(), 10 << 20);
        assert_eq!(g.capacity_bytes(), (2 << 20) + 8 * (3 << 18));
    }

    #[test]
    fn address_and_absolute_are_inverse() {
        let g = small();
        let at = ZoneAddress::new(ZoneId(7), 8192);
        assert_eq!(g.address(g.absolute(at)), Some(at));
        assert_eq!(g.address(ByteOffset(g.size_bytes())), None);
    }

    #[test]
    fn impossible_geometries_are_named() {
        let bad = |change: fn(&mut Geometry)| {
            let mut g = small();
            change(&mut g);
            g.validate().unwrap_err()
        };
        assert_eq!(bad(|g| g.block_size = 1000), GeometryError::BlockSize(1000));
        assert!(matches!(
            bad(|g| g.zone_capacity = 2 << 20),
            GeometryError::ZoneSize { .. }
        ));
        assert!(matches!(
            bad(|g| g.zone_count = 1),
            GeometryError::ZoneCount { .. }
        ));
        assert!(matches!(
            bad(|g| g.max_open_zones = 7),
            GeometryError::Limits { .. }
        ));
        assert!(matches!(
            bad(|g| g.max_append_bytes = 5),
            GeometryError::Append(5)
        ));
        assert_eq!(
            bad(|g| g.sequential_kind = ZoneKind::Conventional),
            GeometryError::SequentialKind
        );
    }
}
