//! Threads. Long-lived ones are started by [`crate::Runtime::spawn`].

#[cfg(feature = "schedules")]
pub(crate) use shuttle::thread::Builder;
#[cfg(feature = "schedules")]
use shuttle::thread::Scope;
#[cfg(feature = "schedules")]
pub use shuttle::thread::{JoinHandle, ScopedJoinHandle, scope, sleep, yield_now};
use std::io;
#[cfg(not(feature = "schedules"))]
pub(crate) use std::thread::Builder;
#[cfg(not(feature = "schedules"))]
use std::thread::Scope;
#[cfg(not(feature = "schedules"))]
pub use std::thread::{JoinHandle, ScopedJoinHandle, scope, sleep, yield_now};

/// Starts a thread of a [`scope`], where `Scope::spawn` would panic if there were no more threads.
///
/// # Errors
/// The host can start no more threads; `work` is dropped.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    #[cfg(feature = "schedules")]
    return Ok(scope.spawn(work));
    #[cfg(not(feature = "schedules"))]
    Builder::new().spawn_scoped(scope, work)
}

/// The number of the calling thread, which never changes: 0 for the first that asks, then 1.
#[cfg(feature = "schedules")]
pub fn number() -> usize {
    shuttle::thread::current().id().into()
}

/// The number of the calling thread, which never changes: 0 for the first that asks, then 1.
#[cfg(not(feature = "schedules"))]
pub fn number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    // The thread-local value cannot be read while its thread ends; such a thread gets 0.
    NUMBER.try_with(|number| *number).unwrap_or_default()
}
