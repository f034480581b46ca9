//! A zoned block device of the host: a host-managed SMR disk, a ZNS namespace, null_blk.
//!
//! Direct I/O by positioned reads and writes. Invariants: one write at a time in a zone that has a write
//! pointer, and one request at a time for it, so that no I/O scheduler can reorder them; the only state cached
//! for a zone is its write pointer, which is reported again by the drive after an error. The device is opened
//! exclusively, so no other process moves a write pointer.

pub(crate) mod aligned;
mod error;
mod ioctl;
mod judge;
pub(crate) mod parts;
pub(crate) mod ranges;
pub(crate) mod shape;
mod sysfs;

pub use error::HostDriveError;
pub(crate) use ioctl::KernelZone;

use crate::access::Access;
use crate::file::HostMemory;
use crate::file::flushes::Flushes;
use crate::rings::{Place, ReadFailed, Rings};
use crate::{Keeps, ZonedDevice};
use aligned::{Buffers, is_aligned};
use ioctl::Management;
use judge::Refusal;
use runtime::LockedFile;
use runtime::sync::RwLock;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError,
    ZoneId, ZoneKind, ZoneResult,
};

/// How often, and after which pause, a writer retries a lock that others share.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(20);

/// A zoned block device, locked exclusively while it is open for writing.
#[derive(Debug)]
pub struct LinuxDrive {
    path: PathBuf,
    file: LockedFile,
    geometry: Geometry,
    writable: bool,
    is_hardware: bool,
    /// Most bytes that reach the drive as one request.
    request_bytes: usize,
    buffers: Buffers,
    rings: Rings,
    flushes: Flushes,
    zones: Vec<ZoneMemory>,
}

/// The cached state of a zone.
#[derive(Debug)]
pub(crate) struct ZoneMemory {
    /// Held exclusively by commands that move the write pointer, shared by zone appends, which the drive
    /// orders.
    pub order: RwLock<()>,
    /// The write pointer in bytes. Reads above it return zeros without asking the drive, because drives differ
    /// in what they return there.
    pub written: AtomicU64,
}

impl ZoneMemory {
    /// Initializes the state from a report. A broken zone hides its write pointer, so all of its reads go to the
    /// drive.
    pub fn new(told: &ZoneDescriptor) -> Self {
        let memory = Self {
            order: RwLock::new(()),
            written: AtomicU64::new(told.capacity),
        };
        memory.correct(told);
        memory
    }

    /// Takes the write pointer from a report, if it is valid there.
    pub fn correct(&self, told: &ZoneDescriptor) {
        if told.write_pointer_valid() {
            self.set(told.write_pointer);
        }
    }

    /// Sets the write pointer to `written` bytes into the zone.
    pub fn set(&self, written: u64) {
        self.written.store(written, Ordering::Release);
    }

    /// Advances the write pointer to at least `written` bytes into the zone.
    pub fn reach(&self, written: u64) {
        self.written.fetch_max(written, Ordering::AcqRel);
    }

    /// The part of a read at `offset` that is below the write pointer and has to be read from the drive. The
    /// rest is filled with zeros.
    pub fn written_part<'a>(&self, offset: u64, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let written = self.get().saturating_sub(offset).min(buffer.len() as u64);
        let (written, rest) = buffer.split_at_mut(written as usize);
        rest.fill(0);
        written
    }

    /// The write pointer in bytes from the zone's start.
    pub fn get(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }
}

impl LinuxDrive {
    /// Opens the block device at `path` with an exclusive lock.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, HostDriveError> {
        Self::open_as(path.as_ref(), Access::Write)
    }

    /// Opens the block device at `path` for reading; other readers may have it open too. Commands that would
    /// change it fail with an I/O error of kind `ReadOnlyFilesystem`.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, HostDriveError> {
        Self::open_as(path.as_ref(), Access::Read)
    }

    /// Opens the block device at `path` for observation, whoever else has it open.
    pub fn observe(path: impl AsRef<Path>) -> Result<Self, HostDriveError> {
        Self::open_as(path.as_ref(), Access::Observe)
    }

    fn open_as(path: &Path, access: Access) -> Result<Self, HostDriveError> {
        let writable = access == Access::Write;
        let failed = |source| open_failed(path, source);
        let kind = std::fs::metadata(path).map_err(failed)?.file_type();
        if !kind.is_block_device() {
            let what = "not a block device";
            let path = path.into();
            return Err(HostDriveError::NotZoned { path, what });
        }
        // `O_EXCL` keeps file systems and other exclusive openers away; readers hold a shared lock.
        let exclusive = if writable {
            OFlags::EXCL
        } else {
            OFlags::empty()
        };
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .custom_flags((OFlags::DIRECT | exclusive).bits() as i32)
            .open(path)
            .map_err(failed)?;
        let file = match access {
            Access::Observe => LockedFile::without_lock(file),
            Access::Read | Access::Write => lock(path, file, writable)?,
        };
        let queue = sysfs::queue(path, &file)?;
        let all = report_all(&file).map_err(failed)?;
        let geometry = shape::geometry(path, queue.limits, &all)?;
        let zones = geometry
            .zones()
            .zip(&all)
            .map(|(id, zone)| ZoneMemory::new(&shape::descriptor(&geometry, id, zone)))
            .collect();
        Ok(Self {
            path: path.into(),
            file,
            geometry,
            writable,
            is_hardware: queue.is_hardware,
            request_bytes: queue.request_bytes,
            buffers: Buffers::new(queue.request_bytes.max(parts::BATCH_BYTES)),
            rings: Rings::default(),
            flushes: Flushes::default(),
            zones,
        })
    }

    /// The path of the device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn check_writable(&self, command: ZoneCommand, at: ByteOffset) -> ZoneResult<()> {
        if self.writable {
            return Ok(());
        }
        Err(io_failed(
            command,
            at,
            io::ErrorKind::ReadOnlyFilesystem.into(),
        ))
    }

    /// Writes to consecutive addresses, one request after the other; `done` is called with the end of each.
    fn put(&self, at: ByteOffset, data: &[u8], mut done: impl FnMut(u64)) -> Result<(), io::Error> {
        let mut position = at.0;
        for part in data.chunks(self.request_bytes) {
            if is_aligned(part) {
                self.file.write_all_at(part, position)?;
            } else {
                self.buffers.with(|buffer| {
                    let buffer = &mut buffer[..part.len()];
                    buffer.copy_from_slice(part);
                    self.file.write_all_at(buffer, position)
                })?;
            }
            position += part.len() as u64;
            done(position);
        }
        Ok(())
    }

    fn read_failed(&self, failed: ReadFailed) -> ZoneError {
        let command = ZoneCommand::Read;
        let ReadFailed { at, length, source } = failed;
        // One of the zones in the range is offline.
        let first = (at / self.geometry.zone_size) as u32;
        let last = ((at + length - 1) / self.geometry.zone_size) as u32;
        let touched = self.report(ZoneId(first), last - first + 1);
        let offline = touched.ok().and_then(|touched| {
            let offline = |zone: &&ZoneDescriptor| zone.condition == ZoneCondition::Offline;
            touched.iter().find(offline).map(|zone| zone.id)
        });
        match offline {
            Some(zone) => ZoneError::Offline { command, zone },
            None => io_failed(command, ByteOffset(at), source),
        }
    }

    /// Asks the drive for the state of the zone to find out why it refused the command, and caches it.
    fn explain(&self, refusal: Refusal, error: io::Error) -> ZoneError {
        if let Some(known) = judge::by_code(&refusal, &self.geometry, &error) {
            return known;
        }
        let told = self.report_zone(refusal.at.zone).inspect(|told| {
            self.zones[refusal.at.zone.index()].correct(told);
        });
        let found = told.and_then(|told| {
            let all = || self.report(ZoneId(0), u32::MAX);
            judge::by_condition(&refusal, &self.geometry, &told, all)
        });
        let failed = |error| io_failed(refusal.command, self.geometry.absolute(refusal.at), error);
        match found {
            Ok(Some(known)) => known,
            // The kernel returns this for a write after the end of a device, and a removed device has no bytes.
            Err(_) if error.kind() == io::ErrorKind::StorageFull => {
                failed(rustix::io::Errno::NODEV.into())
            }
            _ => failed(error),
        }
    }

    /// Checks a write that seems to be impossible against a report of the drive: returns the error, or `None`
    /// if the report allows the write.
    fn refuse(&self, start: ZoneAddress, length: u64) -> ZoneResult<Option<ZoneError>> {
        let told = self.report_zone(start.zone)?;
        self.zones[start.zone.index()].correct(&told);
        Ok(ranges::before_write(&self.geometry, &told, start, length))
    }

    fn manage(&self, command: ZoneCommand, zone: ZoneId, how: Management) -> ZoneResult<()> {
        ranges::check_sequential(&self.geometry, command, zone)?;
        let start = self.geometry.start(zone);
        self.check_writable(command, start)?;
        let memory = &self.zones[zone.index()];
        let _order = memory.order.write();
        match ioctl::manage(&self.file, how, start.0, self.geometry.zone_size) {
            Ok(()) => match how {
                Management::Reset => memory.set(0),
                Management::Finish => memory.set(self.geometry.capacity(zone)),
                Management::Open | Management::Close => {}
            },
            Err(error) => {
                let refusal = Refusal {
                    command,
                    at: ZoneAddress::new(zone, 0),
                    length: 0,
                };
                return Err(self.explain(refusal, error.into()));
            }
        }
        Ok(())
    }
}

impl ZonedDevice for LinuxDrive {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        let end = first.0.saturating_add(count).min(self.geometry.zone_count);
        let mut told = Vec::new();
        let mut next = first.0;
        while next < end {
            let at = self.geometry.start(ZoneId(next));
            let zones = ioctl::report(&self.file, at.0, (end - next) as usize)
                .map_err(|error| io_failed(ZoneCommand::Report, at, error.into()))?;
            if zones.is_empty() {
                let error = io::ErrorKind::UnexpectedEof.into();
                return Err(io_failed(ZoneCommand::Report, at, error));
            }
            for zone in zones {
                told.push(shape::descriptor(&self.geometry, ZoneId(next), &zone));
                next += 1;
            }
        }
        Ok(told)
    }

    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.read_many(&mut [(at, buffer)])
    }

    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        let places = reads.iter_mut().map(|(at, buffer)| {
            let start = ranges::locate_read(&self.geometry, *at, buffer.len() as u64)?;
            let asked = match self.geometry.kind(start.zone) {
                ZoneKind::Conventional => &mut **buffer,
                _ => self.zones[start.zone.index()].written_part(start.offset, buffer),
            };
            Ok((at.0, asked))
        });
        let places: Vec<_> = places.collect::<ZoneResult<_>>()?;
        let read = |batch: &mut [Place<'_>]| self.rings.read(&self.file, batch);
        parts::read(&self.buffers, self.request_bytes, places, read)
            .map_err(|failed| self.read_failed(failed))
    }

    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let command = ZoneCommand::Write;
        let length = data.len() as u64;
        let start = ranges::locate(&self.geometry, command, at, length)?;
        self.check_writable(command, at)?;
        let zone = start.zone;
        let memory = &self.zones[zone.index()];
        let kind = self.geometry.kind(zone);
        let _order = (kind != ZoneKind::Conventional).then(|| memory.order.write());
        let misplaced = kind == ZoneKind::SequentialWriteRequired && start.offset != memory.get();
        if (misplaced || start.offset + length > self.geometry.capacity(zone))
            && let Some(error) = self.refuse(start, length)?
        {
            return Err(error);
        }
        let mut reached = start.offset;
        let done = |position: u64| {
            reached = position - self.geometry.start(zone).0;
            if kind != ZoneKind::Conventional {
                memory.reach(reached);
            }
        };
        let result = self.put(at, data, done);
        result.map_err(|error| {
            let refusal = Refusal {
                command,
                at: ZoneAddress::new(zone, reached),
                length: start.offset + length - reached,
            };
            self.explain(refusal, error)
        })
    }

    /// Always fails: a block device has no zone append.
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let command = ZoneCommand::Append;
        ranges::check_zone(&self.geometry, command, zone)?;
        let (start, length) = (self.geometry.start(zone), data.len() as u64);
        ranges::check_blocks(&self.geometry, command, start, length)?;
        Err(ZoneError::Unsupported { command, length })
    }

    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.manage(ZoneCommand::Open, zone, Management::Open)
    }

    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.manage(ZoneCommand::Close, zone, Management::Close)
    }

    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.manage(ZoneCommand::Finish, zone, Management::Finish)
    }

    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.manage(ZoneCommand::Reset, zone, Management::Reset)
    }

    fn host_free_bytes(&self) -> Option<u64> {
        None
    }
    /// Devices that the kernel emulates in files or memory keep no more than these do.
    fn keeps(&self) -> Keeps {
        match self.is_hardware {
            true => Keeps::Prefixes,
            false => Keeps::Blocks,
        }
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        None
    }
    fn flush(&self) -> ZoneResult<()> {
        let flushed = self.flushes.run(|| self.file.sync_data());
        flushed.map_err(|source| ZoneError::Io {
            command: ZoneCommand::Flush,
            at: ByteOffset(0),
            source,
        })
    }
}

/// Locks a device's node exclusively, or together with other readers.
///
/// udev opens a device under a shared lock whenever a writer has closed it; a writer waits for that before it
/// reports the device as in use.
pub(crate) fn lock(path: &Path, file: File, writable: bool) -> Result<LockedFile, HostDriveError> {
    let mut tries = if writable { LOOKS } else { 1 };
    loop {
        let locked = if writable {
            file.try_lock()
        } else {
            file.try_lock_shared()
        };
        tries -= 1;
        match locked {
            Ok(()) => return Ok(LockedFile::locked(file)),
            Err(TryLockError::WouldBlock) if tries > 0 => runtime::thread::sleep(LOOK),
            Err(TryLockError::WouldBlock) => {
                return Err(HostDriveError::InUse { path: path.into() });
            }
            Err(TryLockError::Error(source)) => return Err(open_failed(path, source)),
        }
    }
}

/// Converts the error of a failed open.
pub(crate) fn open_failed(path: &Path, source: io::Error) -> HostDriveError {
    let path = path.into();
    match source.kind() {
        io::ErrorKind::NotFound => HostDriveError::Missing { path },
        io::ErrorKind::ResourceBusy => HostDriveError::InUse { path },
        io::ErrorKind::PermissionDenied => HostDriveError::Permission { path },
        _ => HostDriveError::Io { path, source },
    }
}

fn report_all(file: &File) -> io::Result<Vec<KernelZone>> {
    let mut all: Vec<KernelZone> = Vec::new();
    let mut at = 0;
    loop {
        let zones = ioctl::report(file, at, ioctl::ZONES_AT_ONCE)?;
        let Some(last) = zones.last() else {
            return Ok(all);
        };
        let next = last.start.saturating_add(last.length);
        if next <= at {
            return Err(io::ErrorKind::InvalidData.into());
        }
        at = next;
        all.extend(zones);
    }
}

pub(crate) fn io_failed(command: ZoneCommand, at: ByteOffset, source: io::Error) -> ZoneError {
    ZoneError::Io {
        command,
        at,
        source: Arc::new(source),
    }
}
