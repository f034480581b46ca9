//! What a drive of the host may do its own way, and what it did so.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Where a drive may differ from the rule book: command, condition before, what comes of it, and
/// by what right.
const MAY_DIFFER: [(&str, &str, &str, &str); 8] = [
    ("close", "em 0", "em 0", "ZBC has nothing to do there"),
    ("close", "fu all", "fu all", "ZBC has nothing to do there"),
    ("open", "fu all", "fu all", "ZBC has nothing to do there"),
    ("close", "oe 0", "cl 0", "ZNS keeps it active"),
    (
        "open",
        "em at the open limit",
        "too many open",
        "zloop closes no zone for an explicit open",
    ),
    (
        "finish",
        "em at the active limit",
        "fu all",
        "QEMU's ZNS needs no resource for it",
    ),
    (
        "finish",
        "em at the open limit",
        "too many open",
        "null_blk opens it for a moment",
    ),
    (
        "write",
        "cl at the active limit",
        "too many open",
        "null_blk closes no zone for it then",
    ),
];

/// What a drive of the host did not have to do, and what it does its own way.
#[derive(Default)]
pub(super) struct Leeway {
    notes: RefCell<BTreeSet<String>>,
    violations: RefCell<BTreeSet<String>>,
    /// How many zones a case may make active, if not any number.
    pub room: Cell<Option<u32>>,
}

impl Leeway {
    /// Adds a line to the result.
    pub fn note(&self, note: &str) {
        self.notes.borrow_mut().insert(note.to_owned());
    }

    /// A command ended otherwise than the rule book says.
    pub fn differs(&self, command: &str, condition: &str, expected: &str, found: &str) {
        let right = MAY_DIFFER
            .iter()
            .find(|(c, before, after, _)| (*c, *before, *after) == (command, condition, found));
        let done = format!("{command} in {condition} gives {found}");
        match right {
            Some((.., why)) => self.note(&format!("differs: {done}, not {expected}: {why}")),
            None => {
                let violation = format!("{done}, not {expected}");
                self.violations.borrow_mut().insert(violation);
            }
        }
    }

    /// What was noted. A rule that the drive broke panics.
    pub fn result(&self) -> Vec<String> {
        let violations = self.violations.borrow();
        assert!(violations.is_empty(), "{violations:#?}");
        self.notes.borrow().iter().cloned().collect()
    }
}
