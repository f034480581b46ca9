//! What a drive file needs of the host's file system beyond reading and writing.

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

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

/// Where at or after `at` the next byte is that is not in a hole.
pub(super) fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(found) => Ok(Some(found)),
        // No data up to the end; or a file system that knows no holes and has nothing to give back.
        Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
