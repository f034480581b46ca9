//! What a drive file needs of the host's file system beyond reading and writing.

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// A file that nobody else may open, until it is dropped; unless it was taken without a lock.
///
/// The lock is let go explicitly: a process that is just being spawned holds a copy of the
/// descriptor for a moment, and with it a lock that is only closed.
#[derive(Debug)]
pub(super) struct LockedFile(File);

impl LockedFile {
    /// Locks `file` for this opener alone.
    pub fn exclusive(file: File) -> Result<Self, TryLockError> {
        file.try_lock().map(|()| Self(file))
    }

    /// Locks `file` for this and other readers.
    pub fn shared(file: File) -> Result<Self, TryLockError> {
        file.try_lock_shared().map(|()| Self(file))
    }

    /// Takes `file` as it is, whoever has it locked.
    pub fn without_lock(file: File) -> Self {
        Self(file)
    }
}

impl Deref for LockedFile {
    type Target = File;
    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // The close that follows does the same if this fails.
        let _ = self.0.unlock();
    }
}

/// How many zeros are written at once where holes cannot be made.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Gives the space of a range back; it reads as zeros. Where the file system makes no holes,
/// nothing happens: the caller relies on its write pointer, not on the zeros.
pub(super) fn punch(file: &File, at: u64, length: u64) -> io::Result<()> {
    match hole(file, at, length) {
        Err(Errno::OPNOTSUPP) => Ok(()),
        done => Ok(done?),
    }
}

/// Makes a range read as zeros, as a hole where the file system has holes.
pub(super) fn zero(file: &File, at: u64, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    match hole(file, at, length) {
        Err(Errno::OPNOTSUPP) => {
            for offset in (0..length).step_by(ZEROS.len()) {
                let take = (length - offset).min(ZEROS.len() as u64) as usize;
                file.write_all_at(&ZEROS[..take], at + offset)?;
            }
            Ok(())
        }
        done => Ok(done?),
    }
}

fn hole(file: &File, at: u64, length: u64) -> Result<(), Errno> {
    loop {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(file, flags, at, length) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// Asks the host to begin writing a range out, so that the disk works while the next data comes
/// and the flush has less to wait for. Promises nothing; where it is not known, nothing is lost.
pub(super) fn start_writing_out(file: &File, at: u64, length: u64) {
    let (Ok(at), Ok(length)) = (i64::try_from(at), i64::try_from(length)) else {
        return;
    };
    // SAFETY: the descriptor is open for as long as `file` is borrowed; no memory is passed.
    let _ =
        unsafe { libc::sync_file_range(file.as_raw_fd(), at, length, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Reads what the host has in memory, from `at` on without a gap, and answers how much that was; 0
/// also where the host cannot tell.
pub(super) fn read_at_hand(file: &File, at: u64, buffer: &mut [u8]) -> usize {
    let mut buffer = [io::IoSliceMut::new(buffer)];
    rustix::io::preadv2(file, &mut buffer, at, ReadWriteFlags::NOWAIT).unwrap_or(0)
}

/// Where at or after `at` the next byte is that is not in a hole.
pub(super) fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(found) => Ok(Some(found)),
        // No data up to the end; or a file system that knows no holes and has nothing to give back.
        Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
