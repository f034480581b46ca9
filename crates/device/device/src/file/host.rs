//! Calls to the host's file system that a drive file needs besides reading and writing: holes, write-out.

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// The zeros that are written at once where the file system supports no holes.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Frees the space of a range, which reads as zeros afterwards. Does nothing on file systems without holes: the
/// caller relies on its write pointer, not on the zeros.
pub(super) fn punch(file: &File, at: u64, length: u64) -> io::Result<()> {
    match hole(file, at, length) {
        Err(Errno::OPNOTSUPP) => Ok(()),
        done => Ok(done?),
    }
}

/// Makes a range read as zeros, as a hole where the file system supports holes.
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

#[cfg(test)]
thread_local! {
    /// The error of each hole that a test makes.
    pub(super) static NO_HOLES: std::cell::Cell<Option<Errno>> = const { std::cell::Cell::new(None) };
}

fn hole(file: &File, at: u64, length: u64) -> Result<(), Errno> {
    #[cfg(test)]
    if let Some(error) = NO_HOLES.get() {
        return Err(error);
    }
    loop {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(file, flags, at, length) {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}

/// Asks the host to start writing a range out, so that the disk works while the next data arrives and a flush
/// has less to wait for. Only a hint: errors are ignored.
pub(super) fn start_writing_out(file: &File, at: u64, length: u64) {
    let (Ok(at), Ok(length)) = (i64::try_from(at), i64::try_from(length)) else {
        return;
    };
    // SAFETY: the descriptor is open for as long as `file` is borrowed; no memory is passed.
    let _ =
        unsafe { libc::sync_file_range(file.as_raw_fd(), at, length, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Reads the bytes from `at` on that are in the page cache, up to the first that is not, and returns their
/// number; 0 also where the host does not support this.
pub(super) fn read_at_hand(file: &File, at: u64, buffer: &mut [u8]) -> usize {
    let mut buffer = [io::IoSliceMut::new(buffer)];
    rustix::io::preadv2(file, &mut buffer, at, ReadWriteFlags::NOWAIT).unwrap_or(0)
}

/// The offset of the next byte at or after `at` that is not in a hole; `None` if there is none.
pub(super) fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(found) => Ok(Some(found)),
        // No data up to the end, or the file system supports no holes, so there is nothing to free.
        Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
