//! A limited number of turns, shared by the addresses that request them.
//!
//! A free turn goes to the address that holds the fewest turns, and there to the longest wait. So an address that
//! requests hundreds cannot keep out one that requests its first.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The client of an address, as far as it can be told: the /64 network of an IPv6 address, since a host has a whole
/// one.
pub fn asker(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address => address,
    }
}

/// A limited number of turns.
pub struct Turns {
    state: Mutex<State>,
}

struct State {
    free: usize,
    held: HashMap<IpAddr, usize>,
    next: u64,
    /// In order of arrival.
    waiting: BTreeMap<u64, (IpAddr, oneshot::Sender<()>)>,
}

/// A turn, given back when it is dropped.
pub struct Turn {
    turns: Arc<Turns>,
    asker: IpAddr,
}

/// A request that waits for a turn; when dropped, a turn that was granted but not taken is given back.
struct Waiting {
    turns: Arc<Turns>,
    asker: IpAddr,
    number: u64,
    taken: bool,
}

impl Turns {
    /// So many turns, at least one.
    pub fn new(turns: usize) -> Arc<Self> {
        let state = Mutex::new(State {
            free: turns.max(1),
            held: HashMap::new(),
            next: 0,
            waiting: BTreeMap::new(),
        });
        Arc::new(Self { state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of requests that wait.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// Waits for a turn.
    pub async fn take(self: &Arc<Self>, asker: IpAddr) -> Turn {
        let (sender, receiver) = oneshot::channel();
        let number = {
            let mut state = self.state();
            let number = state.next;
            state.next += 1;
            state.waiting.insert(number, (asker, sender));
            state.grant();
            number
        };
        let mut waiting = Waiting {
            turns: self.clone(),
            asker,
            number,
            taken: false,
        };
        // The sender is dropped only together with this entry.
        let _ = receiver.await;
        waiting.taken = true;
        Turn {
            turns: self.clone(),
            asker,
        }
    }
}

impl State {
    fn grant(&mut self) {
        while self.free > 0 {
            let held = |asker: &IpAddr| self.held.get(asker).copied().unwrap_or_default();
            let next = self
                .waiting
                .iter()
                .min_by_key(|(number, (asker, _))| (held(asker), **number))
                .map(|(number, _)| *number);
            let Some((asker, sender)) = next.and_then(|number| self.waiting.remove(&number)) else {
                return;
            };
            self.free -= 1;
            *self.held.entry(asker).or_default() += 1;
            // A receiver that was dropped meanwhile gives the turn back in [`Waiting`].
            let _ = sender.send(());
        }
    }

    fn give_back(&mut self, asker: IpAddr) {
        self.free += 1;
        if let Some(held) = self.held.get_mut(&asker) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&asker);
            }
        }
        self.grant();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        if state.waiting.remove(&self.number).is_none() && !self.taken {
            state.give_back(self.asker);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.state().give_back(self.asker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn address(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    #[tokio::test]
    async fn the_address_with_the_fewest_is_next() {
        let turns = Turns::new(2);
        let held = [turns.take(address(1)).await, turns.take(address(1)).await];
        let mut crowd: Vec<_> = (0..50).map(|_| Box::pin(turns.take(address(1)))).collect();
        for one in &mut crowd {
            assert!(one.now_or_never().is_none());
        }
        let mut single = Box::pin(turns.take(address(2)));
        assert!((&mut single).now_or_never().is_none());
        assert_eq!(turns.waiting(), 51);
        let [first, second] = held;
        drop(first);
        let single = (&mut single).now_or_never().unwrap();
        // Behind it, the crowd in its order.
        drop(second);
        let granted: Vec<Option<Turn>> = crowd.iter_mut().map(|one| one.now_or_never()).collect();
        assert!(granted[0].is_some() && granted[1..].iter().all(Option::is_none));
        drop((single, granted, crowd));
        let state = turns.state();
        assert_eq!(
            (state.free, state.held.len(), state.waiting.len()),
            (2, 0, 0)
        );
    }

    #[tokio::test]
    async fn what_was_granted_to_nobody_is_given_on() {
        let turns = Turns::new(1);
        let held = turns.take(address(1)).await;
        let mut gone = Box::pin(turns.take(address(2)));
        let mut next = Box::pin(turns.take(address(3)));
        assert!((&mut gone).now_or_never().is_none() && (&mut next).now_or_never().is_none());
        drop(held);
        drop(gone);
        assert!((&mut next).now_or_never().is_some());
    }

    #[test]
    fn a_host_is_one_asker() {
        let of = |text: &str| asker(text.parse().unwrap());
        assert_eq!(of("2001:db8:0:1::7"), of("2001:db8:0:1:ffff::1"));
        assert_ne!(of("2001:db8:0:1::7"), of("2001:db8:0:2::7"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
    }
}
