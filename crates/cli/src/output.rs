//! Output that commands have in common: accepted damage, and findings of a check.

use crate::errors::{CommandError, CommandResult};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Write};

/// Standard output: text for people, or one JSON value.
pub type Output = terminal::Output<CommandError>;

/// Prints lines on standard error beside the result. The work goes on if nobody can read them.
pub fn tell(lines: impl Display) {
    _ = writeln!(io::stderr(), "{lines}");
}

/// Warns that the result lacks damaged parts, which the user has accepted: on standard error, and in the JSON value.
pub fn accept_damage(missing: &[impl Display], out: &mut Output) {
    if missing.is_empty() {
        return;
    }
    for what in missing {
        tell(format_args!("zonestore: damage accepted: {what}"));
    }
    tell(format_args!(
        "zonestore: what was stored behind it is missing in this answer"
    ));
    let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
    out.add_field("damage_accepted", missing);
}

/// Prints the findings of a check for people: the number of errors of each kind, then descriptions of the first ones.
/// Without `deep`, data was not checked.
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
