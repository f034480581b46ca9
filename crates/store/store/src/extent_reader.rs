//! Reads an open object, in its current state or as it was at a moment.
//!
//! Every byte returned has been compared with its checksum, if it has one. The lookup of a place and the read there are
//! within the read gate, so that the zone is not reset in between. A failed read is repeated once; then the zone is set
//! aside, and the place is noted as damaged.

use crate::blob_reader::{Source, cached, read_blob_into};
use crate::format::key;
use crate::format::onode::Onode;
use crate::info::ObjectInfo;
use crate::inner::Inner;
use crate::moment_watch::MomentWatch;
use crate::open_maps::Opened;
use crate::rows::{corrupt, read_extent_row, resolved_extents};
use crate::{Result, TRACE};
use bytes::Bytes;
use kv::View;
use object::{Blob, Content, Extent, MAX_STORED};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::span::EnteredSpan;
use zone::ZoneId;
use zone_alloc::Reading;

/// Most bytes that one lookup and read covers; it bounds how long the reset of a zone waits for a reader.
const SPAN: u64 = 1 << 20;

/// An open object: its contents stay readable until this is dropped, even if the object is replaced or removed.
///
/// Writes, punched holes and truncation in place are visible: bytes that a truncate removed are then missing, which is
/// reported as damage is.
pub type ObjectReader = ObjectAt<'static>;

/// An open object, in its current state or in that of a [`crate::Moment`], which may be given up.
pub struct ObjectAt<'a> {
    store: Arc<Inner>,
    /// Without its attributes, which `info` has.
    pub(crate) onode: Onode,
    info: ObjectInfo,
    /// Collection and object, for error messages.
    pub(crate) label: String,
    from: Extents<'a>,
}

/// Result of [`ObjectAt::take`], which returns bytes in the cache without copying them.
pub enum Taken {
    /// This many bytes were read into the buffer.
    Read(usize),
    /// Consecutive parts in the cache, each compared with its checksum when it was read from the drive.
    Shared(Vec<Bytes>),
}

/// Where the extents of an open object are looked up.
pub(crate) enum Extents<'a> {
    /// In the database; the object's maps are open.
    Now,
    Kept(KeptExtents),
    Moment(&'a dyn View, &'a MomentWatch),
}

struct RangeReader<'a> {
    object: &'a ObjectAt<'a>,
    bytes: Range<u64>,
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.end.saturating_sub(self.bytes.start);
        let most = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let read = self.object.read_at(self.bytes.start, &mut buffer[..most]);
        let read = read.map_err(io::Error::other)?;
        self.bytes.start += read as u64;
        Ok(read)
    }
}

/// The extents of an object whose maps a commit under way drops: their rows may go at any time, but their zones are not
/// reset before the reader has left.
pub(crate) struct KeptExtents {
    /// Extents by map and end.
    extents: BTreeMap<(u64, u64), Extent>,
    _reading: Reading,
}

/// An extent with its first offset in its map; a shared blob has been resolved to an own one.
type Row = (u64, Extent);

impl<'a> ObjectAt<'a> {
    /// Opens the maps of an onode; `drops` is [`crate::open_maps::OpenMaps::drops`] from before it was read.
    pub(crate) fn new(
        store: Arc<Inner>,
        label: String,
        onode: Onode,
        info: ObjectInfo,
        drops: u64,
    ) -> (Self, Opened) {
        let maps = onode.segments.iter().map(|s| s.map);
        let opened = store.open_maps.open(maps, drops);
        (Self::at(store, label, onode, info, Extents::Now), opened)
    }

    pub(crate) const fn at(
        store: Arc<Inner>,
        label: String,
        onode: Onode,
        info: ObjectInfo,
        from: Extents<'a>,
    ) -> Self {
        Self {
            store,
            onode,
            info,
            label,
            from,
        }
    }

    /// Reads all extents now and keeps them together with `reading`, which keeps their zones; false if some of them are
    /// gone already.
    pub(crate) fn keep_extents(&mut self, kv: &dyn View, reading: Reading) -> Result<bool> {
        let mut extents = BTreeMap::new();
        for segment in &self.onode.segments {
            let (mut next, end) = (segment.start, segment.start + segment.length);
            for (offset, extent) in resolved_extents(kv, segment.map, next, end)? {
                if offset > next {
                    return Ok(false);
                }
                next = offset + extent.length;
                extents.insert((segment.map, next), extent);
            }
            if next < end {
                return Ok(false);
            }
        }
        reading.stay_in(zones_of(extents.values()));
        self.from = Extents::Kept(KeptExtents {
            extents,
            _reading: reading,
        });
        Ok(true)
    }

    /// The extents of `map` that hold any of the bytes `from..to`, and the [`Reading`] that keeps their zones.
    pub(crate) fn extents(
        &self,
        map: u64,
        from: u64,
        to: u64,
    ) -> Result<(Vec<Row>, Option<Reading>)> {
        if let Extents::Kept(kept) = &self.from {
            let found = kept.extents.range((map, from + 1)..=(map, u64::MAX));
            let found = found.map(|((_, end), extent)| (end - extent.length, extent.clone()));
            return Ok((found.take_while(|(start, _)| *start < to).collect(), None));
        }
        let reading = self.store.gate.enter();
        let found = if let Extents::Moment(rows, moment) = &self.from {
            // If the moment lasts now, none of its data is overwritten before this reader has left the gate.
            moment.check()?;
            resolved_extents(*rows, map, from, to)?
        } else {
            let kv = self.store.kv()?;
            match self.last_extent(&*kv, map, from, to) {
                Some(last) => vec![last],
                None => resolved_extents(&*kv, map, from, to)?,
            }
        };
        reading.only_in(zones_of(found.iter().map(|(_, extent)| extent)));
        Ok((found, Some(reading)))
    }

    /// The extent at the end of a segment, if it has all of the bytes `from..to`, as that of a small object: one look-up by
    /// its key, where a walk takes several times as long. Not if its blob is shared.
    fn last_extent(&self, kv: &dyn View, map: u64, from: u64, to: u64) -> Option<Row> {
        let ends = self.onode.segments.iter().filter(|s| s.map == map);
        let mut ends = ends.map(|s| (s.start, s.start + s.length));
        let (_, end) = ends.find(|(start, end)| *start <= from && to <= *end)?;
        if end - from > u64::from(MAX_STORED) {
            return None;
        }
        // A row that cannot be read may be of other bytes than these: the walk says so if it is not.
        let extent = read_extent_row(kv, map, end).ok()??;
        let start = end.checked_sub(extent.length)?;
        let is_all = start <= from && !matches!(extent.content, Content::Shared { .. });
        is_all.then_some((start, extent))
    }

    /// Size, time and attributes as of the opening.
    pub fn info(&self) -> &ObjectInfo {
        &self.info
    }

    /// A reader of these bytes of the object, up to its end. Errors are [`crate::Error`]s within [`io::Error`]s.
    pub fn range(&self, bytes: Range<u64>) -> impl Read {
        RangeReader {
            object: self,
            bytes,
        }
    }

    /// The parts of `bytes` that hold data, in order, up to the object's end. The rest are holes, which read as zeros
    /// and take no space.
    pub fn data_ranges(&self, bytes: Range<u64>) -> Result<Vec<Range<u64>>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        let mut at = bytes.start;
        let end = bytes.end.min(self.info.size);
        for span in object::spans(&self.onode.segments, bytes.start.min(end), end) {
            let extents = self.extents(span.map, span.from, span.to);
            let (extents, _reading) = extents.map_err(|error| error.of_object(&self.label))?;
            for (offset, extent) in extents {
                if extent.content == Content::Hole {
                    continue;
                }
                let start = at + (offset.max(span.from) - span.from);
                let end = at + ((offset + extent.length).min(span.to) - span.from);
                match found.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => found.push(start..end),
                }
            }
            at += span.to - span.from;
        }
        Ok(found)
    }

    /// Fills `buffer` from byte `offset` on and returns the number of bytes; short only at the object's end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let left = self.onode.size().saturating_sub(offset);
        let wanted = left.min(buffer.len() as u64) as usize;
        self.read_into(offset, wanted, &mut buffer[..wanted])
    }

    /// Like [`Self::read_at`], for the first `wanted` bytes of `room`. Those behind them may be overwritten: with room up to
    /// a whole block, the object's last bytes need not be copied.
    pub fn read_into(&self, offset: u64, wanted: usize, room: &mut [u8]) -> Result<usize> {
        let _span = in_span(offset, wanted);
        let mut begins = 0;
        let mut done = 0;
        for segment in &self.onode.segments {
            let ends = begins + segment.length;
            while done < wanted && (begins..ends).contains(&(offset + done as u64)) {
                let at = offset + done as u64;
                let length = (wanted - done).min((ends - at).min(SPAN) as usize);
                let in_map = segment.start + (at - begins);
                self.read_map(segment.map, in_map, at, length, &mut room[done..])?;
                done += length;
            }
            begins = ends;
        }
        Ok(done)
    }

    /// Bytes from `offset` on: those in the cache, without a copy and at most as many as `buffer` has room for, or else
    /// some that were read into `buffer`. A short answer does not mean the end of the object; an empty one does.
    pub fn take(&self, offset: u64, buffer: &mut [u8]) -> Result<Taken> {
        self.take_into(offset, buffer.len(), buffer)
    }

    /// Like [`Self::take`], for at most `wanted` bytes. All of `room` may be overwritten ([`Self::read_into`]).
    pub fn take_into(&self, offset: u64, wanted: usize, room: &mut [u8]) -> Result<Taken> {
        let most = (wanted as u64).min(SPAN);
        let spans = object::spans(&self.onode.segments, offset, offset.saturating_add(most));
        let Some(span) = spans.first() else {
            return Ok(Taken::Read(0));
        };
        let _span = in_span(offset, wanted);
        let length = (span.to - span.from) as usize;
        let _request = self.store.requests.begin_read();
        let found = self.extents(span.map, span.from, span.to);
        let (extents, _reading) = found.map_err(|error| error.of_object(&self.label))?;
        let shared = self.cached(&extents, span.from, span.to);
        if !shared.is_empty() {
            return Ok(Taken::Shared(shared));
        }
        self.fill(extents, (span.map, span.from), offset, length, room)?;
        Ok(Taken::Read(length))
    }

    /// The bytes `from..to` of a map, as far as they are in the cache without a gap.
    fn cached(&self, extents: &[Row], from: u64, to: u64) -> Vec<Bytes> {
        let source = Source::cached(&*self.store.device, &self.store.data_cache);
        let mut found = Vec::new();
        let mut next = from;
        for (offset, extent) in extents {
            let end = (offset + extent.length).min(to);
            let Content::Own { blob, skip } = &extent.content else {
                break;
            };
            if *offset > next || end <= next {
                break;
            }
            let in_blob = |at: u64| skip.saturating_add((at - offset) as u32);
            for bytes in cached(source, blob, in_blob(next)..in_blob(end)) {
                next += bytes.len() as u64;
                found.push(bytes);
            }
            if next < end {
                break;
            }
        }
        found
    }

    fn read_map(
        &self,
        map: u64,
        from: u64,
        logical: u64,
        length: usize,
        room: &mut [u8],
    ) -> Result<()> {
        let _request = self.store.requests.begin_read();
        let found = self.extents(map, from, from + length as u64);
        let (extents, _reading) = found.map_err(|error| error.of_object(&self.label))?;
        self.fill(extents, (map, from), logical, length, room)
    }

    /// Fills the first `length` bytes of `room` with those of a map from `from` on; byte `logical` of the object is the
    /// first.
    fn fill(
        &self,
        extents: Vec<Row>,
        (map, from): (u64, u64),
        logical: u64,
        length: usize,
        room: &mut [u8],
    ) -> Result<()> {
        let to = from + length as u64;
        let mut next = from;
        for (offset, extent) in extents {
            let end = (offset + extent.length).min(to);
            if offset > next || end <= next {
                break;
            }
            // What is overwritten behind the extent's bytes is filled by the extents behind it.
            let room = &mut room[(next - from) as usize..];
            let wanted = (end - next) as usize;
            match &extent.content {
                Content::Hole => room[..wanted].fill(0),
                Content::Inline(bytes) => {
                    let from = (next - offset) as usize;
                    room[..wanted].copy_from_slice(&bytes[from..from + wanted]);
                }
                Content::Own { blob, skip } => {
                    // Offset in the object of the blob's first byte.
                    let base = (logical + offset).saturating_sub(from + u64::from(*skip));
                    let in_blob = skip + (next - offset) as u32;
                    self.read_blob(blob, in_blob, wanted, room, base)?;
                }
                // Resolved to own blobs when the extents were looked up.
                Content::Shared { .. } => {}
            }
            next = end;
        }
        if next < to {
            let what = "no extent for bytes of an object";
            let error = corrupt(&key::extent(map, next), what, (to - next) as usize);
            return Err(error.of_object(&self.label));
        }
        Ok(())
    }

    /// Reads raw bytes of a blob, whose first byte is the object's byte `base`.
    fn read_blob(
        &self,
        blob: &Blob,
        from: u32,
        wanted: usize,
        room: &mut [u8],
        base: u64,
    ) -> Result<()> {
        let source = Source::cached(&*self.store.device, &self.store.data_cache);
        let read = || read_blob_into(source, blob, from, wanted, room);
        let Err(failed) = self.store.read_twice(&self.label, read) else {
            return Ok(());
        };
        let at = failed.at;
        let error = failed.of(&self.label, base);
        self.store.set_aside_unreadable(at.zone, &error);
        self.store.note_damage(at);
        Err(error)
    }
}

impl Drop for ObjectAt<'_> {
    fn drop(&mut self) {
        if matches!(self.from, Extents::Moment(..)) {
            return;
        }
        let is_kept = matches!(self.from, Extents::Kept(_));
        // Leaves the zones that it has kept.
        self.from = Extents::Now;
        let maps = self.onode.segments.iter().map(|s| s.map);
        let frees = self.store.open_maps.close(maps);
        // Not for each reader: a round of the cleaner takes many locks.
        if frees || is_kept || self.store.reset_waits.swap(false, Ordering::SeqCst) {
            self.store.cleaner.nudge();
        }
    }
}

/// A span that covers a read of so many bytes until it is dropped.
fn in_span(offset: u64, wanted: usize) -> EnteredSpan {
    // Collectors show unsigned numbers as text.
    let (from, bytes) = (offset.cast_signed(), wanted as i64);
    tracing::debug_span!(target: TRACE, "read", offset = from, bytes).entered()
}

fn zones_of<'a>(extents: impl Iterator<Item = &'a Extent>) -> impl Iterator<Item = ZoneId> {
    let blobs = extents.filter_map(|extent| match &extent.content {
        Content::Own { blob, .. } => Some(blob),
        _ => None,
    });
    let fragments = blobs.flat_map(|blob| &blob.fragments);
    fragments.filter_map(|fragment| fragment.at.map(|at| at.zone))
}
