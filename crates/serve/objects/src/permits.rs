//! Permits for requests that cost memory: a limited number of [turns](crate::turns) of a kind. While others wait,
//! slow bodies give way.

use crate::flow::Flow;
use crate::peers::Peer;
use crate::turns::{Turn, Turns};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A turn, held as long as the request needs memory.
#[derive(Clone)]
pub struct Permit(Arc<Held>);

impl Permit {
    /// Progress of the request's body.
    pub fn flow(&self) -> &Flow {
        &self.0.flow
    }

    /// From now on, the connection is closed if the request has to give way: it waits for its client to read.
    /// If it had to give way with its own body, that is over.
    pub fn close_with(&self, peer: Option<Arc<Peer>>) {
        // Whoever tells a holder to give way has the lock as well.
        let mut holders = self.0.line.holders();
        self.0.flow.go_on();
        if let Some(holder) = holders.get_mut(&self.0.number) {
            holder.peer = peer;
        }
    }
}

struct Held {
    _turn: Turn,
    line: Arc<Line>,
    number: u64,
    flow: Flow,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.line.holders().remove(&self.number);
    }
}

/// Limits for slow clients while others wait.
#[derive(Clone, Copy, Debug)]
pub struct Pressure {
    /// How long a request waits for a turn.
    pub turn_timeout: Duration,
    /// How long it waits before slow bodies have to give way.
    pub patience: Duration,
    /// Rate below which a body is slow.
    pub min_bytes_per_second: u64,
}

/// The holders of one kind's turns, and the requests that wait for one.
pub struct Line {
    turns: Arc<Turns>,
    max: usize,
    pressure: Pressure,
    next: AtomicU64,
    holders: Mutex<BTreeMap<u64, Holder>>,
}

/// A body under way, and its connection if only closing that ends it.
struct Holder {
    flow: Flow,
    peer: Option<Arc<Peer>>,
}

impl Line {
    /// A line with `max` turns.
    pub fn new(max: usize, pressure: Pressure) -> Arc<Self> {
        Arc::new(Self {
            turns: Turns::new(max),
            max,
            pressure,
            next: AtomicU64::new(0),
            holders: Mutex::default(),
        })
    }

    /// Waits for a turn; `None` if there was none within the timeout. After [`Pressure::patience`], slow bodies of
    /// other requests have to give way. `peer` is the connection to close for that: a download's body is not polled
    /// while its client reads nothing.
    pub async fn take(
        self: &Arc<Self>,
        asker: IpAddr,
        flow: Flow,
        peer: Option<Arc<Peer>>,
    ) -> Option<Permit> {
        let take = async {
            let patience = self.patience();
            let take = self.turns.take(asker);
            tokio::pin!(take);
            loop {
                tokio::select! {
                    turn = &mut take => return turn,
                    () = tokio::time::sleep(patience) => self.hurry(patience),
                }
            }
        };
        let turn = tokio::time::timeout(self.pressure.turn_timeout, take).await;
        let turn = turn.ok()?;
        flow.begin(self.pressure.patience);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let holder = Holder {
            flow: flow.clone(),
            peer,
        };
        self.holders().insert(number, holder);
        Some(Permit(Arc::new(Held {
            _turn: turn,
            line: self.clone(),
            number,
            flow,
        })))
    }

    fn holders(&self) -> MutexGuard<'_, BTreeMap<u64, Holder>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a new request leaves slow bodies alone: so long that it and all requests before it could have their
    /// turns within the usual patience.
    fn patience(&self) -> Duration {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).max(1);
        let usual = self.pressure.patience;
        let all = usual.saturating_mul(number(self.max));
        let waiting = self.turns.waiting().saturating_add(1);
        usual.min(all / number(waiting))
    }

    /// Makes the slowest bodies give way, as many as requests wait: those that wait for their client and are slower
    /// than is allowed while others wait.
    fn hurry(&self, patience: Duration) {
        let waiting = self.turns.waiting();
        let holders = self.holders();
        let mut slow = Vec::new();
        let mut giving_way = 0;
        for holder in holders.values() {
            let (rate, elapsed) = holder.flow.rate();
            let late = elapsed >= patience && rate < self.pressure.min_bytes_per_second;
            if holder.flow.must_give_way() {
                giving_way += 1;
            } else if late && holder.flow.is_waited_for() {
                slow.push((rate, holder));
            }
        }
        slow.sort_by_key(|(rate, _)| *rate);
        for (_, holder) in slow.iter().take(waiting.saturating_sub(giving_way)) {
            holder.flow.give_way();
            if let Some(peer) = &holder.peer {
                peer.close();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const PRESSURE: Pressure = Pressure {
        turn_timeout: Duration::from_secs(30),
        patience: Duration::from_secs(5),
        min_bytes_per_second: 64 * 1024,
    };

    async fn take(line: &Arc<Line>, flow: &Flow) -> Option<Permit> {
        line.take(HERE, flow.clone(), None).await
    }

    async fn another_has_its_turn(line: &Arc<Line>, meanwhile: impl Future<Output = ()>) {
        let elsewhere = IpAddr::from([10, 0, 0, 1]);
        tokio::select! {
            permit = line.take(elsewhere, Flow::default(), None) => assert!(permit.is_some()),
            () = meanwhile => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn turns_run_out_and_come_back() {
        let (line, flow) = (Line::new(1, PRESSURE), Flow::default());
        let held = take(&line, &flow).await;
        assert!(held.is_some());
        assert!(take(&line, &flow).await.is_none());
        drop(held);
        assert!(take(&line, &flow).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_body_gives_way() {
        let line = Line::new(3, PRESSURE);
        let flows = [0u64, 1, 2].map(|_| Flow::default());
        let mut held = Vec::new();
        for flow in &flows {
            held.push(take(&line, flow).await.unwrap());
        }
        // The first is slow, the second slower, and the third is not waited for.
        flows[0].note_received(1000);
        flows[1].note_received(10);
        flows[0].note_waited_for(true);
        flows[1].note_waited_for(true);
        let late = Flow::default();
        let waiter = take(&line, &late);
        tokio::pin!(waiter);
        let slowest_gives_way = async {
            while !flows[1].must_give_way() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            _ = &mut waiter => panic!("nobody has given way yet"),
            () = slowest_gives_way => {}
        }
        assert!(!flows[0].must_give_way() && !flows[2].must_give_way());
        drop(held.remove(1));
        assert!(waiter.await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_a_body_that_had_to_give_way_is_closed_too() {
        let peers = crate::peers::Peers::new(1, 1);
        let peer = Arc::new(peers.arrive(HERE));
        let (line, flow) = (Line::new(1, PRESSURE), Flow::default());
        let permit = take(&line, &flow).await.unwrap();
        flow.note_waited_for(true);
        let answer = async {
            while !flow.must_give_way() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            // The body had ended before it saw that.
            permit.close_with(Some(peer.clone()));
            flow.hand_out(1000);
            peer.closed().await;
            drop(permit);
            std::future::pending().await
        };
        another_has_its_turn(&line, answer).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_fast_once_gives_way_when_slow() {
        let line = Line::new(1, PRESSURE);
        let flow = Flow::default();
        let held = take(&line, &flow).await;
        flow.note_received(1 << 30);
        flow.note_waited_for(true);
        let sends = async {
            for _ in 0..12 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                flow.note_received(1);
            }
        };
        sends.await;
        let gives_way = async {
            while !flow.must_give_way() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            drop(held);
            std::future::pending().await
        };
        another_has_its_turn(&line, gives_way).await;
    }

    #[tokio::test(start_paused = true)]
    async fn however_many_are_slow_the_last_one_has_its_turn() {
        let line = Line::new(32, PRESSURE);
        // Clients that send nothing, of as many addresses, until they are told to give way.
        let crowd: Vec<_> = (0..480u16)
            .map(|n| {
                let line = line.clone();
                tokio::spawn(async move {
                    let [high, low] = n.to_be_bytes();
                    let (asker, flow) = (IpAddr::from([10, 1, high, low]), Flow::default());
                    let held = line.take(asker, flow.clone(), None).await;
                    flow.note_waited_for(true);
                    while !flow.must_give_way() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    drop(held);
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(line.turns.waiting(), 448);
        assert!(take(&line, &Flow::default()).await.is_some());
        crowd.iter().for_each(tokio::task::JoinHandle::abort);
    }
}
