//! Why there are no figures.

use device::profile::ProfileError;
use device::{DriveError, FileDriveError};
use inspect::LookError;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use thiserror::Error;
use zone::{Bytes, GeometryError, ZoneError};

/// Why there are no figures.
#[derive(Debug, Error)]
pub enum Error {
    /// Somebody wanted it to end.
    #[error("interrupted; what the benchmark had made is removed")]
    Interrupted,
    /// A round has room for no object.
    #[error("{option} {}: less than one object of {}", Bytes(*total), Bytes(*size))]
    LessThanOne {
        /// Which round.
        option: &'static str,
        /// Bytes of it.
        total: u64,
        /// Bytes of an object.
        size: u64,
    },
    /// All that could be measured is left out.
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
    /// Somebody else's collection has the benchmark's name.
    #[error("the store holds a collection {collection:?} already")]
    Taken {
        /// The store's drive.
        drive: PathBuf,
        /// The collection.
        collection: &'static str,
    },
    /// Something is where the benchmark would make its own.
    #[error("{}: exists already", path.display())]
    Exists {
        /// What.
        path: PathBuf,
    },
    /// db_bench is not installed.
    #[error("db_bench: not found")]
    NoDbBench,
    /// db_bench failed.
    #[error("db_bench ended with {status}: {last}")]
    DbBench {
        /// How it ended.
        status: ExitStatus,
        /// The line that says why.
        last: String,
    },
    /// Its output lacks what was measured.
    #[error("db_bench did not report {name}")]
    NotReported {
        /// The workload.
        name: String,
    },
    /// A file or a program of the host's.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The drive that was made cannot be opened.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// There is no drive of that size.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// There is no such drive.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A drive cannot be made.
    #[error(transparent)]
    FileDrive(#[from] FileDriveError),
    /// Of a drive.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// Of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Of the file system.
    #[error(transparent)]
    BlueFs(#[from] bluefs::Error),
    /// The drive cannot be looked at.
    #[error(transparent)]
    Look(#[from] LookError),
    /// db_bench is not started on the drive.
    #[error(transparent)]
    Launch(#[from] launch::Error),
}

/// Of a benchmark.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The error of a file.
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File { path, source }
    }
}
