//! Messages of archive commands: what was restored, and what could not be read.

use crate::errors::{CommandResult, fail};
use crate::output::Output;
use archive::{Packed, Restored};
use serde_json::json;
use std::path::Path;
use terminal::{count, human};

/// Prints the names of damaged parts.
pub fn damage(damaged: &[String], out: &mut Output) -> CommandResult {
    let mut all = damaged.iter();
    all.try_for_each(|what| out.line(format_args!("damaged: {what}")))
}

/// An error if a new archive or drive lacks parts that could not be read now.
pub fn complete(to: &Path, packed: &Packed) -> CommandResult {
    if packed.damaged.is_empty() {
        return Ok(());
    }
    let objects = count(packed.damaged.len() as u64 - packed.ranges, "object");
    let ranges = match packed.ranges {
        0 => String::new(),
        ranges => format!(" and {} of objects", count(ranges, "range")),
    };
    fail!(Damaged, "{}: without {objects}{ranges} that cannot be read", to.display();
        "a restore leaves out what is damaged; put it again from a copy, and the next backup has it")
}

/// An error if an archive lacks parts that could not be read when it was made.
pub fn left_out(of: &Path, damaged: &[String]) -> CommandResult {
    if damaged.is_empty() {
        return Ok(());
    }
    let objects = count(damaged.len() as u64, "object");
    fail!(Damaged, "{}: without {objects} that could not be read when the archive was made", of.display();
        "they are named above; `tar x` takes out what could be read of them")
}

/// Prints what was restored.
pub fn report(
    to: &Path,
    restored: &Restored,
    damaged: &[String],
    out: &mut Output,
) -> CommandResult {
    let shown = to.display();
    if restored.resumed {
        out.line(format_args!(
            "{shown}: an earlier restore went on where it was"
        ))?;
    }
    out.line(format_args!(
        "{shown}: {} in {}; {}, {}, stored",
        count(restored.objects, "object"),
        count(restored.collections, "collection"),
        count(restored.stored, "object"),
        human(restored.bytes)
    ))?;
    damage(damaged, out)?;
    let mut value = serde_json::to_value(restored)?;
    value["drive"] = json!(to.display().to_string());
    out.value(&value)
}
