//! Reads and decodes the blocks of one zone.

use crate::error::{Error, Result};
use crate::format::FORMAT_VERSION;
use crate::format::label::{self, COPIES, Label};
use crate::format::metadata::{Decoded, Metadata};
use crate::placed::Placed;
use device::ZonedDevice;
use std::fmt;
use std::sync::Arc;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneDescriptor, ZoneId, ZoneKind};

/// One zone of a drive, with its label.
#[derive(Clone)]
pub(crate) struct ZoneReader {
    pub device: Arc<dyn ZonedDevice>,
    pub zone: ZoneId,
    pub label: Label,
}

impl fmt::Debug for ZoneReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneReader")
            .field("zone", &self.zone)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

/// The report of a zone, which must be able to hold an instance.
pub(crate) fn report(device: &dyn ZonedDevice, zone: ZoneId) -> Result<ZoneDescriptor> {
    let g = device.geometry();
    if zone.0 >= g.zone_count {
        return Err(Error::NoSuchZone {
            zone,
            zones: g.zone_count,
        });
    }
    if g.kind(zone) == ZoneKind::Conventional {
        return Err(Error::Conventional { zone });
    }
    if g.zone_capacity / u64::from(g.block_size) > u64::from(u32::MAX) {
        return Err(Error::Unsuitable {
            what: "zone capacity in bytes",
            found: g.zone_capacity,
            needed: "fewer than 2^32 blocks a zone",
        });
    }
    Ok(device.report_zone(zone)?)
}

/// Whether the first written sequential zone begins with a label, of whatever version. Instances that were not
/// made by a file system take zones from the first on.
///
/// # Errors
/// The drive's error.
pub fn is_there(device: &dyn ZonedDevice) -> Result<bool> {
    let g = device.geometry();
    let zones = device.report(ZoneId(0), g.zone_count)?;
    let written = |zone: &&ZoneDescriptor| {
        g.kind(zone.id) != ZoneKind::Conventional && written_blocks(g, zone) >= COPIES
    };
    let Some(first) = zones.iter().find(written) else {
        return Ok(false);
    };
    let mut block = vec![0; g.block_size as usize];
    device.read(g.start(first.id), &mut block)?;
    Ok(!matches!(Label::decode(&block), label::Decoded::Nothing))
}

/// Blocks below the write pointer; all blocks if it is not valid.
pub(crate) fn written_blocks(g: &Geometry, report: &ZoneDescriptor) -> u32 {
    let bytes = match report.write_pointer_valid() {
        true => report.write_pointer.min(g.zone_capacity),
        false => g.zone_capacity,
    };
    u32::try_from(bytes / u64::from(g.block_size)).unwrap_or(u32::MAX)
}

/// Reads the label of a zone; the second copy is used if the first is not valid.
pub(crate) fn label_of(device: &dyn ZonedDevice, zone: ZoneId) -> Result<(Label, ZoneDescriptor)> {
    let report = report(device, zone)?;
    let g = device.geometry();
    if written_blocks(g, &report) < COPIES {
        return Err(Error::NotFormatted { zone });
    }
    let block_size = g.block_size as usize;
    let mut blocks = vec![0; block_size * COPIES as usize];
    device.read(g.start(zone), &mut blocks)?;
    let mut refused = Error::NotFormatted { zone };
    for (copy, block) in blocks.chunks(block_size).enumerate() {
        match Label::decode(block) {
            label::Decoded::Valid(label) => {
                is_of(&label, zone, g)?;
                return Ok((label, report));
            }
            label::Decoded::OtherVersion(found) => {
                refused = Error::UnsupportedVersion {
                    zone,
                    found,
                    supported: FORMAT_VERSION,
                };
            }
            label::Decoded::Damaged(told, found) => {
                if matches!(refused, Error::NotFormatted { .. }) {
                    refused = Error::Corrupt {
                        at: ZoneAddress::new(zone, (copy * block_size) as u64),
                        what: "checksum of the label",
                        expected: told.into(),
                        found: found.into(),
                    };
                }
            }
            label::Decoded::Nothing => {}
        }
    }
    if matches!(refused, Error::NotFormatted { .. }) && has_extents(device, &report)? {
        refused = Error::Corrupt {
            at: ZoneAddress::new(zone, 0),
            what: "labels of a zone with extents",
            expected: COPIES.into(),
            found: 0,
        };
    }
    Err(refused)
}

/// Whether a zone without a label ends with an extent's metadata, as each put does; or, where the write pointer does not tell the
/// end, has some among its first blocks.
fn has_extents(device: &dyn ZonedDevice, report: &ZoneDescriptor) -> Result<bool> {
    const FIRST: u32 = 64;
    let g = device.geometry();
    let written = written_blocks(g, report);
    let blocks = match written < (g.zone_capacity / u64::from(g.block_size)) as u32 {
        true => written.saturating_sub(1)..written,
        false => COPIES..written.min(COPIES + FIRST),
    };
    let block_size = g.block_size as usize;
    let mut bytes = vec![0; blocks.len() * block_size];
    let from = u64::from(blocks.start) * u64::from(g.block_size);
    device.read(g.absolute(ZoneAddress::new(report.id, from)), &mut bytes)?;
    let mut each = blocks.zip(bytes.chunks(block_size));
    Ok(each.any(|(block, bytes)| Metadata::is_at(bytes, block)))
}

impl ZoneReader {
    /// Opens a zone that has a label.
    pub fn find(device: Arc<dyn ZonedDevice>, zone: ZoneId) -> Result<(Self, ZoneDescriptor)> {
        let (label, report) = label_of(&*device, zone)?;
        let reader = Self {
            device,
            zone,
            label,
        };
        Ok((reader, report))
    }

    pub fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    pub fn block_size(&self) -> usize {
        self.geometry().block_size as usize
    }

    /// The offset of a block on the drive.
    pub fn place(&self, block: u32) -> ByteOffset {
        self.geometry().absolute(self.address(block))
    }

    /// The zone and offset of a block.
    pub fn address(&self, block: u32) -> ZoneAddress {
        ZoneAddress::new(self.zone, u64::from(block) * self.block_size() as u64)
    }

    /// Decodes a block that was read at block number `block`.
    pub fn decode(&self, bytes: &[u8], block: u32) -> Decoded {
        Metadata::decode(bytes, &self.label.run_id, block)
    }

    /// Reads single blocks, in parallel if the drive can.
    pub fn read_blocks(&self, blocks: &[u32]) -> Result<Vec<Vec<u8>>> {
        let mut bytes = vec![vec![0; self.block_size()]; blocks.len()];
        let mut reads: Vec<(ByteOffset, &mut [u8])> = blocks
            .iter()
            .zip(&mut bytes)
            .map(|(block, bytes)| (self.place(*block), bytes.as_mut_slice()))
            .collect();
        self.device.read_many(&mut reads)?;
        Ok(bytes)
    }

    /// As [`Self::read_blocks`], decoded as metadata.
    pub fn read_metadata(&self, blocks: &[u32]) -> Result<Vec<Decoded>> {
        let bytes = self.read_blocks(blocks)?;
        let each = bytes.iter().zip(blocks);
        Ok(each
            .map(|(bytes, block)| self.decode(bytes, *block))
            .collect())
    }

    /// Reads `count` consecutive blocks.
    pub fn read_run(&self, from: u32, count: u32) -> Result<Vec<u8>> {
        let mut bytes = vec![0; count as usize * self.block_size()];
        if count > 0 {
            self.device.read(self.place(from), &mut bytes)?;
        }
        Ok(bytes)
    }

    /// The extent that `metadata` describes.
    pub fn placed(&self, metadata: &Metadata) -> Placed {
        Placed::of(metadata, self.zone, self.geometry())
    }

    /// The error for a metadata block that is damaged or missing.
    pub fn corrupt(&self, block: u32, decoded: &Decoded) -> Error {
        let (expected, found) = match decoded {
            Decoded::Damaged(told, found) => (u64::from(*told), u64::from(*found)),
            Decoded::Valid(_) | Decoded::Nothing => (u64::from(block), u64::MAX),
        };
        Error::Corrupt {
            at: self.address(block),
            what: "metadata of an extent",
            expected,
            found,
        }
    }
}

/// Checks that a label was written for this zone and geometry.
fn is_of(label: &Label, zone: ZoneId, g: &Geometry) -> Result<()> {
    let numbers = [
        ("zone number", u64::from(label.zone), u64::from(zone.0)),
        (
            "block size",
            u64::from(label.block_size),
            u64::from(g.block_size),
        ),
        ("zone capacity", label.zone_capacity, g.zone_capacity),
    ];
    for (what, expected, found) in numbers {
        if expected != found {
            return Err(Error::GeometryChanged {
                zone,
                what,
                expected,
                found,
            });
        }
    }
    Ok(())
}
