//! Operations by several threads at once.

use crate::error::{Error, Result};
use crate::watch::Watch;
use runtime::thread;
use std::sync::atomic::{AtomicU64, Ordering};

/// Carries out `operation` with each number below `count`, `threads` at a time. After an error, no thread begins
/// another one.
pub fn together(
    threads: u32,
    count: u64,
    watch: &dyn Watch,
    operation: impl Fn(u64) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicU64::new(0);
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            let done = watch.check().and_then(|()| operation(number));
            if done.is_err() {
                next.fetch_max(count, Ordering::Relaxed);
                return done;
            }
        }
    };
    thread::scope(|scope| {
        let start = || {
            let started = thread::spawn_scoped(scope, work);
            // The others end with what they have in hand.
            started.inspect_err(|_| _ = next.fetch_max(count, Ordering::Relaxed))
        };
        let threads: Vec<_> = (0..threads).map(|_| start()).collect();
        for thread in threads {
            match thread.map_err(Error::NoThread)?.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests;
