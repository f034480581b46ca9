//! Errors from creating or opening a drive file.

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
    /// The file to be created exists already.
    #[error("{}: exists already and is left as it is", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a drive file.
    #[error("{}: not a drive file (it does not begin with the drive's magic)", path.display())]
    NotADrive {
        /// The file.
        path: PathBuf,
    },
    /// A field of the drive file is damaged.
    #[error("{}: damaged: {what} at byte {at}: expected {expected:#x}, found {found:#x}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damaged part.
        what: &'static str,
        /// Its offset in the file.
        at: u64,
        /// The expected value or bound.
        expected: u64,
        /// The value found.
        found: u64,
    },
    /// The file is shorter or longer than its header says.
    #[error("{}: damaged: the file is {found} bytes long, its header says {expected} bytes", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Length according to its header, or the length of the header itself.
        expected: u64,
        /// Actual length.
        found: u64,
    },
    /// A drive file of an unsupported format version.
    #[error("{}: drive format version {found}, this program reads versions 1 to {supported}", path.display())]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: u32,
        /// The newest version that is supported.
        supported: u32,
    },
    /// Another process, or another part of this one, has the drive open.
    #[error("{}: the drive is in use by another process", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file beside the drive, with writes that are not on it yet, cannot be read or changed.
    #[error("{}: keeps what is not on the drive yet, and cannot be used: {source}", path.display())]
    Unsynced {
        /// The file beside the drive.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
    /// The file beside the drive has nothing that counts for this drive any more, and stays as it is: from the next epoch on
    /// it would count.
    #[error("{}: notes of another time, which can be neither removed nor emptied: {source}", path.display())]
    OtherNotes {
        /// The file beside the drive.
        path: PathBuf,
        /// Its error.
        source: io::Error,
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
        /// The length it would have.
        bytes: u64,
    },
    /// A profile name or label does not fit the header.
    #[error("{what} is {length} bytes long, at most {max} fit")]
    NameTooLong {
        /// The name that is too long.
        what: &'static str,
        /// Its length in bytes.
        length: usize,
        /// The most that fits.
        max: usize,
    },
    /// More zones than a drive file can hold.
    #[error("{zone_count} zones, a drive file holds at most {max}; make the zones larger")]
    TooManyZones {
        /// Number of zones requested.
        zone_count: u32,
        /// The most that fits.
        max: u32,
    },
    /// The geometry is not valid.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A call of the operating system failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
}
