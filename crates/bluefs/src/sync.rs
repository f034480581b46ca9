//! Locks: parking_lot's. With the feature `schedules` they are shuttle's, which decides at each of
//! them who runs next, and so can run the file system through many schedules (`schedules.rs`).

#[cfg(not(feature = "schedules"))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
#[cfg(feature = "schedules")]
pub(crate) use shuttle_parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

/// Of what belongs to a file: a sync looks at it without a lock.
pub(crate) mod atomic {
    #[cfg(feature = "schedules")]
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32};
    #[cfg(not(feature = "schedules"))]
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32};
}

/// A condition variable for the locks of `shuttle_parking_lot`, which has none.
#[cfg(feature = "schedules")]
#[derive(Default)]
pub(crate) struct Condvar {
    /// How often somebody has been woken.
    woken: shuttle::sync::Mutex<u64>,
    changed: shuttle::sync::Condvar,
}

#[cfg(feature = "schedules")]
#[allow(clippy::unwrap_used)]
impl Condvar {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        // Whoever wakes us needs this lock, so none is missed on the way from the other.
        let mut woken = self.woken.lock().unwrap();
        let before = *woken;
        MutexGuard::unlocked(guard, || {
            while *woken == before {
                woken = self.changed.wait(woken).unwrap();
            }
            drop(woken);
        });
    }

    pub fn notify_all(&self) {
        *self.woken.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}
