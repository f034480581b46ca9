//! The C ABI of BlueFS and, for LevelDB, of ZEAFS (`include/zonestore/bluefs.h`), for the adaptors written in C++, which only
//! translate. Both are behind one trait (`file_system`).
//!
//! Every entry catches panics; a failure leaves its words in a thread-local for `zs_last_error`.
//! Mounts by path are shared within the process, for RocksDB makes a new file system object for
//! every URI it meets; a process that was forked has no part in them.

mod abi;
mod answers;
mod failure;
mod file_system;
mod forks;
mod mounts;
mod on_bluefs;
mod on_zeafs;
mod pointers;

pub use abi::{Fs, into_raw};
