//! `store salvage`: objects from a drive whose metadata is lost.

use super::{Access, mounted, options};
use crate::args::StoreSalvage;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail};
use crate::output::Output;
use crate::question::confirm;
use device::ZonedDevice;
use runtime::Runtime;
use std::path::Path;
use std::sync::Arc;
use store::{InPlaceOptions, Lost, Salvage, SalvageOptions, SalvageReport};
use terminal::Progress;

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
    let report = match arguments.in_place {
        true => in_place(arguments, out)?,
        false => {
            let report = to_other(arguments)?;
            for line in report.lines(arguments.to.is_some()) {
                out.line(format_args!("{line}"))?;
            }
            report
        }
    };
    out.value(&report)?;
    if report.is_whole() {
        return Ok(());
    }
    let next = match arguments.damaged {
        true => "restore what is named above from a copy, if there is one",
        false => "--damaged also copies what is left of damaged objects",
    };
    fail!(Damaged, "{}: not everything could be salvaged", arguments.drive.display(); "{next}")
}

fn to_other(arguments: &StoreSalvage) -> CommandResult<SalvageReport> {
    let drive = Arc::new(drive_file::open_read_only(&arguments.drive)?);
    match &arguments.to {
        None => read(&scan(drive)?, SalvageOptions::default()),
        // Opened first: who named a wrong drive hears it before hours of reading.
        Some(to) => mounted(drive_file::open(to)?, Access::Write, |store| {
            let options = SalvageOptions {
                to: Some(store),
                damaged: arguments.damaged,
                in_place: false,
            };
            read(&scan(drive)?, options)
        }),
    }
}

/// Says what is going to be done, asks, and does it.
fn in_place(arguments: &StoreSalvage, out: &mut Output) -> CommandResult<SalvageReport> {
    let drive: Arc<dyn ZonedDevice> = Arc::new(drive_file::open(&arguments.drive)?);
    let mount = options(Access::Write);
    let lost = Lost::look(&drive, &mount)?;
    let salvage = scan(drive)?;
    let report = read(&salvage, SalvageOptions::default())?;
    for line in report.lines(false) {
        out.line(format_args!("{line}"))?;
    }
    let plan = salvage.plan(&lost, &report, arguments.drop_unplaced)?;
    if lost.is_placed() {
        out.line(format_args!(
            "all of that is in place already; what is left to copy is being copied"
        ))?;
    } else {
        for line in plan.lines() {
            out.line(format_args!("{line}"))?;
        }
    }
    out.flush()?;
    confirm(
        arguments.yes,
        "What is left of the old metadata, and every object of up to half a block with it, is gone for good: keep a copy \
         of the drive first",
    )?;
    let how = InPlaceOptions {
        uuid: Runtime::system().bytes()?,
        damaged: arguments.damaged,
    };
    let progress = Progress::steps("placing objects", Some(0));
    let done = salvage.in_place(&lost, plan, &mount, how, &mut |done, all| {
        progress.set_of(done, all);
    });
    let done = done.map_err(|error| {
        let drive = arguments.drive.display();
        CommandError::from(error).hint(format_args!(
            "the objects' data are where they were: zonestore store salvage {drive} --to OTHER copies them"
        ))
    })?;
    drop(progress);
    out.line(format_args!(
        "the store is made anew; `zonestore store fsck {} --deep` looks at all of it",
        arguments.drive.display()
    ))?;
    Ok(done)
}

fn scan(drive: Arc<dyn ZonedDevice>) -> CommandResult<Salvage> {
    let progress = Progress::bytes("looking for summaries", Some(0));
    Ok(Salvage::scan(drive, &mut |done, all| {
        progress.set_of(done, all)
    })?)
}

fn read(salvage: &Salvage, options: SalvageOptions<'_>) -> CommandResult<SalvageReport> {
    let progress = Progress::steps("reading objects", Some(0));
    Ok(salvage.copy(options, &mut |done, all| progress.set_of(done, all))?)
}
