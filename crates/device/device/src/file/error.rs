//! What can be wrong with a drive file when it is created or opened.

use std::io;
use std::path::PathBuf;
use thiserror::Error;
use zone::GeometryError;

/// Why a drive file could not be created or opened. A file that is refused is never written to.
#[derive(Debug, Error)]
pub enum FileDriveError {
    /// There is no such file.
    #[error("{}: there is no such drive", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file to create is there already.
    #[error("{}: exists already and is left as it is", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Something else than a drive file.
    #[error("{}: not a drive file (it does not begin with the drive's magic)", path.display())]
    NotADrive {
        /// The file.
        path: PathBuf,
    },
    /// A drive file whose bytes cannot be as they are.
    #[error("{}: damaged: {what} at byte {at}: expected {expected:#x}, found {found:#x}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which part.
        what: &'static str,
        /// Where in the file.
        at: u64,
        /// What had to be there, or the bound.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A drive file that was cut short, or that something was appended to.
    #[error("{}: damaged: the file is {found} bytes long, its header says {expected} bytes", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// How long its header says it is, or the header itself.
        expected: u64,
        /// How long it is.
        found: u64,
    },
    /// A drive file of another version.
    #[error("{}: drive format version {found}, this program reads version {supported}", path.display())]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The only version that is read.
        supported: u32,
    },
    /// Another process, or another part of this one, has the drive open.
    #[error("{}: the drive is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The host's file system is full.
    #[error("{}: the host's file system is full", path.display())]
    HostFull {
        /// The file.
        path: PathBuf,
    },
    /// The host's file system takes no file of this length, even a sparse one.
    #[error("{}: the host's file system takes no file of {}; make the drive smaller", path.display(), zone::Bytes(*bytes))]
    TooLargeForHost {
        /// The file.
        path: PathBuf,
        /// How long it would be.
        bytes: u64,
    },
    /// A profile name or label does not fit the header.
    #[error("{what} is {length} bytes long, at most {max} fit")]
    NameTooLong {
        /// Which one.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The most that fits.
        max: usize,
    },
    /// More zones than a drive file holds.
    #[error("{zone_count} zones, a drive file holds at most {max}; make the zones larger")]
    TooManyZones {
        /// How many were asked for.
        zone_count: u32,
        /// The most that fits.
        max: u32,
    },
    /// The geometry contradicts itself.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// The host's system failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}
