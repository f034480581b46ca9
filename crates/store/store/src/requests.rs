//! Statistics of users' requests: how many are under way, when the last one ended, and how many reads were slow. The
//! cleaner's pace depends on them; its own reads and writes do not count.

use runtime::Runtime;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use zone_alloc::Requests;

/// Counters of users' requests since the mount.
pub(crate) struct UserRequests {
    runtime: Runtime,
    under_way: AtomicU32,
    /// All times are in nanoseconds of the runtime's clock.
    last_ended: AtomicU64,
    reads: AtomicU64,
    slow: AtomicU64,
    slow_above: AtomicU64,
}

/// A request that is under way, until this is dropped.
pub(crate) struct UnderWay<'a> {
    of: &'a UserRequests,
    /// When it began, if it is a read.
    read: Option<Duration>,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl UserRequests {
    pub fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            under_way: AtomicU32::new(0),
            last_ended: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            slow: AtomicU64::new(0),
            slow_above: AtomicU64::new(u64::MAX),
        }
    }

    /// Counts a request until the result is dropped.
    pub fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay {
            of: self,
            read: None,
        }
    }

    /// Counts a read of at most 1 MiB until the result is dropped, and its latency.
    pub fn begin_read(&self) -> UnderWay<'_> {
        let mut request = self.begin();
        request.read = Some(self.runtime.now());
        request
    }

    /// Sets the latency above which reads count as slow; `None`: none does.
    pub fn set_slow_above(&self, time: Option<Duration>) {
        let time = time.map_or(u64::MAX, nanos);
        self.slow_above.store(time, Ordering::Relaxed);
    }

    /// A snapshot of the counters.
    pub fn seen(&self) -> Requests {
        Requests {
            under_way: self.under_way.load(Ordering::Relaxed),
            last_ended: Duration::from_nanos(self.last_ended.load(Ordering::Relaxed)),
            reads: self.reads.load(Ordering::Relaxed),
            slow: self.slow.load(Ordering::Relaxed),
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let (of, now) = (self.of, self.of.runtime.now());
        if let Some(began) = self.read {
            of.reads.fetch_add(1, Ordering::Relaxed);
            let took = nanos(now.saturating_sub(began));
            let is_slow = took > of.slow_above.load(Ordering::Relaxed);
            of.slow.fetch_add(is_slow.into(), Ordering::Relaxed);
        }
        of.last_ended.fetch_max(nanos(now), Ordering::Relaxed);
        of.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::SimulatedClock;
    use std::sync::Arc;

    #[test]
    fn slow_reads_are_counted_and_writes_are_only_under_way() {
        let clock = Arc::new(SimulatedClock::default());
        let requests = UserRequests::new(Runtime::seeded(1).with_clock(clock.clone()));
        requests.set_slow_above(Some(Duration::from_millis(10)));
        let write = requests.begin();
        for millis in [9, 10, 11] {
            let read = requests.begin_read();
            assert_eq!(requests.seen().under_way, 2);
            clock.advance(Duration::from_millis(millis));
            drop(read);
        }
        drop(write);
        let seen = Requests {
            under_way: 0,
            last_ended: Duration::from_millis(30),
            reads: 3,
            slow: 1,
        };
        assert_eq!(requests.seen(), seen);
    }
}
