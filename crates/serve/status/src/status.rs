//! State behind the status page, and checks of the keys that callers send.

use crate::access::{Access, Keys, Known};
use crate::buckets::Counter;
use crate::document::Document;
use crate::look::{Look, Served};
use crate::looker::Looker;
use crate::orders::Order;
use crate::requests::Requests;
use crate::throttle::Throttle;
use inspect::ZoneView;
use objects::{Blocking, NotRun};
use parking_lot::Mutex;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use store::CleanerStatus;

/// Threads for snapshots, counts of buckets, and orders.
const THREADS: usize = 4;

/// Status of a served drive, and access to it.
pub struct Status {
    pub(crate) access: Access,
    keys: Keys,
    throttle: Mutex<Throttle>,
    served: Arc<Served>,
    looker: Looker,
    buckets: Arc<Counter>,
    blocking: Blocking,
    requests: Arc<Requests>,
}

/// Whether a caller may make a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Allowed,
    /// The request has no keys, or wrong ones.
    Unknown {
        gave_keys: bool,
    },
    /// The key is right but has no right to this.
    NotAllowed,
    /// Too many wrong secrets of this key; how long to wait.
    Wait(Duration),
}

impl Status {
    /// The status of a served drive.
    pub fn new(access: Access, keys: Keys, served: Served) -> Self {
        let (served, blocking) = (Arc::new(served), Blocking::new(THREADS));
        Self {
            access,
            keys,
            throttle: Mutex::default(),
            looker: Looker::new(served.clone(), blocking.clone()),
            served,
            buckets: Arc::default(),
            blocking,
            requests: Arc::default(),
        }
    }

    /// The counts of requests, for the front to update.
    pub fn requests(&self) -> Arc<Requests> {
        self.requests.clone()
    }

    /// Ends a count of the buckets, and waits until no store call is running.
    pub async fn idle(&self) {
        self.buckets.close();
        self.blocking.idle().await;
    }

    /// A snapshot not older than `max_age`, if the drive answers; see [`Looker::latest`].
    pub(crate) async fn look(&self, max_age: Duration) -> Option<Arc<Look>> {
        self.looker.latest(max_age).await
    }

    /// A document of the present status. Also starts a count of the buckets if one is due.
    pub async fn document(&self) -> Document {
        let look = self.look(Duration::from_millis(900)).await;
        let (buckets, is_due) = self.buckets.ask();
        if is_due {
            let (counter, store) = (self.buckets.clone(), self.served.store.clone());
            let blocking = self.blocking.clone();
            tokio::spawn(async move { blocking.run(move || counter.count(&store)).await });
        }
        Document::new(&self.served.store, &self.requests, look.as_deref(), buckets)
    }

    /// All metrics in Prometheus' text format.
    pub(crate) async fn metrics(&self, connections: crate::metrics::Connections) -> Vec<u8> {
        let look = self.look(Duration::from_millis(900)).await;
        let look = look.as_deref();
        let document = Document::new(&self.served.store, &self.requests, look, None);
        let lost_lines = (self.served.lost_lines)();
        crate::metrics::text(&self.requests, &document, look, connections, lost_lines)
    }

    /// A zone by its number, in a recent snapshot.
    pub(crate) async fn zone(&self, number: usize) -> Option<ZoneView> {
        let look = self.look(Duration::from_millis(900)).await?;
        look.drive.as_ref()?.zones.get(number).copied()
    }

    /// Carries an order out.
    pub(crate) async fn order(&self, order: Order) -> Result<store::Result<CleanerStatus>, NotRun> {
        let store = self.served.store.clone();
        self.blocking.run(move || order.carry_out(&store)).await
    }

    /// Whether the headers have the keys of an administrator. Wrong keys are not counted.
    pub fn is_admin(&self, headers: &http::HeaderMap) -> bool {
        matches!(self.keys.judge(headers), Some((_, Known::Admin)))
    }

    /// Checks the keys in a request. Right keys never have to wait, however many wrong ones came before: behind a
    /// proxy, all callers have the same address.
    pub(crate) fn judge(&self, headers: &http::HeaderMap, asker: IpAddr) -> Verdict {
        let key = match self.keys.judge(headers) {
            None => return Verdict::Unknown { gave_keys: false },
            Some((_, Known::Admin)) => return Verdict::Allowed,
            Some((_, Known::Limited)) => return Verdict::NotAllowed,
            Some((key, Known::Stranger)) => key,
        };
        let now = self.requests.uptime();
        if let Some(wait) = self.throttle.lock().note(asker, &key, now) {
            return Verdict::Wait(wait);
        }
        tracing::warn!(%asker, "wrong keys for the status page");
        Verdict::Unknown { gave_keys: true }
    }
}
