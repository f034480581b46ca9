//! What can go wrong.

use crate::record::PolicyKind;
use swift_files::FileName;
use thiserror::Error;

/// An answer, or why there is none.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done.
#[derive(Debug, Error)]
pub enum Error {
    /// The drive has no such policy.
    #[error("the drive has nothing of storage policy {policy}: add the policy first")]
    NoPolicy {
        /// Its index.
        policy: u32,
    },
    /// The policy is of another kind, or of a later version.
    #[error(
        "storage policy {policy} is {found} on this drive, and not {wanted}: a policy keeps its kind for good, take another index"
    )]
    OtherPolicy {
        /// Its index.
        policy: u32,
        /// What the drive has.
        found: String,
        /// What was asked for.
        wanted: PolicyKind,
    },
    /// No such object, nor a tombstone.
    #[error("no such object")]
    NoObject,
    /// There is no such file of the object.
    #[error("the object has no file {file}")]
    NoFile {
        /// Its name.
        file: FileName,
    },
    /// A file of an object of another kind of policy.
    #[error("{file} is no file of a policy with {kind}")]
    WrongFile {
        /// Its name.
        file: FileName,
        /// The policy's.
        kind: PolicyKind,
    },
    /// A name in a collection of Swift's that none of ours is.
    #[error(
        "{name:?} in collection {collection:?} is no file of an object: something else wrote it"
    )]
    Foreign {
        /// The collection.
        collection: String,
        /// The object's name.
        name: String,
    },
    /// The store says no.
    #[error(transparent)]
    Store(#[from] store::Error),
}
