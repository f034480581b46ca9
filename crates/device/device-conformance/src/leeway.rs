//! The deviations from the rule book that the standards leave to a real drive, and those that were observed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The allowed deviations: command, condition before it, outcome, and the clause or reason that allows it.
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

/// Notes on the cases left out on a real drive and on its allowed deviations, and its violations.
#[derive(Default)]
pub(super) struct Leeway {
    notes: RefCell<BTreeSet<String>>,
    violations: RefCell<BTreeSet<String>>,
    /// Number of zones that a case may make active; `None` for any number.
    pub room: Cell<Option<u32>>,
}

impl Leeway {
    /// Adds a line to the result.
    pub fn note(&self, note: &str) {
        self.notes.borrow_mut().insert(note.to_owned());
    }

    /// Records that a command ended otherwise than the rule book says, as a note if that is allowed and else as
    /// a violation.
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

    /// The notes.
    ///
    /// # Panics
    /// If the drive has broken a rule.
    pub fn result(&self) -> Vec<String> {
        let violations = self.violations.borrow();
        assert!(violations.is_empty(), "{violations:#?}");
        self.notes.borrow().iter().cloned().collect()
    }
}
