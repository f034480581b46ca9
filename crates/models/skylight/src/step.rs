//! The steps of an examination in order, and those that are missing if it ends early.

use crate::finding::{CleaningType, DriveType, Findings};

/// Names of the steps, as passed to the progress callback. Tests are numbered as in the main document.
pub const ALL: [&str; 18] = [
    "size",
    "rotation",
    "test 1, drive type",
    "test 2, cache location",
    "test 3, cleaning type",
    "tests 4 and 5, cleaning algorithm",
    "test 11, band size",
    "cleaning time of a band",
    "test 12, block mapping",
    "cache bands",
    "test 7, cache map size",
    "test 8, cache size",
    "test 6, writes until cleaning",
    "tests 9 and 10, circular log",
    "test 15, streaming",
    "test 13, torn writes",
    "test 14, zone structure",
    "more for the figures",
];

/// Steps for drives alone that clean when they are idle.
const OF_AGGRESSIVE: [&str; 2] = [ALL[5], ALL[7]];

/// An examination that ended early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfinished {
    /// The reason.
    pub reason: String,
    /// Steps that are missing or incomplete.
    pub missing: Vec<&'static str>,
}

impl Unfinished {
    /// An examination that ended in `step`. Of the steps after test 1, it names those for a drive of this kind, as
    /// far as the kind was known.
    pub fn new(reason: String, step: &str, found: &Findings, figures: bool, quick: bool) -> Self {
        let from = ALL.iter().position(|one| *one == step).unwrap_or(0);
        let all = if quick { 3 } else { ALL.len() };
        let all = all - usize::from(!quick && !figures);
        let mut missing = ALL.get(from..all).unwrap_or_default().to_vec();
        let managed = |kind| kind == DriveType::DriveManaged;
        if found.drive_type.is_some_and(|kind| !managed(kind.value)) {
            missing.truncate(1);
        }
        if found.cleaning.map(|cleaning| cleaning.value) == Some(CleaningType::Lazy) {
            missing.retain(|step| !OF_AGGRESSIVE.contains(step));
        }
        Self { reason, missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::{Model, Options, examine_for_figures};

    #[test]
    fn steps_come_in_the_order_in_which_they_are_listed() {
        let mut model = Model::named("st5000as0011", 1).unwrap();
        let mut told: Vec<String> = Vec::new();
        let options = Options {
            quick: false,
            seed: 1,
        };
        let (.., result) = examine_for_figures(&mut model, options, &mut |step| {
            told.push(step.into());
        });
        assert_eq!(result, Ok(()));
        told.dedup();
        assert_eq!(told, ALL);
    }

    #[test]
    fn what_is_missing_begins_with_the_step_that_was_not_done() {
        let mut found = Findings::default();
        let missing = |found: &Findings, step, figures, quick| {
            Unfinished::new(String::new(), step, found, figures, quick).missing
        };
        assert_eq!(missing(&found, "rotation", true, false), ALL[1..]);
        assert_eq!(missing(&found, "rotation", false, true), ALL[1..3]);
        let last = "test 14, zone structure";
        assert_eq!(missing(&found, last, true, false), ALL[16..]);
        assert_eq!(missing(&found, last, false, false), [last]);
        found.cleaning = Some(Finding::new(CleaningType::Lazy, 1.0));
        let lazy = missing(&found, ALL[4], false, false);
        assert_eq!(lazy[..3], [ALL[4], ALL[6], ALL[8]]);
        found.drive_type = Some(Finding::new(DriveType::Conventional, 1.0));
        assert_eq!(missing(&found, last, true, false), [last]);
    }
}
