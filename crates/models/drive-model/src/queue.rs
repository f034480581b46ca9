//! Requests that a drive has and has not served yet.

use crate::request::{Completion, Failure, Request, RequestKind, Tag};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque, vec_deque};

/// How many requests the drive looks at when it chooses the next one: the depth of its queue
/// (SATA native command queueing has 32).
pub const QUEUE_DEPTH: usize = 32;

/// So often a request is passed over at most.
const PATIENCE: u32 = 2_048;

/// A request that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// Its name.
    pub tag: Tag,
    /// What is asked.
    pub request: Request,
    /// When it came.
    pub submitted: Time,
    /// The drive cannot begin with it before.
    pub ready: Time,
    /// The host has its answer: it is a write in the volatile cache.
    pub acknowledged: bool,
    /// How often the drive could have begun with it, and chose one that came later.
    pub passed_over: u32,
}

impl Waiting {
    /// Whether its turn has come, whatever else would be sooner done. Age is how often it was passed over:
    /// how many came after it says nothing where a volatile cache holds thousands.
    pub const fn is_due(&self) -> bool {
        self.passed_over >= PATIENCE
    }
}

/// A request that has been served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// The request.
    pub waiting: Waiting,
    /// When it was done.
    pub at: Time,
    /// How it ended.
    pub result: Result<(), Failure>,
}

impl Served {
    /// Its end as the host sees it.
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

/// Whether it needs the medium.
fn moves(waiting: &&Waiting) -> bool {
    waiting.request.operation != RequestKind::Flush
}

/// Waiting requests in the order in which they came, which is that of their tags; thousands of them where a
/// volatile cache is full of writes: what is asked after each request is counted along.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(from = "VecDeque<Waiting>", into = "VecDeque<Waiting>")]
pub struct Queue {
    waiting: VecDeque<Waiting>,
    /// When those that need the medium can be begun.
    ready: BTreeSet<(Time, Tag)>,
    /// Those that the host waits for.
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
    /// Adds one behind all others.
    pub fn push(&mut self, waiting: Waiting) {
        self.insert(self.waiting.len(), waiting);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> vec_deque::Iter<'_, Waiting> {
        self.waiting.iter()
    }

    /// Whether there is a read.
    pub const fn has_reads(&self) -> bool {
        self.reads > 0
    }

    /// Whether there is a flush.
    pub const fn has_flushes(&self) -> bool {
        self.flushes > 0
    }

    /// Whether the host waits for any.
    pub fn is_waited_for(&self) -> bool {
        !self.unanswered.is_empty()
    }

    /// The places of those that the host waits for, in order.
    pub fn unanswered(&self) -> impl Iterator<Item = usize> {
        let place = |tag: &Tag| self.waiting.binary_search_by_key(tag, |w| w.tag).ok();
        self.unanswered.iter().filter_map(place)
    }

    /// One by its place.
    pub fn get(&self, index: usize) -> Option<&Waiting> {
        self.waiting.get(index)
    }

    /// When the first can be begun. A flush waits for the writes before it.
    pub fn ready(&self) -> Option<Time> {
        let moving = self.ready.first().map(|(ready, _)| *ready);
        if self.flushes == 0 {
            return moving;
        }
        let done = |w: &&Waiting| !moves(w) && !self.has_writes_before(w.tag);
        let flushes = self.waiting.iter().filter(done).map(|w| w.ready);
        flushes.chain(moving).min()
    }

    /// Puts one in, behind all that came before it.
    pub fn insert(&mut self, index: usize, waiting: Waiting) {
        self.count(&waiting, true);
        self.waiting.insert(index, waiting);
    }

    /// Takes one out.
    pub fn remove(&mut self, index: usize) -> Waiting {
        let waiting = self.waiting[index];
        self.waiting.remove(index);
        self.count(&waiting, false);
        waiting
    }

    /// Takes out the one that is served next: those in front of it that can be begun at `now` are passed over.
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

    /// The place of the oldest request that can be begun at `now`.
    pub fn oldest(&self, now: Time) -> Option<usize> {
        self.waiting
            .iter()
            .position(|w| w.ready <= now && moves(&w))
    }

    /// The places of the requests that the drive can choose from.
    pub fn choice(&self, now: Time) -> impl Iterator<Item = (usize, &Waiting)> {
        self.waiting
            .iter()
            .enumerate()
            .filter(move |(_, w)| w.ready <= now && moves(w))
            .take(QUEUE_DEPTH)
    }

    /// Whether a write came before the request.
    pub fn has_writes_before(&self, tag: Tag) -> bool {
        self.waiting
            .iter()
            .any(|w| w.tag < tag && w.request.operation.is_write())
    }

    /// Whether all blocks of a request are in a write that waits.
    pub fn holds(&self, request: &Request) -> bool {
        self.waiting.iter().any(|w| {
            w.acknowledged && w.request.lba <= request.lba && request.end() <= w.request.end()
        })
    }
}
