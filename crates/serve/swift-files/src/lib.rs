//! The files that make up an object of OpenStack Swift: data, metadata of later POSTs, tombstones, and in an
//! erasure-coded policy fragments. Nothing here does I/O.
//!
//! This crate defines the names of these files ([`FileName`]), which of them count and which can be removed
//! ([`choose`]), and the hash of a suffix's files ([`SuffixHash`]).
//!
//! Nodes of a cluster compare these hashes to find out what to send each other. So names and hashes equal those of
//! Swift 2.38 (`swift.obj.diskfile`) bit for bit; `tests/swift` compares both.

mod choice;
mod file_name;
mod fragments;
mod suffix_hash;
mod timestamp;

pub use choice::{Choice, Policy, Reclaim, choose};
pub use file_name::{FileName, FileNameError, Kind};
pub use fragments::{Fragments, Preference, Wanted};
pub use suffix_hash::{Digest, FragmentHashes, SuffixHash};
pub use timestamp::{Timestamp, TimestampError};
