//! Completions that the host has not fetched yet, and the tags of requests.

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

/// Completions, ordered by time.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Completions {
    ended: BinaryHeap<Reverse<Ended>>,
    next_tag: u64,
}

impl Completions {
    /// A tag that no request had before.
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

    /// The earliest completion, if its time is at most `now`.
    pub fn pop_by(&mut self, now: Time) -> Option<Completion> {
        self.first().filter(|first| *first <= now)?;
        self.pop()
    }

    /// Time of the earliest completion.
    pub fn first(&self) -> Option<Time> {
        self.ended.peek().map(|Reverse(Ended(first))| first.at)
    }

    /// Removes the completions after `now`, and returns them in no particular order.
    pub fn take_after(&mut self, now: Time) -> Vec<Completion> {
        let all = std::mem::take(&mut self.ended).into_iter();
        let (kept, taken): (Vec<_>, Vec<_>) = all.partition(|Reverse(Ended(c))| c.at <= now);
        self.ended.extend(kept);
        taken.into_iter().map(|Reverse(Ended(c))| c).collect()
    }
}
