//! The thread that cleans zones ahead of need. It belongs to the mounted file system, not to its open files: it ends
//! with the unmount, or when the last handle of the file system is dropped.

use crate::options::Cleaning;
use crate::shared::Shared;
use runtime::sync::Mutex;
use runtime::sync::atomic::AtomicBool;
use runtime::thread::JoinHandle;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use zone_alloc::{Allowance, Allowed};

/// How many bytes may be moved ahead of need.
pub(crate) struct Budget {
    cleaning: Cleaning,
    /// For tidying, and for having free zones.
    allowances: Mutex<[Allowance; 2]>,
}

impl Budget {
    /// An allowance accumulates up to the capacity of one zone.
    fn new(cleaning: Cleaning, zone_capacity: u64) -> Self {
        Self {
            cleaning,
            allowances: Mutex::new(
                [cleaning.tidy_per_mille, cleaning.percent.saturating_mul(10)]
                    .map(|per_mille| Allowance::new(per_mille, zone_capacity)),
            ),
        }
    }

    pub const fn begin_below(&self) -> Option<u32> {
        self.cleaning.begin_below
    }

    /// The bytes that may be moved now; `written` is what users have written since the mount.
    pub fn allows(&self, written: u64) -> Allowed {
        let mut allowances = self.allowances.lock();
        let [to_tidy, ahead] = allowances.each_mut().map(|allowance| {
            allowance.earn(written);
            allowance.allows()
        });
        Allowed { to_tidy, ahead }
    }

    pub fn spend(&self, moved: u64) {
        for allowance in &mut *self.allowances.lock() {
            allowance.spend(moved);
        }
    }
}

/// The cleaning of a mounted file system, with a thread or only on call.
pub(crate) struct Cleaner {
    shared: Arc<Shared>,
    budget: Arc<Budget>,
    stopped: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

impl Cleaner {
    pub fn start(shared: &Arc<Shared>, cleaning: Cleaning) -> Self {
        let capacity = shared.device.geometry().zone_capacity;
        let budget = Arc::new(Budget::new(cleaning, capacity));
        let stopped = Arc::new(AtomicBool::new(false));
        let thread = cleaning.in_background.then(|| {
            let (shared, budget, stopped) = (shared.clone(), budget.clone(), stopped.clone());
            let runtime = shared.runtime.clone();
            runtime.spawn("bluefs-cleaner", move || run(&shared, &budget, &stopped))
        });
        let thread = thread.and_then(|thread| {
            let failed = |error: &_| tracing::warn!(%error, "zones are cleaned only in need");
            thread.inspect_err(failed).ok()
        });
        Self {
            shared: shared.clone(),
            budget,
            stopped,
            thread: Mutex::new(thread),
            process: std::process::id(),
        }
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Stops the thread and waits until it has ended.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        if self.process != std::process::id() {
            // A forked child has no such thread to wait for.
            std::mem::forget(thread);
            return;
        }
        self.shared.wake.call();
        if thread.join().is_err() {
            tracing::error!("the cleaner has panicked");
        }
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(shared: &Shared, budget: &Budget, stopped: &AtomicBool) {
    let is_over = || stopped.load(Ordering::Acquire);
    loop {
        shared.wake.wait(shared.until_next_retry());
        if let Err(error) = shared.reset_again(Duration::MAX) {
            tracing::warn!(%error, "a zone could not be reset");
        }
        shared.finish_again(Duration::MAX);
        while !is_over() {
            match shared.clean_ahead(budget, &is_over) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.is_of_the_end() => return,
                Err(error) => {
                    tracing::warn!(%error, "a zone could not be cleaned ahead of need");
                    break;
                }
            }
        }
        if is_over() {
            return;
        }
    }
}
