//! Progress of a body, and whether it has to give way to others.

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// Longest time over which received bytes are counted, once more have come; twice the line's patience if that is longer,
/// so that a slow body is late in time.
const RECENT: Duration = Duration::from_secs(10);

/// Progress of a body under way, in either direction; kept in the request's extensions.
#[derive(Clone, Default, Debug)]
pub struct Flow(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// When counting began, and the bytes since.
    moved: Mutex<(Instant, u64)>,
    /// The longest time over which they are counted.
    recent: Mutex<Duration>,
    waited_for: AtomicBool,
    give_way: AtomicBool,
    waker: AtomicWaker,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            moved: Mutex::new((Instant::now(), 0)),
            recent: Mutex::new(RECENT),
            waited_for: AtomicBool::default(),
            give_way: AtomicBool::default(),
            waker: AtomicWaker::new(),
        }
    }
}

impl Flow {
    /// Bytes a second that the client sends or takes, and the time over which they were counted.
    pub fn rate(&self) -> (u64, Duration) {
        let (since, bytes) = *self.0.moved.lock();
        let elapsed = since.elapsed();
        let rate = u128::from(bytes) * 1_000_000 / elapsed.as_micros().max(1);
        (u64::try_from(rate).unwrap_or(u64::MAX), elapsed)
    }

    /// The body has its turn: counting begins now. Others wait for `patience` before it has to give way.
    pub fn begin(&self, patience: Duration) {
        *self.0.recent.lock() = RECENT.max(patience.saturating_mul(2));
        *self.0.moved.lock() = (Instant::now(), 0);
    }

    /// The client was given `bytes` to take, and has taken all before but what the connection holds.
    pub fn hand_out(&self, bytes: u64) {
        *self.0.moved.lock() = (Instant::now(), bytes);
        self.note_waited_for(true);
    }

    /// Whether the server waits for the client to send or take more.
    pub fn is_waited_for(&self) -> bool {
        self.0.waited_for.load(Ordering::Relaxed)
    }

    /// Ends the body as soon as it waits for its client, which may be now.
    pub fn give_way(&self) {
        self.0.give_way.store(true, Ordering::SeqCst);
        self.0.waker.wake();
    }

    /// The body ends another way from now on.
    pub(crate) fn go_on(&self) {
        self.0.give_way.store(false, Ordering::SeqCst);
    }

    /// Whether the body has to give way.
    pub fn must_give_way(&self) -> bool {
        self.0.give_way.load(Ordering::SeqCst)
    }

    /// Counts received bytes. What came long ago does not make up for being slow now.
    pub fn note_received(&self, bytes: u64) {
        let recent = *self.0.recent.lock();
        let (now, mut moved) = (Instant::now(), self.0.moved.lock());
        moved.1 += bytes;
        let elapsed = now - moved.0;
        if elapsed > recent {
            let kept = recent / 2;
            let bytes = u128::from(moved.1) * kept.as_micros() / elapsed.as_micros();
            *moved = (now - kept, u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }

    /// Sets whether the server waits for the client.
    pub fn note_waited_for(&self, waited_for: bool) {
        self.0.waited_for.store(waited_for, Ordering::Relaxed);
    }

    /// Registers `waker`, to be woken when the body has to give way.
    pub(crate) fn wake(&self, waker: &Waker) {
        self.0.waker.register(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_is_seen_at_its_rate_at_any_time() {
        for (patience, rate) in [(5, 1), (5, 100_000), (60, 1), (60, 100_000)] {
            let flow = Flow::default();
            flow.begin(Duration::from_secs(patience));
            for second in 1..=300 {
                tokio::time::advance(Duration::from_secs(1)).await;
                flow.note_received(rate);
                let (seen, elapsed) = flow.rate();
                assert!(seen.abs_diff(rate) <= 1, "{seen}");
                assert!(
                    second < patience || elapsed.as_secs() >= patience,
                    "{elapsed:?}"
                );
            }
        }
    }
}
