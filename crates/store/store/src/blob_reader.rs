//! Reads bytes of a blob. Bytes from the drive are compared with their checksums before they are returned or cached.

use crate::answers::check_answers;
use crate::checksum;
use crate::compression::decompress;
use crate::data_cache::DataCache;
use crate::format::key;
use crate::rows::corrupt;
use crate::{Error, Result};
use appender::is_of_zone;
use bytes::Bytes;
use device::ZonedDevice;
use object::{Blob, Codec};
use std::fmt;
use std::ops::Range;
use zone::{ZoneAddress, ZoneError, ZoneId};

/// Where stored bytes are read from: the drive, or a cache of them.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    device: &'a dyn ZonedDevice,
    cache: Option<&'a DataCache>,
}

impl<'a> Source<'a> {
    /// Reads from `cache` what it has and adds to it the rest. The caller must be in the read gate.
    pub fn cached(device: &'a dyn ZonedDevice, cache: &'a DataCache) -> Self {
        let cache = Some(cache).filter(|cache| cache.is_on());
        Self { device, cache }
    }
}

impl<'a> From<&'a dyn ZonedDevice> for Source<'a> {
    fn from(device: &'a dyn ZonedDevice) -> Self {
        let cache = None;
        Self { device, cache }
    }
}

/// A failed read and its place. Only the caller knows the object that the bytes belong to.
pub(crate) struct ReadError {
    /// A place in the fragment that could not be read.
    pub at: ZoneAddress,
    cause: Cause,
}

enum Cause {
    Mismatch {
        /// Byte in the blob's stored bytes.
        offset: u64,
        at: ZoneAddress,
        expected: u32,
        found: u32,
    },
    Unreadable {
        /// Byte in the blob's stored bytes.
        offset: u64,
        error: ZoneError,
    },
    Other(Error),
}

impl ReadError {
    fn corrupt(at: ZoneAddress, what: &'static str, found: u32) -> Self {
        Self::other(at, corrupt(&key::cleaning(at), what, found as usize))
    }

    const fn other(at: ZoneAddress, error: Error) -> Self {
        let cause = Cause::Other(error);
        Self { at, cause }
    }

    /// The drive's error, if it failed the read.
    pub const fn drive(&self) -> Option<&ZoneError> {
        match &self.cause {
            Cause::Unreadable { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Passes the drive's error on if the drive does not answer: then the bytes may be whole.
    pub fn check_answers(&self, device: &dyn ZonedDevice) -> Result<()> {
        let error = self.drive().cloned();
        error.map_or(Ok(()), |error| check_answers(device, error))
    }

    pub const fn is_mismatch(&self) -> bool {
        matches!(self.cause, Cause::Mismatch { .. })
    }

    /// The error in terms of `object`, whose byte `base` is the blob's first.
    pub fn of(self, object: &str, base: u64) -> Error {
        match self.cause {
            Cause::Mismatch {
                offset,
                at,
                expected,
                found,
            } => Error::ChecksumMismatch {
                object: object.to_owned(),
                offset: base.saturating_add(offset),
                at,
                expected,
                found,
            },
            Cause::Unreadable { offset, error } if is_of_zone(&error) => Error::Unreadable {
                object: object.to_owned(),
                offset: base.saturating_add(offset),
                at: self.at,
                source: error,
            },
            Cause::Unreadable { error, .. } => error.into(),
            Cause::Other(error) => error.of_object(object),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Mismatch {
                offset,
                at,
                expected,
                found,
            } => write!(
                f,
                "byte {offset} ({at}): {found:#010x}, expected {expected:#010x}"
            ),
            Cause::Unreadable { error, .. } => error.fmt(f),
            Cause::Other(error) => error.fmt(f),
        }
    }
}

/// Where a stored byte lies; the drive's first byte if its place was released.
fn place(blob: &Blob, offset: u32) -> ZoneAddress {
    let nowhere = ZoneAddress::new(ZoneId(0), 0);
    blob.place(offset).unwrap_or(nowhere)
}

/// Fills `target` with the blob's raw (uncompressed) bytes from `from` on.
pub(crate) fn read_blob<'a>(
    source: impl Into<Source<'a>>,
    blob: &Blob,
    from: u32,
    target: &mut [u8],
) -> Result<(), ReadError> {
    read_blob_into(source, blob, from, target.len(), target)
}

/// Like [`read_blob`], for the first `wanted` bytes of `room`. Those behind them may be overwritten: with room for the rest
/// of the drive's last block, nothing has to be copied.
pub(crate) fn read_blob_into<'a>(
    source: impl Into<Source<'a>>,
    blob: &Blob,
    from: u32,
    wanted: usize,
    room: &mut [u8],
) -> Result<(), ReadError> {
    let source = source.into();
    let to = from.saturating_add(wanted as u32);
    let block = source.device.geometry().block_size;
    if to > blob.raw {
        let what = "an extent behind the end of its blob";
        let needed = blob.needed(from, to, block);
        return Err(ReadError::corrupt(place(blob, needed.start), what, to));
    }
    if blob.codec != Codec::None {
        let raw = read_packed(source, blob)?;
        room[..wanted].copy_from_slice(&raw[from as usize..to as usize]);
        return Ok(());
    }
    // `room` is filled up to the raw byte `next`.
    let mut next = from;
    if let Some(cache) = source.cache {
        let mut at = from;
        while at < to {
            let end = blob.units(at, at + 1, block).end.min(to);
            if end <= at {
                break;
            }
            if let Some(found) = begin_of(blob, at..end, block, |unit| cache.get(blob, unit)) {
                read_plain(source, blob, next..at, &mut room[(next - from) as usize..])?;
                room[(at - from) as usize..][..found.len()].copy_from_slice(&found);
                next = end;
            }
            at = end;
        }
    }
    read_plain(source, blob, next..to, &mut room[(next - from) as usize..])
}

/// Like [`read_blob_into`], for these bytes of a blob without a codec, and from the drive alone.
fn read_plain(
    source: Source<'_>,
    blob: &Blob,
    raw: Range<u32>,
    room: &mut [u8],
) -> Result<(), ReadError> {
    if raw.is_empty() {
        return Ok(());
    }
    let block = source.device.geometry().block_size;
    let needed = blob.needed(raw.start, raw.end, block);
    let padded = (needed.len() as u32).next_multiple_of(block) as usize;
    if needed.start == raw.start
        && let Some(blocks) = room.get_mut(..padded)
    {
        return read_stored(source, blob, needed, blocks);
    }
    let mut scratch = vec![0; padded];
    read_stored(source, blob, needed.clone(), &mut scratch)?;
    let skip = (raw.start - needed.start) as usize;
    room[..raw.len()].copy_from_slice(&scratch[skip..skip + raw.len()]);
    Ok(())
}

/// All raw bytes of a blob with a codec.
fn read_packed(source: Source<'_>, blob: &Blob) -> Result<Vec<u8>, ReadError> {
    let all = 0..blob.stored();
    let found = source.cache.and_then(|cache| cache.get(blob, &all));
    let raw = match found {
        Some(found) => decompress(blob.codec, &found, blob.raw as usize),
        None => {
            let block = source.device.geometry().block_size;
            let mut scratch = vec![0; all.end.next_multiple_of(block) as usize];
            read_stored(source, blob, all.clone(), &mut scratch)?;
            scratch.truncate(all.len());
            decompress(blob.codec, &scratch, blob.raw as usize)
        }
    };
    raw.ok_or_else(|| {
        let what = "bytes that are not compressed as their blob says";
        ReadError::corrupt(place(blob, 0), what, blob.raw)
    })
}

/// The raw bytes from the start of `wanted` on that the cache has uncompressed and without a gap, unit by unit.
pub(crate) fn cached<'a>(
    source: Source<'a>,
    blob: &'a Blob,
    mut wanted: Range<u32>,
) -> impl Iterator<Item = Bytes> + 'a {
    let block = source.device.geometry().block_size;
    let cache = source.cache.filter(|_| blob.codec == Codec::None);
    std::iter::from_fn(move || {
        let found = begin_of(blob, wanted.clone(), block, |unit| cache?.find(blob, unit))?;
        wanted.start += found.len() as u32;
        Some(found)
    })
}

/// The start of `wanted` within its first unit of stored bytes, if `look_up` has that unit.
fn begin_of(
    blob: &Blob,
    wanted: Range<u32>,
    block_size: u32,
    look_up: impl FnOnce(&Range<u32>) -> Option<Bytes>,
) -> Option<Bytes> {
    let unit = blob.units(wanted.start, wanted.start.checked_add(1)?, block_size);
    let part = wanted.start..wanted.end.min(unit.end);
    if part.is_empty() {
        return None;
    }
    let within = |at: u32| (at - unit.start) as usize;
    Some(look_up(&unit)?.slice(within(part.start)..within(part.end)))
}

/// Range of fragment `index` in the blob's stored bytes.
pub(crate) fn fragment_range(blob: &Blob, index: usize) -> Range<u32> {
    let from: u32 = blob.fragments[..index].iter().map(|f| f.length).sum();
    from..from + blob.fragments[index].length
}

/// A range of the blob's stored bytes.
pub(crate) fn read_part(
    device: &dyn ZonedDevice,
    blob: &Blob,
    Range {
        start: from,
        end: to,
    }: Range<u32>,
) -> Result<Vec<u8>, ReadError> {
    let block = device.geometry().block_size;
    // Bytes beside the range under the same checksum are read too.
    let needed = blob.units(from, to, block);
    let mut bytes = vec![0; (needed.len() as u32).next_multiple_of(block) as usize];
    read_stored(device.into(), blob, needed.clone(), &mut bytes)?;
    bytes.drain(..(from - needed.start) as usize);
    bytes.truncate((to - from) as usize);
    Ok(bytes)
}

/// Reads `range`, whole checksum units of the stored bytes, into `buffer`, which has whole blocks of the drive.
fn read_stored(
    source: Source<'_>,
    blob: &Blob,
    range: Range<u32>,
    buffer: &mut [u8],
) -> Result<(), ReadError> {
    let geometry = source.device.geometry();
    let mut begins = 0;
    for fragment in &blob.fragments {
        let ends = begins + fragment.length;
        let (low, high) = (range.start.max(begins), range.end.min(ends));
        if low < high {
            let Some(at) = fragment.at else {
                let at = place(blob, range.start);
                return Err(ReadError::corrupt(at, "an extent of released bytes", low));
            };
            let zone = at.zone;
            let at = ZoneAddress::new(zone, at.offset.saturating_add(u64::from(low - begins)));
            let padded = geometry.round_up(u64::from(high - low));
            let end = at.offset.checked_add(padded);
            if zone.0 >= geometry.zone_count || end.is_none_or(|end| end > geometry.zone_size) {
                let what = "a blob behind the end of its zone";
                return Err(ReadError::corrupt(at, what, padded as u32));
            }
            let from = (low - range.start) as usize;
            let Some(target) = buffer.get_mut(from..from + padded as usize) else {
                let what = "a fragment that ends within a block";
                return Err(ReadError::corrupt(at, what, high));
            };
            let read = source.device.read(geometry.absolute(at), target);
            read.map_err(|error| {
                let offset = low.into();
                let cause = Cause::Unreadable { offset, error };
                ReadError { at, cause }
            })?;
        }
        begins = ends;
    }
    verify(blob, range.clone(), buffer)?;
    if let Some(cache) = source.cache {
        cache.put(
            blob,
            range.start,
            &buffer[..range.len()],
            geometry.block_size,
        );
    }
    Ok(())
}

fn verify(blob: &Blob, range: Range<u32>, stored: &[u8]) -> Result<(), ReadError> {
    let block = blob.checksum_block.bytes();
    let stored = &stored[..range.len()];
    let found = checksum::of_blocks(blob.checksum_kind, blob.checksum_block, stored);
    for (found, index) in found.into_iter().zip(range.start / block..) {
        let expected = blob.checksums[index as usize];
        if expected != found {
            let at = place(blob, index * block);
            let cause = Cause::Mismatch {
                offset: u64::from(index) * u64::from(block),
                at,
                expected,
                found,
            };
            return Err(ReadError { at, cause });
        }
    }
    Ok(())
}
