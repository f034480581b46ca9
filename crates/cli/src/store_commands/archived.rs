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
pub fn left_out(of: &Path, damaged: &[String], unnamed: u64) -> CommandResult {
    let objects = count(damaged.len() as u64 + unnamed, "object");
    let of = of.display();
    match (damaged.len(), unnamed) {
        (0, 0) => Ok(()),
        (_, 0) => {
            fail!(Damaged, "{of}: without {objects} that could not be read when the archive was made";
            "they are named above; `tar x` takes out what could be read of them")
        }
        _ => {
            fail!(Damaged, "{of}: without {objects}, or ranges of objects, that could not be read when the archive was made";
            "of {unnamed} there is nothing in the archive, not even the name: the backup named them when it was made")
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::Exit;

    #[test]
    fn an_archive_without_what_it_does_not_name_is_not_whole() {
        let of = |damaged: &[String], unnamed| left_out(Path::new("a.tar"), damaged, unnamed);
        assert!(of(&[], 0).is_ok());
        for (damaged, unnamed, objects) in
            [(0, 2, "2 objects"), (1, 0, "1 object"), (1, 2, "3 objects")]
        {
            let error = of(&vec![String::new(); damaged], unnamed).unwrap_err();
            assert_eq!(error.exit, Exit::Damaged);
            assert!(error.message.contains(objects), "{}", error.message);
        }
    }
}
