//! Who may come in, and when it is their turn.
//!
//! `s3s` verifies SigV4 signatures; [`head`](crate::head) refuses what it would accept and we do
//! not. Here: the key, whether the [operation](crate::operations) knows all of the request, and a
//! bounded number of [permits](Permit) for requests that cost memory. Turns are taken after the
//! signature has been verified and before the body is read, so that strangers cannot hold any.

use crate::config::{Credentials, Limits};
use crate::errors::wrong_payload_hash;
use crate::gateway::OWNER;
use crate::operations::{self, Cost};
use http::HeaderMap;
use objects::digest::{Algorithm, parse_hex};
use objects::{Flow, Line, Peer, Permit, Pressure};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// Knows the one key pair.
pub struct Keys(pub Credentials);

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key == self.0.access_key() {
            return Ok(SecretKey::from(self.0.secret_key()));
        }
        Err(s3_error!(
            InvalidAccessKeyId,
            "The access key id you provided does not exist in our records"
        ))
    }
}

/// Marks a request that comes without a body.
#[derive(Clone, Copy)]
pub struct NoBody;

/// Lets requests in.
pub struct Gate {
    uploads: Arc<Line>,
    downloads: Arc<Line>,
    documents: Arc<Line>,
    turn_timeout: Duration,
}

impl Gate {
    /// With so many turns of each kind.
    pub fn new(limits: &Limits) -> Self {
        let pressure = Pressure {
            turn_timeout: limits.turn_timeout,
            patience: limits.busy_patience,
            min_bytes_per_second: limits.busy_bytes_per_second,
        };
        Self {
            uploads: Line::new(limits.max_uploads, pressure),
            downloads: Line::new(limits.max_downloads, pressure),
            documents: Line::new(limits.max_documents, pressure),
            turn_timeout: limits.turn_timeout,
        }
    }

    /// Waits for a turn if the request needs one.
    async fn turn(
        &self,
        cost: Cost,
        asker: IpAddr,
        flow: Flow,
        peer: Option<Arc<Peer>>,
    ) -> S3Result<Option<Permit>> {
        let line = match cost {
            Cost::Free => return Ok(None),
            Cost::Document => &self.documents,
            Cost::Upload => &self.uploads,
            Cost::Download => &self.downloads,
        };
        // A body on its way out is not looked at while nobody reads it.
        let peer = peer.filter(|_| cost == Cost::Download);
        let permit = line.take(asker, flow, peer).await;
        let slow_down = || s3_error!(SlowDown, "Please reduce your request rate");
        permit.ok_or_else(slow_down).map(Some)
    }
}

/// The hash that was signed is that of a body; without one it has to be the hash of nothing.
fn check_hash_of_nothing(headers: &HeaderMap) -> S3Result<()> {
    let signed = headers
        .get("x-amz-content-sha256")
        .and_then(|value| parse_hex::<32>(value.to_str().ok()?));
    match signed {
        Some(hash) if hash[..] != Algorithm::Sha256.of(b"") => Err(wrong_payload_hash()),
        _ => Ok(()),
    }
}

#[async_trait::async_trait]
impl S3Access for Gate {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        if context.credentials().is_none() {
            return Err(s3_error!(
                AccessDenied,
                "Access Denied: requests must be signed"
            ));
        }
        let peer = context.extensions_mut().get::<Arc<Peer>>().cloned();
        let asker = peer
            .as_ref()
            .map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.asker());
        if let Some(peer) = &peer
            && !peer.admit(self.turn_timeout).await
        {
            return Err(s3_error!(SlowDown, "Too many clients are connected"));
        }
        let operation = operations::admit(
            context.s3_op().name(),
            context.method(),
            context.s3_path(),
            context.uri().query().unwrap_or_default(),
            context.headers(),
            OWNER,
        )?;
        if context.extensions_mut().get::<NoBody>().is_some() {
            check_hash_of_nothing(context.headers())?;
        }
        let flow = context.extensions_mut().get::<Flow>().cloned();
        let flow = flow.unwrap_or_default();
        if let Some(permit) = self.turn(operation.cost, asker, flow, peer).await? {
            context.extensions_mut().insert(permit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_of_a_kind_run_out() {
        let gate = Gate::new(&Limits {
            max_uploads: 1,
            ..Limits::default()
        });
        let turn = |cost| gate.turn(cost, Ipv4Addr::LOCALHOST.into(), Flow::default(), None);
        let _held = turn(Cost::Upload).await.unwrap();
        let error = turn(Cost::Upload).await.err().unwrap();
        assert_eq!(error.code().as_str(), "SlowDown");
        assert!(turn(Cost::Download).await.unwrap().is_some());
        assert!(turn(Cost::Free).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn only_one_key_is_known() {
        let keys = Keys(Credentials::new("known", "secret"));
        assert_eq!(
            keys.get_secret_key("known").await.unwrap().expose(),
            "secret"
        );
        let error = keys.get_secret_key("other").await.unwrap_err();
        assert_eq!(error.code().as_str(), "InvalidAccessKeyId");
    }
}
