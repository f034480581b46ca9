//! What a repair does.

use serde::Serialize;
use std::collections::BTreeMap;

/// Something that does not come back as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GivenUp {
    /// A collection and an object's name, or a collection.
    pub name: String,
    /// What of it, and why.
    pub what: String,
}

/// What a repair has done, or would do.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RepairReport {
    /// What does not come back as it was.
    pub given_up: Vec<GivenUp>,
    /// Rows that were removed, moved or written anew, and places of metadata, by what was wrong with them.
    pub repaired: BTreeMap<String, u64>,
    /// False if nothing was changed, for what would have been given up was not agreed to.
    pub is_done: bool,
}

impl RepairReport {
    pub(super) fn repaired(&mut self, what: &str) {
        self.repaired_many(what, 1);
    }

    pub(super) fn repaired_many(&mut self, what: &str, count: u64) {
        if count > 0 {
            *self.repaired.entry(what.to_owned()).or_default() += count;
        }
    }

    pub(super) fn give_up(&mut self, name: impl Into<String>, what: impl Into<String>) {
        let (name, what) = (name.into(), what.into());
        self.given_up.push(GivenUp { name, what });
    }
}
