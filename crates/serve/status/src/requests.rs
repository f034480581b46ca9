//! Counts requests of clients and their answers, for the metrics and the page.

use crate::history::{History, Second};
use crate::log::{Entry, Log};
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{
    HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Upper bounds of the histogram of durations, in seconds.
pub(crate) const BOUNDS: [f64; 15] = [
    0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0,
];
/// Operation of requests that are refused before their operation is known.
const REFUSED: &str = "refused";
/// Status of requests whose client disconnected before the answer.
pub const CLIENT_LEFT: u16 = 499;

/// Counters of requests. A request counts once its last byte is passed to the connection.
pub struct Requests {
    registry: Registry,
    answered: IntCounterVec,
    aborted: IntCounter,
    received: IntCounterVec,
    sent: IntCounterVec,
    seconds: HistogramVec,
    in_flight: IntGauge,
    begun: Instant,
    recent: Mutex<(History, Log)>,
}

impl Default for Requests {
    fn default() -> Self {
        let registry = Registry::new();
        let operation = &["operation"];
        Self {
            answered: known(
                &registry,
                IntCounterVec::new(
                    Opts::new(
                        "zonestore_s3_requests_total",
                        "Requests answered, by operation and HTTP status; 499 if the client left before its body was whole.",
                    ),
                    &["operation", "code"],
                ),
            ),
            aborted: known(
                &registry,
                IntCounter::new(
                    "zonestore_s3_aborted_total",
                    "Requests whose client left: before the end of their body or of their answer.",
                ),
            ),
            received: known(
                &registry,
                IntCounterVec::new(
                    Opts::new(
                        "zonestore_s3_received_bytes_total",
                        "Bytes of request bodies, with the framing of signed chunks.",
                    ),
                    operation,
                ),
            ),
            sent: known(
                &registry,
                IntCounterVec::new(
                    Opts::new("zonestore_s3_sent_bytes_total", "Bytes of answers' bodies."),
                    operation,
                ),
            ),
            seconds: known(
                &registry,
                HistogramVec::new(
                    HistogramOpts::new(
                        "zonestore_s3_request_duration_seconds",
                        "From a request's head to the last byte of its answer.",
                    )
                    .buckets(BOUNDS.to_vec()),
                    operation,
                ),
            ),
            in_flight: known(
                &registry,
                IntGauge::new(
                    "zonestore_s3_requests_in_flight",
                    "Requests that are being answered.",
                ),
            ),
            begun: Instant::now(),
            recent: Mutex::default(),
            registry,
        }
    }
}

/// Registers a metric. Names above are constants: if one cannot be created or registered, that is a bug in this file,
/// which every start of the server would show.
#[expect(clippy::expect_used)]
fn known<T: Collector + Clone + 'static>(
    registry: &Registry,
    metric: Result<T, prometheus::Error>,
) -> T {
    let metric = metric.expect("a sound name");
    registry
        .register(Box::new(metric.clone()))
        .expect("each name once");
    metric
}

impl Requests {
    /// Begins a request, which has arrived.
    pub fn begin(self: &Arc<Self>, method: &'static str, resource: String) -> Answering {
        self.in_flight.inc();
        Answering(Arc::new(Shared {
            requests: self.clone(),
            begun: Instant::now(),
            method,
            resource,
            operation: OnceLock::new(),
            status: AtomicU16::new(CLIENT_LEFT),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            has_left: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }))
    }

    /// Number of requests under way.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.get().max(0).unsigned_abs()
    }

    /// Time since counting began.
    pub(crate) fn uptime(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The registry with these metrics.
    pub(crate) const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The last two minutes by second, the oldest first, without the present second.
    pub(crate) fn history(&self) -> Vec<Second> {
        self.recent.lock().0.told(self.begun.elapsed().as_secs())
    }

    /// The last requests, the newest first.
    pub(crate) fn log(&self) -> Vec<Entry> {
        self.recent.lock().1.told()
    }
}

/// A request under way. Clones are the same request; it ends when the last one is dropped.
#[derive(Clone)]
pub struct Answering(Arc<Shared>);

struct Shared {
    requests: Arc<Requests>,
    begun: Instant,
    method: &'static str,
    resource: String,
    operation: OnceLock<&'static str>,
    status: AtomicU16,
    received: AtomicU64,
    sent: AtomicU64,
    has_left: AtomicBool,
    is_over: AtomicBool,
}

impl Answering {
    /// Sets the operation, once it is known.
    pub fn is(&self, operation: &'static str) {
        let _ = self.0.operation.set(operation);
    }

    /// Sets the status; the answer begins.
    pub(crate) fn answered(&self, status: u16) {
        self.0.status.store(status, Relaxed);
    }

    /// The client disconnected while it sent its body; no answer will reach it.
    pub fn left(&self) {
        self.0.has_left.store(true, Relaxed);
    }

    /// Counts bytes received of its body.
    pub fn received(&self, bytes: u64) {
        self.0.received.fetch_add(bytes, Relaxed);
        self.0.moved(bytes, 0);
    }

    /// Counts bytes sent of its answer.
    pub(crate) fn sent(&self, bytes: u64) {
        self.0.sent.fetch_add(bytes, Relaxed);
        self.0.moved(0, bytes);
    }

    /// Ends the request. `is_whole`: its answer was sent to the end.
    pub(crate) fn over(&self, is_whole: bool) {
        self.0.over(is_whole);
    }
}

impl Shared {
    fn moved(&self, received: u64, sent: u64) {
        let second = self.requests.begun.elapsed().as_secs();
        self.requests.recent.lock().0.moved(second, received, sent);
    }

    fn over(&self, is_whole: bool) {
        if self.is_over.swap(true, Relaxed) {
            return;
        }
        let (requests, took) = (&self.requests, self.begun.elapsed());
        let operation = self.operation.get().copied().unwrap_or(REFUSED);
        let has_left = self.has_left.load(Relaxed);
        let is_whole = is_whole && !has_left;
        let status = match has_left {
            true => CLIENT_LEFT,
            false => self.status.load(Relaxed),
        };
        let (received, sent) = (self.received.load(Relaxed), self.sent.load(Relaxed));
        let code = status.to_string();
        requests
            .answered
            .with_label_values(&[operation, &code])
            .inc();
        let count = |of: &IntCounterVec, bytes| of.with_label_values(&[operation]).inc_by(bytes);
        count(&requests.received, received);
        count(&requests.sent, sent);
        let seconds = requests.seconds.with_label_values(&[operation]);
        seconds.observe(took.as_secs_f64());
        if !is_whole {
            requests.aborted.inc();
        }
        requests.in_flight.dec();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let entry = Entry {
            time_ms: now.map_or(0, |now| now.as_millis() as u64),
            method: self.method,
            operation,
            resource: self.resource.clone(),
            status,
            is_whole,
            received_bytes: received,
            sent_bytes: sent,
            milliseconds: took.as_micros() as f64 / 1000.0,
        };
        let second = requests.begun.elapsed().as_secs();
        let mut recent = requests.recent.lock();
        recent.0.answered(second, took, status >= 500 || !is_whole);
        recent.1.add(entry);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.over(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(requests: &Requests, operation: &str, code: &str) -> u64 {
        let counter = requests.answered.with_label_values(&[operation, code]);
        counter.get()
    }

    #[test]
    fn a_request_counts_once_whoever_holds_it() {
        let requests = Arc::<Requests>::default();
        let answering = requests.begin("GET", "/b/k".to_owned());
        let other = answering.clone();
        assert_eq!(requests.in_flight(), 1);
        answering.is("GetObject");
        answering.answered(200);
        answering.sent(7);
        answering.over(true);
        drop((answering, other));
        assert_eq!(count(&requests, "GetObject", "200"), 1);
        assert_eq!((requests.in_flight(), requests.aborted.get()), (0, 0));
        assert_eq!(requests.sent.with_label_values(&["GetObject"]).get(), 7);
        assert_eq!(requests.log()[0].sent_bytes, 7);
    }

    #[test]
    fn a_client_that_leaves_is_counted_too() {
        let requests = Arc::<Requests>::default();
        drop(requests.begin("PUT", "/b/k".to_owned()));
        assert_eq!(count(&requests, REFUSED, "499"), 1);
        assert_eq!((requests.in_flight(), requests.aborted.get()), (0, 1));
        assert!(!requests.log()[0].is_whole);
        // Whatever is answered to nobody.
        let answering = requests.begin("PUT", "/b/k".to_owned());
        answering.is("PutObject");
        answering.left();
        answering.answered(400);
        answering.over(true);
        assert_eq!(count(&requests, "PutObject", "499"), 1);
        assert_eq!(requests.aborted.get(), 2);
    }
}
