//! A writer that threads share: RocksDB syncs a log from another thread than the one that appends to it.
//!
//! A lock gives the writer to one caller at a time. A sync holds it while it writes out the tail, but not while it
//! waits for the flush: meanwhile other threads append. This sync does not promise their bytes, so it does not matter
//! whether its flush covers them.

use crate::{Result, Writer};
use runtime::sync::{Mutex, MutexGuard};

/// A [`Writer`] that may be synced concurrently with appends.
pub struct SharedWriter {
    writer: Mutex<Writer>,
}

impl SharedWriter {
    /// Shares `writer`.
    pub fn new(writer: Writer) -> Self {
        Self {
            writer: Mutex::new(writer),
        }
    }

    /// The writer, for all operations but a sync.
    pub fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// Makes all bytes durable that were appended before the call.
    pub fn sync(&self) -> Result<()> {
        let make_durable = self.lock().begin_sync()?;
        let result = make_durable();
        self.lock().sticky(result)
    }
}
