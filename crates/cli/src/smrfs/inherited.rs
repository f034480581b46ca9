//! Keeps open files of this process from a program in the background: locks, pipes, files of a mount.

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

/// Sets close-on-exec on all open files but the standard streams, so that started programs do not inherit them.
///
/// # Errors
/// `/proc` cannot be read.
pub fn keep() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<RawFd>().ok()) else {
            continue;
        };
        if number <= 2 {
            continue;
        }
        // SAFETY: it was listed as open. If somebody closes it meanwhile, it is nothing, or one of ours that is kept
        // anyway; nothing is read, written or closed by it.
        let open = unsafe { BorrowedFd::borrow_raw(number) };
        match fcntl_setfd(open, FdFlags::CLOEXEC) {
            Ok(()) | Err(Errno::BADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
