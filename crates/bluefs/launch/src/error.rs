//! Why a program is not started, or did not reach the drive.

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
        /// Why.
        source: DriveError,
    },
    /// The file system cannot be mounted.
    #[error(transparent)]
    BlueFs(#[from] bluefs::Error),
    /// There is no ZEAFS that can be mounted.
    #[error(transparent)]
    ZeaFs(#[from] zeafs::Error),
    /// The database on the drive is that of an object store.
    #[error("{}: holds an object store, whose database is its own", drive.display())]
    Shared {
        /// The drive.
        drive: PathBuf,
    },
    /// A program would take what is damaged for the end of a log.
    #[error("{}: {damage}", drive.display())]
    Damaged {
        /// The drive.
        drive: PathBuf,
        /// What is missing.
        damage: bluefs::Error,
    },
    /// The same on ZEAFS.
    #[error("{}: {file}: {damage}", drive.display())]
    DamagedFile {
        /// The drive.
        drive: PathBuf,
        /// The file.
        file: String,
        /// What is damaged in it.
        damage: zeafs::Error,
    },
    /// No program is named.
    #[error("no program is given")]
    NoProgram,
    /// The program is not there.
    #[error("{}: not found", program.display())]
    NotFound {
        /// The program.
        program: PathBuf,
        /// Where programs come from.
        from: &'static str,
    },
    /// A file of the host's cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The library that an environment variable names cannot be used.
    #[error("{variable}: {}: {source}", path.display())]
    NamedLibrary {
        /// The variable.
        variable: &'static str,
        /// The library.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The library is not where it is looked for.
    #[error("the plug-in {file} is neither in {} nor in ../lib/zonestore", folder.display())]
    NoLibrary {
        /// Its file.
        file: &'static str,
        /// Where it was looked for.
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
    /// The program has come to its end and nobody has opened the drive.
    #[error(
        "the program ended without opening {}; if it has a database, that lies elsewhere",
        drive.display()
    )]
    NotReached {
        /// The drive.
        drive: PathBuf,
    },
}
