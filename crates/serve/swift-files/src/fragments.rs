//! Fragments of an erasure-coded object: which belong together, and which one to read.

use crate::file_name::{FileName, Kind};
use crate::timestamp::Timestamp;

/// The fragments of an object, apart from those older than the newest durable ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fragments {
    /// Sets of fragments with one timestamp, the newest set first; within a set by index.
    sets: Vec<Set>,
    /// Whether the last set is durable: at least one of its files says so.
    is_last_durable: bool,
}

type Set = Vec<(u32, FileName)>;

/// The fragment that a reader asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wanted<'a> {
    /// Index of the fragment; `None` for the highest index.
    pub index: Option<u32>,
    /// With a list of preferences, even an empty one, the fragment need not be durable.
    pub preferences: Option<&'a [Preference]>,
}

/// A reader's preference for fragments of one timestamp; earlier preferences in a list take precedence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preference {
    /// Timestamp of the fragments.
    pub timestamp: Timestamp,
    /// Indexes that the reader has already.
    pub exclude: Vec<u32>,
}

impl Fragments {
    /// The fragments among an object's files.
    pub(crate) fn new(files: &[FileName]) -> Self {
        let mut fragments = Vec::new();
        for file in files {
            if let Kind::Fragment { index, is_durable } = file.kind {
                // Sorts the durable one of two names of a fragment after the other.
                fragments.push((std::cmp::Reverse(file.timestamp), index, is_durable, *file));
            }
        }
        fragments.sort_unstable();
        let mut found = Self::default();
        for set in fragments.chunk_by(|one, other| one.0 == other.0) {
            found.sets.push(
                set.iter()
                    .map(|(_, index, _, file)| (*index, *file))
                    .collect(),
            );
            if set.iter().any(|(_, _, is_durable, _)| *is_durable) {
                found.is_last_durable = true;
                break;
            }
        }
        found
    }

    /// Timestamp and index of each fragment, the newest first.
    pub fn all(&self) -> impl Iterator<Item = (Timestamp, u32)> {
        let each = self.sets.iter().flatten();
        each.map(|(index, file)| (file.timestamp, *index))
    }

    /// The newest timestamp that is durable.
    pub fn durable(&self) -> Option<Timestamp> {
        Some(timestamp(self.durable_set()?))
    }

    fn durable_set(&self) -> Option<&Set> {
        self.sets.last().filter(|_| self.is_last_durable)
    }

    /// The timestamp to read from, and the fragment to read, if it exists.
    pub(crate) fn read(&self, wanted: Wanted<'_>) -> (Option<Timestamp>, Option<FileName>) {
        let chosen = match wanted.preferences {
            None => self.durable_set().map(|set| (set, wanted.index)),
            Some(preferences) => self.preferred(preferences, wanted.index),
        };
        let Some((set, index)) = chosen else {
            return (None, None);
        };
        // Of two names of one fragment the first, as in Swift.
        let found = match index {
            Some(index) => set.iter().find(|(other, _)| *other == index),
            None => set.last(),
        };
        (Some(timestamp(set)), found.map(|(_, file)| *file))
    }

    fn preferred(
        &self,
        preferences: &[Preference],
        index: Option<u32>,
    ) -> Option<(&Set, Option<u32>)> {
        let mut candidates: Vec<&Set> = self.sets.iter().collect();
        for Preference {
            timestamp: of,
            exclude,
        } in preferences
        {
            let Some(at) = candidates.iter().position(|set| timestamp(set) == *of) else {
                continue;
            };
            let left = candidates[at].iter().map(|(index, _)| *index);
            match left.filter(|index| !exclude.contains(index)).max() {
                Some(highest) => return Some((candidates[at], Some(highest))),
                None => drop(candidates.remove(at)),
            }
        }
        Some((*candidates.first()?, index))
    }

    /// Fragments that are neither durable nor of the timestamp that is read.
    pub(crate) fn strays(&self, read: Option<Timestamp>) -> impl Iterator<Item = FileName> {
        let durable = self.durable();
        let sets = self.sets.iter().filter(move |set| {
            let of = Some(timestamp(set));
            of != durable && of != read
        });
        sets.flatten().map(|(_, file)| *file)
    }
}

/// No set is empty.
fn timestamp(set: &Set) -> Timestamp {
    set[0].1.timestamp
}
