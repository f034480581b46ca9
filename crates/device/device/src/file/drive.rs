//! A zoned drive in a file: every command is one or two calls to the host's file system.
//!
//! Order of a write: data, then the zone's entry with the new write pointer (unless the data itself tells
//! it, see `ahead.rs`), then the table in memory; so no kill of the process shows a write pointer above
//! data that is not there. Order of a reset: entry, then the hole. The reasons are in `docs/format/file-drive.md`.
//! Lock order: one zone's lock, then the table. The zone's lock is held over the I/O, the table
//! only for a decision; commands in different zones run in parallel, reads wait for nothing.

use super::FileDriveError;
use super::ahead::{Ahead, LARGEST_BLOCK, PREPARED_BYTES};
use super::beside::HostMemory;
use super::create::{self, CreateOptions};
use super::direct::{DirectFile, is_aligned};
use super::flushes::Flushes;
use super::format::{self, DriveUuid, Entry, Header};
use super::host;
use super::opening::{look_again, read_header, read_table};
use crate::access::Access;
use crate::rings::{ReadFailed, Rings};
use crate::rules::{PlannedWrite, RestedZone, ZoneTable};
use crate::{Keeps, ZonedDevice};
use runtime::LockedFile;
use runtime::sync::{Mutex, MutexGuard};
use rustix::fs::StatVfsMountFlags;
use std::fs::{Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError,
    ZoneId, ZoneKind, ZoneResult,
};

/// A write of fewer bytes is assumed to be one of many that are each followed by a flush.
const SMALL_WRITE: usize = 64 << 10;
/// A write of at least this many bytes is sent on to the disk at once.
const LARGE_WRITE: usize = 256 << 10;
/// A read of at least this many bytes is a direct one, on a drive with direct I/O.
const LARGE_READ: usize = 64 << 10;
/// Free bytes of the host's disk below which no zeros are written ahead: each zone that is written takes them, and the last
/// bytes are for data.
const PLENTY: u64 = 256 << 20;

/// A drive in a file of the host, which stays locked while it is open: exclusively, or shared if opened for reading.
#[derive(Debug)]
pub struct FileDrive {
    path: PathBuf,
    file: LockedFile,
    /// The same file for direct I/O, if that was asked for.
    direct: Option<DirectFile>,
    header: Header,
    data_offset: u64,
    writable: bool,
    keeps: Keeps,
    table: Mutex<ZoneTable>,
    /// Held during a write to a sequential zone.
    zone_locks: Vec<Mutex<Ahead>>,
    flushes: Flushes,
    rings: Rings,
    /// Whether a reset has left its zone's space to the next opening, which is said once.
    kept_space: AtomicBool,
    /// Number of writes whose data is being written.
    writing: AtomicUsize,
    /// Boxed, so that this type is not much larger than the other drives.
    beside: Box<HostMemory>,
}

impl FileDrive {
    /// Creates a drive in a new file at `path` and opens it. An existing file is refused.
    pub fn create(
        path: impl AsRef<Path>,
        geometry: &Geometry,
        profile_name: &str,
    ) -> Result<Self, FileDriveError> {
        let options = CreateOptions {
            profile_name: profile_name.into(),
            ..Default::default()
        };
        Self::create_with(path, geometry, options)
    }

    /// As [`Self::create`], with all options.
    pub fn create_with(
        path: impl AsRef<Path>,
        geometry: &Geometry,
        options: CreateOptions,
    ) -> Result<Self, FileDriveError> {
        let path = path.as_ref();
        let (unfinished, file, header) = create::create(path, geometry, options)?;
        let table = ZoneTable::new(header.geometry.clone())?;
        unfinished.publish(path)?;
        Ok(Self::new(path, file, header, table, true))
    }

    /// Creates a drive in a new file, which appears at `path` only once `fill` has ended: whatever ends it early leaves
    /// no drive there. `fill` has to flush what it writes; the drive is closed behind it.
    pub fn create_filled<E: From<FileDriveError>>(
        path: &Path,
        geometry: &Geometry,
        profile_name: &str,
        fill: impl FnOnce(Arc<Self>) -> Result<(), E>,
    ) -> Result<(), E> {
        let options = CreateOptions {
            profile_name: profile_name.into(),
            ..Default::default()
        };
        let (unfinished, file, header) = create::create(path, geometry, options)?;
        let table = ZoneTable::new(header.geometry.clone()).map_err(FileDriveError::from)?;
        let drive = Self::new(unfinished.path(), file, header, table, true);
        // Locked until it has its name.
        let drive = Arc::new(drive);
        fill(drive.clone())?;
        Ok(unfinished.publish(path)?)
    }

    /// Opens the drive at `path` with an exclusive lock.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileDriveError> {
        Self::open_as(path.as_ref(), Access::Write)
    }

    /// Opens the drive at `path` for reading; other readers may have it open too. Commands that would change it
    /// fail with an I/O error of kind `ReadOnlyFilesystem`; the file is not written to.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, FileDriveError> {
        Self::open_as(path.as_ref(), Access::Read)
    }

    /// Opens the drive at `path` for observation, whoever else has it open: takes no lock and changes nothing.
    /// The zones are as they were at the time of the call.
    pub fn observe(path: impl AsRef<Path>) -> Result<Self, FileDriveError> {
        let path = path.as_ref();
        look_again(&mut || Self::open_as(path, Access::Observe))
    }

    fn open_as(path: &Path, access: Access) -> Result<Self, FileDriveError> {
        let writable = access == Access::Write;
        let io_error = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => FileDriveError::Missing { path: path.into() },
            _ => FileDriveError::Io {
                path: path.into(),
                source,
            },
        };
        // Asked before opening: opening a FIFO or a device can block or act.
        if !std::fs::metadata(path).map_err(io_error)?.is_file() {
            return Err(FileDriveError::NotADrive { path: path.into() });
        }
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .open(path)
            .map_err(io_error)?;
        let locked = match access {
            Access::Write => LockedFile::exclusive(file),
            Access::Read => LockedFile::shared(file),
            Access::Observe => Ok(LockedFile::without_lock(file)),
        };
        let file = locked.map_err(|error| match error {
            TryLockError::WouldBlock => FileDriveError::InUse { path: path.into() },
            TryLockError::Error(source) => io_error(source),
        })?;
        let header = read_header(path, &file)?;
        let (table, prepared) = read_table(path, &file, &header)?;
        let mut drive = Self::new(path, file, header, table, writable);
        drive.keeps = match drive.beside.keeps_writes() {
            Ok(true) => Keeps::Writes,
            Ok(false) => Keeps::Blocks,
            // It gives up nothing, and the file may be one that only the user of the drive can read.
            Err(_) if access == Access::Observe => Keeps::Blocks,
            Err(error) => return Err(error),
        };
        for (zone, end) in prepared {
            // It is unknown whether a killed process had made the entry durable, so the next flush counts.
            let flush = drive.flushes.next();
            *drive.zone_locks[zone.index()].lock() = Ahead::Named { end, flush };
        }
        if writable {
            // Only space is lost; on a full disk, a hole may need some itself.
            if let Err(error) = drive.punch_empty_zones() {
                tracing::warn!(%error, "the space of empty zones cannot be freed");
            }
        }
        Ok(drive)
    }

    fn new(
        path: &Path,
        file: LockedFile,
        header: Header,
        table: ZoneTable,
        writable: bool,
    ) -> Self {
        let zone_count = header.geometry.zone_count;
        let beside = Box::new(HostMemory::new(path, &file, header.uuid));
        Self {
            path: path.into(),
            file,
            direct: None,
            data_offset: format::data_offset(zone_count),
            header,
            writable,
            keeps: Keeps::Writes,
            table: Mutex::new(table),
            zone_locks: (0..zone_count).map(|_| Mutex::default()).collect(),
            flushes: Flushes::default(),
            rings: Rings::default(),
            kept_space: AtomicBool::new(false),
            writing: AtomicUsize::new(0),
            beside,
        }
    }

    /// Makes large reads and writes direct I/O, as those of a device are, where the host's file system has that: for a
    /// program that caches what it reads. The rest still goes through the host's page cache, which the host keeps in step.
    pub fn with_direct_io(mut self) -> Self {
        self.direct = DirectFile::again(&self.file, self.writable)
            .inspect_err(|error| tracing::info!(%error, "this file takes no direct I/O"))
            .ok();
        self
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The drive's UUID.
    pub const fn uuid(&self) -> DriveUuid {
        self.header.uuid
    }

    /// The name of the profile that the drive was made from.
    pub fn profile_name(&self) -> &str {
        &self.header.profile_name
    }

    /// A name for people, empty if none was given.
    pub fn label(&self) -> &str {
        &self.header.label
    }

    /// Whether the drive was opened by [`Self::open_read_only`] or [`Self::observe`].
    pub const fn is_read_only(&self) -> bool {
        !self.writable
    }

    /// Bytes that the file takes on the host, holes not counted.
    pub fn host_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// Whether the host's file system can be written and has `room` free bytes, as far as it tells.
    pub fn host_takes_writes(&self, room: u64) -> bool {
        let has_room = || self.host_free_bytes().is_none_or(|free| free >= room);
        rustix::fs::fstatvfs(&*self.file)
            .is_ok_and(|host| !host.f_flag.contains(StatVfsMountFlags::RDONLY) && has_room())
    }

    /// Makes `zone` [`ZoneCondition::ReadOnly`] or, for good, [`ZoneCondition::Offline`].
    pub fn set_condition(&self, zone: ZoneId, condition: ZoneCondition) -> ZoneResult<()> {
        let command = ZoneCommand::Report;
        self.check_writable(command, zone)?;
        let _still = self.lock(zone);
        if self.table.lock().check_failure(zone, condition)? {
            let rested = RestedZone {
                condition,
                ..self.table.lock().rested(zone)
            };
            self.put_entry(command, zone, rested.into())?;
            self.table.lock().fail(zone, condition);
        }
        Ok(())
    }

    /// Frees the data in empty zones that remains if the process was killed between the entry of a reset and
    /// its hole.
    fn punch_empty_zones(&self) -> io::Result<()> {
        let geometry = &self.header.geometry;
        let table = self.table.lock();
        let mut at = self.data_offset;
        while let Some(data) = host::next_data(&self.file, at)? {
            let Some(place) = geometry.address(ByteOffset(data.saturating_sub(self.data_offset)))
            else {
                break;
            };
            if table.rested(place.zone).condition == ZoneCondition::Empty {
                host::punch(&self.file, self.in_file(place.zone, 0), geometry.zone_size)?;
            }
            at = self.in_file(place.zone, geometry.zone_size);
        }
        Ok(())
    }

    fn in_file(&self, zone: ZoneId, offset: u64) -> u64 {
        self.data_offset + self.header.geometry.start(zone).0 + offset
    }

    fn lock(&self, zone: ZoneId) -> Option<MutexGuard<'_, Ahead>> {
        self.zone_locks.get(zone.index()).map(Mutex::lock)
    }

    fn check_writable(&self, command: ZoneCommand, zone: ZoneId) -> ZoneResult<()> {
        if self.writable {
            return Ok(());
        }
        let at = ByteOffset(self.header.geometry.zone_size.saturating_mul(zone.0.into()));
        Err(io_failed(
            command,
            at,
            io::ErrorKind::ReadOnlyFilesystem.into(),
        ))
    }

    fn put_entry(&self, command: ZoneCommand, zone: ZoneId, entry: Entry) -> ZoneResult<()> {
        let geometry = &self.header.geometry;
        let entry = format::encode_entry(zone, geometry.kind(zone), entry);
        self.file
            .write_all_at(&entry, format::entry_offset(zone))
            .map_err(|source| io_failed(command, geometry.start(zone), source))
    }

    /// Writes the data of a planned write. `ahead` belongs to the zone's lock, which the caller holds; `None`
    /// for a zone without a write pointer.
    fn put(
        &self,
        command: ZoneCommand,
        planned: PlannedWrite,
        data: &[u8],
        ahead: Option<&mut Ahead>,
    ) -> ZoneResult<()> {
        let ZoneAddress { zone, offset } = planned.at();
        let mut nothing = Ahead::default();
        let ahead = ahead.unwrap_or(&mut nothing);
        let done = self.put_data(command, &planned, data, ahead);
        let mut table = self.table.lock();
        if done.is_ok() {
            table.commit_write(planned);
            drop(table);
            self.prepare(zone, offset + data.len() as u64, data.len(), ahead);
            return done;
        }
        table.abort_write(planned);
        let rested = table.rested(zone);
        drop(table);
        // A part of the data may be there and must not stand for the write pointer, now or later. Best effort:
        // after an error it is open which part of the write took effect.
        if let Ahead::Named { .. } = std::mem::take(ahead) {
            let _ = self.put_entry(command, zone, rested.into());
        }
        done
    }

    /// After a small write that ended at `end`: writes zeros for the following ones, once in a while.
    ///
    /// A flush after an overwrite of allocated blocks costs the host's file system no journal transaction, one
    /// after a write into a hole does; logs are written a block and a flush at a time. Above the write pointer
    /// reads give zeros anyway. A failure costs time only.
    fn prepare(&self, zone: ZoneId, end: u64, length: usize, ahead: &mut Ahead) {
        // In a zone that may be written anywhere, there may be data after `end`.
        let geometry = &self.header.geometry;
        let only_at_pointer = geometry.kind(zone) == ZoneKind::SequentialWriteRequired;
        let is_small = geometry.block_size as usize <= LARGEST_BLOCK;
        if !ahead.is_used_up(end) || !only_at_pointer || !is_small {
            return;
        }
        *ahead = Ahead::default();
        let bytes = PREPARED_BYTES.min(geometry.capacity(zone).saturating_sub(end));
        let has_plenty = || self.host_free_bytes().is_some_and(|free| free >= PLENTY);
        if length < SMALL_WRITE && bytes > 0 && has_plenty() {
            let zeros = vec![0; bytes as usize];
            let at = self.in_file(zone, end);
            if self.file.write_all_at(&zeros, at).is_ok() {
                let (end, flush) = (end + bytes, self.flushes.next());
                *ahead = Ahead::Prepared { end, flush };
            }
        }
    }

    /// After a large write: makes the host start to write it out. Otherwise many writers that share a flush
    /// would leave the disk idle between flushes.
    fn hand_on(&self, zone: ZoneId, at: ByteOffset, data: &[u8]) {
        let at = self.data_offset + at.0;
        if data.len() >= LARGE_WRITE && self.direct_for(zone, data, at).is_none() {
            host::start_writing_out(&self.file, at, data.len() as u64);
        }
    }

    /// What writes `data` at byte `at` of the file past the page cache, if that is how it goes.
    ///
    /// Conventional zones have no lock, so other writes may be under way beside this one. One that fills a part of the
    /// page cache which the kernel keeps as one with ours would have the kernel fail the next flush.
    fn direct_for(&self, zone: ZoneId, data: &[u8], at: u64) -> Option<&DirectFile> {
        let is_alone = self.header.geometry.kind(zone) != ZoneKind::Conventional;
        let is_large = data.len() >= LARGE_WRITE && is_aligned(data, at);
        self.direct.as_ref().filter(|_| is_alone && is_large)
    }

    /// Writes `data` at byte `at` of the file. A large write that runs alone is sent to the disk in parts, so
    /// that the disk starts while the next part is copied. With other writes running the disk is busy, and
    /// parts cost more than they gain.
    fn put_bytes(&self, zone: ZoneId, data: &[u8], mut at: u64) -> io::Result<()> {
        let direct = self.direct_for(zone, data, at);
        if let Some(done) = direct.and_then(|direct| direct.write(data, at)) {
            return done;
        }
        let others = self.writing.fetch_add(1, Ordering::Relaxed);
        let most = if others == 0 { LARGE_WRITE } else { usize::MAX };
        let done = data.chunks(most).try_for_each(|part| {
            self.file.write_all_at(part, at)?;
            if part.len() == most {
                host::start_writing_out(&self.file, at, most as u64);
            }
            at += part.len() as u64;
            Ok(())
        });
        self.writing.fetch_sub(1, Ordering::Relaxed);
        done
    }

    fn put_data(
        &self,
        command: ZoneCommand,
        write: &PlannedWrite,
        data: &[u8],
        ahead: &mut Ahead,
    ) -> ZoneResult<()> {
        let ZoneAddress { zone, offset } = write.at();
        let geometry = &self.header.geometry;
        let failed = |source| io_failed(command, geometry.absolute(write.at()), source);
        if let Some(gap) = write.gap() {
            let at = self.in_file(zone, gap.start);
            host::zero(&self.file, at, gap.end - gap.start).map_err(failed)?;
        }
        self.put_bytes(zone, data, self.in_file(zone, offset))
            .map_err(failed)?;
        let Some(rested) = write.rested_after() else {
            return Ok(());
        };
        let end = rested.write_pointer;
        let finished = self.flushes.finished();
        if ahead.is_witnessed_by(data, end, geometry.block_size as usize, finished) {
            return Ok(());
        }
        let named = ahead
            .nameable(end, finished)
            .filter(|_| self.header.version > format::FIRST_VERSION);
        let prepared_end = named.unwrap_or(0);
        let entry = Entry {
            rested,
            prepared_end,
        };
        self.put_entry(command, zone, entry)?;
        if let (Some(end), Ahead::Prepared { .. }) = (named, *ahead) {
            let flush = self.flushes.next();
            *ahead = Ahead::Named { end, flush };
        }
        Ok(())
    }
}

impl ZonedDevice for FileDrive {
    /// [`Keeps::Writes`] if the file beside the drive showed, when it was opened, that since this drive was written
    /// the host has run and the file system been mounted; [`Keeps::Blocks`] otherwise, because a power loss keeps any
    /// blocks.
    fn keeps(&self) -> Keeps {
        self.keeps
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        Some(&self.beside)
    }
    fn geometry(&self) -> &Geometry {
        &self.header.geometry
    }

    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        Ok(self.table.lock().report(first, count))
    }

    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let span = self.table.lock().check_read(at, buffer.len() as u64)?;
        let (written, rest) = buffer.split_at_mut(span.written as usize);
        rest.fill(0);
        if written.is_empty() {
            return Ok(());
        }
        let in_file = self.data_offset + at.0;
        let large = self.direct.as_ref();
        let large = large.filter(|_| written.len() >= LARGE_READ);
        large
            .and_then(|direct| direct.read(written, in_file))
            .unwrap_or_else(|| self.file.read_exact_at(written, in_file))
            .map_err(|source| io_failed(ZoneCommand::Read, at, source))
    }

    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        let mut places = Vec::with_capacity(reads.len());
        {
            let table = self.table.lock();
            for (at, buffer) in reads.iter_mut() {
                let span = table.check_read(*at, buffer.len() as u64)?;
                let (written, rest) = buffer.split_at_mut(span.written as usize);
                rest.fill(0);
                if !written.is_empty() {
                    places.push((self.data_offset + at.0, written));
                }
            }
        }
        // A plain read of bytes in the page cache costs less than one by a ring.
        places.retain_mut(|(at, buffer)| {
            let got = host::read_at_hand(&self.file, *at, buffer);
            *at += got as u64;
            *buffer = &mut std::mem::take(buffer)[got..];
            !buffer.is_empty()
        });
        let failed = |ReadFailed { at, source, .. }| {
            let at = ByteOffset(at - self.data_offset);
            io_failed(ZoneCommand::Read, at, source)
        };
        self.rings.read(&self.file, &mut places).map_err(failed)
    }

    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let geometry = &self.header.geometry;
        let zone = geometry
            .address(at)
            .map_or(ZoneId(u32::MAX), |place| place.zone);
        self.check_writable(ZoneCommand::Write, zone)?;
        let mut still = match geometry.kind(zone) {
            ZoneKind::Conventional => None,
            _ => self.lock(zone),
        };
        let planned = self.table.lock().begin_write(at, data.len() as u64)?;
        self.put(ZoneCommand::Write, planned, data, still.as_deref_mut())?;
        drop(still);
        self.hand_on(zone, at, data);
        Ok(())
    }

    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.check_writable(ZoneCommand::Append, zone)?;
        let mut still = self.lock(zone);
        let planned = self.table.lock().begin_append(zone, data.len() as u64)?;
        let place = planned.at();
        self.put(ZoneCommand::Append, planned, data, still.as_deref_mut())?;
        drop(still);
        let at = self.header.geometry.absolute(place);
        self.hand_on(zone, at, data);
        Ok(at)
    }

    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.check_writable(ZoneCommand::Open, zone)?;
        let _still = self.lock(zone);
        self.table.lock().open(zone)
    }

    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.check_writable(ZoneCommand::Close, zone)?;
        let _still = self.lock(zone);
        self.table.lock().close(zone)
    }

    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.check_writable(ZoneCommand::Finish, zone)?;
        let _still = self.lock(zone);
        let (changes, before) = {
            let table = self.table.lock();
            (table.check_finish(zone)?, table.rested(zone).write_pointer)
        };
        if changes {
            let write_pointer = self.header.geometry.capacity(zone);
            // A write that failed may have left bytes above the old write pointer.
            host::zero(
                &self.file,
                self.in_file(zone, before),
                write_pointer - before,
            )
            .map_err(|source| {
                io_failed(
                    ZoneCommand::Finish,
                    self.header.geometry.start(zone),
                    source,
                )
            })?;
            let rested = RestedZone {
                condition: ZoneCondition::Full,
                write_pointer,
            };
            self.put_entry(ZoneCommand::Finish, zone, rested.into())?;
            self.table.lock().finish(zone);
        }
        Ok(())
    }

    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.check_writable(ZoneCommand::Reset, zone)?;
        let mut still = self.lock(zone);
        if self.table.lock().check_reset(zone)? {
            let rested = RestedZone {
                condition: ZoneCondition::Empty,
                write_pointer: 0,
            };
            self.put_entry(ZoneCommand::Reset, zone, rested.into())?;
            self.table.lock().reset(zone);
            if let Some(ahead) = still.as_deref_mut() {
                *ahead = Ahead::default();
            }
            let geometry = &self.header.geometry;
            let done = host::punch(&self.file, self.in_file(zone, 0), geometry.zone_size);
            match done {
                // On a full disk the zone is reset without: its space is freed when the file is next opened.
                Err(error) if zone::is_full(error.kind()) => {
                    if !self.kept_space.swap(true, Ordering::Relaxed) {
                        tracing::warn!(%error, "zones are reset, but their space on the host is only freed when the drive is next opened");
                    }
                }
                done => done.map_err(|source| {
                    io_failed(ZoneCommand::Reset, geometry.start(zone), source)
                })?,
            }
        }
        Ok(())
    }

    fn host_free_bytes(&self) -> Option<u64> {
        let host = rustix::fs::fstatvfs(&*self.file).ok()?;
        // Some file systems do not tell.
        (host.f_blocks > 0).then(|| host.f_bavail.saturating_mul(host.f_frsize))
    }

    fn flush(&self) -> ZoneResult<()> {
        if !self.writable {
            return Ok(());
        }
        self.flushes
            .run(|| self.file.sync_data())
            .map_err(|source| {
                // The host may have dropped any dirty blocks, and returns others once they have left its page
                // cache.
                if let Err(error) = self.beside.give_up() {
                    tracing::warn!(%error, "the file beside the drive cannot be removed after a flush that failed");
                }
                flush_failed_by(source)
            })?;
        // The file's name, and with it the file beside it, may belong to another drive by now.
        check_is_whole(&self.file.metadata().map_err(flush_failed)?, &self.header)
            .map_err(flush_failed)
    }
}

/// Fails if the file has no name left by which it can be opened again, or not the length that it should have: then
/// nothing in it is durable.
fn check_is_whole(file: &Metadata, header: &Header) -> io::Result<()> {
    let expected = format::file_bytes(&header.geometry).unwrap_or(u64::MAX);
    if file.nlink() == 0 {
        return Err(io::Error::other(
            "the drive's file has been removed or replaced: copy out what can be read, the rest of it ends with this program",
        ));
    }
    if file.len() < expected {
        return Err(io::Error::other(format!(
            "the drive's file has been cut to {} of {expected} bytes: copy out what can be read",
            file.len()
        )));
    }
    Ok(())
}

fn flush_failed(source: io::Error) -> ZoneError {
    flush_failed_by(Arc::new(source))
}

const fn flush_failed_by(source: Arc<io::Error>) -> ZoneError {
    ZoneError::Io {
        command: ZoneCommand::Flush,
        at: ByteOffset(0),
        source,
    }
}

fn io_failed(command: ZoneCommand, at: ByteOffset, source: io::Error) -> ZoneError {
    ZoneError::Io {
        command,
        at,
        source: Arc::new(source),
    }
}

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use rustix::io::Errno;
    use std::os::fd::OwnedFd;
    use zone::ZoneKind;

    const GEOMETRY: Geometry = Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 4,
        conventional_zones: 1,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    };

    #[test]
    fn nothing_is_flushed_to_a_file_that_is_gone_or_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned");
        let data = vec![1; 4096];
        for (damage, why) in [
            (1, "removed or replaced"),
            (2, "removed or replaced"),
            (3, "cut to"),
        ] {
            let drive = FileDrive::create(&path, &GEOMETRY, "test").unwrap();
            drive.write(ByteOffset(1 << 20), &data).unwrap();
            drive.flush().unwrap();
            // Under another name it is still there.
            std::fs::rename(&path, folder.path().join("e.zoned")).unwrap();
            drive.flush().unwrap();
            std::fs::rename(folder.path().join("e.zoned"), &path).unwrap();
            match damage {
                1 => std::fs::remove_file(&path).unwrap(),
                2 => {
                    let other = folder.path().join("o.zoned");
                    FileDrive::create(&other, &GEOMETRY, "test").unwrap();
                    std::fs::rename(other, &path).unwrap();
                }
                _ => OpenOptions::new()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_len(0)
                    .unwrap(),
            }
            drive.write(ByteOffset((1 << 20) + 4096), &data).unwrap();
            let error = drive.flush().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            drop(drive);
            let _ = std::fs::remove_file(&path);
        }
    }

    #[test]
    fn only_large_aligned_writes_to_zones_with_a_lock_are_direct() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned");
        let drive = FileDrive::create(&path, &GEOMETRY, "test").unwrap();
        let memory = vec![1; LARGE_WRITE + 8192];
        let from = memory.as_ptr().align_offset(4096);
        let large = &memory[from..][..LARGE_WRITE];
        let direct = |drive: &FileDrive, zone, data| {
            let at = drive.in_file(ZoneId(zone), 0);
            drive.direct_for(ZoneId(zone), data, at).is_some()
        };
        assert!(!direct(&drive, 1, large));
        let drive = drive.with_direct_io();
        // Not every file system has direct I/O.
        assert_eq!(direct(&drive, 1, large), drive.direct.is_some());
        assert!(!direct(&drive, 0, large), "conventional");
        assert!(!direct(&drive, 1, &large[4096..]));
        assert!(!direct(&drive, 1, &memory[from + 8..][..LARGE_WRITE]));
    }

    /// A killed process would leave a part of one.
    #[test]
    fn zones_of_blocks_above_a_page_are_not_prepared() {
        let folder = tempfile::tempdir().unwrap();
        for block_size in [4096, 8192] {
            let geometry = Geometry {
                block_size,
                ..GEOMETRY
            };
            let path = folder.path().join(format!("{block_size}.zoned"));
            let drive = FileDrive::create(path, &geometry, "test").unwrap();
            let has_plenty = drive.host_free_bytes() >= Some(PLENTY);
            drive
                .write(ByteOffset(1 << 20), &vec![1; block_size as usize])
                .unwrap();
            let is_prepared = *drive.zone_locks[1].lock() != Ahead::Nothing;
            assert_eq!(is_prepared, has_plenty && block_size == 4096);
        }
    }

    #[test]
    fn behind_a_failed_flush_no_writes_are_recorded_as_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut drive =
            FileDrive::create(folder.path().join("d.zoned"), &GEOMETRY, "test").unwrap();
        let beside = folder.path().join("d.zoned.unsynced");
        drive.beside.record_writes_kept().unwrap();
        drive.flush().unwrap();
        assert!(beside.exists());
        // A pipe cannot be flushed.
        let (_, pipe) = io::pipe().unwrap();
        let pipe = LockedFile::without_lock(OwnedFd::from(pipe).into());
        let file = std::mem::replace(&mut drive.file, pipe);
        drive.flush().unwrap_err();
        assert!(!beside.exists());
        // The next one would succeed, without what the host has dropped.
        drive.file = file;
        drive.flush().unwrap_err();
    }

    /// The host lost its power when `b` was open, and runs again when a program on `a` is killed.
    #[test]
    fn a_drive_that_takes_the_name_of_another_one_has_no_kept_writes() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(name));
        FileDrive::create(&b, &GEOMETRY, "test").unwrap();
        let killed = FileDrive::create(&a, &GEOMETRY, "test").unwrap();
        killed.beside.record_writes_kept().unwrap();
        drop(killed);
        let keeps = |path: &Path| FileDrive::observe(path).unwrap().keeps();
        assert_eq!(keeps(&a), Keeps::Writes);
        std::fs::rename(&a, &c).unwrap();
        std::fs::rename(&b, &a).unwrap();
        assert_eq!(keeps(&a), Keeps::Blocks);
        std::fs::rename(
            super::super::beside::name(&a),
            super::super::beside::name(&c),
        )
        .unwrap();
        assert_eq!(keeps(&c), Keeps::Writes);
    }

    #[test]
    fn a_hole_that_the_host_has_no_room_for_keeps_nobody_from_the_drive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned");
        let drive = FileDrive::create(&path, &GEOMETRY, "test").unwrap();
        let start = GEOMETRY.start(ZoneId(1));
        let (mut block, zeros) = (vec![1; 4096], vec![0; 4096]);
        for (why, is_reset) in [
            (Errno::IO, false),
            (Errno::NOSPC, true),
            (Errno::DQUOT, true),
        ] {
            drive.reset(ZoneId(1)).unwrap();
            drive.write(start, &[1; 4096]).unwrap();
            host::NO_HOLES.set(Some(why));
            assert_eq!(drive.reset(ZoneId(1)).is_ok(), is_reset, "{why:?}");
            assert_eq!(drive.kept_space.load(Ordering::Relaxed), is_reset);
            // What stays in the file does not show, also above what is written next.
            drive.read(start, &mut block).unwrap();
            assert_eq!(block, zeros);
            host::NO_HOLES.set(None);
        }
        drop(drive);
        host::NO_HOLES.set(Some(Errno::NOSPC));
        let drive = FileDrive::open(&path).unwrap();
        drive.read(start, &mut block).unwrap();
        assert_eq!(block, zeros);
        // A finish makes the old bytes readable, so it needs the zeros.
        drive.finish(ZoneId(1)).unwrap_err();
        host::NO_HOLES.set(None);
        drive.finish(ZoneId(1)).unwrap();
        drive.read(start, &mut block).unwrap();
        assert_eq!(block, zeros);
    }

    #[test]
    fn a_drive_is_not_opened_without_what_is_kept_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.zoned");
        FileDrive::create(&path, &GEOMETRY, "test").unwrap();
        let beside = super::super::beside::name(&path);
        std::os::unix::fs::symlink(&beside, &beside).unwrap();
        for opened in [FileDrive::open(&path), FileDrive::open_read_only(&path)] {
            let error = opened.unwrap_err();
            assert!(matches!(error, FileDriveError::Unsynced { path, .. } if path == beside));
        }
        FileDrive::observe(&path).unwrap();
    }
}
