//! Who may come in, and when it is their turn.
//!
//! `s3s` verifies SigV4 signatures; [`head`](crate::head) refuses what it would accept and we do
//! not. Here: the key, whether the [operation](crate::operations) knows all of the request, and a
//! bounded number of turns for requests that cost memory. Turns are taken after the signature has been verified and before the body is read, so
//! that strangers cannot hold any.

use crate::config::{Credentials, Limits};
use crate::digest::{Algorithm, parse_hex};
use crate::errors::wrong_payload_hash;
use crate::gateway::OWNER;
use crate::operations::{self, Cost};
use http::HeaderMap;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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

/// A turn, held as long as the request costs memory.
#[derive(Clone)]
pub struct Permit {
    _permit: Arc<OwnedSemaphorePermit>,
}

/// Lets requests in.
pub struct Gate {
    uploads: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    documents: Arc<Semaphore>,
    turn_timeout: Duration,
}

impl Gate {
    /// With so many turns of each kind.
    pub fn new(limits: &Limits) -> Self {
        let turns = |n: usize| Arc::new(Semaphore::new(n.max(1)));
        Self {
            uploads: turns(limits.max_uploads),
            downloads: turns(limits.max_downloads),
            documents: turns(limits.max_documents),
            turn_timeout: limits.turn_timeout,
        }
    }

    async fn turn(&self, cost: Cost) -> S3Result<Option<Permit>> {
        let turns = match cost {
            Cost::Free => return Ok(None),
            Cost::Document => &self.documents,
            Cost::Upload => &self.uploads,
            Cost::Download => &self.downloads,
        };
        match tokio::time::timeout(self.turn_timeout, turns.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Some(Permit {
                _permit: Arc::new(permit),
            })),
            Ok(Err(_)) => Err(s3_error!(ServiceUnavailable, "The server is stopping")),
            Err(_) => Err(s3_error!(SlowDown, "Please reduce your request rate")),
        }
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
        if let Some(permit) = self.turn(operation.cost).await? {
            context.extensions_mut().insert(permit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_run_out_and_come_back() {
        let gate = Gate::new(&Limits {
            max_uploads: 1,
            ..Limits::default()
        });
        let turn = gate.turn(Cost::Upload).await.unwrap();
        let error = gate.turn(Cost::Upload).await.err().unwrap();
        assert_eq!(error.code().as_str(), "SlowDown");
        assert!(gate.turn(Cost::Download).await.unwrap().is_some());
        drop(turn);
        gate.turn(Cost::Upload).await.unwrap();
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
