//! The C ABI of BlueFS (`include/zonestore/bluefs.h`) and a `rocksdb::FileSystem` over it.
//!
//! The C++ half (`cpp/`) only translates. Every entry catches panics; a failure leaves its words
//! in a thread-local for `zs_last_error`. Mounts by path are shared within the process, for
//! RocksDB makes a new file system object for every URI it meets.

mod abi;
mod mounts;

pub use abi::{Fs, into_raw};
