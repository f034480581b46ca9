//! Requests that a drive has and has not served yet.

use crate::request::{Completion, Failure, Operation, Request, Tag};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// How many requests the drive looks at when it chooses the next one: the depth of its queue
/// (SATA native command queueing has 32).
pub const QUEUE_DEPTH: usize = 32;

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
    waiting.request.operation != Operation::Flush
}

/// Waiting requests in the order in which they came.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Queue {
    waiting: Vec<Waiting>,
}

impl Queue {
    /// Adds one behind all others.
    pub fn push(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Waiting> {
        self.waiting.iter()
    }

    /// When the first can be begun. A flush waits for the writes before it.
    pub fn ready(&self) -> Option<Time> {
        let waits = |w: &&Waiting| moves(w) || !self.has_writes_before(w.tag);
        self.waiting.iter().filter(waits).map(|w| w.ready).min()
    }

    /// Puts one back in its place.
    pub fn insert(&mut self, index: usize, waiting: Waiting) {
        self.waiting.insert(index, waiting);
    }

    /// Takes one out.
    pub fn remove(&mut self, index: usize) -> Waiting {
        self.waiting.remove(index)
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
