//! The C ABI of BlueFS (`include/zonestore/bluefs.h`), for the adaptors written in C++, which only
//! translate.
//!
//! Every entry catches panics; a failure leaves its words in a thread-local for `zs_last_error`.
//! Mounts by path are shared within the process, for RocksDB makes a new file system object for
//! every URI it meets; a process that was forked has no part in them.

mod abi;
mod answers;
mod forks;
mod mounts;
mod pointers;

pub use abi::{Fs, into_raw};
