//! Threads. Long-lived ones are started by [`crate::Runtime::spawn`].

#[cfg(feature = "schedules")]
pub(crate) use shuttle::thread::Builder;
#[cfg(feature = "schedules")]
pub use shuttle::thread::{JoinHandle, scope, sleep, yield_now};
#[cfg(not(feature = "schedules"))]
pub(crate) use std::thread::Builder;
#[cfg(not(feature = "schedules"))]
pub use std::thread::{JoinHandle, scope, sleep, yield_now};

/// A number of the thread that asks, always the same: the first is 0, the next 1.
#[cfg(feature = "schedules")]
pub fn number() -> usize {
    shuttle::thread::current().id().into()
}

/// A number of the thread that asks, always the same: the first is 0, the next 1.
#[cfg(not(feature = "schedules"))]
pub fn number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    // A thread that ends has none any more.
    NUMBER.try_with(|number| *number).unwrap_or_default()
}
