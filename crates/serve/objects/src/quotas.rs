//! Quotas of one client: requests and bytes a second, and connections. Clients are distinguished by key, address, or
//! any other `K`.
//!
//! Requests and bytes are counted when they arrive, and the count falls at the allowed rate. A client that is ahead
//! by more than a second's worth is refused until it no longer is, so that its average keeps to the rate while a
//! single large body is never cut off.

use crate::peers::Peer;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Clients that are remembered before idle ones are forgotten.
const REMEMBERED: usize = 4096;

/// Limits of one client; `None` for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Quota {
    /// Requests a second.
    pub requests: Option<u64>,
    /// Bytes of bodies a second, both directions together.
    pub bytes: Option<u64>,
    /// Connections at a time.
    pub connections: Option<u64>,
}

/// Why a client is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Too many requests or bytes; how long the client should wait.
    Rate(Duration),
    /// Too many connections.
    Connections,
}

/// The same quota for each client, with an account for each.
#[derive(Debug)]
pub struct Quotas<K> {
    quota: Arc<RwLock<Quota>>,
    accounts: Mutex<BTreeMap<K, Arc<Account>>>,
}

impl<K> Default for Quotas<K> {
    fn default() -> Self {
        Self {
            quota: Arc::default(),
            accounts: Mutex::default(),
        }
    }
}

/// Usage of one client.
#[derive(Default, Debug)]
pub struct Account {
    quota: Arc<RwLock<Quota>>,
    asked: Mutex<Asked>,
}

#[derive(Default, Debug)]
struct Asked {
    requests: Level,
    bytes: Level,
    connections: Vec<Weak<Peer>>,
}

impl<K: Ord> Quotas<K> {
    /// Sets the quota, from now on.
    pub fn set(&self, quota: Quota) {
        *self.quota.write().unwrap_or_else(PoisonError::into_inner) = quota;
    }

    /// Counts a request of a client on a connection; returns the account that its bytes are charged to, or `None`
    /// without any limit.
    ///
    /// # Errors
    /// The client is ahead of its quota.
    pub fn admit(
        &self,
        client: K,
        peer: Option<&Arc<Peer>>,
    ) -> Result<Option<Arc<Account>>, Refused> {
        if *read(&self.quota) == Quota::default() {
            return Ok(None);
        }
        let account = self.account(client);
        account.admit(peer, Instant::now())?;
        Ok(Some(account))
    }

    fn account(&self, client: K) -> Arc<Account> {
        let mut accounts = lock(&self.accounts);
        // Only at powers of two, so that in a crowd not every arrival scans all accounts.
        let count = accounts.len();
        if count >= REMEMBERED && count.is_power_of_two() && !accounts.contains_key(&client) {
            let now = Instant::now();
            accounts.retain(|_, account| Arc::strong_count(account) > 1 || !account.is_idle(now));
        }
        let new = || {
            Arc::new(Account {
                quota: self.quota.clone(),
                asked: Mutex::default(),
            })
        };
        accounts.entry(client).or_insert_with(new).clone()
    }
}

impl Account {
    /// Counts bytes of a body, in either direction.
    pub fn charge(&self, bytes: u64) {
        if let Some(rate) = read(&self.quota).bytes {
            lock(&self.asked).bytes.add(bytes, rate, Instant::now());
        }
    }

    fn admit(&self, peer: Option<&Arc<Peer>>, now: Instant) -> Result<(), Refused> {
        let quota = *read(&self.quota);
        let asked = &mut *lock(&self.asked);
        let is_ahead = |level: &mut Level, rate: Option<u64>| {
            rate.and_then(|rate| level.wait(rate, now))
                .map_or(Ok(()), |wait| Err(Refused::Rate(wait)))
        };
        is_ahead(&mut asked.requests, quota.requests)?;
        is_ahead(&mut asked.bytes, quota.bytes)?;
        if let (Some(most), Some(peer)) = (quota.connections, peer) {
            asked.connect(peer, most)?;
        }
        if let Some(rate) = quota.requests {
            asked.requests.add(1, rate, now);
        }
        Ok(())
    }

    fn is_idle(&self, now: Instant) -> bool {
        let quota = *read(&self.quota);
        let asked = &mut *lock(&self.asked);
        asked.connections.retain(|peer| peer.strong_count() > 0);
        let is_level = |level: &mut Level, rate: Option<u64>| {
            rate.is_none_or(|rate| level.after(rate, now) == 0.0)
        };
        asked.connections.is_empty()
            && is_level(&mut asked.requests, quota.requests)
            && is_level(&mut asked.bytes, quota.bytes)
    }
}

impl Asked {
    fn connect(&mut self, peer: &Arc<Peer>, most: u64) -> Result<(), Refused> {
        let this = Arc::downgrade(peer);
        if self.connections.iter().any(|other| other.ptr_eq(&this)) {
            return Ok(());
        }
        self.connections.retain(|other| other.strong_count() > 0);
        if self.connections.len() as u64 >= most {
            return Err(Refused::Connections);
        }
        self.connections.push(this);
        Ok(())
    }
}

/// How far a client is ahead of a rate, at a point in time.
#[derive(Debug)]
struct Level {
    ahead: f64,
    at: Instant,
}

impl Default for Level {
    fn default() -> Self {
        let at = Instant::now();
        Self { ahead: 0.0, at }
    }
}

impl Level {
    /// How far the client is ahead at `now`.
    fn after(&mut self, rate: u64, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.ahead = (self.ahead - elapsed * rate as f64).max(0.0);
        self.at = now;
        self.ahead
    }

    fn add(&mut self, count: u64, rate: u64, now: Instant) {
        self.ahead = self.after(rate, now) + count as f64;
    }

    /// Time until the client is less than a second's worth ahead; `None` if it is already.
    fn wait(&mut self, rate: u64, now: Instant) -> Option<Duration> {
        let rate_per_second = rate.max(1) as f64;
        let over = self.after(rate, now) - rate_per_second;
        // At most about a century: a float may exceed the range of `Duration`.
        (over >= 0.0).then(|| Duration::from_secs_f64(((over + 1.0) / rate_per_second).min(3e9)))
    }
}

fn read(quota: &RwLock<Quota>) -> std::sync::RwLockReadGuard<'_, Quota> {
    quota.read().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Peers;

    fn quotas(quota: Quota) -> Quotas<&'static str> {
        let quotas = Quotas::default();
        quotas.set(quota);
        quotas
    }

    #[tokio::test(start_paused = true)]
    async fn requests_keep_to_their_rate() {
        let quotas = quotas(Quota {
            requests: Some(10),
            ..Quota::default()
        });
        let mut admitted = 0;
        for _ in 0..1000 {
            admitted += u32::from(quotas.admit("me", None).is_ok());
            tokio::time::advance(Duration::from_millis(10)).await;
        }
        // A second's worth at once, and ten seconds at the rate.
        assert!((105..=112).contains(&admitted), "{admitted}");
        let Err(Refused::Rate(wait)) = quotas.admit("me", None) else {
            panic!("not refused");
        };
        assert!(quotas.admit("another", None).is_ok());
        tokio::time::advance(wait).await;
        assert!(quotas.admit("me", None).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_paid_for_afterwards() {
        let quotas = quotas(Quota {
            bytes: Some(1000),
            ..Quota::default()
        });
        let account = quotas.admit("me", None).unwrap().unwrap();
        account.charge(5000);
        let refused = quotas.admit("me", None).err();
        assert!(matches!(refused, Some(Refused::Rate(wait)) if wait.as_secs() == 4));
        tokio::time::advance(Duration::from_millis(4001)).await;
        assert!(quotas.admit("me", None).is_ok());
        quotas.set(Quota::default());
        assert!(quotas.admit("me", None).unwrap().is_none());
    }

    #[tokio::test]
    async fn connections_are_counted_while_they_are_there() {
        let peers = Peers::new(9, 9);
        let arrive = || Arc::new(peers.arrive([10, 0, 0, 1].into()));
        let quotas = quotas(Quota {
            connections: Some(2),
            ..Quota::default()
        });
        let (first, second, third) = (arrive(), arrive(), arrive());
        let ask = |peer: &Arc<Peer>| quotas.admit("me", Some(peer)).map(|_| ());
        assert_eq!([ask(&first), ask(&second), ask(&first)], [Ok(()); 3]);
        assert_eq!(ask(&third), Err(Refused::Connections));
        drop(second);
        assert_eq!(ask(&third), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_nothing_is_forgotten() {
        let quotas = Quotas::default();
        quotas.set(Quota {
            requests: Some(1),
            ..Quota::default()
        });
        for client in 0..REMEMBERED {
            assert!(quotas.admit(client, None).is_ok());
        }
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(quotas.admit(REMEMBERED, None).is_ok());
        assert_eq!(lock(&quotas.accounts).len(), 1);
    }
}
