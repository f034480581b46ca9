//! Errors of file operations. Each kind has one errno, so that an adaptor only translates.

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
    /// The directory has an entry of this name.
    #[error("the name exists already")]
    Exists,
    /// The operation needs a directory.
    #[error("not a directory")]
    NotDirectory,
    /// The operation is not for directories.
    #[error("is a directory")]
    IsDirectory,
    /// The directory has entries.
    #[error("the directory is not empty")]
    NotEmpty,
    /// Names have at most 255 bytes, targets of symbolic links 4,095.
    #[error("the name is too long")]
    NameTooLong,
    /// An argument has no meaning, such as an empty range.
    #[error("{0}")]
    Invalid(&'static str),
    /// The inode is of a kind that the operation is not for.
    #[error("not permitted for an inode of this kind")]
    NotPermitted,
    /// There is no room for more data, whatever is cleaned.
    #[error("no space left for data; remove files")]
    NoSpace,
    /// The host's disk under a drive file has no room.
    #[error("no space left on the host's disk")]
    HostFull,
    /// There is no room for more names, attributes or extents.
    #[error("no space left for metadata; remove files")]
    NoMetadataSpace,
    /// The file would exceed the largest size on this drive.
    #[error("the file would exceed {most} bytes")]
    TooLarge {
        /// Bytes of the largest file.
        most: u64,
    },
    /// The inode has the most names that an inode can have.
    #[error("too many links")]
    TooManyLinks,
    /// The inode has no such extended attribute.
    #[error("no such extended attribute")]
    NoAttribute,
    /// An extended attribute is longer than 64 KiB, or its name than 255 bytes.
    #[error("the extended attribute is too long")]
    AttributeTooLong,
    /// The file system is mounted read-only.
    #[error("mounted read-only")]
    ReadOnly,
    /// The state of the journal on the drive is unknown after an error, so nothing more is written. The next mount
    /// finds the last sync.
    #[error("writing stopped after an error of the drive ({0}); mount again")]
    Stopped(Box<str>),
    /// The file system cannot be mounted for writing.
    #[error("the metadata cannot be written: {0}")]
    Unwritable(Box<str>),
    /// This file system does not have the operation.
    #[error("not supported")]
    Unsupported,
    /// A block of data fails its checksum.
    #[error("data of inode {inode}, block {block}, is damaged (zone {zone})")]
    DamagedData {
        /// The inode.
        inode: u64,
        /// Block of the file.
        block: u64,
        /// The zone that the block lies in.
        zone: ZoneId,
    },
    /// Metadata fails its checksum, or contradicts itself.
    #[error("metadata is damaged: {what}")]
    DamagedMetadata {
        /// What is damaged, and where.
        what: String,
    },
    /// The drive has no file system of smrfs.
    #[error("no file system of smrfs on this drive")]
    NotFormatted,
    /// The format has a version that this program does not know.
    #[error("the {what} has version {found}; this program knows versions 1 to {known}")]
    Version {
        /// The structure that has the version.
        what: &'static str,
        /// The version on the drive.
        found: u32,
        /// The highest version that this program can read.
        known: u32,
    },
    /// The file system cannot be made or mounted with these options.
    #[error("{0}")]
    Options(String),
    /// The drive is too small, or its geometry is not supported.
    #[error("{0}")]
    Shape(String),
    /// The drive failed.
    #[error(transparent)]
    Drive(#[from] ZoneError),
}

impl Error {
    /// The `errno` of the error.
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
            Self::NoSpace | Self::NoMetadataSpace | Self::HostFull => libc::ENOSPC,
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

    /// Whether the cause is the drive or its contents, not the caller: such an error is worth a line in the log.
    pub fn is_of_drive(&self) -> bool {
        self.errno() == libc::EIO || matches!(self, Self::Drive(_))
    }

    pub(crate) fn metadata(what: impl Into<String>) -> Self {
        Self::DamagedMetadata { what: what.into() }
    }
}
