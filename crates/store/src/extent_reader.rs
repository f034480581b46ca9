//! Reads an open object. Every byte returned has been compared with its checksum.

use crate::checksum::crc32c;
use crate::format::extent::{CHUNK, Extent, ZoneExtent};
use crate::format::onode::Onode;
use crate::inner::Inner;
use crate::staging::{corrupt, read_extents};
use crate::{Error, ObjectInfo, Result};
use device::ZonedDevice;
use std::sync::Arc;
use zone::ZoneAddress;

/// Most bytes that one look-up and read covers; the cleaner waits no longer than that for a zone.
const SPAN: u64 = 1 << 20;

/// An open object: what it holds stays readable until this is dropped, even if the object is
/// replaced or removed meanwhile.
pub struct ObjectReader {
    store: Arc<Inner>,
    onode: Onode,
    info: ObjectInfo,
    /// Collection and object, for errors.
    label: String,
}

impl ObjectReader {
    /// The caller holds the object's lock, so that the maps cannot go before they are open.
    pub(crate) fn new(store: Arc<Inner>, label: String, onode: Onode, info: ObjectInfo) -> Self {
        store.open_maps.open(onode.segments.iter().map(|s| s.map));
        Self {
            store,
            onode,
            info,
            label,
        }
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
        let _no_reset = self.store.reclaim.read();
        let kv = self.store.kv()?;
        let mut next = from;
        for (offset, extent) in read_extents(&kv, map, from, to, usize::MAX)? {
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
