//! What can be wrong with a device of the host when it is opened as a zoned drive.

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
    /// A device that is not zoned, or no device at all.
    #[error("{}: not a zoned drive: {what}", path.display())]
    NotZoned {
        /// The device.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// Another process, or the kernel, has the drive open.
    #[error("{}: the drive is in use by another process", path.display())]
    InUse {
        /// The device.
        path: PathBuf,
    },
    /// The caller may not open it.
    #[error("{}: no permission to open the drive", path.display())]
    Permission {
        /// The device.
        path: PathBuf,
    },
    /// A zoned drive of a shape that is not supported.
    #[error("{}: this drive cannot be used: {what} (zone {zone}: expected {expected}, found {found})", path.display())]
    Shape {
        /// The device.
        path: PathBuf,
        /// What is not supported.
        what: &'static str,
        /// The first zone that is so.
        zone: u32,
        /// What had to be there.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// The drive's numbers contradict themselves.
    #[error("{}: {source}", path.display())]
    Geometry {
        /// The device.
        path: PathBuf,
        /// How.
        source: GeometryError,
    },
    /// The host's system failed.
    #[error("{}: {source}", path.display())]
    Io {
        /// The device.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}
