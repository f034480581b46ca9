//! `Error`: why packing or restoring failed.

use crate::format::{PARTIAL, VERIFIED};
use std::io;
use thiserror::Error;

/// Why packing or restoring failed.
#[derive(Debug, Error)]
pub enum Error {
    /// An error of the file system.
    #[error(transparent)]
    BlueFs(bluefs::Error),
    /// A file does not match its checksums.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The mismatch.
        source: bluefs::Error,
    },
    /// Two reads of a file differ.
    #[error("{path}: the drive gave other bytes the second time")]
    Changed {
        /// The file.
        path: String,
    },
    /// A file has a name that is reserved: for the archive's checksums, or for files that are being restored.
    #[error("{path}: a name that archives and restores keep for themselves")]
    Reserved {
        /// The file.
        path: String,
    },
    /// A restore into the file system to be packed has not ended.
    #[error("a restore into this file system has not come to its end")]
    Unfinished,
    /// The archive has been verified and stored, and not all of its files got their names.
    #[error(transparent)]
    Placing(bluefs::Error),
    /// A file has a name that the verified file of an interrupted restore is to have.
    #[error("{name} is there, and /{VERIFIED}{name} is to have its name")]
    NameTaken {
        /// The name, an absolute path.
        name: String,
    },
    /// The files of an interrupted restore are not alone.
    #[error(
        "/{PARTIAL} is left of a restore that did not end, and there are other files beside it"
    )]
    LeftBesideOthers,
    /// The archive cannot be written, or a file to be stored cannot be read.
    #[error(transparent)]
    Io(io::Error),
    /// The file system to restore into has files, or others than those of the archive.
    #[error("the file system holds files already")]
    NotEmpty,
    /// The archive is compressed.
    #[error("the archive is compressed by {with}")]
    Compressed {
        /// The program that decompresses it, with `-dc`.
        with: &'static str,
    },
    /// The archive is not a tar archive, or is incomplete.
    #[error("the archive is damaged: {0}")]
    NoTar(io::Error),
    /// The archive has entries after its checksums.
    #[error("the archive is damaged: it goes on behind its checksums")]
    GoesOn,
    /// The archive's checksums cannot be decoded.
    #[error("the archive's checksums are damaged")]
    Checksums,
    /// A file is shorter than its header says.
    #[error("the archive ends in the middle of {path}")]
    CutOff {
        /// The file.
        path: String,
    },
    /// The zero blocks that end a tar archive are missing.
    #[error("the archive is cut off: its end is missing")]
    NoEnd,
    /// The archive's last file is not that with the checksums.
    #[error("the archive has no checksums: another program made it")]
    NoChecksums,
    /// The archive's content differs from the list in its last file.
    #[error("the archive is damaged: {wrong} is not what was packed")]
    Different {
        /// The first file that differs, or the list of files.
        wrong: String,
    },
    /// A name leads out of the file system's root.
    #[error("{name}: a name that leads out of the archive")]
    LeadsOut {
        /// The name.
        name: String,
    },
    /// An entry is neither a file nor a directory.
    #[error("{name}: {kind}; only files and directories can be restored")]
    Kind {
        /// The entry's name.
        name: String,
        /// The entry's type.
        kind: String,
    },
}

/// Result of packing or restoring.
pub type Result<T> = std::result::Result<T, Error>;

impl From<bluefs::Error> for Error {
    fn from(error: bluefs::Error) -> Self {
        Self::BlueFs(error)
    }
}

impl From<io::Error> for Error {
    /// Unwraps an error of the file system that was passed through a [`std::io::Read`].
    fn from(error: io::Error) -> Self {
        match error.downcast::<bluefs::Error>() {
            Ok(own) => Self::BlueFs(own),
            Err(error) => Self::Io(error),
        }
    }
}
