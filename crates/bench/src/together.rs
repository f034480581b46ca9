//! Operations by several threads at once.

use crate::error::Result;
use crate::watch::Watch;
use runtime::thread;
use std::sync::atomic::{AtomicU64, Ordering};

/// Carries out `operation` with each number below `count`, `threads` at a time; ends with the first error.
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
            watch.check()?;
            operation(number)?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            match thread.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    })
}
