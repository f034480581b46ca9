//! Objects of OpenStack Swift on a store. What a file system has as directories of files is here:
//!
//! | collection | objects | attributes |
//! |---|---|---|
//! | `swift-P` (P: index of the policy), attributes `format` 1 and `kind` | `partition/suffix/hash/file`, one for each file of an object | `metadata`: the caller's bytes |
//! | `swift-P-suffixes` | `partition/suffix`, one for each suffix that has objects, without data | `hashes`, unless it has to be hashed again |
//! | `swift-P-quarantined` | as in `swift-P` | as there |
//!
//! A partition has ten digits, so that names are in its order. Each change of an object is one transaction: the
//! new file is there, those that it replaces are gone, and the suffix is to be hashed again. So what hashes say
//! is true after any crash.

mod address;
mod drive;
mod error;
mod hashing;
mod reading;
mod record;
mod walk;

pub use address::{Address, ObjectHash, Suffix};
pub use drive::{Put, SwiftDrive};
pub use error::{Error, Result};
pub use hashing::{Ages, FragmentHashes, Hashes};
pub use reading::{Metadata, Opened};
pub use record::PolicyKind;
