//! `store fsck`: checks the store's consistency, and repairs it.

use super::{Access, options, with_store};
use crate::args::StoreFsck;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, KEEP, UNFINISHED, fail};
use crate::output::{Output, findings};
use crate::question::confirm;
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use store::{FsckReport, GivenUp, RepairReport, RepairStep, Store};
use terminal::{Progress, count, human, shell_word};

/// `store fsck`.
pub fn fsck(arguments: &StoreFsck, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let repaired = match arguments.repair {
        true => Some(repair(arguments, out)?),
        false => None,
    };
    let report = check(path, arguments.deep)?;
    out.line(format_args!(
        "{}, {}, {}, {}",
        count(report.collections, "collection"),
        count(report.objects, "object"),
        count(report.extents, "extent"),
        human(report.bytes)
    ))?;
    if arguments.deep {
        out.line(format_args!(
            "{} read and compared with checksums; {}",
            human(report.bytes_verified),
            report.copies()
        ))?;
    }
    findings(&report.errors, &report.details, arguments.deep, out)?;
    let mut value = serde_json::to_value(&report)?;
    if let Some(repaired) = &repaired {
        value["repair"] = serde_json::to_value(repaired)?;
    }
    out.value(&value)?;
    if !report.is_clean() {
        let deep = arguments.deep;
        let error = CommandError::found_errors(path, &report.errors, &report.details, deep);
        return Err(match arguments.repair {
            true => {
                write_down(path, deep);
                error.hint(format_args!(
                    "`zonestore store health {}` says what is lost; {}",
                    shell_word(path), others(&report, deep)
                ))
            }
            // No other command can open the store before this repair.
            false if report.errors.keys().any(|kind| kind == DAMAGED_FILE_SYSTEM) => error.hint(format_args!(
                "keep a copy of the drive; `zonestore fs fsck {path} --repair` gives up what the metadata lack, and \
                 `zonestore store fsck {path} --repair` then puts records in order",
                path = shell_word(path)
            )),
            // A check changes nothing.
            false => error.hint(format_args!(
                "keep a copy of the drive; `zonestore store fsck {path} --repair` puts records in order, and \
                 `zonestore store scrub {path} --deep` writes down for `store health` what is damaged for good; {}",
                others(&report, deep), path = shell_word(path)
            )),
        });
    }
    let repaired = repaired.unwrap_or_default();
    let lost = match repaired.given_up.len() as u64 {
        0 => None,
        given_up => Some(format!("{} lost, named above", count(given_up, "thing"))),
    };
    if !repaired.lost_files.is_empty() {
        write_down(path, arguments.deep);
        let lost = lost.map(|lost| format!("; {lost}")).unwrap_or_default();
        // A salvage in place is refused while the store can be opened.
        return fail!(Damaged, "{}: metadata is damaged in all copies{}", path.display(), lost;
            "`zonestore store health {}` names it: copy out what can be read (`store backup --skip-damaged`, or \
             `store salvage --to`) and make a new store", shell_word(path));
    }
    if let Some(lost) = lost {
        return fail!(Lost, "{}: repaired; {}", path.display(), lost;
            "restore what is named from a copy, if there is one");
    }
    Ok(())
}

/// The kind of error that only a mount that accepts damage gets past.
const DAMAGED_FILE_SYSTEM: &str = "file system: damage to what was durable";

/// A note on what is not named. Without `deep`, no data was read.
fn others(report: &FsckReport, deep: bool) -> &'static str {
    match report.unnamed {
        0 if deep => "what is not named above can still be read",
        0 => "data was not read (--deep does)",
        _ => "not everything that is damaged is named above",
    }
}

/// Records damage that no repair removes for `store health`, if the drive can still be written.
fn write_down(path: &Path, deep: bool) {
    let done = with_store(
        path,
        Access::Write,
        |store| Ok(store.scrub(deep, |_| true)?),
    );
    if let Err(error) = done {
        tracing::warn!(error = %error.text(), "a scrub that was to write down what is damaged has ended early");
    }
}

fn check(path: &Path, deep: bool) -> CommandResult<FsckReport> {
    let report = with_store(path, Access::ReadDamaged, |store| {
        let progress = Progress::bytes(if deep { "reading all data" } else { "checking" }, Some(0));
        Ok(store.fsck(deep, &mut |done, all| progress.set_of(done, all))?)
    });
    // Damage that could be accepted has been accepted at this point.
    report.map_err(|error: CommandError| match error.exit {
        // No repair opens such a drive.
        _ if [Some(KEEP), Some(UNFINISHED)].contains(&error.hint.as_deref()) => error,
        // Only if the file is a drive.
        Exit::Damaged if drive_file::open_read_only(path).is_ok() => error.hint(
            "keep a copy of the drive; `zonestore fs fsck DRIVE` says what is missing, and with --repair gives it up; \
             `zonestore store fsck DRIVE --repair` then puts records in order; where the store cannot be opened, \
             `zonestore store salvage DRIVE` says what the data zones tell without the metadata",
        ),
        _ => error,
    })
}

/// Progress of a step of a repair.
fn progress_of(step: RepairStep) -> Progress {
    match step {
        RepairStep::Looking => Progress::steps("looking for what is out of order: rows", None),
        RepairStep::Changing => Progress::steps("putting records in order: rows", None),
        RepairStep::Comparing => Progress::bytes("comparing copies of the metadata", None),
    }
}

/// Repairs; asks before anything is given up.
fn repair(arguments: &StoreFsck, out: &mut Output) -> CommandResult<RepairReport> {
    let drive = drive_file::open(&arguments.drive)?;
    // The step that is shown.
    let shown: RefCell<Option<(RepairStep, Progress)>> = RefCell::default();
    let mut agreed = Ok(());
    let mut agree = |given_up: &[GivenUp]| -> CommandResult {
        for given in given_up {
            out.line(format_args!("loses: {}: {}", given.name, given.what))?;
        }
        out.flush()?;
        match given_up {
            [] => Ok(()),
            _ => confirm(
                arguments.yes,
                "What is named is gone for good, and the evidence with it: keep a copy of the drive first",
            ),
        }
    };
    let mut agree = |given_up: &[GivenUp]| {
        // A question is asked without it.
        drop(shown.take());
        agreed = agree(given_up);
        agreed.is_ok()
    };
    let mut progress = |step, done| {
        let mut shown = shown.borrow_mut();
        let before = shown.take().filter(|(of, _)| *of == step);
        let (_, bar) = shown.insert(before.unwrap_or_else(|| (step, progress_of(step))));
        bar.set(done);
    };
    progress(RepairStep::Looking, 0);
    let options = options(Access::Write);
    let report = Store::repair(Arc::new(drive), &options, &mut agree, &mut progress);
    drop(shown);
    let report = report?;
    agreed?;
    for (what, count) in &report.repaired {
        out.line(format_args!("{count:>8}  repaired: {what}"))?;
    }
    for file in &report.lost_files {
        out.line(format_args!("damaged in all copies: {file}"))?;
    }
    if report.repaired.is_empty() && report.lost_files.is_empty() {
        out.line(format_args!("nothing to repair in the metadata"))?;
    }
    Ok(report)
}
