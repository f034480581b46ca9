//! RocksDB on a BlueFS as a database of `kv`: Debian's librocksdb, by `cxx`.

mod bridge;
mod cursor;
mod database;
mod engine;
mod healer;
mod outcome;
mod replay;

pub use engine::RocksDb;
