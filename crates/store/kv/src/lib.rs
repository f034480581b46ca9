//! The interface of a key-value database on BlueFS, as the store needs it: batches, reads, scans, merges, and a filter
//! for the log's replay. It is implemented by an [`Engine`]: RocksDB (`kv-rocksdb`), or a small one that issues the
//! same commands in every run (`kv-log`).

mod batch;
mod database;
mod engine;
mod error;
mod healing;
mod moment;
mod options;
mod replay;

pub use batch::{Batch, Change};
pub use database::{Cursor, Database, Heal, Scan};
pub use engine::{Engine, Kv};
pub use error::{Error, Result};
pub use moment::{Moment, View};
pub use options::{Durability, MergeOperator, Options};
pub use replay::{LoggedBatch, Replay, ReplayFilter};
