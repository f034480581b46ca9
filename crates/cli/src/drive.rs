//! `zonestore drive …`: make, look at and reset drives.

use crate::args::{DriveCommand, DriveCreate, DriveReport, DriveReset};
use crate::conformance;
use crate::drive_file;
use crate::errors::{CommandResult, fail};
use crate::occupant;
use crate::output::Output;
use crate::power_test;
use crate::qualify;
use crate::question;
use control::DriveView;
use device::{ZonedDevice, erase};
use drive_model::profile::DriveKind;
use serde_json::json;
use std::path::Path;
use terminal::{Progress, count, human};
use zone::{ZoneId, ZoneKind};
use zone_map::blkzone_line;

/// Runs `zonestore drive …`.
pub fn run(command: DriveCommand, out: &mut Output) -> CommandResult {
    match command {
        DriveCommand::Create(arguments) => create(&arguments, out),
        DriveCommand::Profiles => profiles(out),
        DriveCommand::Report(arguments) => report(&arguments, out),
        DriveCommand::Info(which) => info(&which.drive, out),
        DriveCommand::Reset(arguments) => reset(&arguments, out),
        DriveCommand::Conformance(arguments) => conformance::drive(&arguments, out),
        DriveCommand::Qualify(arguments) => qualify::qualify(&arguments, out),
        DriveCommand::PowerTest(arguments) => power_test::run(&arguments, out),
    }
}

fn create(arguments: &DriveCreate, out: &mut Output) -> CommandResult {
    let path = &arguments.path;
    let drive = drive_file::create(path, &arguments.shape)?;
    let geometry = drive.geometry();
    out.line(format_args!("{}: {geometry}", path.display()))?;
    out.value(&json!({
        "path": path.display().to_string(), "profile": drive.profile_name(), "uuid": drive.uuid().to_string(),
        "geometry": geometry,
    }))
}

fn profiles(out: &mut Output) -> CommandResult {
    let kinds = drive_model::profile::kinds()?;
    out.table(&[0, 1, 2, 3], &DriveKind::rows(&kinds))?;
    out.value(&kinds)
}

fn report(arguments: &DriveReport, out: &mut Output) -> CommandResult {
    drive_file::check_kind(&arguments.drive)?;
    let drive = DriveView::open(&arguments.drive)?;
    let geometry = drive.geometry();
    let count = u64::from(geometry.zone_count);
    let (start, end) = match arguments.zones {
        Some(span) => (span.start, span.end.unwrap_or(count)),
        None => (0, count),
    };
    if start >= count || end > count {
        return fail!(NotFound, "the drive has zones 0..{count}");
    }
    let mut zones = Vec::new();
    drive.for_each_zone(start as u32..end as u32, |zone| {
        if out.is_json() {
            zones.push(zone);
        }
        out.line(format_args!("{}", blkzone_line(geometry, &zone)))
    })?;
    out.value(&json!({ "geometry": geometry, "zones": zones }))
}

fn info(path: &Path, out: &mut Output) -> CommandResult {
    drive_file::check_kind(path)?;
    let drive = DriveView::open(path)?;
    let geometry = drive.geometry();
    let (conditions, written) = drive.conditions()?;
    let host_bytes = drive.host_bytes()?;
    let content = drive.content();
    let counted: Vec<String> = conditions
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect();
    out.pairs(&[
        ("drive", path.display().to_string()),
        ("profile", drive.profile().to_owned()),
        ("uuid", drive.uuid()),
        ("shape", geometry.to_string()),
        ("holds", content.words()),
        ("zones", counted.join(", ")),
        ("written", format!("{} in sequential zones", human(written))),
        ("on the host", human(host_bytes)),
    ])?;
    out.value(&json!({
        "path": path.display().to_string(), "profile": drive.profile(), "uuid": drive.uuid(),
        "geometry": geometry, "conditions": conditions, "content": content,
        "written_bytes": written, "host_bytes": host_bytes,
    }))
}

fn reset(arguments: &DriveReset, out: &mut Output) -> CommandResult {
    let drive = drive_file::open(&arguments.drive)?;
    let geometry = drive.geometry();
    let shown = arguments.drive.display();
    let (zones, lost) = match arguments.zone {
        Some(zone) if zone >= geometry.zone_count => {
            return fail!(NotFound, "{shown} has zones 0..{}", geometry.zone_count);
        }
        Some(zone) => (
            zone..zone + 1,
            format!("resetting zone {zone} destroys its data"),
        ),
        None => (
            0..geometry.zone_count,
            "resetting every zone destroys all of it".to_owned(),
        ),
    };
    if let Some(zone) = arguments.zone
        && geometry.kind(ZoneId(zone)) == ZoneKind::Conventional
    {
        return fail!(
            Usage,
            "zone {zone} is conventional: it has no write pointer to reset"
        );
    }
    let written = erase::written_zones(&drive, zones)?;
    if !written.is_empty() || arguments.all && geometry.conventional_zones > 0 {
        let what = occupant::describe(&arguments.drive).unwrap_or_else(|| "a drive".to_owned());
        question::confirm(arguments.yes, &format!("{shown} is {what}; {lost}"))?;
    }
    let progress = Progress::steps("resetting zones", Some(written.len() as u64));
    let bytes = erase::reset(&drive, &written, arguments.all, &mut || progress.advance(1))?;
    drop(progress);
    out.line(format_args!(
        "{} reset, {} given back",
        count(written.len() as u64, "zone"),
        human(bytes)
    ))?;
    out.value(&json!({ "zones_reset": written.len(), "bytes_freed": bytes }))
}
