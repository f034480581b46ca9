//! Files with secrets, which only their owner may read.

use s3::small_file;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file is not used.
#[derive(Debug, Error)]
pub enum FileError {
    /// Other users can read the file.
    #[error("{}: others can read its secrets (mode {mode:o})", path.display())]
    Readable {
        /// The file.
        path: PathBuf,
        /// The file's permission bits.
        mode: u32,
    },
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl FileError {
    fn unread(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Unread {
            path: path.to_owned(),
            source,
        }
    }
}

/// The text of a small file, whatever its mode.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    small_file::read_text(path).map_err(FileError::unread(path))
}

/// The text of a file that only its owner may read.
pub fn read(path: &Path) -> Result<String, FileError> {
    check(path)?;
    read_text(path)
}

/// Refuses a file that others may read.
pub fn check(path: &Path) -> Result<(), FileError> {
    let metadata = fs::metadata(path).map_err(FileError::unread(path))?;
    let mode = metadata.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    Err(FileError::Readable {
        path: path.to_owned(),
        mode: mode & 0o777,
    })
}
