//! A file beside a drive file, `NAME.unsynced`, for bytes that are not on the drive yet
//! (docs/format/unsynced.md).
//!
//! When a write returns the bytes are in the host's page cache, so they survive the process; after a restart of
//! the host they are invalid. The file exists only while there is something to keep.

use super::mapped::MappedFile;
use runtime::sync::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const MAGIC: [u8; 8] = *b"ZSUNSYNC";
const VERSION: u32 = 1;
const HEADER: usize = 64;
/// An id that the kernel creates at each boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

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
    open: Mutex<Option<MappedFile>>,
    /// Nothing is written any more ([`Self::give_up`]).
    is_over: AtomicBool,
}

impl HostMemory {
    pub(super) fn new(drive: &Path) -> Self {
        let drive = drive.canonicalize().unwrap_or_else(|_| drive.into());
        Self {
            path: name(&drive),
            drive,
            open: Mutex::new(None),
            is_over: AtomicBool::new(false),
        }
    }

    /// The bytes that an earlier process left since the host was booted; `None` if there are none.
    pub fn left_behind(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open_to_read().ok()?.read_to_end(&mut bytes).ok()?;
        (bytes.get(..HEADER)? == header().ok()?.as_slice()).then(|| bytes.split_off(HEADER))
    }

    /// Whether the process that last wrote to the drive ran since the host was booted.
    pub(super) fn is_of_this_boot(&self) -> bool {
        let mut start = [0; HEADER];
        let read = self
            .open_to_read()
            .and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && header().is_ok_and(|header| header == start)
    }

    /// Opens the file without blocking, in case a FIFO has that name.
    fn open_to_read(&self) -> io::Result<File> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&self.path)
    }

    /// Records in the file's header that a process writes to the drive during this boot: all its writes survive
    /// as long as the host runs.
    pub fn vouch(&self) -> io::Result<()> {
        self.write(0, &[])
    }

    /// Writes bytes at an offset; gaps between writes read as zeros.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock();
        if self.is_over.load(Ordering::Acquire) {
            return Err(io::Error::other("a flush of the drive has failed"));
        }
        let file = match &mut *open {
            Some(file) => file,
            None => open.insert(self.create()?),
        };
        file.write_all_at(bytes, HEADER as u64 + offset)
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
        let mode = std::fs::metadata(&self.drive)?.permissions().mode() & 0o777;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(mode);
        let file = options.open(&self.path)?;
        if self.left_behind().is_none() {
            file.set_len(0)?;
            file.write_all_at(&header()?, 0)?;
        }
        Ok(MappedFile::new(file))
    }
}

fn header() -> io::Result<[u8; HEADER]> {
    let boot = std::fs::read_to_string(BOOT_ID)?;
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
        std::fs::write(&drive, []).unwrap();
        let memory = HostMemory::new(&drive);
        memory.vouch().unwrap();
        memory.write(10, b"bytes").unwrap();
        assert!(memory.is_of_this_boot());
        memory.give_up().unwrap();
        memory.vouch().unwrap_err();
        memory.write(10, b"bytes").unwrap_err();
        assert!(!memory.is_of_this_boot() && !memory.path.exists());
    }
}
