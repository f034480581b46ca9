//! `store salvage`: objects from a drive whose metadata is lost.

use super::{Access, mounted};
use crate::args::StoreSalvage;
use crate::drive_file;
use crate::errors::{CommandResult, fail};
use crate::output::Output;
use std::path::Path;
use std::sync::Arc;
use store::{Salvage, SalvageOptions, SalvageReport, Store};
use terminal::Progress;

/// `store salvage`.
pub fn salvage(arguments: &StoreSalvage, out: &mut Output) -> CommandResult {
    let is_same = |to: &Path| to.canonicalize().ok() == arguments.drive.canonicalize().ok();
    if arguments.to.as_deref().is_some_and(is_same) {
        return fail!(Usage, "--to names the drive itself"; "name another one, with a store on it");
    }
    let drive = Arc::new(drive_file::open_read_only(&arguments.drive)?);
    let copy = |salvage: &Salvage, to: Option<&Store>| -> CommandResult<SalvageReport> {
        let progress = Progress::steps("reading objects", Some(0));
        let options = SalvageOptions {
            to,
            damaged: arguments.damaged,
        };
        Ok(salvage.copy(options, &mut |done, all| progress.set_of(done, all))?)
    };
    let scan = || -> CommandResult<Salvage> {
        let progress = Progress::bytes("looking for summaries", Some(0));
        Ok(Salvage::scan(drive, &mut |done, all| {
            progress.set_of(done, all)
        })?)
    };
    let report = match &arguments.to {
        None => copy(&scan()?, None)?,
        // Opened first: who named a wrong drive hears it before hours of reading.
        Some(to) => mounted(drive_file::open(to)?, Access::Write, |store| {
            copy(&scan()?, Some(store))
        })?,
    };
    for line in report.lines(arguments.to.is_some()) {
        out.line(format_args!("{line}"))?;
    }
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
