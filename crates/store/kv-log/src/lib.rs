//! A small database of `kv` on BlueFS logs, for simulations and tests: no threads, no clock, and the same
//! commands to the drive in every run.
//!
//! All rows are in memory. A batch is appended to a log as one record with a checksum. When the log has
//! grown, all rows are written to a snapshot, a new log begins, and the file CURRENT names both, replaced
//! by a rename. The files are in `docs/format/kv-log.md`.

mod answer;
mod database;
mod engine;
mod files;
mod format;
mod lock;
mod rows;

pub use engine::KvLog;

/// Every decoder of the files, for the fuzz target.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let _ = format::Current::decode(bytes);
    for record in format::records(bytes).map_while(Result::ok) {
        let _ = kv::Batch::from_bytes(record);
    }
}
