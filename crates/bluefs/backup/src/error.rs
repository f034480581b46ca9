//! Why nothing was packed or restored.

use std::io;
use thiserror::Error;

/// Why nothing was packed or restored.
#[derive(Debug, Error)]
pub enum Error {
    /// Of the file system.
    #[error(transparent)]
    BlueFs(bluefs::Error),
    /// A file's bytes are not what its checksums say.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: bluefs::Error,
    },
    /// Two reads of a file differ.
    #[error("{path}: the drive gave other bytes the second time")]
    Changed {
        /// The file.
        path: String,
    },
    /// A file has the name of the archive's own.
    #[error("{path}: an archive keeps its checksums under this name")]
    Reserved {
        /// The file.
        path: String,
    },
    /// What the archive is written to, or a file that is stored is read from.
    #[error(transparent)]
    Io(io::Error),
    /// The file system to restore into has files.
    #[error("the file system holds files already")]
    NotEmpty,
    /// The archive is compressed.
    #[error("the archive is compressed by {with}")]
    Compressed {
        /// The program that undoes it, with `-dc`.
        with: &'static str,
    },
    /// The archive is no tar archive, or not a whole one.
    #[error("the archive is damaged: {0}")]
    NoTar(io::Error),
    /// There is something behind the last file.
    #[error("the archive is damaged: it goes on behind its checksums")]
    GoesOn,
    /// What the last file holds cannot be read.
    #[error("the archive's checksums are damaged")]
    Checksums,
    /// A file is shorter than its header says.
    #[error("the archive ends in the middle of {path}")]
    CutOff {
        /// The file.
        path: String,
    },
    /// It stops in front of the blocks that end a tar archive.
    #[error("the archive is cut off: its end is missing")]
    NoEnd,
    /// The last file is another one.
    #[error("the archive has no checksums: another program made it")]
    NoChecksums,
    /// The archive does not hold what its last file names.
    #[error("the archive is damaged: {wrong} is not what was packed")]
    Different {
        /// The first file that differs, or the list of files.
        wrong: String,
    },
    /// A name would leave the file system.
    #[error("{name}: a name that leads out of the archive")]
    LeadsOut {
        /// The name.
        name: String,
    },
    /// A link, a device or the like.
    #[error("{name}: {kind}; only files and directories can be restored")]
    Kind {
        /// Its name.
        name: String,
        /// What it is.
        kind: String,
    },
}

/// Of packing or restoring.
pub type Result<T> = std::result::Result<T, Error>;

impl From<bluefs::Error> for Error {
    fn from(error: bluefs::Error) -> Self {
        Self::BlueFs(error)
    }
}

impl From<io::Error> for Error {
    /// One of the file system's, which went through a reader, is itself again.
    fn from(error: io::Error) -> Self {
        match error.downcast::<bluefs::Error>() {
            Ok(own) => Self::BlueFs(own),
            Err(error) => Self::Io(error),
        }
    }
}
