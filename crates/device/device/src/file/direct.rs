//! Direct I/O on a drive's file, past the host's page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// Alignment of requests in the file and in memory. Some hosts ask for less; a request that is not aligned goes
/// through the page cache.
const ALIGNMENT: usize = 4096;

/// A file that was opened for direct I/O.
#[derive(Debug)]
pub(super) struct DirectFile(File);

impl DirectFile {
    /// The open `file`, opened again. Fails where its file system has no direct I/O.
    pub fn again(file: &File, writable: bool) -> io::Result<Self> {
        // Its path may be another file's by now.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let flags = libc::O_DIRECT;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(writable).custom_flags(flags);
        options.open(path).map(Self)
    }

    /// Writes all of `data` at byte `at`; `None` if the host does not do that directly: parts may be there then.
    pub fn write(&self, data: &[u8], at: u64) -> Option<io::Result<()>> {
        is_aligned(data, at)
            .then(|| self.0.write_all_at(data, at))
            .filter(is_done)
    }

    /// Fills `buffer` from byte `at` on; `None` if the host does not do that directly.
    pub fn read(&self, buffer: &mut [u8], at: u64) -> Option<io::Result<()>> {
        is_aligned(buffer, at)
            .then(|| self.0.read_exact_at(buffer, at))
            .filter(is_done)
    }
}

/// Whether the host has taken the request as it is aligned, whatever came of it.
fn is_done(result: &io::Result<()>) -> bool {
    !result
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::InvalidInput)
}

/// Whether direct I/O takes these bytes for byte `at` of a file.
pub(super) fn is_aligned(bytes: &[u8], at: u64) -> bool {
    let address = bytes.as_ptr() as usize;
    [address, bytes.len(), at as usize]
        .iter()
        .all(|place| place % ALIGNMENT == 0)
}

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_request_that_is_not_aligned_is_left_to_the_page_cache() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        // Not every file system has direct I/O.
        let Ok(direct) = DirectFile::again(file.as_file(), true) else {
            return;
        };
        let memory = vec![7; 4 * ALIGNMENT];
        let from = memory.as_ptr().align_offset(ALIGNMENT);
        let aligned = &memory[from..][..ALIGNMENT];
        direct.write(aligned, 8192).unwrap().unwrap();
        assert!(direct.write(aligned, 512).is_none());
        assert!(direct.write(&aligned[..512], 8192).is_none());
        assert!(
            direct
                .write(&memory[from + 512..][..ALIGNMENT], 8192)
                .is_none()
        );
        let mut read = vec![0; 3 * ALIGNMENT];
        file.as_file()
            .read_exact_at(&mut read, ALIGNMENT as u64)
            .unwrap();
        let expected = [&[0; ALIGNMENT][..], aligned, &[0; ALIGNMENT]].concat();
        assert_eq!(read, expected);
    }
}
