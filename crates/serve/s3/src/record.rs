//! What is known of a request: filled in on its way, counted with its bytes, and told in one line when its answer has
//! been sent. The access log is the events of target `access`, the audit log those of target `audit`.

use crate::operations::Operation;
use http::{Method, Request, StatusCode};
use objects::{Account, Classes, Meter, Peer};
use s3s::path::S3Path;
use status::{Answering, CLIENT_LEFT};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tracing::Span;
use tracing::field::Empty;

/// The events of the access log.
pub const ACCESS: &str = "access";
/// The events of the audit log: what was done to buckets, keys and the configuration.
pub const AUDIT: &str = "audit";

/// Refusals of each key, to be told now and then. Keys that are not known are one, so that strangers cannot make the
/// server remember.
pub type Refusals = Classes<Option<String>>;

/// One request.
pub struct Record {
    id: String,
    started: Instant,
    address: IpAddr,
    method: Method,
    /// The access key that the request names, whether or not it has its secret.
    named: Option<String>,
    caller: OnceLock<Caller>,
    /// What it does if that is more than its operation says, in words for the audit log.
    act: OnceLock<&'static str>,
    accounts: [OnceLock<Arc<Account>>; 2],
    received: AtomicU64,
    sent: AtomicU64,
    status: AtomicU16,
    refusals: Arc<Refusals>,
    /// What the status page and the metrics know of it.
    answering: Answering,
    span: Span,
}

/// Whose signature was right, and what is asked.
pub struct Caller {
    /// The access key.
    pub key: String,
    /// The operation, if it is one of ours.
    pub operation: Option<&'static Operation>,
    /// The bucket, if it is about one.
    pub bucket: Option<String>,
    /// The object's key, if it is about one.
    pub object: Option<String>,
}

impl Caller {
    /// Of a request by `key`.
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

/// The bucket that a path is in.
pub fn bucket_of(path: &S3Path) -> Option<&str> {
    let of_object = path.as_object().map(|(bucket, _)| bucket);
    of_object.or_else(|| path.as_bucket())
}

impl Record {
    /// Of a request that has come, and that names the access key `named`.
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
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            status: AtomicU16::new(CLIENT_LEFT),
            refusals,
            answering,
        }
    }

    /// Whose it is and what it asks; the first word counts.
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

    /// It does this, which the audit log tells if it succeeds.
    pub fn does(&self, act: &'static str) {
        _ = self.act.set(act);
    }

    /// Its bytes are charged to the account of its address.
    pub fn charge_address(&self, account: Arc<Account>) {
        _ = self.accounts[0].set(account);
    }

    /// Its bytes are charged to the account of its key.
    pub fn charge_key(&self, account: Arc<Account>) {
        _ = self.accounts[1].set(account);
    }

    /// What it was answered.
    pub fn answer(&self, status: StatusCode) {
        self.status.store(status.as_u16(), Ordering::Relaxed);
        self.audit(status);
    }

    /// What it takes is part of this.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// The client has left while it sent: nobody is answered. What it counts as.
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

    /// Tells of administrative acts, and of keys that are refused again and again.
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
        // Numbers without a sign become text on their way to a collector.
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

/// Counts what comes in.
pub struct Received(pub Arc<Record>);

impl Meter for Received {
    fn pass(&self, bytes: u64) {
        self.0.received.fetch_add(bytes, Ordering::Relaxed);
        self.0.answering.received(bytes);
        self.0.charge(bytes);
    }
}

/// Counts what goes out.
pub struct Sent(pub Arc<Record>);

impl Meter for Sent {
    fn pass(&self, bytes: u64) {
        self.0.sent.fetch_add(bytes, Ordering::Relaxed);
        self.0.charge(bytes);
    }
}
