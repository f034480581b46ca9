//! The drive in a file: every command is one or two calls to the host's file system.
//!
//! Order of a write: data, then the zone's entry with the new write pointer, then the table in
//! memory; so no kill of the process shows a write pointer above data that is not there. Order of
//! a reset: entry, then the hole. The reasons are in `docs/format/file-drive.md`.
//! Lock order: one zone's lock, then the table. The zone's lock is held over the I/O, the table
//! only for a decision; commands in different zones run in parallel, reads wait for nothing.

use super::FileDriveError;
use super::create::{self, CreateOptions};
use super::format::{self, DriveUuid, FormatError, Header};
use super::host::{self, LockedFile};
use crate::ZonedDevice;
use crate::drive::Access;
use crate::rings::{ReadFailed, Rings};
use crate::rules::{PlannedWrite, RestedZone, ZoneTable};
use parking_lot::{Mutex, MutexGuard};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError,
    ZoneId, ZoneKind, ZoneResult,
};

/// How much of the zone table is read at once when a file is opened.
const TABLE_CHUNK_ENTRIES: usize = 1024;

/// How often an observer looks at a zone table that seems damaged, and how long it waits in between.
const OBSERVER_LOOKS: u32 = 5;
const OBSERVER_PAUSE: Duration = Duration::from_millis(2);

/// A write of fewer bytes is taken for one of many, each followed by a flush.
const SMALL_WRITE: usize = 64 << 10;
/// A write of as many bytes is handed on to the disk at once.
const LARGE_WRITE: usize = 256 << 10;
/// How much is prepared for them at once.
const PREPARED_BYTES: u64 = 1 << 20;

/// A drive in a file of the host, locked against every other opener while it lives.
#[derive(Debug)]
pub struct FileDrive {
    path: PathBuf,
    file: LockedFile,
    header: Header,
    data_offset: u64,
    writable: bool,
    table: Mutex<ZoneTable>,
    /// Held over a write to a sequential zone; the number is how much of the zone's start has
    /// blocks on the host that were written before.
    zone_locks: Vec<Mutex<u64>>,
    rings: Rings,
}

impl FileDrive {
    /// Makes a drive in a new file at `path` and opens it. An existing file is refused.
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

    /// Makes a drive as [`Self::create`] does, with all that can be chosen.
    pub fn create_with(
        path: impl AsRef<Path>,
        geometry: &Geometry,
        options: CreateOptions,
    ) -> Result<Self, FileDriveError> {
        let path = path.as_ref();
        let (file, header) = create::create(path, geometry, options)?;
        let table = ZoneTable::new(header.geometry.clone())?;
        Ok(Self::new(path, file, header, table, true))
    }

    /// Opens the drive at `path`, which nobody else may have open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileDriveError> {
        Self::open_as(path.as_ref(), Access::Write)
    }

    /// Opens the drive at `path` for reading, also where others read it. Commands that would
    /// change it fail with an I/O error of kind `ReadOnlyFilesystem`; the file is not written to.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, FileDriveError> {
        Self::open_as(path.as_ref(), Access::Read)
    }

    /// Opens the drive at `path` to look at it, whoever else has it open: takes no lock and changes
    /// nothing. The zones are as they were at this moment.
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
        let table = read_table(path, &file, &header)?;
        let drive = Self::new(path, file, header, table, writable);
        if writable {
            drive.punch_empty_zones().map_err(io_error)?;
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
        Self {
            path: path.into(),
            file,
            data_offset: format::data_offset(zone_count),
            header,
            writable,
            table: Mutex::new(table),
            zone_locks: (0..zone_count).map(|_| Mutex::new(0)).collect(),
            rings: Rings::default(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What distinguishes this drive from all others.
    pub const fn uuid(&self) -> DriveUuid {
        self.header.uuid
    }

    /// The profile that the drive was made from.
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
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// Breaks `zone`: [`ZoneCondition::ReadOnly`] or, for good, [`ZoneCondition::Offline`].
    pub fn set_condition(&self, zone: ZoneId, condition: ZoneCondition) -> ZoneResult<()> {
        let command = ZoneCommand::Report;
        self.check_writable(command, zone)?;
        let _still = self.lock(zone);
        if self.table.lock().check_failure(zone, condition)? {
            let rested = RestedZone {
                condition,
                ..self.table.lock().rested(zone)
            };
            self.put_entry(command, zone, rested)?;
            self.table.lock().fail(zone, condition);
        }
        Ok(())
    }

    /// Gives back what a kill between a reset and its hole left in empty zones.
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

    fn lock(&self, zone: ZoneId) -> Option<MutexGuard<'_, u64>> {
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

    fn put_entry(&self, command: ZoneCommand, zone: ZoneId, rested: RestedZone) -> ZoneResult<()> {
        let geometry = &self.header.geometry;
        let entry = format::encode_entry(zone, geometry.kind(zone), rested);
        self.file
            .write_all_at(&entry, format::entry_offset(zone))
            .map_err(|source| io_failed(command, geometry.start(zone), source))
    }

    /// Does what was planned. The caller holds the zone's lock, if the zone has a write pointer.
    fn put(&self, command: ZoneCommand, planned: PlannedWrite, data: &[u8]) -> ZoneResult<()> {
        let done = self.put_data(command, &planned, data);
        let mut table = self.table.lock();
        match done {
            Ok(()) => table.commit_write(planned),
            Err(_) => table.abort_write(planned),
        }
        done
    }

    /// After a small write that ended at `end`: writes zeros for the next ones to come, once in a
    /// while. A flush after an overwrite of blocks that are there costs the host's file system no
    /// transaction of its journal, one after a write into a hole does; logs are written a block
    /// and a flush at a time. Above the write pointer zeros are what a read gives anyway. If it
    /// fails, nothing is lost but time.
    fn prepare(&self, zone: ZoneId, end: u64, length: usize, ready: Option<&mut u64>) {
        let Some(ready) = ready else { return };
        // In a zone that may be written anywhere, data may lie behind the end.
        let only_at_pointer = self.header.geometry.kind(zone) == ZoneKind::SequentialWriteRequired;
        if end <= *ready || !only_at_pointer {
            return;
        }
        *ready = end;
        if length < SMALL_WRITE {
            let ahead = PREPARED_BYTES.min(self.header.geometry.capacity(zone).saturating_sub(end));
            let zeros = vec![0; ahead as usize];
            if self
                .file
                .write_all_at(&zeros, self.in_file(zone, end))
                .is_ok()
            {
                *ready = end + ahead;
            }
        }
    }

    /// After a large write: has the host begin to write it out. Many writers that share a flush
    /// would otherwise leave the disk idle between flushes.
    fn hand_on(&self, at: ByteOffset, length: usize) {
        if length >= LARGE_WRITE {
            host::start_writing_out(&self.file, self.data_offset + at.0, length as u64);
        }
    }

    fn put_data(&self, command: ZoneCommand, write: &PlannedWrite, data: &[u8]) -> ZoneResult<()> {
        let ZoneAddress { zone, offset } = write.at();
        let failed = |source| {
            let at = self.header.geometry.absolute(write.at());
            io_failed(command, at, source)
        };
        if let Some(gap) = write.gap() {
            let at = self.in_file(zone, gap.start);
            host::zero(&self.file, at, gap.end - gap.start).map_err(failed)?;
        }
        self.file
            .write_all_at(data, self.in_file(zone, offset))
            .map_err(failed)?;
        match write.rested_after() {
            Some(rested) => self.put_entry(command, zone, rested),
            None => Ok(()),
        }
    }
}

impl ZonedDevice for FileDrive {
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
        self.file
            .read_exact_at(written, self.data_offset + at.0)
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
        // What the host has in memory costs less without a ring.
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
        let end = geometry.address(at).map_or(0, |place| place.offset) + data.len() as u64;
        self.put(ZoneCommand::Write, planned, data)?;
        self.prepare(zone, end, data.len(), still.as_deref_mut());
        drop(still);
        self.hand_on(at, data.len());
        Ok(())
    }

    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.check_writable(ZoneCommand::Append, zone)?;
        let mut still = self.lock(zone);
        let planned = self.table.lock().begin_append(zone, data.len() as u64)?;
        let place = planned.at();
        self.put(ZoneCommand::Append, planned, data)?;
        let end = place.offset + data.len() as u64;
        self.prepare(zone, end, data.len(), still.as_deref_mut());
        drop(still);
        let at = self.header.geometry.absolute(place);
        self.hand_on(at, data.len());
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
            // A write that did not end may have left bytes above the old write pointer.
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
            self.put_entry(ZoneCommand::Finish, zone, rested)?;
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
            self.put_entry(ZoneCommand::Reset, zone, rested)?;
            self.table.lock().reset(zone);
            if let Some(ready) = still.as_deref_mut() {
                *ready = 0;
            }
            let geometry = &self.header.geometry;
            host::punch(&self.file, self.in_file(zone, 0), geometry.zone_size)
                .map_err(|source| io_failed(ZoneCommand::Reset, geometry.start(zone), source))?;
        }
        Ok(())
    }

    fn flush(&self) -> ZoneResult<()> {
        if !self.writable {
            return Ok(());
        }
        self.file
            .sync_data()
            .map_err(|source| io_failed(ZoneCommand::Flush, ByteOffset(0), source))
    }
}

fn io_failed(command: ZoneCommand, at: ByteOffset, source: io::Error) -> ZoneError {
    ZoneError::Io {
        command,
        at,
        source: Arc::new(source),
    }
}

/// What is read while it is written may be torn; the next look finds it whole. What stays damaged is.
fn look_again<T>(look: &mut dyn FnMut() -> Result<T, FileDriveError>) -> Result<T, FileDriveError> {
    for _ in 1..OBSERVER_LOOKS {
        match look() {
            Err(FileDriveError::Damaged { .. }) => std::thread::sleep(OBSERVER_PAUSE),
            seen => return seen,
        }
    }
    look()
}

fn read_header(path: &Path, file: &File) -> Result<Header, FileDriveError> {
    let io_error = |source| FileDriveError::Io {
        path: path.into(),
        source,
    };
    let length = file.metadata().map_err(io_error)?.len();
    let mut block = [0; format::HEADER_BYTES];
    let there = length.min(block.len() as u64) as usize;
    file.read_exact_at(&mut block[..there], 0)
        .map_err(io_error)?;
    if there < block.len() {
        // A file that ends in its header is short, and not foreign if at least the magic is there.
        return Err(if block[..there].starts_with(&format::MAGIC) {
            wrong_length(path, block.len() as u64, length)
        } else {
            FileDriveError::NotADrive { path: path.into() }
        });
    }
    let header = format::decode_header(&block).map_err(|error| in_file(path, 0, error))?;
    let expected = format::file_bytes(&header.geometry).unwrap_or(u64::MAX);
    if length != expected {
        return Err(wrong_length(path, expected, length));
    }
    Ok(header)
}

fn wrong_length(path: &Path, expected: u64, found: u64) -> FileDriveError {
    FileDriveError::Length {
        path: path.into(),
        expected,
        found,
    }
}

fn read_table(path: &Path, file: &File, header: &Header) -> Result<ZoneTable, FileDriveError> {
    let geometry = &header.geometry;
    let mut table = ZoneTable::new(geometry.clone())?;
    let mut chunk = vec![0; TABLE_CHUNK_ENTRIES * format::ENTRY_BYTES];
    for first in (0..geometry.zone_count).step_by(TABLE_CHUNK_ENTRIES) {
        let count = (geometry.zone_count - first).min(TABLE_CHUNK_ENTRIES as u32);
        let bytes = &mut chunk[..count as usize * format::ENTRY_BYTES];
        file.read_exact_at(bytes, format::entry_offset(ZoneId(first)))
            .map_err(|source| FileDriveError::Io {
                path: path.into(),
                source,
            })?;
        let (entries, _) = bytes.as_chunks::<{ format::ENTRY_BYTES }>();
        for (zone, entry) in (first..).map(ZoneId).zip(entries) {
            let at = format::entry_offset(zone);
            let rested = format::decode_entry(zone, geometry.kind(zone), entry)
                .map_err(|error| in_file(path, at, error))?;
            if !table.restore(zone, rested) {
                let at = at + format::entry_at::WRITE_POINTER as u64;
                let what = "write pointer that does not fit the zone's condition";
                return Err(FileDriveError::Damaged {
                    path: path.into(),
                    what,
                    at,
                    expected: geometry.capacity(zone),
                    found: rested.write_pointer,
                });
            }
        }
    }
    Ok(table)
}

fn in_file(path: &Path, base: u64, error: FormatError) -> FileDriveError {
    let path = path.into();
    match error {
        FormatError::Magic => FileDriveError::NotADrive { path },
        FormatError::Version(found) => FileDriveError::UnsupportedVersion {
            path,
            found,
            supported: format::VERSION,
        },
        FormatError::Field {
            what,
            at,
            expected,
            found,
        } => FileDriveError::Damaged {
            path,
            what,
            at: base + at as u64,
            expected,
            found,
        },
        FormatError::Geometry(error) => FileDriveError::Geometry(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observer_looks_again_at_what_is_not_whole() {
        let torn = || FileDriveError::Damaged {
            path: PathBuf::new(),
            what: "zone entry checksum",
            at: 0,
            expected: 1,
            found: 2,
        };
        let mut looks = 0;
        let seen = look_again(&mut || {
            looks += 1;
            if looks < 3 { Err(torn()) } else { Ok(looks) }
        });
        assert!(matches!(seen, Ok(3)));
        let mut looks = 0;
        let seen = look_again::<()>(&mut || {
            looks += 1;
            Err(torn())
        });
        assert!(matches!(seen, Err(FileDriveError::Damaged { .. })));
        assert_eq!(looks, OBSERVER_LOOKS);
    }
}
