//! What file operations answer when they cannot be done. Each kind has an errno of its own, so that an adaptor only
//! translates.

use thiserror::Error;
use zone::{ZoneError, ZoneId};

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation was not done.
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// There is no such name, or no such inode any more.
    #[error("no such file or directory")]
    NotFound,
    /// The name is taken.
    #[error("the name exists already")]
    Exists,
    /// A directory is needed.
    #[error("not a directory")]
    NotDirectory,
    /// Not for directories.
    #[error("is a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// Names have at most 255 bytes, targets of symbolic links 4,095.
    #[error("the name is too long")]
    NameTooLong,
    /// An argument cannot be.
    #[error("{0}")]
    Invalid(&'static str),
    /// The inode is of a kind that the operation is not for.
    #[error("not permitted for an inode of this kind")]
    NotPermitted,
    /// No room for more data, whatever is cleaned.
    #[error("no space left for data; remove files")]
    NoSpace,
    /// No room for more names, attributes or extents.
    #[error("no space left for metadata; remove files")]
    NoMetadataSpace,
    /// The file would be larger than files can be here.
    #[error("the file would exceed {most} bytes")]
    TooLarge {
        /// Bytes of the largest file.
        most: u64,
    },
    /// The inode has as many names as it can have.
    #[error("too many links")]
    TooManyLinks,
    /// The inode has no such extended attribute.
    #[error("no such extended attribute")]
    NoAttribute,
    /// An extended attribute is longer than 64 KiB, or its name than 255 bytes.
    #[error("the extended attribute is too long")]
    AttributeTooLong,
    /// The file system was mounted for reading.
    #[error("mounted read-only")]
    ReadOnly,
    /// What the journal says is not known any more, so nothing more is written. A new mount finds the last sync.
    #[error("writing stopped after an error of the drive ({0}); mount again")]
    Stopped(Box<str>),
    /// It cannot be mounted for writing.
    #[error("the metadata cannot be written: {0}")]
    Unwritable(Box<str>),
    /// Not here.
    #[error("not supported")]
    Unsupported,
    /// Data is not as it was written.
    #[error("data of inode {inode}, block {block}, is damaged (zone {zone})")]
    DamagedData {
        /// The inode.
        inode: u64,
        /// Block of the file.
        block: u64,
        /// Where it lies.
        zone: ZoneId,
    },
    /// Metadata cannot be read as it was written.
    #[error("metadata is damaged: {what}")]
    DamagedMetadata {
        /// What was found, and where.
        what: String,
    },
    /// The drive has none of these file systems.
    #[error("no file system of smrfs on this drive")]
    NotFormatted,
    /// The file system was made by a program that this one does not know.
    #[error("the {what} has version {found}; this program knows versions 1 to {known}")]
    Version {
        /// Of what.
        what: &'static str,
        /// On the drive.
        found: u32,
        /// The highest that can be read.
        known: u32,
    },
    /// It cannot be made or mounted with these options.
    #[error("{0}")]
    Options(String),
    /// The drive is too small, or of a shape that does not do.
    #[error("{0}")]
    Shape(String),
    /// The drive failed.
    #[error(transparent)]
    Drive(#[from] ZoneError),
}

impl Error {
    /// The number that `errno` has for it.
    pub fn errno(&self) -> i32 {
        match self {
            Self::Drive(error) if error.is_host_full() => libc::ENOSPC,
            Self::NotFound => libc::ENOENT,
            Self::Exists => libc::EEXIST,
            Self::NotDirectory => libc::ENOTDIR,
            Self::IsDirectory => libc::EISDIR,
            Self::NotEmpty => libc::ENOTEMPTY,
            Self::NameTooLong => libc::ENAMETOOLONG,
            Self::Invalid(_) | Self::Options(_) | Self::Shape(_) => libc::EINVAL,
            Self::NotPermitted => libc::EPERM,
            Self::NoSpace | Self::NoMetadataSpace => libc::ENOSPC,
            Self::TooLarge { .. } => libc::EFBIG,
            Self::TooManyLinks => libc::EMLINK,
            Self::NoAttribute => libc::ENODATA,
            Self::AttributeTooLong => libc::E2BIG,
            Self::ReadOnly => libc::EROFS,
            Self::Unsupported => libc::EOPNOTSUPP,
            Self::Stopped(_)
            | Self::Unwritable(_)
            | Self::DamagedData { .. }
            | Self::DamagedMetadata { .. }
            | Self::NotFormatted
            | Self::Version { .. }
            | Self::Drive(_) => libc::EIO,
        }
    }

    /// Whether the drive or what is on it is the cause, not the caller: worth a line in a log.
    pub fn is_of_drive(&self) -> bool {
        self.errno() == libc::EIO || matches!(self, Self::Drive(_))
    }

    pub(crate) fn metadata(what: impl Into<String>) -> Self {
        Self::DamagedMetadata { what: what.into() }
    }
}
