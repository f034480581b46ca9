//! An emulated Caveat-Scriptor drive that stores data, on the conventional zones of any other drive: in memory, in a
//! file, or one that takes a modelled time (thesis, section 4.2). It takes writes anywhere and records which blocks
//! each may have damaged.
//!
//! Users of [`ZonedDevice`] see one conventional zone. The first blocks are unshingled (section 4.3.1): no write to
//! them damages anything. Reading a block that may be damaged is an error.
//!
//! A block that was damaged and rewritten can be read, but survives a power cut only after a flush: the rewrite may
//! be lost while the damage is done. So the bitmap on the drive below gets bits before the write that damages, and
//! loses them after the flush. Where no bitmap is kept there, [`CaveatDevice::damage_without_power`] returns these
//! bits.
//!
//! The drive below stores each block as it was written last, so a lost piece of the bitmap damages nothing. Its blocks
//! count as undamaged: whoever has checksums of them, as smrfs has, tells what was not written.

use crate::bits::Bits;
use crate::drive::{CaveatDrive, CaveatError, Parameters};
use crate::format::{self, Header, NoHeader, VERSION};
use device::file::HostMemory;
use device::{Keeps, ZonedDevice};
use runtime::sync::{Mutex, MutexGuard};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;
use zone::{
    ByteOffset, Geometry, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId, ZoneKind,
    ZoneResult,
};

/// Why a Caveat-Scriptor drive cannot be made or opened.
#[derive(Clone, Debug, Error)]
pub enum CaveatDeviceError {
    /// The drive below has no header of a Caveat-Scriptor drive.
    #[error("no Caveat-Scriptor drive is here")]
    NotThere,
    /// The header has a format version that this program does not know.
    #[error("a Caveat-Scriptor drive of format version {found}; this program knows {known}", known = format::VERSION)]
    Version {
        /// The version in the header.
        found: u32,
    },
    /// The header fails its checksum or its bounds.
    #[error("the Caveat-Scriptor drive's header cannot be read")]
    Damaged,
    /// The shape does not fit the drive below.
    #[error("{0}")]
    Shape(String),
    /// The parameters contradict each other.
    #[error("{0}")]
    Options(String),
    /// The drive below failed.
    #[error(transparent)]
    Drive(#[from] ZoneError),
}

impl From<CaveatError> for CaveatDeviceError {
    fn from(error: CaveatError) -> Self {
        Self::Options(error.to_string())
    }
}

/// Parameters of a drive to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaveatShape {
    /// Bytes of a block, a power of two from 4 KiB to 64 KiB.
    pub block_size: u32,
    /// See [`Parameters::isolation_distance`].
    pub isolation_distance: u64,
    /// See [`Parameters::no_overlap_range`].
    pub no_overlap_range: u64,
    /// Size of the unshingled part in bytes, rounded up to blocks.
    pub unshingled_bytes: u64,
}

/// An emulated Caveat-Scriptor drive with data, as one conventional zone.
pub struct CaveatDevice {
    inner: Arc<dyn ZonedDevice>,
    header: Header,
    geometry: Geometry,
    /// Byte offset of block 0 on the drive below.
    start: u64,
    /// Whether the bitmap is stored on the drive below too.
    is_kept: bool,
    state: Mutex<State>,
    /// Held from a change of the bitmap until it is stored. Readers take [`Self::state`] alone, so no write of the
    /// bitmap holds them up.
    storing: Mutex<()>,
}

struct State {
    drive: CaveatDrive,
    /// Blocks that may be damaged after a power cut at this moment, as in the stored bitmap.
    without_power: Bits,
    /// Blocks that were written since the last flush, and not damaged after that.
    pending: Bits,
    /// Ranges in which [`Self::pending`] may have bits, as first block and end (exclusive).
    unflushed: Vec<(u64, u64)>,
    /// Ranges in which the stored bitmap may differ from [`Self::without_power`].
    unstored: Vec<(u64, u64)>,
    /// Blocks, as first and end (exclusive), whose pieces of the bitmap were damaged when the drive was opened, and are
    /// not rewritten since.
    lost: Vec<(u64, u64)>,
}

impl std::fmt::Debug for CaveatDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaveatDevice")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

fn below(inner: &dyn ZonedDevice) -> Result<u64, CaveatDeviceError> {
    let geometry = inner.geometry();
    if geometry.conventional_zones < geometry.drive_zones() {
        return Err(CaveatDeviceError::Shape(
            "a drive that takes writes anywhere needs one of conventional zones alone below it"
                .into(),
        ));
    }
    Ok(u64::from(geometry.conventional_zones) * geometry.zone_size)
}

/// Byte offsets of the header on the drive below: the start, and the place of the copy if there is one.
fn places(inner: &dyn ZonedDevice) -> impl Iterator<Item = u64> {
    std::iter::once(0).chain(format::copy_at(inner.geometry()))
}

/// Decodes each copy of the header. A copy that cannot be read counts as damaged as long as another can be read.
fn headers(inner: &dyn ZonedDevice) -> ZoneResult<Vec<Result<Header, NoHeader>>> {
    let mut bytes = vec![0; inner.geometry().block_size.max(4096) as usize];
    let read = places(inner).map(|place| {
        inner.read(ByteOffset(place), &mut bytes)?;
        Ok(Header::decode(&bytes))
    });
    let read: Vec<ZoneResult<_>> = read.collect();
    match read.iter().find_map(|read| read.as_ref().err()) {
        Some(error) if read.iter().all(Result::is_err) => Err(error.clone()),
        _ => Ok(read
            .into_iter()
            .map(|read| read.unwrap_or(Err(NoHeader::Damaged)))
            .collect()),
    }
}

/// Whether a Caveat-Scriptor drive is on `inner`, whole or damaged.
pub fn is_there(inner: &dyn ZonedDevice) -> ZoneResult<bool> {
    let headers = match below(inner) {
        Ok(_) => headers(inner)?,
        Err(_) => return Ok(false),
    };
    Ok(headers
        .iter()
        .any(|header| *header != Err(NoHeader::Nothing)))
}

impl CaveatDevice {
    fn header(bytes: u64, shape: &CaveatShape, is_kept: bool) -> Result<Header, CaveatDeviceError> {
        let block_size = shape.block_size;
        if !block_size.is_power_of_two() || !(4096..=65_536).contains(&block_size) {
            return Err(CaveatDeviceError::Options(format!(
                "blocks of {block_size} bytes: a power of two from 4096 to 65536 is needed"
            )));
        }
        let blocks = match is_kept {
            // The copy of the header lies after the drive's blocks.
            true => Header::fitting(bytes, block_size),
            false => Some(bytes / u64::from(block_size)),
        };
        let parameters = Parameters {
            blocks: blocks
                .ok_or_else(|| CaveatDeviceError::Shape("the drive is too small".into()))?,
            block_size,
            isolation_distance: shape.isolation_distance,
            no_overlap_range: shape.no_overlap_range,
            unshingled: shape.unshingled_bytes.div_ceil(block_size.into()),
        };
        parameters.validate()?;
        Ok(Header {
            drive: parameters,
            version: VERSION,
        })
    }

    /// Makes a drive on `inner` (`caveat_create`). Every shingled block of it may be damaged.
    ///
    /// # Errors
    /// `inner` has other zones than conventional ones, is too small, or fails.
    pub fn create(
        inner: Arc<dyn ZonedDevice>,
        shape: &CaveatShape,
    ) -> Result<Self, CaveatDeviceError> {
        let this = Self::planned(inner, shape)?;
        let header = this.header;
        let damaged = this.damage_without_power();
        for piece in 0..header.pieces() {
            let bytes = format::encode_piece(&damaged, piece, this.geometry.block_size);
            this.write_piece(piece, &bytes)?;
        }
        // The header comes after the bitmap is durable: a drive with a header has a whole bitmap.
        this.inner.flush()?;
        places(&*this.inner).try_for_each(|place| this.write_header(place))?;
        this.inner.flush()?;
        Ok(this)
    }

    /// The drive as [`Self::create`] would make it; nothing is written.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn planned(
        inner: Arc<dyn ZonedDevice>,
        shape: &CaveatShape,
    ) -> Result<Self, CaveatDeviceError> {
        let end = format::copy_at(inner.geometry());
        let end = end.map_or_else(|| below(&*inner), Ok)?;
        let header = Self::header(end, shape, true)?;
        let damaged = header.drive.new_bitmap();
        Self::of(inner, header, damaged, true)
    }

    fn write_header(&self, place: u64) -> ZoneResult<()> {
        self.inner.write(ByteOffset(place), &self.header.encode())
    }

    /// The copy of the header, 0 or 1, that is damaged.
    pub fn damaged_header(&self) -> Option<usize> {
        let is_here = self.is_kept && self.header.version > 1;
        let all = is_here.then(|| headers(&*self.inner).unwrap_or_default())?;
        all.iter().position(|header| *header != Ok(self.header))
    }

    /// Rewrites a damaged copy of the header and leaves the other copy alone, which is the only valid one until then;
    /// `true` if a copy was damaged.
    ///
    /// # Errors
    /// The drive below fails.
    pub fn mend_header(&self) -> ZoneResult<bool> {
        let damaged = self.damaged_header();
        let Some(place) = damaged.and_then(|copy| places(&*self.inner).nth(copy)) else {
            return Ok(false);
        };
        self.write_header(place)?;
        self.inner.flush()?;
        Ok(true)
    }

    /// Opens the drive on `inner` (`caveat_open`).
    ///
    /// # Errors
    /// [`CaveatDeviceError`]: there is no such drive, its header is damaged or of an unknown version, or the drive below
    /// fails. For a damaged bitmap, see [`Self::lost`].
    pub fn open(inner: Arc<dyn ZonedDevice>) -> Result<Self, CaveatDeviceError> {
        let bytes = below(&*inner)?;
        let headers = headers(&*inner)?;
        let whole = headers.iter().flatten().next().copied();
        let header = whole.ok_or_else(|| {
            let others = headers.into_iter().filter_map(Result::err);
            // A damaged copy may be of any version, so one whose version is certain outranks it.
            let rank = |none: &NoHeader| match none {
                NoHeader::Nothing => 0,
                NoHeader::Damaged => 1,
                NoHeader::Version(_) => 2,
            };
            match others.max_by_key(rank) {
                None | Some(NoHeader::Nothing) => CaveatDeviceError::NotThere,
                Some(NoHeader::Version(found)) => CaveatDeviceError::Version { found },
                Some(NoHeader::Damaged) => CaveatDeviceError::Damaged,
            }
        })?;
        let Parameters {
            blocks, block_size, ..
        } = header.drive;
        let end = (blocks * u64::from(block_size)).checked_add(header.data_offset());
        if end.is_none_or(|end| end > bytes) {
            return Err(CaveatDeviceError::Shape(
                "the Caveat-Scriptor drive is larger than the one that it was made on".into(),
            ));
        }
        let mut damaged = Bits::new(blocks, true);
        let mut piece = vec![0; block_size as usize];
        let mut lost = Vec::new();
        for number in 0..header.pieces() {
            let at = (1 + number) * u64::from(block_size);
            let is_whole = match inner.read(ByteOffset(at), &mut piece) {
                Ok(()) => format::decode_piece(&piece, &mut damaged, number).is_some(),
                Err(ZoneError::Io { .. } | ZoneError::Offline { .. }) => false,
                Err(error) => return Err(error.into()),
            };
            if !is_whole {
                let first = number * format::piece_bits(block_size);
                let end = (first + format::piece_bits(block_size)).min(blocks);
                damaged.set(first, end, false);
                lost.push((first, end));
            }
        }
        let this = Self::of(inner, header, damaged, true)?;
        this.state.lock().lost = lost;
        Ok(this)
    }

    /// Blocks, as first and end (exclusive), whose part of the stored bitmap is damaged or cannot be read. They count as
    /// undamaged, whatever was known of them.
    pub fn lost(&self) -> Vec<(u64, u64)> {
        self.state.lock().lost.clone()
    }

    /// Rewrites the damaged parts of the stored bitmap; `true` if there were any.
    ///
    /// # Errors
    /// The drive below fails; the next call tries again.
    pub fn mend_bitmap(&self) -> ZoneResult<bool> {
        let storing = self.storing.lock();
        let mut state = self.state.lock();
        if state.lost.is_empty() {
            return Ok(false);
        }
        let lost = state.lost.clone();
        state.unstored.extend(lost);
        self.keep(state)?;
        drop(storing);
        self.inner.flush()?;
        self.state.lock().lost.clear();
        Ok(true)
    }

    /// A drive whose bitmap is in memory alone, and takes neither space nor time of `inner`. `damaged` is what
    /// [`Self::damage_without_power`] returned for an earlier drive at its power cut; without it, every shingled
    /// block may be damaged.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn in_memory(
        inner: Arc<dyn ZonedDevice>,
        shape: &CaveatShape,
        damaged: Option<Bits>,
    ) -> Result<Self, CaveatDeviceError> {
        let header = Self::header(below(&*inner)?, shape, false)?;
        let damaged = damaged.filter(|bits| bits.count() == header.drive.blocks);
        let damaged = damaged.unwrap_or_else(|| header.drive.new_bitmap());
        Self::of(inner, header, damaged, false)
    }

    fn of(
        inner: Arc<dyn ZonedDevice>,
        header: Header,
        damaged: Bits,
        is_kept: bool,
    ) -> Result<Self, CaveatDeviceError> {
        let Parameters {
            blocks, block_size, ..
        } = header.drive;
        if block_size < inner.geometry().block_size {
            return Err(CaveatDeviceError::Shape(format!(
                "blocks of {block_size} bytes are smaller than those of the drive below"
            )));
        }
        let size = blocks * u64::from(block_size);
        let geometry = Geometry {
            block_size,
            zone_size: size,
            zone_capacity: size,
            zone_count: 1,
            conventional_zones: 1,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        };
        let drive = CaveatDrive::open(header.drive, damaged.clone())?;
        Ok(Self {
            start: if is_kept { header.data_offset() } else { 0 },
            inner,
            header,
            geometry,
            is_kept,
            state: Mutex::new(State {
                drive,
                without_power: damaged,
                pending: Bits::new(blocks, false),
                unflushed: Vec::new(),
                unstored: Vec::new(),
                lost: Vec::new(),
            }),
            storing: Mutex::default(),
        })
    }

    /// The drive's parameters (`caveat_modesense`).
    pub const fn modesense(&self) -> Parameters {
        self.header.drive
    }

    /// Position of the head: the block after the last one that was read or written.
    pub fn position(&self) -> u64 {
        self.state.lock().drive.position()
    }

    /// Runs of blocks that can be read (`caveat_dump`): first and count.
    pub fn dump(&self) -> Vec<(u64, u64)> {
        self.state.lock().drive.dump()
    }

    /// The first block of `first..end` that may be damaged.
    pub fn damaged(&self, first: u64, end: u64) -> Option<u64> {
        self.state.lock().drive.damaged(first, end)
    }

    /// All blocks in the zones of the drive below that `first..end` touches: if one of these zones cannot be written,
    /// none of these blocks can.
    pub fn beside(&self, first: u64, end: u64) -> Range<u64> {
        let (zone, block) = (
            self.inner.geometry().zone_size,
            u64::from(self.geometry.block_size),
        );
        let from = (self.start + first * block) / zone * zone;
        let to = (self.start + end * block).next_multiple_of(zone);
        let from = from.saturating_sub(self.start).div_ceil(block);
        from..((to - self.start) / block).min(self.header.drive.blocks)
    }

    /// Blocks that may be damaged after a power cut at this moment, whichever of the unflushed writes is lost.
    pub fn damage_without_power(&self) -> Bits {
        self.state.lock().without_power.clone()
    }

    fn blocks(&self, command: ZoneCommand, at: ByteOffset, length: u64) -> ZoneResult<(u64, u64)> {
        let block_size = self.geometry.block_size;
        let block = u64::from(block_size);
        if length == 0 || !at.0.is_multiple_of(block) || !length.is_multiple_of(block) {
            return Err(ZoneError::Unaligned {
                command,
                at,
                length,
                block_size,
            });
        }
        let (first, end) = (at.0 / block, (at.0 / block).saturating_add(length / block));
        if end > self.header.drive.blocks {
            return Err(ZoneError::OutOfRange {
                command,
                at,
                length,
            });
        }
        Ok((first, end))
    }

    fn write_piece(&self, piece: u64, bytes: &[u8]) -> ZoneResult<()> {
        self.write_below((1 + piece) * u64::from(self.geometry.block_size), bytes)
    }

    /// Writes to the drive below, with one command for each zone.
    fn write_below(&self, mut at: u64, mut data: &[u8]) -> ZoneResult<()> {
        let zone_size = self.inner.geometry().zone_size;
        while !data.is_empty() {
            let take = (zone_size - at % zone_size).min(data.len() as u64) as usize;
            self.inner.write(ByteOffset(at), &data[..take])?;
            at += take as u64;
            data = &data[take..];
        }
        Ok(())
    }

    /// Stores those pieces of the bitmap that have changed. If that fails, the next call stores them.
    fn keep(&self, mut state: MutexGuard<'_, State>) -> ZoneResult<()> {
        let unstored = std::mem::take(&mut state.unstored);
        if !self.is_kept {
            return Ok(());
        }
        let block = self.geometry.block_size;
        let piece = |of| format::piece_of(of, block);
        let pieces: BTreeSet<u64> = unstored
            .iter()
            .flat_map(|(from, to)| piece(*from)..=piece(*to - 1))
            .collect();
        let encode = |piece| {
            (
                piece,
                format::encode_piece(&state.without_power, piece, block),
            )
        };
        let pieces: Vec<(u64, Vec<u8>)> = pieces.into_iter().map(encode).collect();
        drop(state);
        let stored = pieces
            .iter()
            .try_for_each(|(piece, bytes)| self.write_piece(*piece, bytes));
        stored.inspect_err(|_| self.state.lock().unstored.extend(unstored))
    }

    /// Records which blocks a write of `first..end` may damage. Called before the write, with [`Self::storing`] held.
    fn damage(&self, first: u64, end: u64) -> ZoneResult<()> {
        let parameters = self.header.drive;
        let (from, to) = parameters.damage(first, end);
        let to = to.min(parameters.blocks);
        let mut state = self.state.lock();
        // The stored bitmap keeps the bits of blocks that are rewritten until a flush.
        if state.without_power.set(from, to, true) {
            state.unstored.push((from, to));
        }
        self.keep(state)?;
        let mut state = self.state.lock();
        let written = state.drive.write(first, end - first);
        debug_assert!(written.is_ok());
        state.pending.set(from, to, false);
        state.pending.set(first, end, true);
        state.unflushed.push((first, end));
        Ok(())
    }
}

fn no_zone(command: ZoneCommand) -> ZoneError {
    ZoneError::InvalidTransition {
        command,
        zone: ZoneId(0),
        condition: ZoneCondition::NotWritePointer,
    }
}

impl ZonedDevice for CaveatDevice {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        if first.0 > 0 || count == 0 {
            return Ok(Vec::new());
        }
        let mut all = self.inner.report(first, 1)?;
        for zone in &mut all {
            zone.capacity = self.geometry.zone_size;
        }
        Ok(all)
    }

    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let (first, end) = self.blocks(ZoneCommand::Read, at, buffer.len() as u64)?;
        let read = self.state.lock().drive.read(first, end - first);
        read.map_err(|error| ZoneError::Io {
            command: ZoneCommand::Read,
            at,
            source: Arc::new(io::Error::new(io::ErrorKind::InvalidData, error)),
        })?;
        self.inner.read(ByteOffset(self.start + at.0), buffer)
    }

    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let (first, end) = self.blocks(ZoneCommand::Write, at, data.len() as u64)?;
        let storing = self.storing.lock();
        self.damage(first, end)?;
        drop(storing);
        self.write_below(self.start + at.0, data)
    }

    fn append(&self, _zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        Err(ZoneError::Unsupported {
            command: ZoneCommand::Append,
            length: data.len() as u64,
        })
    }

    fn open(&self, _zone: ZoneId) -> ZoneResult<()> {
        Err(no_zone(ZoneCommand::Open))
    }

    fn close(&self, _zone: ZoneId) -> ZoneResult<()> {
        Err(no_zone(ZoneCommand::Close))
    }

    fn finish(&self, _zone: ZoneId) -> ZoneResult<()> {
        Err(no_zone(ZoneCommand::Finish))
    }

    fn reset(&self, _zone: ZoneId) -> ZoneResult<()> {
        Err(no_zone(ZoneCommand::Reset))
    }

    fn flush(&self) -> ZoneResult<()> {
        let mut written = Vec::new();
        let mut state = self.state.lock();
        for (first, end) in std::mem::take(&mut state.unflushed) {
            written.extend(state.pending.runs_in(first, end, true));
            state.pending.set(first, end, false);
        }
        drop(state);
        // If the flush fails, it is unknown which of these writes are durable: they count as damaged after a power
        // cut.
        self.inner.flush()?;
        let storing = self.storing.lock();
        let mut state = self.state.lock();
        let State {
            drive,
            without_power,
            pending,
            unstored,
            ..
        } = &mut *state;
        for (first, end) in written {
            // Blocks written or damaged during the flush wait for the next one.
            for block in first..end {
                if drive.damaged(block, block + 1).is_none()
                    && !pending.get(block)
                    && without_power.set(block, block + 1, false)
                {
                    unstored.push((block, block + 1));
                }
            }
        }
        let is_changed = self.is_kept && !unstored.is_empty();
        self.keep(state)?;
        drop(storing);
        if is_changed {
            self.inner.flush()?;
        }
        Ok(())
    }

    fn host_free_bytes(&self) -> Option<u64> {
        self.inner.host_free_bytes()
    }

    /// Blocks can be overwritten in place.
    fn keeps(&self) -> Keeps {
        Keeps::Blocks
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use device::changed::{Change, Changed};
    use device::{MemoryDrive, PowerCut};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    const BLOCK: usize = 4096;

    fn geometry(zones: u32) -> Geometry {
        Geometry {
            block_size: 4096,
            zone_size: 64 << 10,
            zone_capacity: 64 << 10,
            zone_count: zones,
            conventional_zones: zones,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        }
    }

    const SHAPE: CaveatShape = CaveatShape {
        block_size: 4096,
        isolation_distance: 4,
        no_overlap_range: 1,
        unshingled_bytes: 10 * 4096,
    };

    fn at(block: u64) -> ByteOffset {
        ByteOffset(block * BLOCK as u64)
    }

    #[test]
    fn a_drive_is_opened_as_it_was_left() {
        let below = Arc::new(MemoryDrive::new(geometry(8)).unwrap());
        assert!(!is_there(&*below).unwrap());
        assert!(matches!(
            CaveatDevice::open(below.clone()),
            Err(CaveatDeviceError::NotThere)
        ));
        let drive = CaveatDevice::create(below.clone(), &SHAPE).unwrap();
        // Two zones of 16 blocks are header and bitmap.
        assert_eq!(drive.modesense().blocks, 7 * 16);
        drive.write(at(8), &[1; 2 * BLOCK]).unwrap();
        drive.write(at(10), &[2; 20 * BLOCK]).unwrap();
        drive.write(at(20), &[3; BLOCK]).unwrap();
        drive.flush().unwrap();
        let (mut bytes, runs) = (vec![0; BLOCK], drive.dump());
        // 21 is within the range that is spared, 22 to 24 may be damaged.
        assert_eq!(runs, [(0, 22), (25, 5)]);
        drop(drive);
        assert!(is_there(&*below).unwrap());
        let drive = CaveatDevice::open(below.clone()).unwrap();
        assert_eq!(drive.dump(), runs);
        drive.read(at(21), &mut bytes).unwrap();
        assert_eq!(bytes, [2; BLOCK]);
        assert!(matches!(
            drive.read(at(22), &mut bytes),
            Err(ZoneError::Io { .. })
        ));
        assert!(drive.lost().is_empty());
        drop(drive);
        // The bitmap, as a power cut may leave it: no data is lost.
        below.write(at(1), &[0; BLOCK]).unwrap();
        let drive = CaveatDevice::open(below.clone()).unwrap();
        assert_eq!(drive.lost(), [(0, 7 * 16)]);
        drive.read(at(21), &mut bytes).unwrap();
        assert_eq!(bytes, [2; BLOCK]);
        assert!(drive.mend_bitmap().unwrap());
        assert!(!drive.mend_bitmap().unwrap());
        drive.write(at(20), &[3; BLOCK]).unwrap();
        let drive = CaveatDevice::open(below).unwrap();
        assert_eq!((drive.lost(), drive.damaged(0, 112)), (vec![], Some(22)));
    }

    #[test]
    fn either_copy_of_the_header_will_do() {
        let copy = ByteOffset(19 * 16 * BLOCK as u64);
        for (damaged, whole) in [(0, copy.0), (copy.0, 0)] {
            let below = Arc::new(MemoryDrive::new(geometry(20)).unwrap());
            let drive = CaveatDevice::create(below.clone(), &SHAPE).unwrap();
            assert_eq!(drive.modesense().blocks, 18 * 16);
            assert_eq!(drive.damaged_header(), None);
            let end = drive.modesense().blocks - 1;
            drive.write(at(end), &[1; BLOCK]).unwrap();
            drive.flush().unwrap();
            below.write(ByteOffset(damaged), &[0; BLOCK]).unwrap();
            let drive = CaveatDevice::open(below.clone()).unwrap();
            assert_eq!(drive.damaged_header(), Some(usize::from(damaged > 0)));
            assert!(drive.mend_header().unwrap());
            assert!(!drive.mend_header().unwrap());
            let mut bytes = vec![0; BLOCK];
            drive.read(at(end), &mut bytes).unwrap();
            assert_eq!(bytes, [1; BLOCK]);
            for place in [damaged, whole] {
                let mut header = vec![7; BLOCK];
                header[..8].copy_from_slice(b"ZSCAVEAT");
                below.write(ByteOffset(place), &header).unwrap();
            }
            assert!(is_there(&*below).unwrap());
            assert!(matches!(
                CaveatDevice::open(below),
                Err(CaveatDeviceError::Damaged)
            ));
        }
    }

    /// Writes of which none was flushed may all be lost, and their damage be done.
    #[test]
    fn what_is_damaged_and_written_again_is_safe_behind_a_flush() {
        let below = Arc::new(PowerCut::new(geometry(4)).unwrap());
        let drive = CaveatDevice::in_memory(below, &SHAPE, None).unwrap();
        drive.write(at(10), &[1; 20 * BLOCK]).unwrap();
        drive.flush().unwrap();
        drive.write(at(12), &[2; BLOCK]).unwrap();
        drive.write(at(14), &[2; 2 * BLOCK]).unwrap();
        assert_eq!(drive.damaged(10, 16), None);
        let without_power = drive.damage_without_power();
        let damaged = without_power.runs_in(10, 30, true).collect::<Vec<_>>();
        assert_eq!(damaged, [(14, 20)]);
        drive.flush().unwrap();
        let without_power = drive.damage_without_power();
        let damaged = without_power.runs_in(10, 30, true).collect::<Vec<_>>();
        assert_eq!(damaged, [(16, 20)]);
    }

    struct Failing(AtomicBool);

    impl Change<MemoryDrive> for Failing {
        fn write(&self, drive: &MemoryDrive, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
            if self.0.load(Relaxed) {
                return Err(no_zone(ZoneCommand::Write));
            }
            drive.write(at, data)
        }
    }

    #[test]
    fn bits_that_could_not_be_stored_are_stored_later() {
        let below = Arc::new(Changed {
            drive: MemoryDrive::new(geometry(8)).unwrap(),
            change: Failing(AtomicBool::new(false)),
        });
        let fails = |is_so| below.change.0.store(is_so, Relaxed);
        let drive = CaveatDevice::create(below.clone(), &SHAPE).unwrap();
        drive.write(at(10), &[1; 20 * BLOCK]).unwrap();
        drive.flush().unwrap();
        fails(true);
        drive.write(at(12), &[2; BLOCK]).unwrap_err();
        fails(false);
        drive.write(at(12), &[2; BLOCK]).unwrap();
        let after_cut = CaveatDevice::open(below.clone()).unwrap();
        assert_eq!(after_cut.dump(), [(0, 14), (17, 13)]);

        drive.write(at(14), &[3; 3 * BLOCK]).unwrap();
        drive.write(at(18), &[3; 2 * BLOCK]).unwrap();
        fails(true);
        drive.flush().unwrap_err();
        fails(false);
        drive.flush().unwrap();
        let after_cut = CaveatDevice::open(below.clone()).unwrap();
        assert_eq!(after_cut.dump(), drive.dump());
    }

    #[test]
    fn a_plan_has_no_room_that_the_drive_has_not() {
        for zones in [8, 20] {
            let below = Arc::new(MemoryDrive::new(geometry(zones)).unwrap());
            let planned = CaveatDevice::planned(below.clone(), &SHAPE).unwrap();
            assert!(!is_there(&*below).unwrap(), "nothing is written");
            let made = CaveatDevice::create(below.clone(), &SHAPE).unwrap();
            assert_eq!(planned.modesense(), made.modesense());
            let whole = CaveatShape {
                unshingled_bytes: below.geometry().size_bytes(),
                ..SHAPE
            };
            assert!(CaveatDevice::planned(below, &whole).is_err());
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mixed = Geometry {
            conventional_zones: 2,
            ..geometry(4)
        };
        let mixed = Arc::new(MemoryDrive::new(mixed).unwrap());
        assert!(CaveatDevice::create(mixed, &SHAPE).is_err());
        let small = Arc::new(MemoryDrive::new(geometry(1)).unwrap());
        assert!(CaveatDevice::create(small, &SHAPE).is_err());
        let below = Arc::new(MemoryDrive::new(geometry(4)).unwrap());
        let drive = CaveatDevice::create(below, &SHAPE).unwrap();
        let end = drive.modesense().blocks;
        for (place, bytes) in [(at(end), BLOCK), (ByteOffset(1), BLOCK), (at(0), 5)] {
            assert!(drive.write(place, &vec![0; bytes]).is_err());
            assert!(drive.read(place, &mut vec![0; bytes]).is_err());
        }
    }
}
