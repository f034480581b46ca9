//! Locks: parking_lot's. With the feature `schedules` they are shuttle's, which decides at each of
//! them who runs next, and so can run BlueFS through many schedules (`bluefs/schedules.rs`).

#[cfg(not(feature = "schedules"))]
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};
#[cfg(feature = "schedules")]
pub use shuttle_parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard};

/// Of what is looked at without a lock.
pub mod atomic {
    #[cfg(feature = "schedules")]
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
    #[cfg(not(feature = "schedules"))]
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
}

/// A number of the thread that asks, always the same: the first is 0, the next 1.
#[cfg(feature = "schedules")]
pub fn thread_number() -> usize {
    shuttle::thread::current().id().into()
}

/// A number of the thread that asks, always the same: the first is 0, the next 1.
#[cfg(not(feature = "schedules"))]
pub fn thread_number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    // A thread that ends has none any more.
    NUMBER.try_with(|number| *number).unwrap_or_default()
}

/// A condition variable for the locks of `shuttle_parking_lot`, which has none.
#[cfg(feature = "schedules")]
#[derive(Default)]
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

    /// Wakes everybody who waits.
    pub fn notify_all(&self) {
        *self.woken.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}
