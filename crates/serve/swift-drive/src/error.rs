//! Errors of [`SwiftDrive`](crate::SwiftDrive).

use crate::record::PolicyKind;
use swift_files::FileName;
use thiserror::Error;

/// Result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a call failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The drive has no such policy.
    #[error("the drive has nothing of storage policy {policy}: add the policy first")]
    NoPolicy {
        /// The policy's index.
        policy: u32,
    },
    /// The policy is of another kind, or of a later version.
    #[error(
        "storage policy {policy} is {found} on this drive, and not {wanted}: a policy keeps its kind for good, take another index"
    )]
    OtherPolicy {
        /// The policy's index.
        policy: u32,
        /// Kind and version on the drive, in words.
        found: String,
        /// The kind that was requested.
        wanted: PolicyKind,
    },
    /// The object has no files, not even a tombstone.
    #[error("no such object")]
    NoObject,
    /// The object has no such file.
    #[error("the object has no file {file}")]
    NoFile {
        /// The file's name.
        file: FileName,
    },
    /// A file of the object cannot be read.
    #[error("{file}: {source}")]
    InFile {
        /// The file's name.
        file: FileName,
        /// What the store says of it.
        source: Box<store::Error>,
    },
    /// A file that objects of this kind of policy cannot have.
    #[error("{file} is no file of a policy with {kind}")]
    WrongFile {
        /// The file's name.
        file: FileName,
        /// The policy's kind.
        kind: PolicyKind,
    },
    /// A name in one of this crate's collections that this crate did not write.
    #[error(
        "{name:?} in collection {collection:?} is no file of an object: something else wrote it"
    )]
    Foreign {
        /// The collection.
        collection: String,
        /// The object's name.
        name: String,
    },
    /// Quarantined files stay where they are because their metadata is damaged.
    #[error(
        "{removed} quarantined files were removed, and {left} are left whose metadata is damaged, until `store fsck \
         --repair` removes the damage: {first}"
    )]
    NotEmptied {
        /// Files that were removed.
        removed: u64,
        /// Files that are left.
        left: u64,
        /// The error of the first that is left, which names it.
        first: Box<store::Error>,
    },
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
}
