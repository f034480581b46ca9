//! Reads an open object. Every byte returned has been compared with its checksum.

use crate::checksum::{CHUNK, crc32c};
use crate::format::extent::{Extent, MAX_STORED, ZoneExtent};
use crate::format::onode::Onode;
use crate::info::ObjectInfo;
use crate::inner::Inner;
use crate::open_maps::Opened;
use crate::staging::{corrupt, read_extents};
use crate::{Error, Result};
use device::ZonedDevice;
use kv::Kv;
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneId};
use zone_alloc::Reading;

/// Most bytes that one look-up and read covers; the reset of a zone waits no longer than that.
const SPAN: u64 = 1 << 20;

/// An open object: what it holds stays readable until this is dropped, even if the object is
/// replaced or removed meanwhile.
pub struct ObjectReader {
    store: Arc<Inner>,
    onode: Onode,
    info: ObjectInfo,
    /// Collection and object, for errors.
    label: String,
    kept: Option<KeptExtents>,
}

/// The extents of an object that a commit under way takes: rows that may go at any time, in zones that
/// are not reset before the reader is gone.
struct KeptExtents {
    /// By map and offset.
    extents: BTreeMap<(u64, u64), Extent>,
    _reading: Reading,
}

/// An extent by its offset in its map.
type Row = (u64, Extent);

impl ObjectReader {
    /// Opens the maps of an onode that was read after `drops` was.
    pub(crate) fn new(
        store: Arc<Inner>,
        label: String,
        onode: Onode,
        info: ObjectInfo,
        drops: u64,
    ) -> (Self, Opened) {
        let maps = onode.segments.iter().map(|s| s.map);
        let opened = store.open_maps.open(maps, drops);
        let reader = Self {
            store,
            onode,
            info,
            label,
            kept: None,
        };
        (reader, opened)
    }

    /// Keeps the extents at hand, which `reading` has seen to stay where they are; false if some of
    /// them are gone already.
    pub(crate) fn keep_extents(&mut self, kv: &Kv, reading: Reading) -> Result<bool> {
        let mut extents = BTreeMap::new();
        for segment in &self.onode.segments {
            let (mut next, end) = (segment.start, segment.start + segment.length);
            for (offset, extent) in read_extents(kv, segment.map, next, end, usize::MAX)? {
                if offset > next {
                    return Ok(false);
                }
                next = offset + extent.length();
                extents.insert((segment.map, offset), extent);
            }
            if next < end {
                return Ok(false);
            }
        }
        reading.stay_in(zones_of(extents.values()));
        self.kept = Some(KeptExtents {
            extents,
            _reading: reading,
        });
        Ok(true)
    }

    /// The extents of `map` that hold any of the bytes `from..to`, and what keeps their zones.
    fn extents(&self, map: u64, from: u64, to: u64) -> Result<(Vec<Row>, Option<Reading>)> {
        if let Some(kept) = &self.kept {
            let lowest = from.saturating_sub(MAX_STORED);
            let found = kept.extents.range((map, lowest)..(map, to));
            let found = found.filter(|((_, offset), extent)| offset + extent.length() > from);
            let found = found.map(|((_, offset), extent)| (*offset, extent.clone()));
            return Ok((found.collect(), None));
        }
        let reading = self.store.gate.enter();
        let kv = self.store.kv()?;
        let found = read_extents(&kv, map, from, to, usize::MAX)?;
        reading.only_in(zones_of(found.iter().map(|(_, extent)| extent)));
        Ok((found, Some(reading)))
    }

    /// Size, time and attributes when it was opened.
    pub fn info(&self) -> &ObjectInfo {
        &self.info
    }

    /// Fills `buffer` from `offset`; short only at the object's end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let mut begins = 0;
        let mut done = 0;
        for segment in &self.onode.segments {
            let ends = begins + segment.length;
            while done < buffer.len() && (begins..ends).contains(&(offset + done as u64)) {
                let at = offset + done as u64;
                let length = (buffer.len() - done).min((ends - at).min(SPAN) as usize);
                let in_map = segment.start + (at - begins);
                self.read_map(segment.map, in_map, at, &mut buffer[done..done + length])?;
                done += length;
            }
            begins = ends;
        }
        Ok(done)
    }

    fn read_map(&self, map: u64, from: u64, logical: u64, buffer: &mut [u8]) -> Result<()> {
        let to = from + buffer.len() as u64;
        let (extents, _reading) = self.extents(map, from, to)?;
        let mut next = from;
        for (offset, extent) in extents {
            let end = (offset + extent.length()).min(to);
            if offset > next || end <= next {
                break;
            }
            let target = &mut buffer[(next - from) as usize..(end - from) as usize];
            read_extent(&*self.store.device, &extent, next - offset, target).map_err(|error| {
                if let Extent::InZone(extent) = &extent {
                    self.store.set_aside_unreadable(extent.at.zone, &error);
                }
                match error {
                    Error::ChecksumMismatch {
                        offset: within,
                        at,
                        expected,
                        found,
                        ..
                    } => {
                        // From the extent's visible bytes to the object's.
                        let base = logical.saturating_add(offset).saturating_sub(from);
                        let offset = base.saturating_add(within);
                        let object = self.label.clone();
                        Error::ChecksumMismatch {
                            object,
                            offset,
                            at,
                            expected,
                            found,
                        }
                    }
                    other => other,
                }
            })?;
            next = end;
        }
        if next < to {
            let key = crate::format::key::extent(map, next);
            return Err(corrupt(
                &key,
                "no extent for bytes of an object",
                (to - next) as usize,
            ));
        }
        Ok(())
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        self.store
            .open_maps
            .close(self.onode.segments.iter().map(|s| s.map));
        self.store.cleaner.nudge();
    }
}

fn zones_of<'a>(extents: impl Iterator<Item = &'a Extent>) -> impl Iterator<Item = ZoneId> {
    extents.filter_map(|extent| match extent {
        Extent::InZone(extent) => Some(extent.at.zone),
        Extent::Inline(_) => None,
    })
}

/// Fills `target` with the visible bytes of `extent` from `from` on, verified.
pub(crate) fn read_extent(
    device: &dyn ZonedDevice,
    extent: &Extent,
    from: u64,
    target: &mut [u8],
) -> Result<()> {
    match extent {
        Extent::Inline(bytes) => {
            let from = from as usize;
            target.copy_from_slice(&bytes[from..from + target.len()]);
            Ok(())
        }
        Extent::InZone(e) => read_zone_extent(device, e, from, target),
    }
}

fn read_zone_extent(
    device: &dyn ZonedDevice,
    extent: &ZoneExtent,
    from: u64,
    target: &mut [u8],
) -> Result<()> {
    let geometry = device.geometry();
    let wanted = extent.slice(from as u32, from as u32 + target.len() as u32);
    let padded = wanted.padded(geometry.block_size);
    let in_zone = wanted
        .at
        .offset
        .checked_add(padded)
        .is_some_and(|end| end <= geometry.zone_size);
    if wanted.at.zone.0 >= geometry.zone_count || !in_zone {
        let key = crate::format::key::cleaning(wanted.at);
        return Err(corrupt(
            &key,
            "an extent behind the end of its zone",
            padded as usize,
        ));
    }
    let whole = wanted.skip == 0 && padded == target.len() as u64 && wanted.stored == wanted.length;
    let mut scratch = Vec::new();
    let stored: &mut [u8] = if whole {
        &mut *target
    } else {
        scratch.resize(padded as usize, 0);
        &mut scratch
    };
    device.read(geometry.absolute(wanted.at), stored)?;
    for (index, chunk) in stored[..wanted.stored as usize]
        .chunks(CHUNK as usize)
        .enumerate()
    {
        let (expected, found) = (wanted.checksums[index], crc32c(chunk));
        if expected != found {
            let in_zone = index as u64 * CHUNK;
            return Err(Error::ChecksumMismatch {
                object: String::new(),
                offset: (from + in_zone).saturating_sub(u64::from(wanted.skip)),
                at: ZoneAddress::new(wanted.at.zone, wanted.at.offset + in_zone),
                expected,
                found,
            });
        }
    }
    if !whole {
        let skip = wanted.skip as usize;
        target.copy_from_slice(&scratch[skip..skip + target.len()]);
    }
    Ok(())
}
