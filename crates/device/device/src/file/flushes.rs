//! Numbers flushes, to tell whether one that began after a write has completed.

use runtime::sync::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts flushes from 1.
#[derive(Default, Debug)]
pub(crate) struct Flushes {
    begun: AtomicU64,
    finished: AtomicU64,
    /// The error of the first flush that failed; held during a flush.
    failed: Mutex<Option<Arc<io::Error>>>,
}

impl Flushes {
    /// The number of the first flush that begins after this call; it makes earlier writes durable.
    pub fn next(&self) -> u64 {
        self.begun.load(Ordering::SeqCst) + 1
    }

    /// The largest number of a flush that has succeeded.
    pub fn finished(&self) -> u64 {
        self.finished.load(Ordering::SeqCst)
    }

    /// Calls `flush` as the next flush, unless one that began after this call has succeeded. Once one has failed, all
    /// do: the host reports a lost write once, to one of those that flush, and the next flush succeeds without it. So
    /// one waits for the other, and those that waited share one.
    pub fn run(&self, flush: impl FnOnce() -> io::Result<()>) -> Result<(), Arc<io::Error>> {
        let wanted = self.next();
        let mut failed = self.failed.lock();
        if let Some(error) = &*failed {
            return Err(error.clone());
        }
        if self.finished() >= wanted {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        flush().map_err(|error| failed.insert(Arc::new(error)).clone())?;
        self.finished.store(number, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
