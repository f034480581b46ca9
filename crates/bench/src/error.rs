//! Why a benchmark has no results.

use device::profile::ProfileError;
use device::{DriveError, FileDriveError};
use inspect::LookError;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use thiserror::Error;
use zone::{Bytes, GeometryError, ZoneError};

/// Why a benchmark has no results.
#[derive(Debug, Error)]
pub enum Error {
    /// The watch has stopped the benchmark.
    #[error("interrupted; what the benchmark had made is removed")]
    Interrupted,
    /// A round is smaller than one object.
    #[error("{option} {}: less than one object of {}", Bytes(*total), Bytes(*size))]
    LessThanOne {
        /// The option that sets the bytes of a round.
        option: &'static str,
        /// Bytes of the round.
        total: u64,
        /// Bytes of an object.
        size: u64,
    },
    /// All sizes of objects are left out.
    #[error(
        "--large-total, --medium-total, --small-total and --tiny-total are all 0: there is nothing to measure"
    )]
    Nothing,
    /// The store has not enough space for a round.
    #[error("a round writes {}, the store can take {}", Bytes(*needed), Bytes(*available))]
    NoRoom {
        /// Bytes of a round.
        needed: u64,
        /// Bytes that the store can take.
        available: u64,
    },
    /// A collection that no benchmark made has the name of the benchmark's.
    #[error("the store holds a collection {collection:?} already")]
    Taken {
        /// The store's drive.
        drive: PathBuf,
        /// The collection.
        collection: &'static str,
    },
    /// A file exists where the benchmark would make one.
    #[error("{}: exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The drive is a device of the host, or something else that no drive file can be compared with.
    #[error("{}: not a drive file, and it is compared with a drive file beside it", path.display())]
    NoFile {
        /// The drive.
        path: PathBuf,
    },
    /// db_bench is not installed.
    #[error("db_bench: not found")]
    NoDbBench,
    /// db_bench failed.
    #[error("db_bench ended with {status}: {last}")]
    DbBench {
        /// Exit status of db_bench.
        status: ExitStatus,
        /// The line of its output that says why.
        last: String,
    },
    /// The output of db_bench lacks a workload.
    #[error("db_bench did not report {name}")]
    NotReported {
        /// The workload.
        name: String,
    },
    /// An error of a file or program of the host.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The host can start no more threads.
    #[error("no thread can be started: {0}")]
    NoThread(#[source] io::Error),
    /// The drive that was made cannot be opened.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The profile is unknown, or has no drive of that size.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A geometry is not possible.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A drive file cannot be made.
    #[error(transparent)]
    FileDrive(#[from] FileDriveError),
    /// An error of a drive.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// An error of BlueFS.
    #[error(transparent)]
    BlueFs(#[from] bluefs::Error),
    /// No snapshot of the drive can be taken.
    #[error(transparent)]
    Look(#[from] LookError),
    /// db_bench cannot be started on the drive.
    #[error(transparent)]
    Launch(#[from] launch::Error),
}

/// The result of a benchmark.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of the file at `path`.
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File { path, source }
    }
}
