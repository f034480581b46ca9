//! Report of a repair.

use serde::Serialize;
use std::collections::BTreeMap;

/// A loss: a collection or an object that cannot be restored as it was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GivenUp {
    /// Name of the collection, or COLLECTION/OBJECT.
    pub name: String,
    /// The lost part, and the reason.
    pub what: String,
}

/// Result of a repair, or its plan.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RepairReport {
    /// All losses.
    pub given_up: Vec<GivenUp>,
    /// Number of rows removed, moved or rewritten, and of places of metadata, by kind of error.
    pub repaired: BTreeMap<String, u64>,
    /// Files of metadata that are damaged in all copies, and stay so.
    pub lost_files: Vec<String>,
    /// False if nothing was changed, because the caller did not agree to the losses.
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
