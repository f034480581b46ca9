//! Opens the drive of a file system; waits for the last commit of a mount that is ending.

use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, fail};
use ::smrfs::{FileSystem, MountOptions};
use device::Drive;
use inspect::User;
use runtime::Runtime;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use terminal::shell_word;

/// Pause between two attempts to open a drive that an ending mount still has.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// Number of attempts if no process is found that has the drive.
const TRIES_UNASKED: u32 = 50;
/// Number of attempts before the user is told why the command waits.
const TRIES_UNSAID: u32 = 100;

/// The directory where a drive is mounted; `drive` is canonical.
fn directory_of(drive: &Path) -> Option<PathBuf> {
    let mut mounts = smrfs_fuse::mounts().unwrap_or_default().into_iter();
    let mount = mounts.find(|mount| mount.is_smrfs && mount.source == drive)?;
    Some(mount.directory)
}

/// The directory where a drive is mounted.
pub fn mounted_at(drive: &Path) -> Option<PathBuf> {
    directory_of(&drive.canonicalize().ok()?)
}

/// The drive that is mounted at a directory.
pub fn drive_at(directory: &Path) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    // The last mount hides earlier ones, of whatever kind it is.
    let mut mounts = smrfs_fuse::mounts().unwrap_or_default().into_iter().rev();
    let last = mounts.find(|mount| mount.directory == directory)?;
    last.is_smrfs.then_some(last.source)
}

/// Whether the error is that of a mount whose process has ended.
pub fn is_left(error: &io::Error) -> bool {
    // The second one comes while the process is ending.
    let ended = [Errno::NOTCONN, Errno::CONNABORTED];
    ended
        .into_iter()
        .any(|ended| error.raw_os_error() == Some(ended.raw_os_error()))
}

/// Checks that a directory exists. A mount whose process has ended cannot be used.
pub fn check_directory(directory: &Path) -> CommandResult {
    let (shown, word) = (directory.display(), shell_word(directory));
    // The kernel answers attributes from its cache, but asks the process for the free space.
    let asked = || Ok(rustix::fs::statvfs(directory)?);
    match std::fs::metadata(directory).and_then(|found| asked().map(|_| found)) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => {
            fail!(Usage, "{shown}: not a directory"; "a file system is mounted at a directory")
        }
        Err(error) if is_left(&error) => fail!(
            Failed, "{shown}: a file system was mounted here, and its process has ended";
            "`umount -l {word}` takes it away (`fusermount3 -uz {word}` if you are not root); then mount the drive again"
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fail!(NotFound, "{shown}: no directory")
        }
        Err(error) => Err(CommandError::file(directory, &error)),
    }
}

/// The error for a directory where no file system of ours is mounted.
pub fn not_mounted<T>(directory: &Path) -> CommandResult<T> {
    let shown = directory.display();
    fail!(
        NotFound, "{shown}: no file system of smrfs is mounted here";
        "`findmnt -t fuse.smrfs` lists those that are, and `zonestore smrfs mount DRIVE {}` mounts one",
        shell_word(directory)
    )
}

/// Whether the process that has the drive is a mount that has left the tree, and so does its last commit. `None` if
/// no process is found: it may have ended since, or be about to.
fn is_ending(path: &Path) -> Option<bool> {
    let User::Process { pid, .. } = User::of(path) else {
        return None;
    };
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if line.is_empty() {
        return None;
    }
    let is_mount = is_mount(&line);
    let canonical = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Some(is_mount && directory_of(&canonical).is_none())
}

/// Whether the arguments of a process, each with a NUL behind it, are those of `smrfs mount`: no other program has them.
fn is_mount(line: &[u8]) -> bool {
    // Options may come in between.
    let mut words = line.split(|byte| *byte == 0);
    words.any(|word| word == b"smrfs") && words.any(|word| word == b"mount")
}

/// Opens a drive. After `umount`, the process that had it mounted may still do its last commit: that is waited for.
pub fn open_drive(path: &Path, read_only: bool) -> CommandResult<Drive> {
    open_drive_while(path, read_only, || true)
}

/// As [`open_drive`], as long as `is_wanted` returns `true`.
pub fn open_drive_while(
    path: &Path,
    read_only: bool,
    is_wanted: impl Fn() -> bool,
) -> CommandResult<Drive> {
    let mut unasked = 0;
    let mut tries = 0;
    loop {
        let opened = match read_only {
            true => drive_file::open_read_only(path),
            false => drive_file::open(path),
        };
        match opened {
            Err(error) if error.exit == Exit::Busy => {
                let is_ending = is_ending(path);
                unasked += u32::from(is_ending.is_none());
                if !is_ending.unwrap_or(unasked <= TRIES_UNASKED) || !is_wanted() {
                    return Err(error);
                }
                tries += 1;
                if tries == TRIES_UNSAID
                    && let User::Process { pid, .. } = User::of(path)
                {
                    tracing::warn!(
                        pid,
                        "waiting for the mount that had the drive: it ends when the last file in it is closed"
                    );
                }
                std::thread::sleep(BETWEEN_TRIES);
            }
            opened => return opened,
        }
    }
}

/// Opens a drive, and mounts it in this process, without FUSE.
pub fn open(path: &Path, options: MountOptions) -> CommandResult<FileSystem> {
    let drive = Arc::new(open_drive(path, options.read_only)?);
    Ok(FileSystem::mount(drive, Runtime::system(), options)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_known_by_its_arguments() {
        assert!(is_mount(b"zonestore\0smrfs\0mount\0d.zoned\0mnt\0"));
        assert!(is_mount(b"zonestore\0smrfs\0--json\0mount\0d.zoned\0mnt\0"));
        assert!(!is_mount(b"zonestore\0smrfs\0unmount\0mnt\0"));
        assert!(!is_mount(b"mount\0d.zoned\0smrfs\0"));
    }
}
