//! `Error`: why a program was not started, or did not reach the drive.

use device::DriveError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a program is not started, or did not reach the drive.
#[derive(Debug, Error)]
pub enum Error {
    /// The drive cannot be opened.
    #[error("{source}")]
    Drive {
        /// The drive.
        path: PathBuf,
        /// The cause.
        source: DriveError,
    },
    /// The file system cannot be mounted.
    #[error(transparent)]
    BlueFs(#[from] bluefs::Error),
    /// The ZEAFS on the drive cannot be read.
    #[error(transparent)]
    ZeaFs(#[from] zeafs::Error),
    /// The drive holds an object store, whose database is not for programs.
    #[error("{}: holds an object store, whose database is its own", drive.display())]
    Shared {
        /// The drive.
        drive: PathBuf,
    },
    /// Durable data is missing; a program would take the damage for the end of a log.
    #[error("{}: {damage}", drive.display())]
    Damaged {
        /// The drive.
        drive: PathBuf,
        /// The missing data.
        damage: bluefs::Error,
    },
    /// A file on ZEAFS is damaged, with the same effect.
    #[error("{}: {file}: {damage}", drive.display())]
    DamagedFile {
        /// The drive.
        drive: PathBuf,
        /// The file.
        file: String,
        /// The damage in the file.
        damage: zeafs::Error,
    },
    /// No program is named.
    #[error("no program is given")]
    NoProgram,
    /// The program was not found.
    #[error("{}: not found", program.display())]
    NotFound {
        /// The program.
        program: PathBuf,
        /// Where such programs come from.
        from: &'static str,
    },
    /// A file of the host cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The library that an environment variable names cannot be used.
    #[error("{variable}: {}: {source}", path.display())]
    NamedLibrary {
        /// The variable.
        variable: &'static str,
        /// The library.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The library was not found.
    #[error("the plug-in {file} is neither in {} nor in ../lib/zonestore", folder.display())]
    NoLibrary {
        /// The library's file name.
        file: &'static str,
        /// The folder where it was searched.
        folder: PathBuf,
        /// The environment variable that can name it, if one can.
        variable: Option<&'static str>,
    },
    /// The loader splits `LD_PRELOAD` at spaces and colons.
    #[error("{}: a path with a space or a colon cannot be preloaded", path.display())]
    NotPreloadable {
        /// The library.
        path: PathBuf,
        /// The environment variable that can name another.
        variable: &'static str,
    },
    /// The program ended without opening the drive.
    #[error(
        "the program ended without opening {}; if it has a database, that lies elsewhere",
        drive.display()
    )]
    NotReached {
        /// The drive.
        drive: PathBuf,
    },
}
