//! The C ABI of BlueFS and, for LevelDB, of ZEAFS (`include/zonestore/bluefs.h`), for the adaptors in C++, which only
//! translate. Both file systems implement the traits of `file_system`.
//!
//! Every function catches panics; a failure leaves its message in a thread-local for `zs_last_error`. Mounts by path
//! are shared within the process, because RocksDB makes a new file system object for every URI. A forked process cannot
//! use its parent's mounts.

mod abi;
mod answers;
mod ending;
mod failure;
mod file_system;
mod forks;
mod mounts;
mod on_bluefs;
mod on_zeafs;
mod pointers;

pub use abi::{Fs, into_raw};
