//! A small interface to RocksDB on a BlueFS: batches, reads, scans, merges, and a look at the log
//! when it is replayed. Debian's librocksdb, by `cxx`.

mod batch;
mod bridge;
mod database;
mod error;
mod options;
mod replay;
mod scan;

pub use batch::Batch;
pub use database::Kv;
pub use error::{Error, Result};
pub use options::{Durability, MergeOperator, Options};
pub use replay::{Replay, ReplayFilter};
pub use scan::Scan;
