//! Numbers flushes, to tell whether one that began after a write has completed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts flushes, which may overlap, from 1.
#[derive(Default, Debug)]
pub(super) struct Flushes {
    begun: AtomicU64,
    finished: AtomicU64,
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

    /// Calls `flush` as the next flush.
    pub fn run<E>(&self, flush: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        flush()?;
        self.finished.fetch_max(number, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_that_began_before_or_failed_does_not_count() {
        let flushes = Flushes::default();
        let mut wanted = 0;
        flushes
            .run(|| {
                wanted = flushes.next();
                Ok::<_, ()>(())
            })
            .unwrap();
        assert!(flushes.finished() < wanted);
        assert!(flushes.run(|| Err(())).is_err());
        assert!(flushes.finished() < wanted);
        flushes.run(|| Ok::<_, ()>(())).unwrap();
        assert!(flushes.finished() >= wanted);
    }
}
