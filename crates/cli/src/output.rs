//! What commands print alike: damage that was accepted, and what a check found.

use crate::errors::{CommandError, CommandResult};
use std::collections::BTreeMap;
use std::fmt::Display;

/// Standard output: text for people, or one JSON value.
pub type Output = terminal::Output<CommandError>;

/// The answer comes from a drive of which this is missing, and that was accepted: says so on standard
/// error, and in the value for programs.
pub fn accept_damage(missing: &[impl Display], out: &mut Output) {
    if missing.is_empty() {
        return;
    }
    for what in missing {
        eprintln!("zonestore: damage accepted: {what}");
    }
    eprintln!("zonestore: what was stored behind it is missing in this answer");
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    out.add_field("damage_accepted", missing);
}

/// What a check found, for people: how many errors of each kind, then the first in words. Without `deep`
/// it has not looked at data.
pub fn findings(
    errors: &BTreeMap<String, u64>,
    details: &[String],
    deep: bool,
    out: &mut Output,
) -> CommandResult {
    for (kind, count) in errors {
        out.line(format_args!("{count:>8}  {kind}"))?;
    }
    for detail in details {
        out.line(format_args!("  {detail}"))?;
    }
    match (errors.is_empty(), deep) {
        (true, true) => out.line(format_args!("no errors")),
        (true, false) => out.line(format_args!(
            "no errors in the metadata; data was not read (--deep does)"
        )),
        (false, _) => Ok(()),
    }
}
