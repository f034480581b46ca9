//! `zonestore zea …`: extents in zones.

mod bench;
mod extents;
mod files;
mod taken_out;

use crate::args::{ZeaCommand, ZeaMkfs};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, fail, sorted};
use crate::occupant;
use crate::output::{Output, findings, tell};
use crate::question;
use device::{Drive, ZonedDevice, erase};
use runtime::Runtime;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terminal::{count, human, shell_word};
use zea::garbage::{Census, newest};
use zea::{Checked, Instance, Options, Placed, Sequence, check};
use zeafs::Examined;
use zone::{ZoneId, ZoneKind};

/// Runs `zonestore zea …`.
pub fn run(command: ZeaCommand, out: &mut Output) -> CommandResult {
    match command {
        ZeaCommand::Mkfs(new) if new.fs => files::mkfs(&new, out),
        ZeaCommand::Mkfs(new) => mkfs(&new, out),
        ZeaCommand::Ls { drive, zone: None } => list(&drive, out),
        ZeaCommand::Ls {
            drive,
            zone: Some(zone),
        } => extents::list(&drive, zone, out),
        ZeaCommand::Df { drive } => df(&drive, out),
        ZeaCommand::Fsck { drive, deep } => fsck(&drive, deep, out),
        ZeaCommand::Dump { drive, zone } => extents::dump(&drive, zone, out),
        ZeaCommand::Put {
            drive,
            file,
            address,
            zone,
        } => extents::put(&drive, &file, address, zone, out),
        ZeaCommand::Get {
            drive,
            what,
            length,
            file,
        } => get(&drive, &what, length, file, out),
        ZeaCommand::Cat { drive, path } => taken_out::get(&drive, &path, Path::new("-"), out),
        ZeaCommand::Rm {
            drive,
            path,
            recursive,
            yes,
        } => files::remove(&drive, &path, recursive, yes, out),
        ZeaCommand::Backup {
            drive,
            archive,
            force,
        } => taken_out::backup(&drive, &archive, force, out),
        ZeaCommand::Bench(arguments) => bench::run(&arguments, out),
    }
}

/// `zea get`: an extent by address and length, or a file by name.
fn get(
    drive: &Path,
    what: &str,
    length: Option<String>,
    file: Option<PathBuf>,
    out: &mut Output,
) -> CommandResult {
    let number = |text: &str| text.parse::<u64>().ok();
    let to_output = || PathBuf::from("-");
    match (number(what), length.as_deref().map(number)) {
        (Some(lba), Some(Some(length))) => {
            extents::get(drive, lba, length, &file.unwrap_or_else(to_output), out)
        }
        (Some(_), _) => fail!(
            Usage,
            "an extent is named by its first byte and its length, and a file by its name"
        ),
        (None, _) if file.is_some() => {
            fail!(Usage, "{what}: a file is named by its name alone"; "zonestore zea get DRIVE NAME FILE")
        }
        (None, _) => {
            let to = length.map_or_else(to_output, PathBuf::from);
            taken_out::get(drive, what, &to, out)
        }
    }
}

fn mkfs(new: &ZeaMkfs, out: &mut Output) -> CommandResult {
    let path = &new.drive;
    let drive = drive_file::open(path)?;
    let g = drive.geometry().clone();
    let shown = path.display();
    let sequential = g.sequential_count();
    if new.zones > sequential {
        return fail!(
            Usage,
            "{shown} has {sequential} sequential zones, fewer than {}",
            new.zones
        );
    }
    if g.max_active_zones > 0 && new.zones > g.max_active_zones {
        return fail!(
            Usage, "of {shown}, only {} zones can be partly written at a time", g.max_active_zones;
            "--zones {} or fewer", g.max_active_zones
        );
    }
    let options = Options {
        back_pointers: new.back_pointers,
    };
    options.check(g.block_size)?;
    if new.force {
        erase_all(&drive)?;
    } else {
        occupant::refuse_unless_empty(&drive)?;
    }
    let device: Arc<dyn ZonedDevice> = Arc::new(drive);
    let sequence = Sequence::default();
    let runtime = Runtime::system();
    let zones = g
        .zones()
        .filter(|zone| g.kind(*zone) != ZoneKind::Conventional);
    let zones: Vec<ZoneId> = zones.take(new.zones as usize).collect();
    for zone in &zones {
        Instance::format(device.clone(), *zone, options, sequence.clone(), &runtime)?;
    }
    device.flush()?;
    out.line(format_args!(
        "{shown}: {} for extents, {} back pointers each",
        count(zones.len() as u64, "zone"),
        new.back_pointers
    ))?;
    out.value(&json!({
        "path": shown.to_string(), "zones": zones, "back_pointers": new.back_pointers,
    }))
}

/// A zone whose instance cannot be opened, with the error.
type Refused = (ZoneId, zea::Error);

/// Opens all instances on a drive. Zones with other contents are skipped. A drive without any instance is an error,
/// unless it has a ZEAFS, which creates them when needed.
fn instances(drive: Drive) -> CommandResult<(Vec<Instance>, Vec<Refused>)> {
    let g = drive.geometry().clone();
    let written = erase::written_zones(&drive, 0..g.zone_count)?;
    let path = drive.path().to_owned();
    let is_file_system = Examined::is_there(&drive)?;
    let device: Arc<dyn ZonedDevice> = Arc::new(drive);
    let sequence = Sequence::default();
    let (mut found, mut refused) = (Vec::new(), Vec::new());
    for zone in written {
        match Instance::open(device.clone(), zone.id, sequence.clone()) {
            Ok(instance) => found.push(instance),
            Err(zea::Error::NotFormatted { .. } | zea::Error::Conventional { .. }) => {}
            Err(zea::Error::Drive(error)) => return Err(error.into()),
            Err(error) => refused.push((zone.id, error)),
        }
    }
    if found.is_empty() && refused.is_empty() && !is_file_system {
        let shown = path.display();
        return fail!(NotFormatted, "{shown}: no zone of it is an extent allocator"; "zonestore zea mkfs {}", shell_word(&path));
    }
    Ok((found, refused))
}

/// As [`instances`], for commands that work without the instances that cannot be opened.
fn readable_instances(path: &Path) -> CommandResult<Vec<Instance>> {
    let (found, refused) = instances(drive_file::open_read_only(path)?)?;
    for (_, error) in refused {
        tell(format_args!("zonestore: left out: {error}"));
    }
    Ok(found)
}

/// The extents of an instance that back pointers reach; damage is reported and skipped.
fn found(instance: &Instance) -> CommandResult<Vec<Placed>> {
    let mut all = Vec::new();
    for extent in instance.backward() {
        match extent {
            Ok(extent) => all.push(extent),
            Err(error) if error.is_damage() => tell(format_args!("zonestore: left out: {error}")),
            Err(error) => return Err(error.into()),
        }
    }
    all.reverse();
    Ok(all)
}

/// The kind of damage that [`Examined::unread`] tells of.
const NOT_READ: &str = "metadata that cannot be read";

/// The ZEAFS on a drive, if its extents belong to one.
fn file_system(path: &Path) -> CommandResult<Option<(Drive, Examined)>> {
    let drive = drive_file::open_read_only(path)?;
    if !Examined::is_there(&drive)? {
        return Ok(None);
    }
    let examined = Examined::of(&drive)?;
    if let Some(error) = examined.unread() {
        tell(format_args!(
            "zonestore: {NOT_READ}: {error}; what is shown may be older than what is there"
        ));
    }
    Ok(Some((drive, examined)))
}

fn list(path: &Path, out: &mut Output) -> CommandResult {
    if let Some((_, examined)) = file_system(path)? {
        return files::list(&examined, out);
    }
    let head = [
        "zone",
        "extents",
        "bytes",
        "written",
        "room",
        "back pointers",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut zones = Vec::new();
    for instance in readable_instances(path)? {
        let extents = found(&instance)?;
        let bytes: u64 = extents.iter().map(|extent| extent.length).sum();
        let (written, room) = (instance.written(), instance.room());
        let back_pointers = instance.options().back_pointers;
        rows.push(vec![
            instance.zone().to_string(),
            extents.len().to_string(),
            human(bytes),
            human(written),
            human(room),
            back_pointers.to_string(),
        ]);
        zones.push(json!({
            "zone": instance.zone(), "extents": extents.len(), "bytes": bytes, "written": written,
            "room": room, "back_pointers": back_pointers, "run_id": instance.run_id(),
        }));
    }
    out.table(&[], &rows)?;
    out.value(&json!({ "zones": zones }))
}

fn df(path: &Path, out: &mut Output) -> CommandResult {
    if let Some((drive, examined)) = file_system(path)? {
        return files::df(&drive, &examined, out);
    }
    let instances = readable_instances(path)?;
    let mut extents = Vec::new();
    let (mut written, mut room) = (0, 0);
    for instance in &instances {
        extents.extend(found(instance)?);
        written += instance.written();
        room += instance.room();
    }
    let newest = newest(extents.iter().copied());
    let is_newest = |extent: &Placed| {
        newest
            .get(&extent.address)
            .is_some_and(|n| n.order == extent.order)
    };
    let census = Census::of(extents.iter().copied(), is_newest);
    let sum = |of: fn(&zea::garbage::ZoneCensus) -> u64| census.zones.values().map(of).sum::<u64>();
    let (live, dead) = (sum(|zone| zone.live_bytes), sum(|zone| zone.dead_bytes));
    let other = written - live - dead;
    out.pairs(&[
        ("zones", instances.len().to_string()),
        (
            "extents",
            format!(
                "{}, {} of them put again since",
                extents.len(),
                extents.len() - newest.len()
            ),
        ),
        ("live", format!("{} with metadata", human(live))),
        ("dead", human(dead)),
        (
            "other",
            format!(
                "{}: labels, puts that were cut short, ends of finished zones",
                human(other)
            ),
        ),
        ("room", human(room)),
    ])?;
    out.value(&json!({
        "zones": instances.len(), "extents": extents.len(), "live_extents": newest.len(),
        "live_bytes": live, "dead_bytes": dead, "other_bytes": other, "room": room,
    }))
}

fn fsck(path: &Path, deep: bool, out: &mut Output) -> CommandResult {
    if let Some((drive, examined)) = file_system(path)? {
        return files::fsck(path, &drive, &examined, deep, out);
    }
    let (found, refused) = instances(drive_file::open_read_only(path)?)?;
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    let mut details: Vec<String> = Vec::new();
    let mut tell = |kind: &str, count: u64, detail: String| {
        *errors.entry(kind.to_owned()).or_default() += count;
        details.push(detail);
    };
    for (_, error) in refused {
        tell("zone that cannot be read", 1, error.to_string());
    }
    let (mut extents, mut bytes, mut cut_short) = (0, 0, 0);
    for instance in &found {
        let Checked {
            extents: here,
            gaps,
            damage,
        } = check(instance, deep)?;
        extents += here.len() as u64;
        bytes += here.iter().map(|extent| extent.length).sum::<u64>();
        for gap in gaps {
            match gap.lost {
                0 => cut_short += gap.bytes,
                lost => tell(
                    "extent that is lost",
                    lost,
                    format!(
                        "{}: {} at {}",
                        count(lost, "extent"),
                        human(gap.bytes),
                        gap.at
                    ),
                ),
            }
        }
        for error in damage {
            tell("damage", 1, error.to_string());
        }
    }
    out.line(format_args!(
        "{}, {}, {}",
        count(found.len() as u64, "zone"),
        count(extents, "extent"),
        human(bytes)
    ))?;
    if cut_short > 0 {
        out.line(format_args!(
            "{} of puts that were cut short, or of ends of finished zones",
            human(cut_short)
        ))?;
    }
    findings(&errors, &details, deep, out)?;
    out.value(&json!({
        "zones": found.len(), "extents": extents, "bytes": bytes, "cut_short": cut_short,
        "errors": errors, "details": details, "data_read": deep,
    }))?;
    match errors.is_empty() {
        true => Ok(()),
        false => Err(CommandError::found_errors(path, &errors, &details, deep)),
    }
}

/// Erases the whole drive, to which the user has agreed.
fn erase_all(drive: &Drive) -> CommandResult {
    let zones = drive.geometry().zone_count;
    let written = erase::written_zones(drive, 0..zones)?;
    erase::reset(drive, &written, true, &mut || {})?;
    Ok(())
}

/// Asks before all data on a drive is destroyed.
fn confirm_erase(path: &Path, yes: bool) -> CommandResult {
    let shown = path.display();
    let what = occupant::describe(path).unwrap_or_else(|| "a drive".to_owned());
    let lost = format!("{shown} is {what}; measuring on it destroys everything on it");
    question::confirm(yes, &lost).map_err(|error| match error.exit {
        Exit::Refused => error.hint("--yes-erase goes on without asking"),
        _ => error,
    })
}

impl From<zea::Error> for CommandError {
    fn from(error: zea::Error) -> Self {
        use zea::Error as E;
        let error = match error {
            E::Drive(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            E::Conventional { .. } | E::EmptyExtent | E::BackPointers { .. } => Usage;
            E::NoSuchZone { .. } => NotFound, "`zonestore drive report DRIVE` shows the zones";
            E::NotEmpty { .. } => Refused, "reset the zone, or take another";
            E::NotFormatted { .. } => NotFormatted, "`zonestore zea mkfs DRIVE` makes zones extent allocators";
            E::UnsupportedVersion { .. } => Failed, "use the program version that made it";
            E::GeometryChanged { .. } => Damaged, "was the drive copied onto one of another shape?";
            E::Unsuitable { .. } => Refused;
            E::NoRoom { .. } => NoSpace, "`zonestore zea ls DRIVE` shows zones with room";
            E::NotAnExtent { .. } => NotFound, "`zonestore zea ls DRIVE --zone N` shows places and lengths";
            E::Corrupt { .. } => Damaged, "keep a copy; `zonestore zea fsck DRIVE --deep` finds what else is damaged";
            E::Drive(_) => Failed;
        }
    }
}
