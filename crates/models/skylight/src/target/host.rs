//! A block device or a file of the host, by direct I/O.

use super::facts::{folder, text, whole};
use super::medium::Medium;
use super::{Told, facts};
use runtime::sync::Mutex;
use rustix::fs::{OFlags, SeekFrom, fstatfs, seek};
use rustix::io::{ReadWriteFlags, pwritev2, retry_on_intr};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Least size: smaller ones tell nothing about a drive.
pub const LEAST_BYTES: u64 = 64 << 20;

/// Why a device or file cannot be examined.
#[derive(Debug, Error)]
pub enum HostError {
    /// Neither a block device nor a file.
    #[error("{}: neither a block device nor a file", path.display())]
    Kind {
        /// What was named.
        path: PathBuf,
    },
    /// The path names something else than when the facts were collected.
    #[error("{}: it has just become another device or file", path.display())]
    Replaced {
        /// What was named.
        path: PathBuf,
    },
    /// Another process uses it.
    #[error("{}: in use{}", path.display(), by(used))]
    InUse {
        /// What was named.
        path: PathBuf,
        /// The users, as far as they are known.
        used: Vec<String>,
    },
    /// It is read-only.
    #[error("{}: it is read-only", path.display())]
    ReadOnly {
        /// What was named.
        path: PathBuf,
    },
    /// The file system does not support direct I/O.
    #[error("{}: its file system takes no direct I/O, and times of the host's page cache say nothing", path.display())]
    NoDirect {
        /// What was named.
        path: PathBuf,
    },
    /// The file has a hole, where reads do not reach a drive.
    #[error("{}: the file has a hole at byte {at}, where no drive is read", path.display())]
    Hole {
        /// What was named.
        path: PathBuf,
        /// Offset of the first hole.
        at: u64,
    },
    /// The file system does not write in place, or has no drive.
    #[error("{}: {file_system} writes elsewhere than it is told: its times say nothing of a drive", path.display())]
    FileSystem {
        /// What was named.
        path: PathBuf,
        /// Name of the file system.
        file_system: &'static str,
    },
    /// It is too small.
    #[error("{}: {bytes} bytes are too few to say anything; 64 MiB is the least", path.display())]
    Small {
        /// What was named.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The host's system reported an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was named.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn by(used: &[String]) -> String {
    if used.is_empty() {
        return String::new();
    }
    format!(": {}", used.join(", "))
}

/// An open block device or file. Dropping it restores changed settings.
#[derive(Debug)]
pub struct Host {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// The folders of the device and of its disk in `/sys`; `None` for a file.
    folders: Option<(PathBuf, PathBuf)>,
    told: Told,
    /// The file with the setting of the volatile cache, and the setting at the opening.
    cache: Mutex<Option<(PathBuf, String)>>,
}

impl Host {
    /// Opens a device or file: exclusively to write, or shared to read.
    ///
    /// # Errors
    /// It is in use, does not support direct I/O, or would not show the times of a drive.
    pub fn open(facts: &facts::Facts, write: bool) -> Result<Self, HostError> {
        let path = facts.path.as_path();
        let failed = |source| HostError::Io {
            path: path.to_owned(),
            source,
        };
        let in_use = || HostError::InUse {
            path: path.to_owned(),
            used: facts.used.clone(),
        };
        if write && !facts.used.is_empty() {
            return Err(in_use());
        }
        // Keeps others from mounting the device or building on it, and fails if they have.
        let exclusive = if write && facts.device {
            OFlags::EXCL
        } else {
            OFlags::empty()
        };
        let file = OpenOptions::new()
            .read(true)
            .write(write)
            .custom_flags((OFlags::DIRECT | exclusive).bits() as i32)
            .open(path)
            .map_err(|error| match error.kind() {
                io::ErrorKind::ResourceBusy => in_use(),
                io::ErrorKind::InvalidInput => HostError::NoDirect { path: path.into() },
                io::ErrorKind::ReadOnlyFilesystem => HostError::ReadOnly { path: path.into() },
                _ => failed(error),
            })?;
        let locked = if write {
            file.try_lock()
        } else {
            file.try_lock_shared()
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use()),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let metadata = file.metadata().map_err(failed)?;
        if !facts.are_of(&metadata) {
            return Err(HostError::Replaced { path: path.into() });
        }
        let bytes = seek(&file, SeekFrom::End(0)).map_err(|error| failed(error.into()))?;
        if bytes < LEAST_BYTES {
            let path = path.into();
            return Err(HostError::Small { path, bytes });
        }
        let folders = if facts.device {
            let own = folder(&metadata).map_err(failed)?;
            if write && facts::read_only(&own) {
                return Err(HostError::ReadOnly { path: path.into() });
            }
            let disk = whole(&own);
            Some((own, disk))
        } else {
            solid(path, &file, bytes, write)?;
            None
        };
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes,
            folders,
            told: facts.told,
            cache: Mutex::default(),
        })
    }

    /// The switch of a SCSI disk's own cache (and of an ATA disk's, by libata). The one in the queue's folder changes
    /// only the kernel's assumption.
    fn cache_switch(&self) -> Option<PathBuf> {
        let (_, disk) = self.folders.as_ref()?;
        let mut found = std::fs::read_dir(disk.join("device/scsi_disk")).ok()?;
        Some(found.next()?.ok()?.path().join("cache_type"))
    }

    fn switch(&self, on: bool) -> Option<()> {
        let switch = self.cache_switch()?;
        let now = text(&switch)?;
        let wanted = if on { "write back" } else { "write through" };
        if now != wanted {
            std::fs::write(&switch, wanted).ok()?;
            let mut before = self.cache.lock();
            before.get_or_insert_with(|| (switch.clone(), now));
        }
        (text(&switch)? == wanted).then_some(())
    }
}

/// Checks that all bytes of a file are on a drive, and written in place.
fn solid(path: &Path, file: &File, bytes: u64, write: bool) -> Result<(), HostError> {
    let failed = |error: rustix::io::Errno| HostError::Io {
        path: path.into(),
        source: error.into(),
    };
    let kind = fstatfs(file).map_err(failed)?.f_type as u64;
    let moving = FILE_SYSTEMS.iter().find(|(magic, _)| *magic == kind);
    if let Some((magic, file_system)) = moving
        && (write || *magic == TMPFS)
    {
        let path = path.into();
        return Err(HostError::FileSystem { path, file_system });
    }
    let at = seek(file, SeekFrom::Hole(0)).map_err(failed)?;
    if at < bytes {
        let path = path.into();
        return Err(HostError::Hole { path, at });
    }
    Ok(())
}

const TMPFS: u64 = 0x0102_1994;

/// Magic numbers of `linux/magic.h` for file systems that do not write in place.
const FILE_SYSTEMS: [(u64, &str); 6] = [
    (TMPFS, "tmpfs"),
    (0x9123_683e, "btrfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xca45_1a4e, "bcachefs"),
    (0xf2f5_2010, "f2fs"),
    (0x3434, "nilfs"),
];

impl Medium for Host {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write(&self, at: u64, data: &[u8], through: bool) -> io::Result<usize> {
        // Writing to a truncated file would extend it, with a hole.
        if self.folders.is_none() {
            let left = self.file.metadata()?.len().saturating_sub(at);
            if left < data.len() as u64 {
                return Ok(left as usize / 4096 * 4096);
            }
        }
        let flags = if through {
            ReadWriteFlags::DSYNC
        } else {
            ReadWriteFlags::empty()
        };
        let data = [IoSlice::new(data)];
        Ok(retry_on_intr(|| pwritev2(&self.file, &data, at, flags))?)
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The kernel removes a device that was unplugged, and marks one offline that does not answer.
    fn exists(&self) -> bool {
        self.folders.as_ref().is_none_or(|(own, disk)| {
            let state = text(disk.join("device/state"));
            own.exists() && state.as_deref() != Some("offline")
        })
    }

    fn told(&self) -> Told {
        self.told
    }

    /// Trusted only for an ATA disk at a port of the host: a controller in between may have a cache of its own,
    /// whatever it reports of the disk's.
    fn set_volatile_cache(&self, on: bool) -> bool {
        let disk = self.folders.as_ref().map(|(_, disk)| disk);
        let vendor = disk.and_then(|disk| text(disk.join("device/vendor")));
        self.switch(on).is_some() && vendor.as_deref() == Some("ATA")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let before = self.cache.get_mut().take();
        if let Some((switch, before)) = before {
            let _ = std::fs::write(switch, before);
        }
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_has_taken_the_place_of_a_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [path, other] = ["named", "other"].map(|name| folder.path().join(name));
        std::fs::write(&path, "what the question names").unwrap();
        std::fs::write(&other, "what would be overwritten").unwrap();
        let facts = facts::look(&path).unwrap();
        let open = || Host::open(&facts, true).unwrap_err();
        // The other error is that of file systems without direct I/O.
        let is = |error| matches!(error, HostError::Small { .. } | HostError::NoDirect { .. });
        assert!(is(open()));
        std::fs::rename(&other, &path).unwrap();
        let is = |error| {
            matches!(
                error,
                HostError::Replaced { .. } | HostError::NoDirect { .. }
            )
        };
        assert!(is(open()));
    }
}
