//! Who may come in, and when it is their turn.
//!
//! `s3s` verifies SigV4 signatures; [`head`](crate::head) refuses what it would accept and we do
//! not. Here: the key, whether the [operation](crate::operations) knows all of the request, and a
//! bounded number of [turns](crate::turns) for requests that cost memory. Turns are taken after the
//! signature has been verified and before the body is read, so that strangers cannot hold any.

use crate::body::BodyState;
use crate::config::{Credentials, Limits};
use crate::digest::{Algorithm, parse_hex};
use crate::errors::wrong_payload_hash;
use crate::gateway::OWNER;
use crate::operations::{self, Cost};
use crate::peers::Peer;
use crate::turns::{Turn, Turns};
use http::HeaderMap;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// A turn, held as long as the request costs memory.
#[derive(Clone)]
pub struct Permit {
    held: Arc<Held>,
}

impl Permit {
    /// How fast its client is.
    pub fn body(&self) -> &BodyState {
        &self.held.body
    }
}

struct Held {
    _turn: Turn,
    line: Arc<Line>,
    number: u64,
    body: BodyState,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.line.holders().remove(&self.number);
    }
}

/// Who has a turn of a kind, and those who wait for one.
struct Line {
    turns: Arc<Turns>,
    max: usize,
    next: AtomicU64,
    holders: Mutex<BTreeMap<u64, Holder>>,
}

/// A body under way, and its connection if that is all one can end.
struct Holder {
    body: BodyState,
    peer: Option<Arc<Peer>>,
}

impl Line {
    fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            turns: Turns::new(max),
            max,
            next: AtomicU64::new(0),
            holders: Mutex::default(),
        })
    }

    fn holders(&self) -> MutexGuard<'_, BTreeMap<u64, Holder>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long who comes now leaves slow bodies alone: so long that all in front, and it, could have
    /// their turns within the usual patience.
    fn patience(&self, limits: &Pressure) -> Duration {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).max(1);
        let all = limits.patience.saturating_mul(number(self.max));
        let waiting = self.turns.waiting().saturating_add(1);
        limits.patience.min(all / number(waiting))
    }

    /// Tells as many clients as there are who wait to come again, the slowest first, if they are
    /// waited for and slower than they may be while others wait.
    fn hurry(&self, patience: Duration, min_bytes_per_second: u64) {
        let waiting = self.turns.waiting();
        let holders = self.holders();
        let mut slow = Vec::new();
        let mut giving_way = 0;
        for holder in holders.values() {
            let (rate, elapsed) = holder.body.rate();
            let late = elapsed >= patience && rate < min_bytes_per_second;
            if holder.body.must_give_way() {
                giving_way += 1;
            } else if late && holder.body.is_waited_for() {
                slow.push((rate, holder));
            }
        }
        slow.sort_by_key(|(rate, _)| *rate);
        for (_, holder) in slow.iter().take(waiting.saturating_sub(giving_way)) {
            holder.body.give_way();
            if let Some(peer) = &holder.peer {
                peer.close();
            }
        }
    }
}

/// What is asked of slow clients while others wait.
struct Pressure {
    turn_timeout: Duration,
    patience: Duration,
    min_bytes_per_second: u64,
}

/// Lets requests in.
pub struct Gate {
    uploads: Arc<Line>,
    downloads: Arc<Line>,
    documents: Arc<Line>,
    pressure: Pressure,
}

impl Gate {
    /// With so many turns of each kind.
    pub fn new(limits: &Limits) -> Self {
        Self {
            uploads: Line::new(limits.max_uploads),
            downloads: Line::new(limits.max_downloads),
            documents: Line::new(limits.max_documents),
            pressure: Pressure {
                turn_timeout: limits.turn_timeout,
                patience: limits.busy_patience,
                min_bytes_per_second: limits.busy_bytes_per_second,
            },
        }
    }

    /// Waits for a turn. Who waits long for one sees to it that slow bodies in front give way.
    async fn turn(
        &self,
        cost: Cost,
        asker: IpAddr,
        body: BodyState,
        peer: Option<Arc<Peer>>,
    ) -> S3Result<Option<Permit>> {
        let line = match cost {
            Cost::Free => return Ok(None),
            Cost::Document => &self.documents,
            Cost::Upload => &self.uploads,
            Cost::Download => &self.downloads,
        };
        let take = async {
            let patience = line.patience(&self.pressure);
            let take = line.turns.take(asker);
            tokio::pin!(take);
            loop {
                tokio::select! {
                    turn = &mut take => return turn,
                    () = tokio::time::sleep(patience) => {
                        line.hurry(patience, self.pressure.min_bytes_per_second);
                    }
                }
            }
        };
        let turn = tokio::time::timeout(self.pressure.turn_timeout, take)
            .await
            .map_err(|_| s3_error!(SlowDown, "Please reduce your request rate"))?;
        body.begin();
        let number = line.next.fetch_add(1, Ordering::Relaxed);
        // A body on its way out is not looked at while nobody reads it.
        let peer = peer.filter(|_| cost == Cost::Download);
        let holder = Holder {
            body: body.clone(),
            peer,
        };
        line.holders().insert(number, holder);
        Ok(Some(Permit {
            held: Arc::new(Held {
                _turn: turn,
                line: line.clone(),
                number,
                body,
            }),
        }))
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
            && !peer.admit(self.pressure.turn_timeout).await
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
        let body = context.extensions_mut().get::<BodyState>().cloned();
        let body = body.unwrap_or_default();
        if let Some(permit) = self.turn(operation.cost, asker, body, peer).await? {
            context.extensions_mut().insert(permit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    async fn turn(gate: &Gate, cost: Cost, body: &BodyState) -> S3Result<Option<Permit>> {
        gate.turn(cost, HERE, body.clone(), None).await
    }

    #[tokio::test(start_paused = true)]
    async fn turns_run_out_and_come_back() {
        let gate = Gate::new(&Limits {
            max_uploads: 1,
            ..Limits::default()
        });
        let body = BodyState::default();
        let held = turn(&gate, Cost::Upload, &body).await.unwrap();
        let error = turn(&gate, Cost::Upload, &body).await.err().unwrap();
        assert_eq!(error.code().as_str(), "SlowDown");
        let download = turn(&gate, Cost::Download, &body).await.unwrap();
        assert!(download.is_some());
        drop(held);
        turn(&gate, Cost::Upload, &body).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_body_gives_way() {
        for cost in [Cost::Upload, Cost::Download, Cost::Document] {
            let gate = Gate::new(&Limits {
                max_uploads: 3,
                max_downloads: 3,
                max_documents: 3,
                ..Limits::default()
            });
            let bodies = [0u64, 1, 2].map(|_| BodyState::default());
            let mut held = Vec::new();
            for body in &bodies {
                held.push(turn(&gate, cost, body).await.unwrap());
            }
            // The first is slow, the second slower, and the third is not waited for.
            bodies[0].note_received(1000);
            bodies[1].note_received(10);
            bodies[0].note_waited_for(true);
            bodies[1].note_waited_for(true);
            let late = BodyState::default();
            let waiter = turn(&gate, cost, &late);
            tokio::pin!(waiter);
            let slowest_gives_way = async {
                while !bodies[1].must_give_way() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            };
            tokio::select! {
                _ = &mut waiter => panic!("nobody has given way yet"),
                () = slowest_gives_way => {}
            }
            assert!(!bodies[0].must_give_way() && !bodies[2].must_give_way());
            drop(held.remove(1));
            assert!(waiter.await.unwrap().is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_are_slow_the_last_one_has_its_turn() {
        let gate = Arc::new(Gate::new(&Limits::default()));
        // Clients that send nothing, of as many addresses, until they are told to give way.
        let crowd: Vec<_> = (0..480u16)
            .map(|n| {
                let gate = gate.clone();
                tokio::spawn(async move {
                    let [high, low] = n.to_be_bytes();
                    let (asker, body) = (IpAddr::from([10, 1, high, low]), BodyState::default());
                    let held = gate.turn(Cost::Upload, asker, body.clone(), None).await;
                    body.note_waited_for(true);
                    while !body.must_give_way() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    drop(held);
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(gate.uploads.turns.waiting(), 448);
        let body = BodyState::default();
        let last = turn(&gate, Cost::Upload, &body).await.unwrap();
        assert!(last.is_some());
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
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
