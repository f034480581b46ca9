//! `zonestore drive conformance` and `zonestore fs conformance`: tests a drive against the rules of zoned drives, and
//! BlueFS on it against those of a file system.

use crate::args::{DriveConformance, FsConformance};
use crate::drive_file;
use crate::errors::{CommandResult, fail};
use crate::occupant;
use crate::output::Output;
use bluefs_conformance::Options;
use runtime::Runtime;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// Runs the drive suite; all data on the drive is lost.
pub fn drive(arguments: &DriveConformance, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    check_erase(path, arguments.yes_erase)?;
    let drive = Arc::new(drive_file::open(path)?);
    let what = "does not do what a zoned drive has to";
    let notes = match passed(path, what, || device_conformance::run_on(drive))? {
        Ok(notes) => notes,
        Err(why) => {
            return fail!(Failed, "{}: cannot be tried: {why}", path.display();
                "nothing was found against it, and nothing for it; `zonestore fs conformance` tries what BlueFS needs");
        }
    };
    for note in &notes {
        out.line(format_args!("{note}"))?;
    }
    out.line(format_args!("{}: conforms", path.display()))?;
    out.value(&json!({ "path": path.display().to_string(), "conforms": true, "notes": notes }))
}

/// Runs the BlueFS suite on a drive; all data on it is lost.
pub fn bluefs(arguments: &FsConformance, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    check_erase(path, arguments.yes_erase)?;
    let drive = Arc::new(drive_file::open(path)?);
    let uuid = Runtime::system().bytes()?;
    let options = Options {
        zones: arguments.zones,
        churn: arguments.churn,
        seed: arguments.seed,
        uuid,
    };
    let (mut scenarios, mut printed) = (Vec::new(), Ok(()));
    let mut done = |name: &str| {
        scenarios.push(name.to_owned());
        if printed.is_ok() {
            printed = out.line(format_args!("{name}")).and_then(|()| out.flush());
        }
    };
    let what = "BlueFS does not do there what it has to";
    passed(path, what, || {
        bluefs_conformance::run_on(drive, options, &mut done)
    })?;
    printed?;
    out.line(format_args!("{}: conforms", path.display()))?;
    out.value(
        &json!({ "path": path.display().to_string(), "conforms": true, "scenarios": scenarios }),
    )
}

/// Refuses to continue unless the user has agreed to the loss of all data.
pub fn check_erase(path: &Path, yes: bool) -> CommandResult {
    if yes {
        return Ok(());
    }
    let what = occupant::describe(path);
    let what = what.as_deref().unwrap_or("not a drive");
    fail!(
        Refused, "{}: {what}; this destroys everything on it", path.display();
        "give --yes-erase if that is meant"
    )
}

/// Runs a suite. A broken rule is a failed assertion, which has printed its message already.
fn passed<T>(path: &Path, failure: &str, suite: impl FnOnce() -> T) -> CommandResult<T> {
    judged(suite).or_else(|_| fail!(Failed, "{}: {failure}", path.display()))
}

/// Runs a suite; returns its result, or the message of the broken rule.
pub fn judged<T>(suite: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(suite)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        text.unwrap_or("a rule is broken").to_owned()
    })
}
