//! Runs store calls, which block, on threads of their own: a limited number at a time.

use std::sync::Arc;
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing::Span;

/// Why a call has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NotRun {
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
    /// The call panicked; the log has the reason.
    #[error("a store call ended unexpectedly; see the server's log")]
    Panicked,
}

/// Runs store calls off the reactor.
#[derive(Clone)]
pub struct Blocking {
    permits: Arc<Semaphore>,
    limit: u32,
}

impl Blocking {
    /// Runs at most `limit` calls at a time.
    pub fn new(limit: usize) -> Self {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX).clamp(1, 1 << 16);
        Self {
            permits: Arc::new(Semaphore::new(limit as usize)),
            limit,
        }
    }

    /// Waits until no call runs any more.
    pub async fn idle(&self) {
        drop(self.permits.acquire_many(self.limit).await);
    }

    /// Runs one call. If the caller is dropped meanwhile, the call still runs to its end.
    ///
    /// # Errors
    /// The call did not run to its end.
    pub async fn run<T, F>(&self, call: F) -> Result<T, NotRun>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.begin(call).await?.end().await
    }

    /// Waits until one call may run, and begins it.
    ///
    /// # Errors
    /// The call does not run.
    pub async fn begin<T, F>(&self, call: F) -> Result<Running<T>, NotRun>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| NotRun::Stopping)?;
        let span = Span::current();
        Ok(Running(tokio::task::spawn_blocking(move || {
            let result = span.in_scope(call);
            drop(permit);
            result
        })))
    }
}

/// A running call. If this is dropped, the call still runs to its end.
pub struct Running<T>(JoinHandle<T>);

impl<T> Running<T> {
    /// Waits for the call's result.
    ///
    /// # Errors
    /// The call did not run to its end.
    pub async fn end(self) -> Result<T, NotRun> {
        self.0.await.map_err(|error| {
            if error.is_cancelled() {
                return NotRun::Stopping;
            }
            tracing::error!(%error, "a store call ended unexpectedly");
            NotRun::Panicked
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn only_so_many_run_at_a_time() {
        let blocking = Blocking::new(2);
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let calls = (0..20).map(|_| {
            let (running, most) = (running.clone(), most.clone());
            blocking.run(move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
            })
        });
        for result in futures::future::join_all(calls).await {
            result.unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= 2);
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_call() {
        let blocking = Blocking::new(1);
        let panicked = blocking.run::<(), _>(|| panic!("broken")).await;
        assert_eq!(panicked, Err(NotRun::Panicked));
        // And its permit is back.
        assert_eq!(blocking.run(|| 7).await, Ok(7));
    }
}
