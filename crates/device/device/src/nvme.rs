//! A ZNS namespace by its character device (`/dev/ng0n1`): NVMe commands by passthrough.
//!
//! In contrast to the block device, it offers zone append and the drive's own status codes. Writes into a zone
//! are sent one after the other, appends in parallel; the only state cached for a zone is its write pointer,
//! which is reported again by the drive after an error.

mod identify;
mod passthrough;
mod status;

use crate::access::Access;
use crate::file::HostMemory;
use crate::file::flushes::Flushes;
use crate::linux::aligned::{Buffers, is_aligned};
use crate::linux::{HostDriveError, KernelZone, ZoneMemory, io_failed, lock, open_failed};
use crate::linux::{parts, ranges, shape};
use crate::rings::Place;
use crate::{Keeps, ZonedDevice};
use passthrough::{CommandRings, Data, Failure, Queue, Words, submit, submit_many};
use runtime::LockedFile;
use rustix::fs::OFlags;
use status::{Refusal, explain};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCommand, ZoneDescriptor, ZoneError, ZoneId, ZoneResult,
};

const FLUSH: u8 = 0x00;
const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const MANAGEMENT_SEND: u8 = 0x79;
const MANAGEMENT_RECEIVE: u8 = 0x7a;
const APPEND: u8 = 0x7d;

/// Zone send actions.
const CLOSE: u32 = 1;
const FINISH: u32 = 2;
const OPEN: u32 = 3;
const RESET: u32 = 4;

/// Flag of a report: its zone count includes only the zones that fit.
const PARTIAL_REPORT: u32 = 1 << 16;
const REPORT_HEADER: usize = 64;
const REPORT_ZONE: usize = 64;
/// Most zones in one report: 32 KiB.
const ZONES_AT_ONCE: usize = 511;

/// A ZNS namespace, locked exclusively while it is open for writing.
#[derive(Debug)]
pub struct NvmeDrive {
    path: PathBuf,
    file: LockedFile,
    /// The block device of the same namespace, locked as this one. A writer has it open so that no file system can use it.
    _claimed: Option<LockedFile>,
    nsid: u32,
    geometry: Geometry,
    writable: bool,
    /// Most bytes of one command.
    transfer_bytes: usize,
    buffers: Buffers,
    rings: CommandRings,
    flushes: Flushes,
    zones: Vec<ZoneMemory>,
}

impl NvmeDrive {
    /// Opens the namespace at `path` with an exclusive lock.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, HostDriveError> {
        Self::open_as(path.as_ref(), Access::Write)
    }

    /// Opens the namespace at `path` for reading; other readers may have it open too. Commands that would
    /// change it fail with an I/O error of kind `ReadOnlyFilesystem`.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, HostDriveError> {
        Self::open_as(path.as_ref(), Access::Read)
    }

    /// Opens the namespace at `path` for observation, whoever else has it open.
    pub fn observe(path: impl AsRef<Path>) -> Result<Self, HostDriveError> {
        Self::open_as(path.as_ref(), Access::Observe)
    }

    fn open_as(path: &Path, access: Access) -> Result<Self, HostDriveError> {
        let writable = access == Access::Write;
        let failed = |source| open_failed(path, source);
        let not_zoned = |what| HostDriveError::NotZoned {
            path: path.into(),
            what,
        };
        let kind = std::fs::metadata(path).map_err(failed)?.file_type();
        if !kind.is_char_device() || !is_namespace(path) {
            return Err(not_zoned("not an NVMe namespace"));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .open(path)
            .map_err(failed)?;
        let (file, claimed) = match access {
            Access::Observe => (LockedFile::without_lock(file), None),
            Access::Read | Access::Write => {
                let file = lock(path, file, writable)?;
                (file, claim(path, writable)?)
            }
        };
        let nsid =
            passthrough::namespace_id(&file).map_err(|_| not_zoned("not an NVMe namespace"))?;
        let identity = identify::ask(&file, nsid).map_err(|failure| match failure {
            Failure::Status(_) => not_zoned("an ordinary NVMe namespace"),
            Failure::System(errno) => failed(errno.into()),
        })?;
        let told = identify::decode(&identity)
            .ok_or_else(|| not_zoned("a namespace of a format that is not supported"))?;
        let block = u64::from(told.block_size);
        let all = report_all(told.zone_size, told.bytes, |at| {
            report(&file, nsid, block, told.zone_size, at, ZONES_AT_ONCE)
        });
        let all = all.map_err(|failure| failed(system(failure)))?;
        let geometry = shape::geometry(path, told.limits(), &all)?;
        let zones = geometry
            .zones()
            .zip(&all)
            .map(|(id, zone)| ZoneMemory::new(&shape::descriptor(&geometry, id, zone)))
            .collect();
        let transfer_bytes = told.transfer_bytes as usize;
        Ok(Self {
            path: path.into(),
            file,
            _claimed: claimed,
            nsid,
            geometry,
            writable,
            transfer_bytes,
            buffers: Buffers::new(transfer_bytes.max(parts::BATCH_BYTES)),
            rings: CommandRings::default(),
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
        let error = io::ErrorKind::ReadOnlyFilesystem.into();
        Err(io_failed(command, at, error))
    }

    /// The fields of a command on blocks.
    fn words(&self, opcode: u8, at: ByteOffset, length: usize) -> Words {
        let block = u64::from(self.geometry.block_size);
        Words {
            opcode,
            nsid: self.nsid,
            cdw10: at.0 / block,
            // Counted from 0.
            cdw12: (length as u64 / block).saturating_sub(1) as u32,
            cdw13: 0,
        }
    }

    /// Sends bytes to the drive; unaligned ones are copied to a buffer first.
    fn send(&self, opcode: u8, at: ByteOffset, data: &[u8]) -> Result<u64, Failure> {
        let words = self.words(opcode, at, data.len());
        if is_aligned(data) {
            return submit(&self.file, Queue::Io, words, Data::ToDrive(data));
        }
        self.buffers.with(|buffer| {
            let buffer = &mut buffer[..data.len()];
            buffer.copy_from_slice(data);
            submit(&self.file, Queue::Io, words, Data::ToDrive(buffer))
        })
    }

    /// Fills aligned buffers, each by one command.
    fn receive(&self, batch: &mut [Place<'_>]) -> ZoneResult<()> {
        let mut commands = Vec::with_capacity(batch.len());
        for (at, into) in batch.iter_mut() {
            let words = self.words(READ, ByteOffset(*at), into.len());
            commands.push((words, &mut **into));
        }
        let done = submit_many(&self.file, &self.rings, &mut commands);
        let all = commands.into_iter().zip(done);
        for ((words, into), _) in all.filter(|(_, done)| !done) {
            let length = into.len() as u64;
            submit(&self.file, Queue::Io, words, Data::FromDrive(into)).map_err(|failure| {
                let at = words.cdw10 * u64::from(self.geometry.block_size);
                let zone = ZoneId((at / self.geometry.zone_size) as u32);
                let refusal = Refusal {
                    command: ZoneCommand::Read,
                    at: ZoneAddress::new(zone, at % self.geometry.zone_size),
                    length,
                };
                self.failed(refusal, failure, false)
            })?;
        }
        Ok(())
    }

    /// Determines the error of a failed command from a new report of the zone, and caches that. Only the holder of the
    /// zone's exclusive lock may take the write pointer back: since the report, an append may have advanced it.
    fn failed(&self, refusal: Refusal, failure: Failure, is_alone: bool) -> ZoneError {
        let zone = refusal.at.zone;
        let told = self.report_zone(zone).ok();
        let memory = &self.zones[zone.index()];
        match &told {
            Some(told) if is_alone => memory.correct(told),
            Some(told) if told.write_pointer_valid() => memory.reach(told.write_pointer),
            _ => {}
        }
        explain(refusal, &self.geometry, failure, told)
    }

    fn manage(&self, command: ZoneCommand, zone: ZoneId, action: u32) -> ZoneResult<()> {
        ranges::check_sequential(&self.geometry, command, zone)?;
        let start = self.geometry.start(zone);
        self.check_writable(command, start)?;
        let memory = &self.zones[zone.index()];
        let _alone = memory.order.write();
        let words = Words {
            cdw12: 0,
            cdw13: action,
            ..self.words(MANAGEMENT_SEND, start, 0)
        };
        submit(&self.file, Queue::Io, words, Data::None).map_err(|failure| {
            let refusal = Refusal {
                command,
                at: ZoneAddress::new(zone, 0),
                length: 0,
            };
            self.failed(refusal, failure, true)
        })?;
        match action {
            RESET => memory.set(0),
            FINISH => memory.set(self.geometry.capacity(zone)),
            _ => {}
        }
        Ok(())
    }
}

impl ZonedDevice for NvmeDrive {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        let end = first.0.saturating_add(count).min(self.geometry.zone_count);
        let mut told = Vec::new();
        let mut next = first.0;
        while next < end {
            let at = self.geometry.start(ZoneId(next));
            let most = (end - next) as usize;
            let block = u64::from(self.geometry.block_size);
            let zones = report(
                &self.file,
                self.nsid,
                block,
                self.geometry.zone_size,
                at,
                most,
            )
            .map_err(|failure| io_failed(ZoneCommand::Report, at, system(failure)))?;
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
            let memory = &self.zones[start.zone.index()];
            Ok((at.0, memory.written_part(start.offset, buffer)))
        });
        let places: Vec<_> = places.collect::<ZoneResult<_>>()?;
        let receive = |batch: &mut [Place<'_>]| self.receive(batch);
        parts::read(&self.buffers, self.transfer_bytes, places, receive)
    }

    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let command = ZoneCommand::Write;
        let length = data.len() as u64;
        let start = ranges::locate(&self.geometry, command, at, length)?;
        self.check_writable(command, at)?;
        let zone = start.zone;
        let memory = &self.zones[zone.index()];
        let _alone = memory.order.write();
        let end = start.offset + length;
        if (memory.get() != start.offset || end > self.geometry.capacity(zone))
            && let told = self.report_zone(zone)?
            && let Some(error) = ranges::before_write(&self.geometry, &told, start, length)
        {
            memory.correct(&told);
            return Err(error);
        }
        let mut offset = start.offset;
        for part in data.chunks(self.transfer_bytes) {
            let place = ZoneAddress::new(zone, offset);
            let sent = self.send(WRITE, self.geometry.absolute(place), part);
            sent.map_err(|failure| {
                let refusal = Refusal {
                    command,
                    at: place,
                    length: end - offset,
                };
                self.failed(refusal, failure, true)
            })?;
            offset += part.len() as u64;
            memory.set(offset);
        }
        Ok(())
    }

    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let command = ZoneCommand::Append;
        ranges::check_zone(&self.geometry, command, zone)?;
        let (start, length) = (self.geometry.start(zone), data.len() as u64);
        ranges::check_blocks(&self.geometry, command, start, length)?;
        if length > u64::from(self.geometry.max_append_bytes) {
            return Err(ZoneError::Unsupported { command, length });
        }
        ranges::check_sequential(&self.geometry, command, zone)?;
        self.check_writable(command, start)?;
        let memory = &self.zones[zone.index()];
        let _shared = memory.order.read();
        let block = self.send(APPEND, start, data).map_err(|failure| {
            let refusal = Refusal {
                command,
                at: ZoneAddress::new(zone, memory.get()),
                length,
            };
            self.failed(refusal, failure, false)
        })?;
        let place = ByteOffset(block.saturating_mul(self.geometry.block_size.into()));
        match end_in_zone(start, place, length, self.geometry.capacity(zone)) {
            Some(end) => {
                memory.reach(end);
                Ok(place)
            }
            // The drive returned an address outside the zone, so its answer cannot be used.
            None => Err(io_failed(command, place, io::ErrorKind::InvalidData.into())),
        }
    }

    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.manage(ZoneCommand::Open, zone, OPEN)
    }

    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.manage(ZoneCommand::Close, zone, CLOSE)
    }

    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.manage(ZoneCommand::Finish, zone, FINISH)
    }

    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.manage(ZoneCommand::Reset, zone, RESET)
    }

    fn host_free_bytes(&self) -> Option<u64> {
        None
    }
    fn keeps(&self) -> Keeps {
        Keeps::Prefixes
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        None
    }
    fn flush(&self) -> ZoneResult<()> {
        let words = self.words(FLUSH, ByteOffset(0), 0);
        flush_by(&self.flushes, || {
            submit(&self.file, Queue::Io, words, Data::None).map(drop)
        })
    }
}

/// The end of `length` bytes at `place`, in bytes from `start`, where their zone begins; `None` if they are not in its first
/// `capacity` bytes.
fn end_in_zone(start: ByteOffset, place: ByteOffset, length: u64, capacity: u64) -> Option<u64> {
    let end = place.0.checked_sub(start.0)?.checked_add(length)?;
    (end <= capacity).then_some(end)
}

/// Whether `path` has the name of a namespace's character device.
pub(crate) fn is_namespace(path: &Path) -> bool {
    std::fs::canonicalize(path)
        .ok()
        .and_then(|path| block_sibling(&path))
        .is_some()
}

/// The path of a namespace's block device: `/dev/nvme0n1` for `/dev/ng0n1`.
pub(crate) fn block_sibling(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_prefix("ng")?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (controller, namespace) = name.split_once('n')?;
    (digits(controller) && digits(namespace)).then(|| path.with_file_name(format!("nvme{name}")))
}

/// Opens the namespace's block device and locks it, if it exists: a writer exclusively.
fn claim(path: &Path, writable: bool) -> Result<Option<LockedFile>, HostDriveError> {
    let canonical = std::fs::canonicalize(path).map_err(|error| open_failed(path, error))?;
    let Some(sibling) = block_sibling(&canonical) else {
        return Ok(None);
    };
    let exclusive = if writable {
        OFlags::EXCL
    } else {
        OFlags::empty()
    };
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(exclusive.bits() as i32)
        .open(&sibling);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Only the rights to this one may be missing.
        Err(error) => return Err(open_failed(&sibling, error)),
    };
    lock(path, file, writable).map(Some)
}

/// Reports at most `most` zones, from the one that begins at `at`.
fn report(
    file: &File,
    nsid: u32,
    block: u64,
    zone_size: u64,
    at: ByteOffset,
    most: usize,
) -> Result<Vec<KernelZone>, Failure> {
    let most = most.min(ZONES_AT_ONCE);
    let mut bytes = vec![0; REPORT_HEADER + most * REPORT_ZONE];
    let words = Words {
        opcode: MANAGEMENT_RECEIVE,
        nsid,
        cdw10: at.0 / block,
        // Number of double words, counted from 0.
        cdw12: (bytes.len() / 4 - 1) as u32,
        cdw13: PARTIAL_REPORT,
    };
    submit(file, Queue::Io, words, Data::FromDrive(&mut bytes))?;
    let number = |bytes: &[u8]| {
        let (chunks, _) = bytes.as_chunks::<8>();
        chunks.first().map_or(0, |chunk| u64::from_le_bytes(*chunk))
    };
    let bytes_of = |blocks: u64| blocks.saturating_mul(block);
    let told = (number(&bytes) as usize).min(most);
    let zones = bytes[REPORT_HEADER..].chunks_exact(REPORT_ZONE).take(told);
    Ok(zones
        .map(|zone| KernelZone {
            kind: zone[0] & 0xf,
            condition: zone[1] >> 4,
            capacity: bytes_of(number(&zone[8..])),
            start: bytes_of(number(&zone[16..])),
            write_pointer: bytes_of(number(&zone[24..])),
            length: zone_size,
        })
        .collect())
}

/// All zones of a namespace of `bytes` bytes, by calls of `report` with the address of the next one. A drive that
/// answers with others, or with more than the namespace can have, is not asked for ever.
fn report_all(
    zone_size: u64,
    bytes: u64,
    mut report: impl FnMut(ByteOffset) -> Result<Vec<KernelZone>, Failure>,
) -> Result<Vec<KernelZone>, Failure> {
    let mut all: Vec<KernelZone> = Vec::new();
    loop {
        let at = (all.len() as u64).checked_mul(zone_size);
        let Some(at) = at.filter(|at| *at < bytes).map(ByteOffset) else {
            return Ok(all);
        };
        match report(at) {
            Ok(zones) if zones.first().is_none_or(|zone| zone.start != at.0) => return Ok(all),
            Ok(zones) => all.extend(zones),
            // A namespace that ends within a zone.
            Err(Failure::Status(_)) if !all.is_empty() => return Ok(all),
            Err(failure) => return Err(failure),
        }
    }
}

/// Flushes by `send`. Once a flush has failed, all do: what the drive has dropped is not in the next one.
fn flush_by(flushes: &Flushes, send: impl FnOnce() -> Result<(), Failure>) -> ZoneResult<()> {
    let flushed = flushes.run(|| send().map_err(system));
    flushed.map_err(|source| ZoneError::Io {
        command: ZoneCommand::Flush,
        at: ByteOffset(0),
        source,
    })
}

fn system(failure: Failure) -> io::Error {
    match failure {
        Failure::Status(status) => io::Error::other(status),
        Failure::System(errno) => errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_known_by_their_names() {
        let sibling = |path| block_sibling(Path::new(path)).map(|path| path.display().to_string());
        assert_eq!(sibling("/dev/ng0n1").unwrap(), "/dev/nvme0n1");
        assert_eq!(sibling("/dev/ng12n3").unwrap(), "/dev/nvme12n3");
        for other in [
            "/dev/null",
            "/dev/ng0",
            "/dev/ngn1",
            "/dev/nvme0n1",
            "/dev/ng0nx",
        ] {
            assert_eq!(sibling(other), None, "{other}");
        }
    }

    #[test]
    fn a_drive_that_reports_zones_without_end_is_not_believed() {
        let zone = |number: u64| KernelZone {
            start: number << 20,
            length: 1 << 20,
            capacity: 1 << 20,
            write_pointer: number << 20,
            kind: 2,
            condition: 1,
        };
        let told = |bytes: u64, from: fn(u64) -> u64| {
            let mut calls = 0;
            let all = report_all(1 << 20, bytes, |at| {
                calls += 1;
                assert!(calls < 9, "no end");
                let first = from(at.0 >> 20);
                Ok((first..first + 3).map(zone).collect())
            });
            all.unwrap().len()
        };
        assert_eq!(told(6 << 20, |at| at), 6);
        // The same zones again and again.
        assert_eq!(told(u64::MAX, |_| 0), 3);
        // More of them than there are addresses.
        let mut calls = 0;
        let far = report_all(1 << 63, u64::MAX, |at| {
            calls += 1;
            assert_eq!(calls, 1, "no end");
            let end = [at.0 >> 20, 0, 0].map(zone);
            Ok(end.to_vec())
        });
        assert_eq!(far.unwrap().len(), 3);
    }

    #[test]
    fn an_append_that_the_drive_says_is_elsewhere_is_not_believed() {
        let end = |place| end_in_zone(ByteOffset(1 << 20), ByteOffset(place), 8192, 1 << 19);
        assert_eq!(end(1 << 20), Some(8192));
        assert_eq!(end((3 << 19) - 8192), Some(1 << 19));
        for place in [0, (1 << 20) - 4096, (3 << 19) - 4096, u64::MAX] {
            assert_eq!(end(place), None, "{place}");
        }
    }

    #[test]
    fn a_flush_behind_one_that_failed_fails_too() {
        let flushes = Flushes::default();
        let failure = || Failure::System(rustix::io::Errno::IO);
        flush_by(&flushes, || Ok(())).unwrap();
        flush_by(&flushes, || Err(failure())).unwrap_err();
        flush_by(&flushes, || Ok(())).unwrap_err();
    }

    #[test]
    fn both_devices_of_a_namespace_are_locked() {
        let folder = tempfile::tempdir().unwrap();
        let [character, block] = ["ng0n1", "nvme0n1"].map(|name| folder.path().join(name));
        File::create(&character).unwrap();
        let other = File::create(block).unwrap();
        for writable in [false, true] {
            let claimed = claim(&character, writable).unwrap();
            // Readers share it.
            assert_eq!(other.try_lock_shared().is_ok(), !writable);
            other.unlock().unwrap();
            other.try_lock().unwrap_err();
            // A process that is being spawned has a copy.
            let _copy = claimed.as_deref().unwrap().try_clone().unwrap();
            drop(claimed);
            other.try_lock().unwrap();
            other.unlock().unwrap();
        }
        other.try_lock().unwrap();
        let refused = claim(&character, false);
        assert!(matches!(refused, Err(HostDriveError::InUse { .. })));
    }

    #[test]
    fn an_error_names_the_device_that_cannot_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [character, block] = ["ng0n1", "nvme0n1"].map(|name| folder.path().join(name));
        File::create(&character).unwrap();
        // A link to itself.
        std::os::unix::fs::symlink(&block, &block).unwrap();
        match claim(&character, false) {
            Err(HostDriveError::Io { path, .. }) => assert_eq!(path, block),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn other_devices_are_refused() {
        let refused = NvmeDrive::open("/dev/null");
        assert!(matches!(refused, Err(HostDriveError::NotZoned { .. })));
        let missing = NvmeDrive::open("/dev/ng99n99");
        assert!(matches!(missing, Err(HostDriveError::Missing { .. })));
    }
}
