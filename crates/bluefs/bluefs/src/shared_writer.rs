//! A writer that threads share: RocksDB syncs a log from another thread than the one that appends to it.
//!
//! A lock makes the writer one caller's at a time. A sync holds it while it writes out what was appended,
//! and not while it waits for the drive: meanwhile others append. What they append is in no record and no
//! frame that this sync counts on, so whether its flush covers them too does not matter.

use crate::{Result, Writer};
use runtime::sync::{Mutex, MutexGuard};

/// A [`Writer`] that may be synced beside appends.
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

    /// The writer, for everything but a sync.
    pub fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }

    /// Makes everything durable that was appended before the call.
    pub fn sync(&self) -> Result<()> {
        let make_durable = self.lock().begin_sync()?;
        let result = make_durable();
        self.lock().sticky(result)
    }
}
