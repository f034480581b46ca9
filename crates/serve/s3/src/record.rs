//! The record of a request: filled in while it is handled, with its bytes counted, and written to the access log when
//! its answer has been sent. Events of target `access` are the access log, those of target `audit` the audit log.

use crate::operations::Operation;
use http::{Method, Request, StatusCode};
use objects::{Account, Classes, Meter, Peer, Permit};
use s3s::path::S3Path;
use status::{Answering, CLIENT_LEFT};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tracing::Span;
use tracing::field::Empty;

/// Target of the access log's events.
pub const ACCESS: &str = "access";
/// Target of the audit log's events: changes of buckets, keys and configuration.
pub const AUDIT: &str = "audit";

/// Refusals by key, reported now and then. All unknown keys share one entry, so that requests cannot make the
/// server's memory grow.
pub type Refusals = Classes<Option<String>>;

/// A request while it is handled. Dropping it writes the access log.
pub struct Record {
    id: String,
    started: Instant,
    address: IpAddr,
    method: Method,
    /// The access key that the request names, whether or not its signature was right.
    named: Option<String>,
    caller: OnceLock<Caller>,
    /// The operation in words for the audit log, if the operation's own are not enough.
    act: OnceLock<&'static str>,
    accounts: [OnceLock<Arc<Account>>; 2],
    /// The permit for the documents of the request and its answer.
    permit: OnceLock<Permit>,
    received: AtomicU64,
    sent: AtomicU64,
    status: AtomicU16,
    refusals: Arc<Refusals>,
    /// The request as counted in the status page and the metrics.
    answering: Answering,
    span: Span,
}

/// The caller, whose signature was right, and the request's target.
pub struct Caller {
    /// The access key.
    pub key: String,
    /// The operation, if it is implemented.
    pub operation: Option<&'static Operation>,
    /// The bucket, if the request names one.
    pub bucket: Option<String>,
    /// The object's key, if the request names one.
    pub object: Option<String>,
}

impl Caller {
    /// A request by `key`.
    pub fn new(key: &str, operation: Option<&'static Operation>, path: &S3Path) -> Self {
        let object = path.as_object().map(|(_, key)| key.to_owned());
        Self {
            key: key.to_owned(),
            operation,
            bucket: bucket_of(path).map(str::to_owned),
            object,
        }
    }
}

/// The bucket in a path.
pub fn bucket_of(path: &S3Path) -> Option<&str> {
    let of_object = path.as_object().map(|(bucket, _)| bucket);
    of_object.or_else(|| path.as_bucket())
}

impl Record {
    /// A request that has arrived and names the access key `named`.
    pub fn new<B>(
        request: &Request<B>,
        id: String,
        named: Option<String>,
        refusals: Arc<Refusals>,
        answering: Answering,
    ) -> Self {
        let peer = request.extensions().get::<Arc<Peer>>();
        let method = request.method().as_str();
        let span = tracing::info_span!(
            target: traces::TARGET, parent: None, "request",
            otel.name = method, otel.kind = "server", otel.status_code = Empty,
            http.request.method = method, http.response.status_code = Empty,
            http.request.body.size = Empty, http.response.body.size = Empty,
            rpc.method = Empty, aws.s3.bucket = Empty, aws.request_id = id.as_str(),
        );
        traces::continue_from(&span, request.headers());
        Self {
            span,
            id,
            started: Instant::now(),
            address: peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| {
                peer.address().to_canonical()
            }),
            method: request.method().clone(),
            named,
            caller: OnceLock::new(),
            act: OnceLock::new(),
            accounts: Default::default(),
            permit: OnceLock::new(),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            status: AtomicU16::new(CLIENT_LEFT),
            refusals,
            answering,
        }
    }

    /// Sets the caller and the operation, once.
    pub fn identify(&self, caller: Caller) {
        if let Some(operation) = caller.operation {
            self.answering.is(operation.name);
            traces::rename(&self.span, operation.name);
            self.span.record("rpc.method", operation.name);
        }
        if let Some(bucket) = &caller.bucket {
            self.span.record("aws.s3.bucket", bucket.as_str());
        }
        _ = self.caller.set(caller);
    }

    /// Sets the words for the audit log, which are written if the request succeeds.
    pub fn does(&self, act: &'static str) {
        _ = self.act.set(act);
    }

    /// Charges the request's bytes to the account of its address.
    pub fn charge_address(&self, account: Arc<Account>) {
        _ = self.accounts[0].set(account);
    }

    /// Charges the request's bytes to the account of its key.
    pub fn charge_key(&self, account: Arc<Account>) {
        _ = self.accounts[1].set(account);
    }

    /// Keeps a permit for a document until the answer has been sent.
    pub fn keep(&self, permit: Permit) {
        _ = self.permit.set(permit);
    }

    /// The permit for the answer's document, if it needs one.
    pub fn permit(&self) -> Option<Permit> {
        self.permit.get().cloned()
    }

    /// Sets the answer's status.
    pub fn answer(&self, status: StatusCode) {
        self.status.store(status.as_u16(), Ordering::Relaxed);
        self.audit(status);
    }

    /// The tracing span of the request.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// The client disconnected while it sent its body: returns the status to count, though nothing is answered.
    pub fn left(&self) -> StatusCode {
        self.answering.left();
        StatusCode::from_u16(CLIENT_LEFT).unwrap_or(StatusCode::BAD_REQUEST)
    }

    fn charge(&self, bytes: u64) {
        for account in self.accounts.iter().filter_map(OnceLock::get) {
            account.charge(bytes);
        }
    }

    fn act(&self, caller: &Caller) -> Option<&'static str> {
        let of_operation = || caller.operation.and_then(|operation| operation.act());
        self.act.get().copied().or_else(of_operation)
    }

    /// Logs administrative acts that succeeded, and keys that are refused repeatedly.
    fn audit(&self, status: StatusCode) {
        let caller = self.caller.get();
        let (address, request) = (self.address, self.id.as_str());
        if let Some(caller) = caller
            && let Some(act) = self.act(caller)
            && status.is_success()
        {
            let bucket = caller.bucket.as_deref().unwrap_or_default();
            let object = caller.object.as_deref();
            let key = caller.key.as_str();
            tracing::info!(target: AUDIT, bucket, object, key, %address, request, "{act}");
        }
        if status == StatusCode::FORBIDDEN {
            let key = caller.map(|caller| caller.key.clone());
            if let Some(count) = self.refusals.count(key.clone()) {
                let key = key.as_deref().or(self.named.as_deref()).unwrap_or("none");
                tracing::warn!(target: AUDIT, key, count, %address, request, "refused");
            }
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let caller = self.caller.get();
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let status = self.status.load(Ordering::Relaxed);
        // Collectors of traces turn unsigned numbers into text.
        let number = |count| load(count).cast_signed();
        let (received, sent) = (number(&self.received), number(&self.sent));
        self.span
            .record("http.response.status_code", i64::from(status));
        self.span.record("http.request.body.size", received);
        self.span.record("http.response.body.size", sent);
        if status >= 500 {
            self.span.record("otel.status_code", "ERROR");
        }
        let text = |of: fn(&Caller) -> Option<&str>| caller.and_then(of).unwrap_or("-");
        let operation = |caller: &Caller| caller.operation.map(|operation| operation.name);
        let key = caller.map(|caller| caller.key.as_str());
        tracing::info!(
            target: ACCESS,
            request = self.id.as_str(),
            address = %self.address,
            key = key.or(self.named.as_deref()).unwrap_or("-"),
            signed = caller.is_some(),
            method = self.method.as_str(),
            operation = caller.and_then(operation).unwrap_or("-"),
            bucket = text(|caller| caller.bucket.as_deref()),
            object = text(|caller| caller.object.as_deref()),
            status,
            received = load(&self.received),
            sent = load(&self.sent),
            ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "answered"
        );
    }
}

/// Counts the bytes of a request's body.
pub struct Received(pub Arc<Record>);

impl Meter for Received {
    fn pass(&self, bytes: u64) {
        self.0.received.fetch_add(bytes, Ordering::Relaxed);
        self.0.answering.received(bytes);
        self.0.charge(bytes);
    }
}

/// Counts the bytes of an answer's body.
pub struct Sent(pub Arc<Record>);

impl Meter for Sent {
    fn pass(&self, bytes: u64) {
        self.0.sent.fetch_add(bytes, Ordering::Relaxed);
        self.0.charge(bytes);
    }
}
