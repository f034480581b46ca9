//! Who may come in, and when it is their turn.
//!
//! `s3s` verifies SigV4 signatures; [`head`](crate::head) refuses what it would accept and we do
//! not. Here: the key, whether the [operation](crate::operations) knows all of the request, and a
//! bounded number of turns for requests that cost memory. Turns are taken after the signature has been verified and before the body is read, so
//! that strangers cannot hold any.

use crate::body::BodyState;
use crate::config::{Credentials, Limits};
use crate::digest::{Algorithm, parse_hex};
use crate::errors::wrong_payload_hash;
use crate::gateway::OWNER;
use crate::operations::{self, Cost};
use crate::peers::Peer;
use http::HeaderMap;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

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
    _held: Arc<Held>,
}

struct Held {
    _permit: OwnedSemaphorePermit,
    gate: Arc<Uploading>,
    number: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.gate.bodies().remove(&self.number);
    }
}

/// Bodies that come in under a turn, by the order in which they got it.
#[derive(Default)]
struct Uploading {
    next: AtomicU64,
    bodies: Mutex<BTreeMap<u64, (Instant, BodyState)>>,
}

impl Uploading {
    fn bodies(&self) -> MutexGuard<'_, BTreeMap<u64, (Instant, BodyState)>> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the slowest body that its client is waited for to come again, if it is slower than it
    /// may be while others wait.
    fn hurry(&self, patience: Duration, min_bytes_per_second: u64) {
        let bodies = self.bodies();
        let slow = bodies.values().filter_map(|(since, state)| {
            let elapsed = since.elapsed();
            let earned = elapsed.as_secs().saturating_mul(min_bytes_per_second);
            let rate = u128::from(state.received()) * 1_000_000 / elapsed.as_micros().max(1);
            let late = elapsed >= patience && state.received() < earned;
            (late && state.is_waited_for()).then_some((rate, state))
        });
        if let Some((_, state)) = slow.min_by_key(|(rate, _)| *rate) {
            state.give_way();
        }
    }
}

/// Lets requests in.
pub struct Gate {
    uploads: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    documents: Arc<Semaphore>,
    uploading: Arc<Uploading>,
    turn_timeout: Duration,
    patience: Duration,
    min_bytes_per_second: u64,
}

impl Gate {
    /// With so many turns of each kind.
    pub fn new(limits: &Limits) -> Self {
        let turns = |n: usize| Arc::new(Semaphore::new(n.max(1)));
        Self {
            uploads: turns(limits.max_uploads),
            downloads: turns(limits.max_downloads),
            documents: turns(limits.max_documents),
            uploading: Arc::default(),
            turn_timeout: limits.turn_timeout,
            patience: limits.busy_patience,
            min_bytes_per_second: limits.busy_bytes_per_second,
        }
    }

    /// Waits for a turn. Who waits long for one to upload sees to it that the slowest body in front
    /// gives way.
    async fn turn(&self, cost: Cost, body: Option<BodyState>) -> S3Result<Option<Permit>> {
        let turns = match cost {
            Cost::Free => return Ok(None),
            Cost::Document => &self.documents,
            Cost::Upload => &self.uploads,
            Cost::Download => &self.downloads,
        };
        let acquire = async {
            let acquire = turns.clone().acquire_owned();
            tokio::pin!(acquire);
            loop {
                tokio::select! {
                    permit = &mut acquire => return permit,
                    () = tokio::time::sleep(self.patience), if cost == Cost::Upload => {
                        self.uploading.hurry(self.patience, self.min_bytes_per_second);
                    }
                }
            }
        };
        match tokio::time::timeout(self.turn_timeout, acquire).await {
            Ok(Ok(permit)) => {
                let number = self.uploading.next.fetch_add(1, Ordering::Relaxed);
                if let Some(body) = body.filter(|_| cost == Cost::Upload) {
                    self.uploading
                        .bodies()
                        .insert(number, (Instant::now(), body));
                }
                Ok(Some(Permit {
                    _held: Arc::new(Held {
                        _permit: permit,
                        gate: self.uploading.clone(),
                        number,
                    }),
                }))
            }
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
        let peer = context.extensions_mut().get::<Arc<Peer>>().cloned();
        if peer.is_some_and(|peer| !peer.vouch()) {
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
        let body = context.extensions_mut().get::<BodyState>().cloned();
        if let Some(permit) = self.turn(operation.cost, body).await? {
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
        let turn = gate.turn(Cost::Upload, None).await.unwrap();
        let error = gate.turn(Cost::Upload, None).await.err().unwrap();
        assert_eq!(error.code().as_str(), "SlowDown");
        assert!(gate.turn(Cost::Download, None).await.unwrap().is_some());
        drop(turn);
        gate.turn(Cost::Upload, None).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_body_gives_way() {
        let gate = Gate::new(&Limits {
            max_uploads: 3,
            ..Limits::default()
        });
        let states = [0u64, 1, 2].map(|_| BodyState::default());
        let mut turns = Vec::new();
        for state in &states {
            turns.push(gate.turn(Cost::Upload, Some(state.clone())).await.unwrap());
        }
        // The first is slow, the second slower, and the third is not waited for.
        states[0].note_received(1000);
        states[1].note_received(10);
        states[0].wait_for_test();
        states[1].wait_for_test();
        let waiter = gate.turn(Cost::Upload, None);
        tokio::pin!(waiter);
        let slowest_gives_way = async {
            while !states[1].must_give_way() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            _ = &mut waiter => panic!("nobody has given way yet"),
            () = slowest_gives_way => {}
        }
        assert!(!states[0].must_give_way() && !states[2].must_give_way());
        drop(turns.remove(1));
        assert!(waiter.await.unwrap().is_some());
        drop(turns);
        assert!(gate.uploading.bodies().is_empty());
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
