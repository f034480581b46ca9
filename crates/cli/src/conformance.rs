//! `zonestore drive conformance`: whether a drive does what a zoned drive has to do.

use crate::args::DriveConformance;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Puts a drive through the suite; everything on it is lost.
pub fn run(arguments: &DriveConformance, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    if !arguments.yes_erase {
        return Err(CommandError::new(
            Exit::Refused,
            format_args!("{}: the suite destroys everything on it", path.display()),
        )
        .hint("give --yes-erase if that is meant"));
    }
    let drive = Arc::new(drive_file::open(path)?);
    // A broken rule ends the suite as a failed assertion, which has printed itself.
    let notes = catch_unwind(AssertUnwindSafe(|| device::conformance::run_on(drive)));
    let Ok(notes) = notes else {
        return Err(CommandError::new(
            Exit::Failed,
            format_args!("{}: does not do what a zoned drive has to", path.display()),
        ));
    };
    for note in &notes {
        out.line(format_args!("{note}"))?;
    }
    out.line(format_args!("{}: conforms", path.display()))?;
    out.value(&json!({ "path": path, "conforms": true, "notes": notes }))
}
