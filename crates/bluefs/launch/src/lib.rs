//! Runs unmodified programs on a drive, by a library that is preloaded into them.
//!
//! [`FileSystem::check`] finds damage that the program would report poorly or crash on. [`Launch`] is the program with
//! its environment: this process is replaced by a program that takes the drive's address, and watches over one that
//! does not, because that one may never open the drive ([`End`]).

mod check;
mod error;
mod inherited;
mod launch;
pub mod leveldb;
mod library;
pub mod rocksdb;
mod watched;

pub use check::FileSystem;
pub use error::Error;
pub use launch::Launch;
pub use watched::End;
