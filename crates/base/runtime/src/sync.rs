//! Locks: parking_lot's. With the feature `schedules` they are shuttle's, which decides at each of
//! them who runs next, and so can run BlueFS and the store through many schedules.

#[cfg(not(feature = "schedules"))]
pub use parking_lot::{
    Condvar, MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
#[cfg(feature = "schedules")]
pub use shuttle_parking_lot::{
    MappedRwLockReadGuard, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
#[cfg(feature = "schedules")]
use std::time::Duration;

/// Of what is looked at without a lock.
pub mod atomic {
    #[cfg(feature = "schedules")]
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
    #[cfg(not(feature = "schedules"))]
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
}

/// Takes `lock` for reading although this thread may hold it for reading and another wait to write.
pub fn read_recursive<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    #[cfg(not(feature = "schedules"))]
    return lock.read_recursive();
    // Shuttle's lock lets nobody overtake a writer: no history may have one wait meanwhile.
    #[cfg(feature = "schedules")]
    lock.read()
}

/// A condition variable for the locks of `shuttle_parking_lot`, which has none.
#[cfg(feature = "schedules")]
#[derive(Default, Debug)]
pub struct Condvar {
    /// How often somebody has been woken.
    woken: shuttle::sync::Mutex<u64>,
    changed: shuttle::sync::Condvar,
}

#[cfg(feature = "schedules")]
#[allow(clippy::unwrap_used)]
impl Condvar {
    /// Nobody waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets go of the lock until somebody is woken.
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

    /// The same: under a schedule no time passes.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _timeout: Duration) {
        self.wait(guard);
    }

    /// Wakes everybody, of whom all but one may find nothing changed.
    pub fn notify_one(&self) {
        self.notify_all();
    }

    /// Wakes everybody who waits.
    pub fn notify_all(&self) {
        *self.woken.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}
