//! What became of damaged stores, by the kind of the damage.

use serde::Serialize;
use std::collections::BTreeMap;

/// Most failures that are named.
const MAX_NAMED: usize = 50;

/// What became of one. Each of these but `lost_bytes` is a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The mount was refused, and why.
    pub refused: Option<String>,
    /// Bytes that are not, and were perhaps never, the object's.
    pub wrong: Vec<String>,
    /// Objects of which more is gone than was damaged.
    pub lost: Vec<String>,
    /// What a scrub has left wrong.
    pub left: Vec<String>,
    /// A panic.
    pub aborted: Option<String>,
    /// Bytes of objects that cannot be read: those that were damaged.
    pub lost_bytes: u64,
}

impl Outcome {
    fn failures(&self) -> [(&'static str, Vec<String>); 5] {
        let one = |failure: &Option<String>| failure.iter().cloned().collect::<Vec<_>>();
        [
            ("refused", one(&self.refused)),
            ("wrong bytes", self.wrong.clone()),
            ("lost", self.lost.clone()),
            ("not repaired", self.left.clone()),
            ("aborted", one(&self.aborted)),
        ]
    }
}

/// How many of a kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Kind {
    /// Tried.
    pub damages: u64,
    /// Of which so many had this failure.
    pub failures: BTreeMap<&'static str, u64>,
    /// Bytes of objects that could not be read, in all.
    pub lost_bytes: u64,
}

/// What became of all.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// By the kind of damage.
    pub kinds: BTreeMap<&'static str, Kind>,
    /// The first failures: number, damage, what happened.
    pub named: Vec<String>,
}

impl Report {
    pub(super) fn add(&mut self, number: u64, kind: &'static str, damage: &str, outcome: Outcome) {
        let of_kind = self.kinds.entry(kind).or_default();
        of_kind.damages += 1;
        of_kind.lost_bytes += outcome.lost_bytes;
        for (failure, found) in outcome.failures() {
            if let Some(first) = found.first() {
                *of_kind.failures.entry(failure).or_default() += 1;
                if self.named.len() < MAX_NAMED {
                    self.named
                        .push(format!("number {number}: {damage}: {failure}: {first}"));
                }
            }
        }
    }

    /// How many failed.
    pub fn failures(&self) -> u64 {
        let failures = self.kinds.values().flat_map(|kind| kind.failures.values());
        failures.sum()
    }

    /// A table for people, its head in front.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let names = Outcome::default().failures().map(|(name, _)| name);
        let head = ["damage", "tried"].into_iter().chain(names);
        let head = head.chain(["bytes of objects lost"]).map(str::to_owned);
        let mut rows = vec![head.collect::<Vec<_>>()];
        rows.extend(self.kinds.iter().map(|(name, kind)| {
            let mut row = vec![(*name).to_owned(), kind.damages.to_string()];
            let count = |name: &str| kind.failures.get(name).copied().unwrap_or(0);
            row.extend(names.map(|name| count(name).to_string()));
            row.push(kind.lost_bytes.to_string());
            row
        }));
        rows
    }
}
