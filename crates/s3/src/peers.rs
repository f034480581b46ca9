//! Who is connected: clients that have signed a request, and strangers.
//!
//! Both have slots of their own, so strangers can keep no client out. A connection is a stranger
//! until its first signed request was verified, which takes no longer than a request's head. When
//! strangers' slots are full, the next one takes the place of the one that has been there longest of
//! the address with the most of them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// All connections.
pub struct Peers {
    max_strangers: usize,
    max_clients: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// In order of arrival.
    strangers: BTreeMap<u64, Stranger>,
    clients: usize,
}

struct Stranger {
    address: IpAddr,
    closed: Arc<Notify>,
}

/// A connection's place among them, given up when it is dropped.
pub struct Peer {
    peers: Arc<Peers>,
    number: u64,
    is_client: AtomicBool,
    closed: Arc<Notify>,
}

impl Peers {
    /// Slots for so many of both.
    pub fn new(max_strangers: usize, max_clients: usize) -> Arc<Self> {
        Arc::new(Self {
            max_strangers: max_strangers.max(1),
            max_clients: max_clients.max(1),
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new connection; another one may have to close for it.
    pub fn arrive(self: &Arc<Self>, address: IpAddr) -> Peer {
        let closed = Arc::new(Notify::new());
        let mut state = self.state();
        if state.strangers.len() >= self.max_strangers
            && let Some(number) = in_the_way(&state.strangers)
            && let Some(stranger) = state.strangers.remove(&number)
        {
            stranger.closed.notify_one();
        }
        let number = state.next;
        state.next += 1;
        let stranger = Stranger {
            address,
            closed: closed.clone(),
        };
        state.strangers.insert(number, stranger);
        drop(state);
        Peer {
            peers: self.clone(),
            number,
            is_client: AtomicBool::new(false),
            closed,
        }
    }
}

/// The first to have come from the address with the most.
fn in_the_way(strangers: &BTreeMap<u64, Stranger>) -> Option<u64> {
    let mut of: HashMap<IpAddr, (usize, u64)> = HashMap::new();
    for (number, stranger) in strangers {
        of.entry(stranger.address).or_insert((0, *number)).0 += 1;
    }
    of.into_values()
        .max_by_key(|(count, first)| (*count, std::cmp::Reverse(*first)))
        .map(|(_, first)| first)
}

impl Peer {
    /// It has signed a request. False if there are too many clients, or its place has just gone to
    /// another.
    pub fn vouch(&self) -> bool {
        if self.is_client.load(Ordering::Acquire) {
            return true;
        }
        let mut state = self.peers.state();
        if state.clients >= self.peers.max_clients || state.strangers.remove(&self.number).is_none()
        {
            return false;
        }
        state.clients += 1;
        self.is_client.store(true, Ordering::Release);
        true
    }

    /// Until its place has gone to another.
    pub async fn closed(&self) {
        self.closed.notified().await;
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let mut state = self.peers.state();
        if self.is_client.load(Ordering::Acquire) {
            state.clients -= 1;
        } else {
            state.strangers.remove(&self.number);
        }
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

    #[test]
    fn clients_give_way_to_nobody() {
        let peers = Peers::new(1, 1);
        let client = peers.arrive(address(1));
        assert!(client.vouch() && client.vouch());
        let strangers: Vec<Peer> = (0..9).map(|_| peers.arrive(address(1))).collect();
        assert!(!is_closed(&client) && strangers[..8].iter().all(is_closed));
        assert!(!is_closed(&strangers[8]));
        // No slot for another client, until the first one goes.
        assert!(!strangers[8].vouch() && !strangers[0].vouch());
        drop(client);
        assert!(strangers[8].vouch());
        drop(strangers);
        let state = peers.state();
        assert_eq!((state.clients, state.strangers.len()), (0, 0));
    }
}
