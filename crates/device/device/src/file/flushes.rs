//! Numbers flushes, to tell whether one that began after a write has completed.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Counts flushes, which may overlap, from 1.
#[derive(Default, Debug)]
pub(crate) struct Flushes {
    begun: AtomicU64,
    finished: AtomicU64,
    /// The error of the first flush that failed.
    failed: OnceLock<Arc<io::Error>>,
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

    /// Calls `flush` as the next flush. Once one has failed, all do: the host reports a lost write once, to one of those
    /// that flush, and the next flush succeeds without it.
    pub fn run(&self, flush: impl FnOnce() -> io::Result<()>) -> Result<(), Arc<io::Error>> {
        let known = || self.failed.get().map_or(Ok(()), |error| Err(error.clone()));
        known()?;
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        flush().map_err(|error| self.failed.get_or_init(|| Arc::new(error)).clone())?;
        known()?;
        self.finished.fetch_max(number, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_that_began_before_does_not_count() {
        let flushes = Flushes::default();
        let mut wanted = 0;
        flushes
            .run(|| {
                wanted = flushes.next();
                Ok(())
            })
            .unwrap();
        assert!(flushes.finished() < wanted);
        flushes.run(|| Ok(())).unwrap();
        assert!(flushes.finished() >= wanted);
    }

    #[test]
    fn after_a_flush_that_failed_none_succeeds() {
        let flushes = Flushes::default();
        let failed = || Err(io::ErrorKind::StorageFull.into());
        // Also one that was under way meanwhile: only one of both is told.
        let both = flushes.run(|| {
            flushes.run(failed).unwrap_err();
            Ok(())
        });
        for done in [both, flushes.run(|| Ok(()))] {
            assert_eq!(done.unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
        assert_eq!(flushes.finished(), 0);
    }
}
