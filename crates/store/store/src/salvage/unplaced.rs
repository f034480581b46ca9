//! Objects made of bytes that no row describes, one for each zone: the bytes stay in place, at the offsets that they
//! have in their zone, until a user removes the object.

use super::Salvage;
use super::copy::MARK;
use super::index::Index;
use super::plan::Plan;
use crate::checksum::of_blocks;
use crate::format::key;
use crate::format::onode::Onode;
use crate::{Attributes, Result};
use object::{Blob, ChecksumBlock, ChecksumKind, Codec, Fragment};
use std::ops::Range;
use zone::{ZoneAddress, ZoneError, ZoneId};

/// Bytes that are classified together: zeros are not kept, and unreadable bytes get no checksum.
const UNIT: u64 = ChecksumBlock::DEFAULT.bytes() as u64;
/// Most bytes of one blob.
const BLOB: u64 = 4 << 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Zeros,
    Data,
    Unreadable,
}

impl Salvage {
    /// Adds rows for the bytes in `plan.unplaced`, all of which are read, to the collection of this number.
    pub(super) fn keep_unplaced(
        &self,
        plan: &mut Plan,
        index: &mut Index,
        collection: u32,
        now: u64,
    ) -> Result<()> {
        for kept in &mut plan.unplaced {
            let mut blobs = Vec::new();
            for range in &kept.ranges {
                self.blobs_of(kept.zone, range.clone(), &mut blobs)?;
            }
            if blobs.is_empty() {
                continue;
            }
            let zone = kept.zone;
            let names = (2_u32..).map(|n| format!("zone-{zone}-{n}"));
            let mut names = std::iter::once(format!("zone-{zone}")).chain(names);
            let key = |name: &str| key::onode(collection, name.as_bytes());
            let Some(name) = names.find(|name| !index.has(&key(name))) else {
                continue;
            };
            let onode = Onode {
                modified_micros: now,
                attributes: Attributes::from([(MARK.to_owned(), self.scanned.uuid.to_vec())]),
                ..Onode::default()
            };
            index.add_new(key(&name), onode, blobs);
            kept.object = Some(name);
        }
        Ok(())
    }

    fn blobs_of(&self, zone: ZoneId, gap: Range<u64>, to: &mut Vec<(u64, Blob)>) -> Result<()> {
        let mut at = gap.start;
        while at < gap.end {
            let piece = at..gap.end.min(at + BLOB);
            let (bytes, units) = self.look_at(zone, piece.clone())?;
            let mut from = 0;
            while from < units.len() {
                let kind = units[from];
                let run = units[from..].iter().take_while(|unit| **unit == kind);
                let run_end = from + run.count();
                let first = from * UNIT as usize;
                let bytes = &bytes[first..bytes.len().min(run_end * UNIT as usize)];
                from = run_end;
                let checksum_kind = match kind {
                    Unit::Zeros => continue,
                    Unit::Data => ChecksumKind::Crc32c,
                    Unit::Unreadable => ChecksumKind::None,
                };
                let start = piece.start + first as u64;
                let length = bytes.len() as u32;
                let blob = Blob {
                    codec: Codec::None,
                    raw: length,
                    fragments: vec![Fragment {
                        at: Some(ZoneAddress::new(zone, start)),
                        length,
                    }],
                    checksum_kind,
                    checksum_block: ChecksumBlock::DEFAULT,
                    checksums: of_blocks(checksum_kind, ChecksumBlock::DEFAULT, bytes),
                };
                to.push((start, blob));
            }
            at = piece.end;
        }
        Ok(())
    }

    fn look_at(&self, zone: ZoneId, piece: Range<u64>) -> Result<(Vec<u8>, Vec<Unit>)> {
        let start = self.device.geometry().start(zone).0 + piece.start;
        let mut bytes = vec![0; (piece.end - piece.start) as usize];
        let is_whole = self
            .device
            .read(zone::ByteOffset(start), &mut bytes)
            .is_ok();
        let mut units = Vec::new();
        for (index, unit) in bytes.chunks_mut(UNIT as usize).enumerate() {
            let at = zone::ByteOffset(start + index as u64 * UNIT);
            let read = match is_whole {
                true => Ok(()),
                false => self.device.read(at, unit),
            };
            units.push(match read {
                Ok(()) if codec::is_zero(unit) => Unit::Zeros,
                Ok(()) => Unit::Data,
                Err(error @ ZoneError::PowerLost { .. }) => return Err(error.into()),
                Err(_) => Unit::Unreadable,
            });
        }
        Ok((bytes, units))
    }
}
