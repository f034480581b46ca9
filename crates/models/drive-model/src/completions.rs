//! Completions that the host has not taken yet, and the names of its requests.

use crate::request::{Completion, Tag};
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Ended(Completion);

impl PartialOrd for Ended {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ended {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0.at, self.0.tag).cmp(&(other.0.at, other.0.tag))
    }
}

/// Completions, the earliest first.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Completions {
    ended: BinaryHeap<Reverse<Ended>>,
    next_tag: u64,
}

impl Completions {
    /// A name that no request had before.
    pub fn name(&mut self) -> Tag {
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        tag
    }

    pub fn push(&mut self, completion: Completion) {
        self.ended.push(Reverse(Ended(completion)));
    }

    pub fn pop(&mut self) -> Option<Completion> {
        self.ended
            .pop()
            .map(|Reverse(Ended(completion))| completion)
    }

    /// The first of them, if it is answered by `now`.
    pub fn pop_by(&mut self, now: Time) -> Option<Completion> {
        self.first().filter(|first| *first <= now)?;
        self.pop()
    }

    /// When the first of them is answered.
    pub fn first(&self) -> Option<Time> {
        self.ended.peek().map(|Reverse(Ended(first))| first.at)
    }

    /// Takes out those that are answered after `now`, in no order.
    pub fn take_after(&mut self, now: Time) -> Vec<Completion> {
        let all = std::mem::take(&mut self.ended).into_iter();
        let (kept, taken): (Vec<_>, Vec<_>) = all.partition(|Reverse(Ended(c))| c.at <= now);
        self.ended.extend(kept);
        taken.into_iter().map(|Reverse(Ended(c))| c).collect()
    }
}
