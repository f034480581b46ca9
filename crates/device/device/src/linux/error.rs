//! Errors from opening a device of the host as a zoned drive.

use std::io;
use std::path::PathBuf;
use thiserror::Error;
use zone::GeometryError;

/// Why a device could not be opened as a zoned drive.
#[derive(Debug, Error)]
pub enum HostDriveError {
    /// There is no such device.
    #[error("{}: there is no such drive", path.display())]
    Missing {
        /// The device.
        path: PathBuf,
    },
    /// The path is not a zoned device.
    #[error("{}: not a zoned drive: {what}", path.display())]
    NotZoned {
        /// The device.
        path: PathBuf,
        /// The reason, in words.
        what: &'static str,
    },
    /// Another process, or the kernel, has the drive open.
    #[error("{}: the drive is in use by another process", path.display())]
    InUse {
        /// The device.
        path: PathBuf,
    },
    /// The process may not open the device.
    #[error("{}: no permission to open the drive", path.display())]
    Permission {
        /// The device.
        path: PathBuf,
    },
    /// The drive's zones have a shape that is not supported.
    #[error("{}: this drive cannot be used: {what} (zone {zone}: expected {expected}, found {found})", path.display())]
    Shape {
        /// The device.
        path: PathBuf,
        /// The property that is not supported.
        what: &'static str,
        /// The first zone with this property.
        zone: u32,
        /// The value that is supported.
        expected: u64,
        /// The value found.
        found: u64,
    },
    /// The drive reports an invalid geometry.
    #[error("{}: {source}", path.display())]
    Geometry {
        /// The device.
        path: PathBuf,
        /// The reason.
        source: GeometryError,
    },
    /// A call of the operating system failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The device.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
}
