//! From the reactor to the store: store calls block, so they run on threads of their own,
//! and only so many at a time.

use s3s::{S3Result, s3_error};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Runs store calls off the reactor.
#[derive(Clone)]
pub struct Blocking {
    permits: Arc<Semaphore>,
    limit: u32,
}

impl Blocking {
    /// At most `limit` calls at a time.
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
    pub async fn run<T, F>(&self, call: F) -> S3Result<T>
    where
        T: Send + 'static,
        F: FnOnce() -> S3Result<T> + Send + 'static,
    {
        let stopped = || s3_error!(ServiceUnavailable, "The server is stopping");
        let permit = self
            .permits
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| stopped())?;
        let task = tokio::task::spawn_blocking(move || {
            let result = call();
            drop(permit);
            result
        });
        match task.await {
            Ok(result) => result,
            Err(error) if error.is_cancelled() => Err(stopped()),
            Err(error) => {
                tracing::error!(%error, "a store call ended unexpectedly");
                Err(s3_error!(
                    InternalError,
                    "An internal error occurred; see the server's log"
                ))
            }
        }
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
                Ok(())
            })
        });
        for result in futures::future::join_all(calls).await {
            result.unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= 2);
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error() {
        let error = Blocking::new(1)
            .run::<(), _>(|| panic!("broken"))
            .await
            .unwrap_err();
        assert_eq!(error.code().as_str(), "InternalError");
        // And its permit is back.
        Blocking::new(1).run(|| Ok(())).await.unwrap();
    }
}
