//! The queue of requests that a drive has received and not served yet.

use crate::request::{Completion, Failure, Request, RequestKind, Tag};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque, vec_deque};

/// Number of requests among which the drive chooses the next one: its queue depth (SATA native command queueing has
/// 32).
pub const QUEUE_DEPTH: usize = 32;

/// How many times a request is passed over at most.
const PATIENCE: u32 = 2_048;

/// A waiting request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// Identifies the request.
    pub tag: Tag,
    /// The request.
    pub request: Request,
    /// Time of arrival.
    pub submitted: Time,
    /// The drive cannot begin the request before this time.
    pub ready: Time,
    /// Whether the host has its answer: a write in the volatile cache.
    pub acknowledged: bool,
    /// How many times the drive could have begun the request, and chose a later one.
    pub passed_over: u32,
}

impl Waiting {
    /// Whether the request has to be served next, however far away it is. Age counts how often it was passed over:
    /// the number of later arrivals means nothing when a volatile cache holds thousands.
    pub const fn is_due(&self) -> bool {
        self.passed_over >= PATIENCE
    }
}

/// A served request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// The request.
    pub waiting: Waiting,
    /// Time at which it was done.
    pub at: Time,
    /// Success, or why it failed.
    pub result: Result<(), Failure>,
}

impl Served {
    /// The completion for the host.
    pub const fn completion(&self) -> Completion {
        Completion {
            tag: self.waiting.tag,
            lba: self.waiting.request.lba,
            submitted: self.waiting.submitted,
            at: self.at,
            result: self.result,
        }
    }
}

/// Whether a request needs the medium.
fn moves(waiting: &&Waiting) -> bool {
    waiting.request.operation != RequestKind::Flush
}

/// Waiting requests in order of arrival, which is the order of their tags. A full volatile cache makes thousands of
/// them, so everything that is asked after each request is counted incrementally.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(from = "VecDeque<Waiting>", into = "VecDeque<Waiting>")]
pub struct Queue {
    waiting: VecDeque<Waiting>,
    /// Requests that need the medium, by the time at which they can begin.
    ready: BTreeSet<(Time, Tag)>,
    /// Requests that the host waits for.
    unanswered: BTreeSet<Tag>,
    reads: usize,
    flushes: usize,
}

impl From<VecDeque<Waiting>> for Queue {
    fn from(waiting: VecDeque<Waiting>) -> Self {
        let mut queue = Self::default();
        waiting.into_iter().for_each(|one| queue.push(one));
        queue
    }
}

impl From<Queue> for VecDeque<Waiting> {
    fn from(queue: Queue) -> Self {
        queue.waiting
    }
}

impl Queue {
    /// Adds a request at the end.
    pub fn push(&mut self, waiting: Waiting) {
        self.insert(self.waiting.len(), waiting);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// All requests in order.
    pub fn iter(&self) -> vec_deque::Iter<'_, Waiting> {
        self.waiting.iter()
    }

    /// Whether any read waits.
    pub const fn has_reads(&self) -> bool {
        self.reads > 0
    }

    /// Whether any flush waits.
    pub const fn has_flushes(&self) -> bool {
        self.flushes > 0
    }

    /// Whether the host waits for any request.
    pub fn is_waited_for(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// Positions of the requests that the host waits for, in order.
    pub fn unanswered(&self) -> impl Iterator<Item = usize> {
        let place = |tag: &Tag| self.waiting.binary_search_by_key(tag, |w| w.tag).ok();
        self.unanswered.iter().filter_map(place)
    }

    /// Whether a request waits.
    pub fn has(&self, tag: Tag) -> bool {
        self.waiting.binary_search_by_key(&tag, |w| w.tag).is_ok()
    }

    /// The request at a position.
    pub fn get(&self, index: usize) -> Option<&Waiting> {
        self.waiting.get(index)
    }

    /// Time at which the first request can begin. A flush waits for earlier writes.
    pub fn ready(&self) -> Option<Time> {
        let moving = self.ready.first().map(|(ready, _)| *ready);
        if self.flushes == 0 {
            return moving;
        }
        let done = |w: &&Waiting| !moves(w) && !self.has_writes_before(w.tag);
        let flushes = self.waiting.iter().filter(done).map(|w| w.ready);
        flushes.chain(moving).min()
    }

    /// Inserts a request at a position; all requests before it arrived earlier.
    pub fn insert(&mut self, index: usize, waiting: Waiting) {
        self.count(&waiting, true);
        self.waiting.insert(index, waiting);
    }

    /// Removes the request at a position.
    pub fn remove(&mut self, index: usize) -> Waiting {
        let waiting = self.waiting[index];
        self.waiting.remove(index);
        self.count(&waiting, false);
        waiting
    }

    /// Removes the request that is served next. Earlier ones that could begin at `now` count as passed over.
    pub fn serve(&mut self, index: usize, now: Time) -> Waiting {
        for other in self.waiting.range_mut(..index) {
            other.passed_over += u32::from(other.ready <= now && moves(&&*other));
        }
        self.remove(index)
    }

    fn count(&mut self, waiting: &Waiting, comes: bool) {
        let add = |count: &mut usize| *count = if comes { *count + 1 } else { *count - 1 };
        match waiting.request.operation {
            RequestKind::Flush => add(&mut self.flushes),
            RequestKind::Read => add(&mut self.reads),
            _ => {}
        }
        let at = (waiting.ready, waiting.tag);
        match comes {
            true if moves(&waiting) => _ = self.ready.insert(at),
            true => {}
            false => _ = self.ready.remove(&at),
        }
        match comes {
            true if !waiting.acknowledged => _ = self.unanswered.insert(waiting.tag),
            true => {}
            false => _ = self.unanswered.remove(&waiting.tag),
        }
    }

    /// Position of the oldest request that can begin at `now`.
    pub fn oldest(&self, now: Time) -> Option<usize> {
        self.waiting
            .iter()
            .position(|w| w.ready <= now && moves(&w))
    }

    /// Requests among which the drive can choose at `now`, with their positions.
    pub fn choice(&self, now: Time) -> impl Iterator<Item = (usize, &Waiting)> {
        self.waiting
            .iter()
            .enumerate()
            .filter(move |(_, w)| w.ready <= now && moves(w))
            .take(QUEUE_DEPTH)
    }

    /// Whether a write arrived before the request.
    pub fn has_writes_before(&self, tag: Tag) -> bool {
        self.waiting
            .iter()
            .any(|w| w.tag < tag && w.request.operation.is_write())
    }

    /// Whether one acknowledged write that waits has all blocks of a request.
    pub fn holds(&self, request: &Request) -> bool {
        self.waiting.iter().any(|w| {
            w.acknowledged && w.request.lba <= request.lba && request.end() <= w.request.end()
        })
    }
}
