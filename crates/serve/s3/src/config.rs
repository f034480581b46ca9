//! Configuration of a server: addresses, keys and their rights, and limits.
//!
//! Every limit here bounds memory or time, so that what a client sends can never grow the server;
//! `docs/s3.md` adds them up.

use crate::errors;
use crate::keyring::Keyring;
use http::Extensions;
use objects::{Account, Peer, Quota, Quotas, Tls};
use s3s::S3Result;
use status::Status;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Quotas of each key and of each address; they can be changed while the server runs.
#[derive(Clone, Default, Debug)]
pub struct ClientQuotas {
    /// Quotas by access key.
    pub key: Arc<Quotas<String>>,
    /// Quotas by address. All addresses of an IPv6 network (/64) share one.
    pub address: Arc<Quotas<IpAddr>>,
}

impl ClientQuotas {
    /// Sets both quotas, from now on.
    pub fn set(&self, key: Quota, address: Quota) {
        self.key.set(key);
        self.address.set(address);
    }

    /// Counts a request of an address, signed or not; returns the account that its bytes are charged to.
    pub fn admit_address(&self, extensions: &Extensions) -> S3Result<Option<Arc<Account>>> {
        let Some(peer) = extensions.get::<Arc<Peer>>() else {
            return Ok(None);
        };
        let admitted = self.address.admit(peer.asker(), Some(peer));
        admitted.map_err(|why| errors::slow_down("address", why, Some(peer)))
    }
}

/// Fills a buffer with random bytes.
pub type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// Unix time in microseconds.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Configuration of a server.
#[derive(Clone)]
pub struct Config {
    /// Address to listen on; port 0 picks a free one.
    pub address: SocketAddr,
    /// The keys of callers, and their rights.
    pub keys: Keyring,
    /// Bounds on what one client may ask for.
    pub quotas: ClientQuotas,
    /// Certificate and key for TLS; `None` for plain HTTP.
    pub tls: Option<Tls>,
    /// The region that buckets claim to be in. Signatures of any region are accepted.
    pub region: String,
    /// The server's name, if buckets are addressed as `bucket.domain`.
    pub domain: Option<String>,
    /// Limits of memory and time.
    pub limits: Limits,
    /// Source of upload ids and version ids.
    pub random: Random,
    /// Clock for ages, dates and locks.
    pub clock: Clock,
    /// Status page and metrics below `/-/`; without them, only health and readiness are answered there.
    pub status: Option<Arc<Status>>,
}

impl Config {
    /// Default limits, region `us-east-1`, randomness and time of the operating system, no TLS, no quotas.
    pub fn new(address: SocketAddr, keys: Keyring) -> Self {
        Self {
            address,
            keys,
            quotas: ClientQuotas::default(),
            tls: None,
            region: "us-east-1".to_owned(),
            domain: None,
            limits: Limits::default(),
            random: Arc::new(operating_system_random),
            clock: Arc::new(operating_system_time),
            status: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("address", &self.address)
            .field("keys", &self.keys)
            .field("region", &self.region)
            .field("domain", &self.domain)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

pub(crate) fn operating_system_random(buffer: &mut [u8]) {
    // Upload ids have to be unique but not secret. With repeated ids, parts of two uploads would mix, so a failure
    // ends the request.
    if let Err(error) = getrandom::fill(buffer) {
        panic!("the operating system has no random numbers: {error}");
    }
}

fn operating_system_time() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_micros() as u64)
}

/// Limits of the memory and time that clients can make the server use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections of clients that have signed a request.
    pub max_connections: usize,
    /// Open connections without a signed request; further ones replace the oldest of them.
    pub max_strangers: usize,
    /// Requests that receive or copy object data at the same time; others wait.
    pub max_uploads: usize,
    /// Requests that send object data at the same time; others wait.
    pub max_downloads: usize,
    /// Requests with an XML body or a listing at the same time; others wait.
    pub max_documents: usize,
    /// Store calls running at the same time; others wait.
    pub max_blocking: usize,
    /// How long a request waits for a permit before it is answered `SlowDown`.
    pub turn_timeout: Duration,
    /// Bytes of a request's head.
    pub max_header_bytes: usize,
    /// Bytes of an XML body.
    pub max_document_bytes: usize,
    /// How long a client may take for a request's head, and a connection may idle between requests.
    pub header_timeout: Duration,
    /// How long a body may make no progress, in either direction.
    pub idle_timeout: Duration,
    /// Lowest average rate at which a body may arrive, after `idle_timeout` of grace.
    pub min_bytes_per_second: u64,
    /// While others wait for a permit, a body that arrives more slowly than this may be answered `SlowDown`.
    pub busy_bytes_per_second: u64,
    /// How long others have to wait before that happens.
    pub busy_patience: Duration,
    /// How long running requests may take when the server stops.
    pub shutdown_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 512,
            max_strangers: 256,
            max_uploads: 32,
            max_downloads: 64,
            max_documents: 8,
            max_blocking: 64,
            turn_timeout: Duration::from_secs(30),
            max_header_bytes: 16 * 1024,
            max_document_bytes: 4 << 20,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            min_bytes_per_second: 1024,
            busy_bytes_per_second: 64 * 1024,
            busy_patience: Duration::from_secs(5),
            shutdown_timeout: Duration::from_secs(20),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyring::{Credentials, Key};
    use crate::rights::Rights;

    #[test]
    fn debug_output_hides_the_secret() {
        let key = Key {
            credentials: Credentials::new("visible", "hidden-secret"),
            rights: Rights::Admin,
        };
        let config = Config::new(([127, 0, 0, 1], 0).into(), Keyring::new([key]));
        let text = format!("{config:?}");
        assert!(
            text.contains("visible") && !text.contains("hidden-secret"),
            "{text}"
        );
    }

    #[test]
    fn two_draws_differ() {
        let (mut one, mut two) = ([0; 16], [0; 16]);
        operating_system_random(&mut one);
        operating_system_random(&mut two);
        assert_ne!(one, two);
    }
}
