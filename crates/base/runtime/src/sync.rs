//! Locks: those of parking_lot. With the feature `schedules` they are shuttle's, which decides at each lock
//! which thread runs next, and so can run BlueFS and the store under many schedules.

#[cfg(not(feature = "schedules"))]
pub use parking_lot::{
    Condvar, MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
#[cfg(feature = "schedules")]
pub use shuttle_parking_lot::{
    MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard,
};
#[cfg(feature = "schedules")]
use std::time::Duration;

/// Atomics, for values that are read without a lock.
pub mod atomic {
    #[cfg(feature = "schedules")]
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
    #[cfg(not(feature = "schedules"))]
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
}

/// Takes `lock` for reading although this thread may hold it for reading and another may wait to write.
pub fn read_recursive<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    #[cfg(not(feature = "schedules"))]
    return lock.read_recursive();
    // Shuttle's lock lets no reader overtake a waiting writer, so no history may have a writer wait here.
    #[cfg(feature = "schedules")]
    lock.read()
}

/// A condition variable for the locks of `shuttle_parking_lot`, which has none.
#[cfg(feature = "schedules")]
#[derive(Default, Debug)]
pub struct Condvar {
    /// How often a waiting thread has been woken.
    woken: shuttle::sync::Mutex<u64>,
    changed: shuttle::sync::Condvar,
}

#[cfg(feature = "schedules")]
#[allow(clippy::unwrap_used)]
impl Condvar {
    /// A condition variable without waiting threads.
    pub fn new() -> Self {
        Self::default()
    }

    /// Releases the lock until the thread is woken.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        // A waking thread needs this lock, so no wake-up between the release of the other lock and the wait is
        // missed.
        let mut woken = self.woken.lock().unwrap();
        let before = *woken;
        MutexGuard::unlocked(guard, || {
            while *woken == before {
                woken = self.changed.wait(woken).unwrap();
            }
            drop(woken);
        });
    }

    /// As [`Self::wait`]: under a schedule no time passes.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: Duration) {
        self.wait(guard);
    }

    /// Wakes all waiting threads; all but one may find nothing changed.
    pub fn notify_one(&self) {
        self.notify_all();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        *self.woken.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}
