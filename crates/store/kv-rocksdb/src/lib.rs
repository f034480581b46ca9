//! RocksDB on BlueFS as an engine of `kv`: Debian's librocksdb, called by `cxx`.

mod bridge;
mod cursor;
mod database;
mod engine;
mod healer;
mod outcome;
mod replay;

pub use engine::RocksDb;
