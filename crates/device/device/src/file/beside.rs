//! A file beside a drive file, `NAME.unsynced`, for bytes that are not on the drive yet
//! (docs/format/unsynced.md).
//!
//! When a write returns the bytes are in the host's page cache, so they survive the process; after a restart of
//! the host they are invalid. The file is there while BlueFS is mounted for writing, and after a kill.

use super::FileDriveError;
use super::format::DriveUuid;
use super::mapped::MappedFile;
use runtime::sync::Mutex;
use rustix::fs::{AtFlags, StatxFlags, statx};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const MAGIC: [u8; 8] = *b"ZSUNSYNC";
const VERSION: u32 = 1;
const HEADER: usize = 64;
/// Offset of the identity of the drive whose writes are kept ([`HostMemory::record_writes_kept`]): behind the header of the
/// notes.
const IDENTITY_AT: usize = 104;
const IDENTITY: usize = 40;
/// An id that the kernel creates at each boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What a drive file is known by, as long as the host runs and the file system stays mounted: UUID, device, inode,
/// and the mount, whose number is 0 where the kernel has none that it never gives again (before Linux 6.8).
fn identity(drive: &File, uuid: DriveUuid) -> io::Result<[u8; IDENTITY]> {
    // STATX_MNT_ID_UNIQUE
    let unique = StatxFlags::from_bits_retain(0x4000);
    let found = drive.metadata()?;
    let mount = statx(drive, c"", AtFlags::EMPTY_PATH, unique)
        .ok()
        .filter(|told| told.stx_mask & unique.bits() != 0)
        .map_or(0, |told| told.stx_mnt_id);
    let mut identity = [0; IDENTITY];
    identity[..16].copy_from_slice(&uuid.0);
    let numbers = [found.dev(), found.ino(), mount].map(u64::to_le_bytes);
    identity[16..].copy_from_slice(numbers.as_flattened());
    Ok(identity)
}

/// The file's name, beside the drive file at `drive`.
pub(super) fn name(drive: &Path) -> PathBuf {
    let mut path = drive.as_os_str().to_owned();
    path.push(".unsynced");
    path.into()
}

/// Bytes that survive the process but not a restart of the host.
#[derive(Debug)]
pub struct HostMemory {
    path: PathBuf,
    drive: PathBuf,
    /// `None` if the host did not tell it.
    identity: Option<[u8; IDENTITY]>,
    open: Mutex<Option<MappedFile>>,
    /// Nothing is written any more ([`Self::give_up`]).
    is_over: AtomicBool,
}

impl HostMemory {
    /// `file` is the drive file at `drive`.
    pub(super) fn new(drive: &Path, file: &File, uuid: DriveUuid) -> Self {
        let drive = drive.canonicalize().unwrap_or_else(|_| drive.into());
        Self {
            path: name(&drive),
            drive,
            identity: identity(file, uuid).ok(),
            open: Mutex::new(None),
            is_over: AtomicBool::new(false),
        }
    }

    /// The bytes that an earlier process left since the host was booted; `None` if there are none.
    ///
    /// # Errors
    /// There may be some that cannot be read. Whoever goes on without them loses them.
    pub fn left_behind(&self) -> Result<Option<Vec<u8>>, FileDriveError> {
        let mut left = self.read(u64::MAX).map_err(|error| self.unusable(error))?;
        if let Some(bytes) = &mut left {
            bytes.drain(..HEADER);
        }
        Ok(left)
    }

    /// Whether [`Self::left_behind`] would return any, and fails as it does, but only the file's header is read.
    pub fn has_left_behind(&self) -> Result<bool, FileDriveError> {
        let header = self.read(HEADER as u64);
        let header = header.map_err(|error| self.unusable(error))?;
        Ok(header.is_some())
    }

    /// Whether the process that last wrote to this drive ran since the host was booted, and since the drive's file system
    /// was mounted: an unmount drops what could not be written. Fails as [`Self::left_behind`].
    pub(super) fn keeps_writes(&self) -> Result<bool, FileDriveError> {
        let start = self.read((IDENTITY_AT + IDENTITY) as u64);
        let start = start.map_err(|error| self.unusable(error))?;
        Ok(start.is_some_and(|start| {
            let named = start.get(IDENTITY_AT..);
            self.identity
                .is_some_and(|drive| named == Some(drive.as_slice()))
        }))
    }

    /// The first bytes of the file, if it is of this boot.
    fn read(&self, most: u64) -> io::Result<Option<Vec<u8>>> {
        let file = self.open_to_read()?;
        file.map_or(Ok(None), |file| read_of_this_boot(file, most))
    }

    /// The error for a failed access to the file.
    pub fn unusable(&self, source: io::Error) -> FileDriveError {
        FileDriveError::Unsynced {
            path: self.path.clone(),
            source,
        }
    }

    /// The error for a failed removal of notes that do not count.
    pub fn other_notes(&self, source: io::Error) -> FileDriveError {
        FileDriveError::OtherNotes {
            path: self.path.clone(),
            source,
        }
    }

    /// Opens the file without blocking, in case a FIFO has that name. `None` if there is no file: only then is nothing lost.
    fn open_to_read(&self) -> io::Result<Option<File>> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let mut options = OpenOptions::new();
        match options.read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => Ok(file.metadata()?.is_file().then_some(file)),
            Err(error) => match error.kind() {
                // A drive that was renamed may have a name with which there can be none.
                io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename => Ok(None),
                _ if std::fs::metadata(&self.path).is_ok_and(|it| !it.is_file()) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Records in the file that a process writes to this drive during this boot: all its writes survive
    /// as long as the host runs.
    ///
    /// # Errors
    /// The host does not tell what the drive is known by, the file cannot be written, or a flush of the drive has failed.
    pub fn record_writes_kept(&self) -> io::Result<()> {
        let drive = self.identity.ok_or(io::ErrorKind::Unsupported)?;
        self.with_file(|file| file.plain().write_all_at(&drive, IDENTITY_AT as u64))
    }

    /// Writes bytes at an offset; gaps between writes read as zeros. Bytes 40 to 79 are those of [`Self::record_writes_kept`].
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.with_file(|file| file.write_all_at(bytes, HEADER as u64 + offset))
    }

    fn with_file(&self, change: impl FnOnce(&mut MappedFile) -> io::Result<()>) -> io::Result<()> {
        let mut open = self.open.lock();
        if self.is_over.load(Ordering::Acquire) {
            return Err(io::Error::other("a flush of the drive has failed"));
        }
        let file = match &mut *open {
            Some(file) => file,
            None => open.insert(self.create()?),
        };
        change(file)
    }

    /// Whether this process has written to the file.
    pub fn is_in_use(&self) -> bool {
        self.open.lock().is_some()
    }

    /// Removes the file. If that fails it is truncated: its bytes must not be taken for later ones.
    pub fn clear(&self) -> io::Result<()> {
        *self.open.lock() = None;
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(&self.path)
                .map(drop),
            _ => Ok(()),
        }
    }

    /// Removes the file for good: after a failed flush the host may have dropped writes to the drive, and nothing may
    /// record that they survive.
    pub(super) fn give_up(&self) -> io::Result<()> {
        self.is_over.store(true, Ordering::Release);
        self.clear()
    }

    /// Opens or creates the file. Contents from this boot are kept.
    fn create(&self) -> io::Result<MappedFile> {
        let drive = std::fs::metadata(&self.drive)?;
        let mode = drive.mode() & 0o777;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let new = options.clone().create_new(true).mode(mode).open(&self.path);
        let file = match new {
            Ok(file) => {
                // Whoever may use the drive has to find what is in here. A group that is not the drive's is not to.
                let (user, group) = (drive.uid(), drive.gid());
                let is_theirs = fchown(&file, Some(user), Some(group))
                    .or_else(|_| fchown(&file, None, Some(group)));
                let mode = mode & if is_theirs.is_ok() { 0o777 } else { 0o707 };
                // Some file systems have no modes; the next one who cannot read the file is told so.
                let _ = file.set_permissions(Permissions::from_mode(mode));
                file
            }
            // A link may lead to what is not there yet.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                options.create(true).mode(mode).open(&self.path)?
            }
            Err(error) => return Err(error),
        };
        if self.read(HEADER as u64)?.is_none() {
            file.set_len(0)?;
            file.write_all_at(&header()?, 0)?;
        }
        Ok(MappedFile::new(file))
    }
}

/// The first `most` bytes of a file, if it is of this boot. Of any other, only the header is read: the rest may be larger
/// than memory, or on a sector that cannot be read.
fn read_of_this_boot(file: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut file = file.take(HEADER as u64);
    file.read_to_end(&mut bytes)?;
    // The boot has to be known only for a file of ours.
    let is_ours = bytes.len() == HEADER && bytes.starts_with(&MAGIC);
    if !is_ours || bytes != header()? {
        return Ok(None);
    }
    file.set_limit(most.saturating_sub(HEADER as u64));
    file.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

fn header() -> io::Result<[u8; HEADER]> {
    let boot = std::fs::read_to_string(BOOT_ID)
        .map_err(|error| io::Error::new(error.kind(), format!("{BOOT_ID}: {error}")))?;
    let boot = boot.trim().as_bytes();
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let room = &mut header[16..];
    let length = boot.len().min(room.len());
    room[..length].copy_from_slice(&boot[..length]);
    Ok(header)
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_is_never_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let drive = folder.path().join("d.zoned");
        let file = File::create(&drive).unwrap();
        let memory = HostMemory::new(&drive, &file, DriveUuid([1; 16]));
        memory.record_writes_kept().unwrap();
        memory.write(10, b"bytes").unwrap();
        assert!(memory.keeps_writes().unwrap());
        memory.give_up().unwrap();
        memory.record_writes_kept().unwrap_err();
        memory.write(10, b"bytes").unwrap_err();
        assert!(!memory.keeps_writes().unwrap() && !memory.path.exists());
    }

    /// Any part of what a drive is known by: its UUID, its file, and the mount.
    #[test]
    fn only_the_drive_that_is_named_keeps_its_writes() {
        let folder = tempfile::tempdir().unwrap();
        let drive = folder.path().join("d.zoned");
        let file = File::create(&drive).unwrap();
        let memory = || HostMemory::new(&drive, &file, DriveUuid([1; 16]));
        memory().write(80, b"bytes").unwrap();
        // Nobody has dealt with what is torn.
        assert!(memory().left_behind().unwrap().is_some() && !memory().keeps_writes().unwrap());
        memory().record_writes_kept().unwrap();
        assert!(memory().keeps_writes().unwrap());
        for at in [0, 16, 24, 32] {
            let mut other = memory();
            other.identity.as_mut().unwrap()[at] ^= 1;
            assert!(!other.keeps_writes().unwrap(), "{at}");
            // Notes name their file system themselves.
            let left = other.left_behind().unwrap();
            assert_eq!(left, memory().left_behind().unwrap());
            other.record_writes_kept().unwrap();
            assert!(
                other.keeps_writes().unwrap() && !memory().keeps_writes().unwrap(),
                "{at}"
            );
            memory().record_writes_kept().unwrap();
        }
    }

    /// Whoever may use the drive, after the process that was killed: the mode is not that of its umask.
    #[test]
    fn it_belongs_to_those_who_have_the_drive() {
        let folder = tempfile::tempdir().unwrap();
        let drive = folder.path().join("d.zoned");
        let file = File::create(&drive).unwrap();
        file.set_permissions(Permissions::from_mode(0o666)).unwrap();
        // Only root may.
        let _ = fchown(&file, Some(65534), Some(65534));
        let memory = HostMemory::new(&drive, &file, DriveUuid([1; 16]));
        memory.write(0, b"bytes").unwrap();
        let of = |path: &Path| {
            let found = std::fs::metadata(path).unwrap();
            (found.uid(), found.gid(), found.mode())
        };
        assert_eq!(of(&memory.path), of(&drive));
    }

    #[test]
    fn of_a_file_that_does_not_count_only_the_header_is_read() {
        /// A sector that the host's disk does not return.
        struct Unreadable;
        impl Read for Unreadable {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::Other.into())
            }
        }
        let read = |start: &[u8]| read_of_this_boot(start.chain(Unreadable), u64::MAX);
        let ours = header().unwrap();
        read(&ours).unwrap_err();
        let mut earlier = ours;
        earlier[16..52].fill(b'0');
        assert!(read(&earlier).unwrap().is_none());
        assert!(read(&[0xa5; HEADER]).unwrap().is_none());

        let folder = tempfile::tempdir().unwrap();
        let drive = folder.path().join("d.zoned");
        let file = File::create(&drive).unwrap();
        let memory = HostMemory::new(&drive, &file, DriveUuid([1; 16]));
        let beside = File::create(&memory.path).unwrap();
        beside.write_all_at(&earlier, 0).unwrap();
        // More than memory.
        beside.set_len(1 << 42).unwrap();
        assert!(memory.left_behind().unwrap().is_none());
        assert!(!memory.has_left_behind().unwrap());
    }

    /// A link to itself cannot be opened, by nobody.
    #[test]
    fn what_cannot_be_read_is_not_taken_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let nameless = tempfile::tempfile().unwrap();
        let drive = folder.path().join("d.zoned");
        let memory = HostMemory::new(&drive, &nameless, DriveUuid([1; 16]));
        assert!(memory.left_behind().unwrap().is_none());
        std::os::unix::fs::symlink(&memory.path, &memory.path).unwrap();
        let said = memory.left_behind().unwrap_err().to_string();
        assert!(said.contains("d.zoned.unsynced"), "{said}");
        memory.keeps_writes().unwrap_err();
        // What others have there is no file of ours.
        std::fs::remove_file(&memory.path).unwrap();
        std::fs::create_dir(&memory.path).unwrap();
        assert!(memory.left_behind().unwrap().is_none());
    }
}
