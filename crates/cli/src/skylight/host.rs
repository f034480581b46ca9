//! Opens a block device or a file to be examined: checks its contents, and asks whether they may be overwritten.

use crate::args::SkylightArguments;
use crate::errors::{CommandError, CommandResult, fail};
use crate::occupant;
use crate::question;
use skylight::target::clock::WallClock;
use skylight::target::facts::{self, Facts, Signature};
use skylight::target::host::{Host, HostError};
use skylight::target::limits::Watch;
use skylight::target::medium::Medium;
use skylight::target::real::Real;
use std::io;
use std::path::Path;
use std::sync::Arc;
use terminal::length;

/// Opens the device or file at `path` after a confirmation.
pub fn open(
    arguments: &SkylightArguments,
    path: &Path,
    watch: Watch,
) -> CommandResult<(Real, Facts)> {
    let ours = occupant::describe(path);
    if let Some(what) = ours.as_ref().filter(|_| !device::is_host_device(path)) {
        return fail!(
            Refused, "{}: {what}, and nothing that skylight looks into", path.display();
            "skylight looks into models, block devices and plain files"
        );
    }
    let mut facts = facts::look(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => HostError::Kind { path: path.into() }.into(),
        _ => CommandError::file(path, &error),
    })?;
    let write = !arguments.read_only;
    if let Some(what) = ours {
        facts.signature = Signature::Found(what);
    }
    // Exclusive from here on, so that what the question names is what is overwritten.
    let host = Host::open(&facts, write)?;
    if write {
        let name = path.display().to_string();
        let mut lines = facts.in_words(host.bytes());
        let time = estimate(arguments);
        lines.push(format!("Everything on it will be lost. It takes {time}."));
        question::confirm_by_name(arguments.yes_overwrite, "--yes-overwrite", &name, &lines)?;
    }
    let limits = super::limits(arguments)?;
    let real = Real::new(Arc::new(host), Arc::new(WallClock::default()), limits);
    Ok((real.with_watch(watch), facts))
}

/// Estimated duration. Test 1 is some thousand requests. A disk of any kind is then read in order, until all surfaces
/// have been seen: at least 16 GiB, at most 1,408. All tests of a 5 TB drive-managed disk took ten hours, most of them
/// idle, and may take longer if it cleans slowly.
fn estimate(arguments: &SkylightArguments) -> String {
    match arguments.budget {
        Some(budget) => format!("{} at most", length(budget.0 as f64)),
        None if arguments.quick => "about a minute".into(),
        None => "about a minute; if it is a disk, minutes to hours; if that is drive-managed, ten hours or more".into(),
    }
}
