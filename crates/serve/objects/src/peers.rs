//! Connections, in two groups with slots of their own: clients that have signed a request, and strangers.
//!
//! So strangers can keep no client out. A connection is a stranger until its first signed request is verified, which
//! takes no longer than a request's head. When all strangers' slots are taken, the next one replaces the oldest
//! connection of the address with the most of them. When all clients' slots are taken, the next one waits, and such a
//! connection of another address is closed after its current request.

use crate::turns::{Turn, Turns, asker};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Interval at which another client is told to make room while one waits.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// All connections of a server.
pub struct Peers {
    max_strangers: usize,
    slots: Arc<Turns>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// By number, in order of arrival.
    strangers: BTreeMap<u64, Entry>,
    /// Clients that were not told to make room.
    clients: BTreeMap<u64, Entry>,
}

struct Entry {
    asker: IpAddr,
    signals: Arc<Signals>,
}

#[derive(Default)]
struct Signals {
    closed: Notify,
    finish: Notify,
    /// Set before `finish` is notified, so that the answer to the current request can say it.
    is_last: AtomicBool,
}

impl Signals {
    fn finish(&self) {
        self.is_last.store(true, Relaxed);
        self.finish.notify_one();
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peer({}, {})", self.number, self.address)
    }
}

/// A connection in its group; it leaves the group when this is dropped.
pub struct Peer {
    peers: Arc<Peers>,
    number: u64,
    address: IpAddr,
    asker: IpAddr,
    slot: OnceLock<Turn>,
    signals: Arc<Signals>,
}

impl Peers {
    /// With slots for at most `max_strangers` and `max_clients`.
    pub fn new(max_strangers: usize, max_clients: usize) -> Arc<Self> {
        Arc::new(Self {
            max_strangers: max_strangers.max(1),
            slots: Turns::new(max_clients),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new connection as a stranger; another stranger may be closed for it.
    pub fn arrive(self: &Arc<Self>, address: IpAddr) -> Peer {
        let (asker, signals) = (asker(address), Arc::<Signals>::default());
        let mut state = self.state();
        if state.strangers.len() >= self.max_strangers
            && let Some((number, _)) = in_the_way(&state.strangers)
            && let Some(stranger) = state.strangers.remove(&number)
        {
            stranger.signals.closed.notify_one();
        }
        let number = state.next;
        state.next += 1;
        let entry = Entry {
            asker,
            signals: signals.clone(),
        };
        state.strangers.insert(number, entry);
        drop(state);
        Peer {
            peers: self.clone(),
            number,
            address,
            asker,
            slot: OnceLock::new(),
            signals,
        }
    }

    /// Tells a client of the address with the most clients to finish, if `asker` has fewer.
    fn make_room(&self, asker: IpAddr) {
        let mut state = self.state();
        let own = state.clients.values().filter(|entry| entry.asker == asker);
        let own = own.count();
        if let Some((number, count)) = in_the_way(&state.clients)
            && count > own
            && let Some(client) = state.clients.remove(&number)
        {
            client.signals.finish();
        }
    }
}

/// The oldest connection of the address with the most, and how many it has.
fn in_the_way(entries: &BTreeMap<u64, Entry>) -> Option<(u64, usize)> {
    let mut of: HashMap<IpAddr, (usize, u64)> = HashMap::new();
    for (number, entry) in entries {
        of.entry(entry.asker).or_insert((0, *number)).0 += 1;
    }
    of.into_values()
        .max_by_key(|(count, first)| (*count, std::cmp::Reverse(*first)))
        .map(|(count, first)| (first, count))
}

impl Peer {
    /// Address of the client.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The client, as far as it can be told: an IPv6 network (/64) counts as one.
    pub fn asker(&self) -> IpAddr {
        self.asker
    }

    /// Number of connections: of clients that were not told to make room, and of strangers.
    pub fn connected(&self) -> (usize, usize) {
        let state = self.peers.state();
        (state.clients.len(), state.strangers.len())
    }

    /// Makes it a client, after a signed request was verified; waits for a slot. False if there was none within
    /// `patience`, or if the stranger was replaced meanwhile.
    pub async fn admit(&self, patience: Duration) -> bool {
        if self.slot.get().is_some() {
            return true;
        }
        let take = async {
            let take = self.peers.slots.take(self.asker);
            tokio::pin!(take);
            let mut pause = Duration::ZERO;
            loop {
                tokio::select! {
                    biased;
                    slot = &mut take => return slot,
                    () = tokio::time::sleep(pause) => self.peers.make_room(self.asker),
                }
                pause = ASK_AGAIN;
            }
        };
        let Ok(slot) = tokio::time::timeout(patience, take).await else {
            return false;
        };
        let mut state = self.peers.state();
        let Some(entry) = state.strangers.remove(&self.number) else {
            return false;
        };
        state.clients.insert(self.number, entry);
        self.slot.set(slot).is_ok()
    }

    /// Ends the connection after the current request.
    pub fn leave(&self) {
        self.signals.finish();
    }

    /// Whether the connection ends after the current request.
    pub fn is_leaving(&self) -> bool {
        self.signals.is_last.load(Relaxed)
    }

    /// Ends the connection at once.
    pub fn close(&self) {
        self.signals.closed.notify_one();
    }

    /// Completes when the connection has to end at once.
    pub async fn closed(&self) {
        self.signals.closed.notified().await;
    }

    /// Completes when the connection has to end after the current request.
    pub async fn finish(&self) {
        self.signals.finish.notified().await;
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let mut state = self.peers.state();
        state.strangers.remove(&self.number);
        state.clients.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn address(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn is_closed(peer: &Peer) -> bool {
        peer.closed().now_or_never().is_some()
    }

    #[test]
    fn strangers_make_room_for_each_other() {
        let peers = Peers::new(3, 1);
        let few = peers.arrive(address(1));
        let many = [peers.arrive(address(2)), peers.arrive(address(2))];
        // The address with the most gives way, its first one first.
        let next = peers.arrive(address(3));
        assert!(!is_closed(&few) && is_closed(&many[0]) && !is_closed(&many[1]));
        // With one each, the first of all.
        let last = peers.arrive(address(4));
        assert!(is_closed(&few) && !is_closed(&many[1]) && !is_closed(&next));
        drop(last);
        assert_eq!(peers.state().strangers.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn clients_give_way_to_no_stranger() {
        let patience = Duration::from_secs(30);
        let peers = Peers::new(1, 1);
        let client = peers.arrive(address(1));
        assert!(client.admit(patience).await && client.admit(patience).await);
        let strangers: Vec<Peer> = (0..9).map(|_| peers.arrive(address(1))).collect();
        assert!(!is_closed(&client) && strangers[..8].iter().all(is_closed));
        assert!(!is_closed(&strangers[8]));
        // No slot for another client of that address, until the first one goes.
        assert!(!strangers[8].admit(patience).await && !strangers[0].admit(patience).await);
        drop(client);
        assert!(strangers[8].admit(patience).await);
        drop(strangers);
        let state = peers.state();
        assert_eq!((state.clients.len(), state.strangers.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_address_with_the_most_clients_makes_room() {
        let patience = Duration::from_secs(30);
        let peers = Peers::new(9, 3);
        let few = peers.arrive(address(1));
        let many = [peers.arrive(address(2)), peers.arrive(address(2))];
        for client in [&few, &many[0], &many[1]] {
            assert!(client.admit(patience).await);
        }
        let next = peers.arrive(address(3));
        let admitted = async {
            tokio::join!(next.admit(patience), async {
                many[0].finish().await;
                drop(many);
            })
        };
        assert!(admitted.await.0);
        assert!(few.finish().now_or_never().is_none());
    }
}
