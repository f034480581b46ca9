//! `zonestore drive …`: make, look at and reset drives.

use crate::args::{DriveCommand, DriveCreate, DriveReport, DriveReset};
use crate::conformance;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::occupant;
use crate::output::Output;
use crate::question;
use control::DriveView;
use device::{Drive, ZonedDevice, profile};
use drive_model::AnyProfile;
use serde_json::json;
use std::path::Path;
use terminal::{Progress, count, human};
use zone::{ByteOffset, Geometry, ZoneDescriptor, ZoneId, ZoneKind};
use zone_map::blkzone_line;

/// Zones asked for in one report: bounds the memory of a command on a drive of any size.
const REPORT_BATCH: u32 = 4096;

/// Carries out a command on drives.
pub fn run(command: DriveCommand, out: &mut Output) -> CommandResult {
    match command {
        DriveCommand::Create(arguments) => create(&arguments, out),
        DriveCommand::Profiles => profiles(out),
        DriveCommand::Report(arguments) => report(&arguments, out),
        DriveCommand::Info { drive } => info(&drive, out),
        DriveCommand::Reset(arguments) => reset(&arguments, out),
        DriveCommand::Conformance(arguments) => conformance::drive(&arguments, out),
    }
}

fn create(arguments: &DriveCreate, out: &mut Output) -> CommandResult {
    let path = &arguments.path;
    let drive = drive_file::create(path, &arguments.shape)?;
    let geometry = drive.geometry();
    out.line(format_args!("{}: {}", path.display(), describe(geometry)))?;
    out.value(&json!({
        "path": path, "profile": arguments.shape.profile(), "uuid": drive.uuid().to_string(),
        "geometry": geometry,
    }))
}

fn describe(geometry: &Geometry) -> String {
    let mut text = format!(
        "{}, {} zones of {}",
        human(geometry.size_bytes()),
        geometry.zone_count,
        human(geometry.zone_size)
    );
    if geometry.zone_capacity != geometry.zone_size {
        text += &format!(" (capacity {})", human(geometry.zone_capacity));
    }
    text += &match geometry.conventional_zones {
        0 => ", none conventional".to_owned(),
        1 => ", the first one conventional".to_owned(),
        n => format!(", the first {n} conventional"),
    };
    match (geometry.max_open_zones, geometry.max_active_zones) {
        (0, 0) => text,
        (open, 0) => text + &format!(", at most {open} open"),
        (open, active) => text + &format!(", at most {open} open and {active} active"),
    }
}

/// Those with zones, which drives can be made of, and then the models of others.
fn profiles(out: &mut Output) -> CommandResult {
    let mut rows = vec![["name", "zones", "model", ""].map(str::to_owned).to_vec()];
    let mut all = Vec::new();
    let models = drive_model::profile::all_names();
    let mut add = |name: &str, zones: bool, model: bool, description: &str| {
        let word = |yes| if yes { "yes" } else { "no" };
        rows.push(
            [name, word(zones), word(model), description]
                .map(str::to_owned)
                .to_vec(),
        );
    };
    for profile in profile::all() {
        let has_model = models.contains(&profile.name);
        add(profile.name, true, has_model, profile.description);
        all.push(json!({
            "name": profile.name, "description": profile.description, "zones": true,
            "model": has_model, "default_size_bytes": profile.default_size_bytes,
            "default_zone_size": profile.default_zone_size,
        }));
    }
    for name in models {
        if profile::by_name(name).is_err() {
            let model = AnyProfile::named(name)?;
            add(name, false, true, model.description());
            all.push(json!({
                "name": name, "description": model.description(), "zones": false, "model": true,
            }));
        }
    }
    out.table(&[0, 1, 2, 3], &rows)?;
    out.value(&all)
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
        return Err(CommandError::new(
            Exit::NotFound,
            format_args!("the drive has zones 0..{count}"),
        ));
    }
    let mut zones = Vec::new();
    for_each_zone(
        |first, count| Ok(drive.zones(first, count)?),
        start as u32,
        end as u32,
        |zone| {
            if out.is_json() {
                zones.push(zone);
            }
            out.line(format_args!("{}", blkzone_line(geometry, &zone)))
        },
    )?;
    out.value(&json!({ "geometry": geometry, "zones": zones }))
}

fn for_each_zone(
    zones: impl Fn(u32, u32) -> CommandResult<Vec<ZoneDescriptor>>,
    start: u32,
    end: u32,
    mut each: impl FnMut(ZoneDescriptor) -> CommandResult,
) -> CommandResult {
    let mut first = start;
    while first < end {
        let batch = zones(first, REPORT_BATCH.min(end - first))?;
        if batch.is_empty() {
            break;
        }
        first += batch.len() as u32;
        batch.into_iter().try_for_each(&mut each)?;
    }
    Ok(())
}

fn info(path: &Path, out: &mut Output) -> CommandResult {
    drive_file::check_kind(path)?;
    let drive = DriveView::open(path)?;
    let geometry = drive.geometry();
    let mut conditions = std::collections::BTreeMap::<&str, u64>::new();
    let mut written = 0;
    for_each_zone(
        |first, count| Ok(drive.zones(first, count)?),
        0,
        geometry.zone_count,
        |zone| {
            *conditions.entry(zone.condition.name()).or_default() += 1;
            written += zone.write_pointer;
            Ok(())
        },
    )?;
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
        ("shape", describe(geometry)),
        ("holds", content.words()),
        ("zones", counted.join(", ")),
        ("written", format!("{} in sequential zones", human(written))),
        ("on the host", human(host_bytes)),
    ])?;
    out.value(&json!({
        "path": path, "profile": drive.profile(), "uuid": drive.uuid(),
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
            return Err(CommandError::new(
                Exit::NotFound,
                format_args!("{shown} has zones 0..{}", geometry.zone_count),
            ));
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
        return Err(CommandError::new(
            Exit::Usage,
            format_args!("zone {zone} is conventional: it has no write pointer to reset"),
        ));
    }
    let mut written = Vec::new();
    let report = |first, count| Ok(drive.report(ZoneId(first), count)?);
    for_each_zone(report, zones.start, zones.end, |zone| {
        if zone.write_pointer > 0 || zone.condition.is_active() {
            written.push((zone.id, zone.write_pointer));
        }
        Ok(())
    })?;
    if !written.is_empty() || arguments.all && geometry.conventional_zones > 0 {
        let what = occupant::describe(&arguments.drive).unwrap_or_else(|| "a drive".to_owned());
        question::confirm(arguments.yes, &format!("{shown} is {what}; {lost}"))?;
    }
    let mut bytes = 0;
    let progress = Progress::steps("resetting zones", Some(written.len() as u64));
    for (zone, write_pointer) in &written {
        drive.reset(*zone)?;
        bytes += write_pointer;
        progress.advance(1);
    }
    // Conventional zones have nothing to reset; zeros where superblocks lie make them foreign.
    if arguments.all {
        wipe_conventional(&drive)?;
    }
    drive.flush()?;
    drop(progress);
    out.line(format_args!(
        "{} reset, {} given back",
        count(written.len() as u64, "zone"),
        human(bytes)
    ))?;
    out.value(&json!({ "zones_reset": written.len(), "bytes_freed": bytes }))
}

/// Overwrites the conventional zones' first blocks, where file systems keep what they are known by.
fn wipe_conventional(drive: &Drive) -> CommandResult {
    let geometry = drive.geometry();
    let zeros = vec![0; (1 << 20).min(geometry.zone_size as usize)];
    for zone in 0..geometry.conventional_zones {
        let start = geometry.start(ZoneId(zone));
        drive.write(ByteOffset(start.0), &zeros)?;
    }
    Ok(())
}
