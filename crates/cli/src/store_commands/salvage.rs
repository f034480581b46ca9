//! `store salvage`: recovers objects from a drive whose metadata is lost.

use super::{Access, GOES_ON, is_of_full_host, options, with_objects};
use crate::args::StoreSalvage;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::output::Output;
use crate::question::confirm;
use device::ZonedDevice;
use runtime::Runtime;
use serde_json::json;
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use store::{InPlaceOptions, Lost, Plan, Salvage, SalvageOptions, SalvageReport, Store};
use terminal::{Progress, human, shell_word};

/// `store salvage`.
pub fn salvage(arguments: &StoreSalvage, out: &mut Output) -> CommandResult {
    let is_same = |to: &Path| to.canonicalize().ok() == arguments.drive.canonicalize().ok();
    if arguments.to.as_deref().is_some_and(is_same) {
        return fail!(Usage, "--to names the drive itself"; "name another one, with a store on it");
    }
    if arguments.damaged && arguments.to.is_none() && !arguments.in_place {
        return fail!(
            Usage,
            "--damaged says what is copied: it needs --to or --in-place"
        );
    }
    let (report, plan) = match arguments.in_place {
        true => {
            let (report, plan) = in_place(arguments, out)?;
            (report, Some(plan))
        }
        false => {
            let report = to_other(arguments)?;
            for line in report.lines(arguments.to.is_some()) {
                out.line(format_args!("{line}"))?;
            }
            (report, None)
        }
    };
    value(out, &report, plan.as_ref(), true)?;
    if report.is_whole() {
        return Ok(());
    }
    let is_left_out = !report.damaged.is_empty() && !arguments.damaged;
    let next = match (is_left_out, arguments.in_place) {
        _ if !report.without_room.is_empty() => {
            "free space, and store again what there was no room for"
        }
        (true, true) if arguments.drop_unplaced => {
            "what was left of damaged objects may be gone: the objects zone-N of salvaged-unplaced, if there are any, have the rest"
        }
        // The same command refuses the new store.
        (true, true) => {
            "what is left of damaged objects is in the objects zone-N of salvaged-unplaced"
        }
        (true, false) => "--damaged also copies what is left of damaged objects",
        (false, _) => "restore what is named above from a copy, if there is one",
    };
    fail!(Damaged, "{}: not everything could be salvaged", arguments.drive.display(); "{next}")
}

/// The result for programs; `done` tells whether a plan was carried out.
fn value(
    out: &mut Output,
    report: &SalvageReport,
    plan: Option<&Plan>,
    done: bool,
) -> CommandResult {
    let mut value = serde_json::to_value(report)?;
    value["notes"] = json!(report.notes());
    value["done"] = json!(done);
    if let Some(plan) = plan {
        value["plan"] = serde_json::to_value(plan)?;
    }
    out.value(&value)
}

fn to_other(arguments: &StoreSalvage) -> CommandResult<SalvageReport> {
    let drive = Arc::new(drive_file::open_read_only(&arguments.drive)?);
    match &arguments.to {
        None => read(&scan(drive)?, SalvageOptions::default()),
        // The target is opened first, so that a wrong one is reported before hours of reading.
        Some(to) => with_objects(to, |store| {
            drive_file::set_last(&arguments.drive);
            let options = SalvageOptions {
                to: Some(store),
                damaged: arguments.damaged,
                in_place: false,
            };
            let (salvage, done) = (scan(drive)?, Cell::new(0));
            let copied = copy(&salvage, options, &done);
            copied.map_err(|error| of_target(error, to, store, salvage.bytes_behind(done.get())))
        }),
    }
}

/// Adapts an error on the target drive, with `left` bytes of objects still to be copied.
fn of_target(error: CommandError, to: &Path, target: &Store, left: u64) -> CommandError {
    if error.exit != Exit::NoSpace {
        return error;
    }
    if is_of_full_host(&error, target) {
        return error.context(to.display()).hint(GOES_ON);
    }
    let (to, free) = (to.display(), target.statfs().available_bytes);
    let (room, left, more) = (
        human(free),
        human(left),
        human(left.saturating_sub(free).max(1)),
    );
    let why = error.message;
    let message = format_args!(
        "{to} is full: {left} of objects are still to be copied, there is room for {room}, and so {more} or more are \
         missing ({why})"
    );
    CommandError::new(Exit::NoSpace, message).hint(format_args!(
        "the same command goes on with a larger drive with a store on it (zonestore store mkfs): all objects are read \
         again. What is on {to} is whole and stays there"
    ))
}

/// Prints the plan, asks, and carries it out.
fn in_place(arguments: &StoreSalvage, out: &mut Output) -> CommandResult<(SalvageReport, Plan)> {
    let drive: Arc<dyn ZonedDevice> = Arc::new(drive_file::open(&arguments.drive)?);
    let mount = options(Access::Write);
    let lost = Lost::look(&drive, &mount)?;
    let salvage = scan(drive)?;
    let report = read(&salvage, SalvageOptions::default())?;
    for line in report.lines(false) {
        out.line(format_args!("{line}"))?;
    }
    let untouched = |error: store::Error| {
        let drive = shell_word(&arguments.drive);
        CommandError::from(error).hint(format_args!(
            "the objects' data are where they were: zonestore store salvage {drive} --to OTHER copies them"
        ))
    };
    let how = InPlaceOptions {
        uuid: Runtime::system().bytes()?,
        damaged: arguments.damaged,
        drop_unplaced: arguments.drop_unplaced,
    };
    let plan = salvage.plan(&lost, &report, &mount, how);
    let plan = plan.map_err(|error| match error {
        error @ store::Error::NoRoomForMetadata { .. } => error.into(),
        error => untouched(error),
    })?;
    if lost.is_placed() {
        out.line(format_args!(
            "all of that is in place already; what is left to copy is being copied"
        ))?;
    } else {
        for line in plan.lines() {
            out.line(format_args!("{line}"))?;
        }
    }
    if !report.damaged.is_empty() && !arguments.damaged {
        let else_gone = match arguments.drop_unplaced {
            true => ", and --drop-unplaced may give it up",
            false => "",
        };
        out.line(format_args!(
            "damaged objects are not copied: --damaged, now and not later, copies what is left of them{else_gone}"
        ))?;
    }
    out.flush()?;
    let confirmed = confirm(
        arguments.yes,
        "What is left of the old metadata, and every object of up to half a block with it, is gone for good: keep a copy \
         of the drive first",
    );
    if confirmed.is_err() {
        value(out, &report, Some(&plan), false)?;
    }
    confirmed?;
    let progress = Progress::steps("placing objects", Some(0));
    let done = salvage.in_place(&lost, &plan, &mount, &mut |done, all| {
        progress.set_of(done, all);
    });
    let done = done.map_err(untouched)?;
    drop(progress);
    for object in plan.missed(&done) {
        out.line(format_args!("no room for it after all: {object}"))?;
    }
    out.line(format_args!(
        "the store is made anew; `zonestore store fsck {} --deep` looks at all of it",
        shell_word(&arguments.drive)
    ))?;
    Ok((done, plan))
}

fn scan(drive: Arc<dyn ZonedDevice>) -> CommandResult<Salvage> {
    let progress = Progress::bytes("looking for summaries", Some(0));
    Ok(Salvage::scan(drive, &mut |done, all| {
        progress.set_of(done, all)
    })?)
}

fn read(salvage: &Salvage, options: SalvageOptions<'_>) -> CommandResult<SalvageReport> {
    copy(salvage, options, &Cell::default())
}

/// Copies objects; `reached` counts those that are done.
fn copy(
    salvage: &Salvage,
    options: SalvageOptions<'_>,
    reached: &Cell<u64>,
) -> CommandResult<SalvageReport> {
    let progress = Progress::steps("reading objects", Some(0));
    Ok(salvage.copy(options, &mut |done, all| {
        reached.set(done);
        progress.set_of(done, all);
    })?)
}
