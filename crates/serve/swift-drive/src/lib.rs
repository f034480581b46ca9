//! Objects of OpenStack Swift in a store. Swift's file system has a directory of files for each object; here,
//! instead:
//!
//! | collection | objects | attributes |
//! | `swift-P` | `partition/suffix/hash/file`, one for each file of an object | `metadata`: the caller's bytes |
//! | `swift-P-suffixes` | `partition/suffix`, one for each suffix that has objects; no data | `hashes`, if current, and the `revision` of which they are |
//! | `swift-P-quarantined` | as in `swift-P` | as in `swift-P` |
//!
//! P is the index of the policy. The collection `swift-P` itself has the attributes `format` (1) and `kind`, and
//! `swift-P-suffixes` has `revision`, or `revised-until` while suffixes are looked for.
//!
//! A partition has ten digits, so that names are in order of partitions. Each change of an object is one transaction:
//! it adds the new file, removes those that it replaces, and marks the suffix to be hashed again. So kept hashes are
//! right after any crash. Repairs, salvages and imports change objects too, and mark no suffix. They change the store's
//! revision: hashes of another revision do not count, and [`SwiftDrive::find_suffixes`] gives each suffix with files its
//! object.

mod address;
mod drive;
mod error;
mod hashing;
mod reading;
mod record;
mod revised;
mod walk;

pub use address::{Address, ObjectHash, Suffix};
pub use drive::{Put, SwiftDrive};
pub use error::{Error, Result};
pub use hashing::{Ages, Hashes};
pub use reading::{Metadata, Opened};
pub use record::PolicyKind;
