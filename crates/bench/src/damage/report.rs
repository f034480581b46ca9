//! The outcomes of trials, by kind of damage.

use serde::Serialize;
use std::collections::BTreeMap;

/// The most failures that are listed.
const MAX_NAMED: usize = 50;

/// The outcome of one trial. Everything in it but `lost_bytes` is a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Why the mount was refused.
    pub refused: Option<String>,
    /// Objects with wrong content, in words.
    pub wrong: Vec<String>,
    /// Data that is lost beyond what was damaged, in words.
    pub lost: Vec<String>,
    /// What is wrong after a scrub, in words.
    pub left: Vec<String>,
    /// The message of a panic.
    pub aborted: Option<String>,
    /// Bytes of objects that cannot be read.
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

/// The outcomes of one kind of damage.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Kind {
    /// Damages tried.
    pub damages: u64,
    /// Damages with each failure, by its name.
    pub failures: BTreeMap<&'static str, u64>,
    /// Bytes of objects that could not be read, in all.
    pub lost_bytes: u64,
}

/// The outcomes of all damages.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The outcomes by kind of damage.
    pub kinds: BTreeMap<&'static str, Kind>,
    /// The first failures: number, damage, and what happened.
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

    /// Number of failures of all kinds.
    pub fn failures(&self) -> u64 {
        let failures = self.kinds.values().flat_map(|kind| kind.failures.values());
        failures.sum()
    }

    /// A table for people, its head first.
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
