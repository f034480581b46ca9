//! Everything that is told of a served drive, and who is told.

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

/// Threads that look, count and order.
const THREADS: usize = 4;

/// What is told of a served drive.
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

/// Whether somebody may do something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Allowed,
    /// There are no keys in the request, or wrong ones.
    Unknown {
        gave_keys: bool,
    },
    /// The key may not.
    NotAllowed,
    /// Too many wrong secrets of this key.
    Wait(Duration),
}

impl Status {
    /// Of a served drive.
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

    /// Where requests are counted.
    pub fn requests(&self) -> Arc<Requests> {
        self.requests.clone()
    }

    /// Waits until nothing is asked of the store any more.
    pub async fn idle(&self) {
        self.blocking.idle().await;
    }

    /// A look at most so old, if the drive answers.
    pub(crate) async fn look(&self, max_age: Duration) -> Option<Arc<Look>> {
        self.looker.latest(max_age).await
    }

    /// Everything that is shown.
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

    /// The metrics, as Prometheus reads them.
    pub(crate) async fn metrics(&self, connections: crate::metrics::Connections) -> Vec<u8> {
        let look = self.look(Duration::from_millis(900)).await;
        let look = look.as_deref();
        let document = Document::new(&self.served.store, &self.requests, look, None);
        let lost_lines = (self.served.lost_lines)();
        crate::metrics::text(&self.requests, &document, look, connections, lost_lines)
    }

    /// One zone.
    pub(crate) async fn zone(&self, number: usize) -> Option<ZoneView> {
        let look = self.look(Duration::from_millis(900)).await?;
        look.drive.as_ref()?.zones.get(number).copied()
    }

    /// Has an order carried out.
    pub(crate) async fn order(&self, order: Order) -> Result<store::Result<CleanerStatus>, NotRun> {
        let store = self.served.store.clone();
        self.blocking.run(move || order.carry_out(&store)).await
    }

    /// Whether the headers have keys that may do everything; counts nothing.
    pub fn is_admin(&self, headers: &http::HeaderMap) -> bool {
        matches!(self.keys.judge(headers), Some((_, Known::Admin)))
    }

    /// Whether somebody has the keys. Right ones are never made to wait, however many wrong ones came before: behind a
    /// proxy, strangers have the same address.
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
