//! `zea mkfs --fs`, and `zea ls|df|fsck|rm` on a drive with ZEAFS.

use super::NOT_READ;
use super::taken_out::no_such_file;
use crate::args::ZeaMkfs;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail, sorted};
use crate::occupant;
use crate::output::{Output, findings};
use crate::question;
use device::{Drive, ZonedDevice};
use runtime::Runtime;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use terminal::{count, human};
use zeafs::{Examined, ExaminedFile, ZeaFs};

/// `zea mkfs --fs`.
pub fn mkfs(new: &ZeaMkfs, out: &mut Output) -> CommandResult {
    let path = &new.drive;
    let shown = path.display();
    let drive = drive_file::open(path)?;
    if !new.force {
        occupant::refuse_unless_empty(&drive)?;
    }
    ZeaFs::format(&drive, Runtime::system().bytes()?, new.force)?;
    let made = Examined::of(&drive)?;
    let zones = made.zones().len() as u64;
    let most = made.most_bytes(drive.geometry());
    out.line(format_args!(
        "{shown}: ZEAFS {}, {} for files, whose checksums have room for at most {}",
        made.identity(),
        count(zones, "zone"),
        human(most)
    ))?;
    out.value(&json!({
        "path": shown.to_string(), "identity": made.identity(), "zones": zones, "most_bytes": most,
    }))
}

/// `zea ls`.
pub fn list(examined: &Examined, out: &mut Output) -> CommandResult {
    let head = ["bytes", "extents", "stored", "name"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut files = Vec::new();
    for file in examined.files() {
        let ExaminedFile {
            name,
            size,
            extents,
            stored,
            ..
        } = file;
        let numbers = [size, extents, stored].map(|number| number.to_string());
        rows.push(numbers.into_iter().chain([name.to_owned()]).collect());
        files.push(json!({ "name": name, "size": size, "extents": extents, "stored": stored }));
    }
    out.table(&[3], &rows)?;
    out.value(&json!({ "files": files }))
}

/// `zea df`.
pub fn df(drive: &Drive, examined: &Examined, out: &mut Output) -> CommandResult {
    let live = examined.live();
    let (mut written, mut empty, mut dead) = (0, 0, 0);
    for zone in examined.zones() {
        let found = drive.report_zone(*zone)?;
        let bytes = if found.write_pointer_valid() {
            found.write_pointer
        } else {
            0
        };
        written += bytes;
        empty += u64::from(found.write_pointer_valid() && bytes == 0);
        dead += bytes.saturating_sub(live.get(zone).copied().unwrap_or(0));
    }
    let bytes: u64 = examined.files().map(|file| file.size).sum();
    let (files, zones) = (
        examined.files().count() as u64,
        examined.zones().len() as u64,
    );
    let live: u64 = live.values().sum();
    let reserved = u64::from(ZeaFs::KEPT_FOR_CLEANER);
    let most = examined.most_bytes(drive.geometry());
    out.pairs(&[
        ("file system", format!("ZEAFS {}", examined.identity())),
        ("files", format!("{files}, {}", human(bytes))),
        ("live", format!("{} with metadata", human(live))),
        (
            "dead",
            format!("{}: comes back when its zones are cleaned", human(dead)),
        ),
        (
            "limit",
            format!(
                "{}: more checksums do not fit into the metadata",
                human(most)
            ),
        ),
        ("zones", format!("{empty} of {zones} are empty")),
        (
            "reserve",
            format!(
                "{} of the empty ones, {}: cleaning has them, files do not",
                empty.min(reserved),
                human(empty.min(reserved) * drive.geometry().zone_capacity)
            ),
        ),
    ])?;
    out.value(&json!({
        "identity": examined.identity(), "files": files, "bytes": bytes, "live_bytes": live,
        "written": written, "dead_bytes": dead, "zones": zones, "empty_zones": empty, "reserved_zones": reserved, "most_bytes": most,
    }))
}

/// `zea fsck`.
pub fn fsck(
    path: &Path,
    drive: &Drive,
    examined: &Examined,
    deep: bool,
    out: &mut Output,
) -> CommandResult {
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    let mut details = Vec::new();
    let mut tell = |kind: &str, detail: String| {
        *errors.entry(kind.to_owned()).or_default() += 1;
        details.push(detail);
    };
    if let Some(error) = examined.unread() {
        tell(NOT_READ, error.to_string());
    }
    let found = examined.contradictions(drive)?;
    for error in found {
        tell("extent that is not on the drive", error);
    }
    let (mut files, mut bytes) = (0, 0);
    for file in examined.files() {
        files += 1;
        bytes += file.size;
        let damage = if deep {
            Examined::verify(drive, &file)
        } else {
            Vec::new()
        };
        for error in damage {
            tell("damage", format!("{}: {error}", file.name));
        }
    }
    out.line(format_args!(
        "ZEAFS, {}, {}",
        count(files, "file"),
        human(bytes)
    ))?;
    let left_out = examined.left_out();
    if left_out > 0 {
        let what = count(left_out as u64, "sync");
        out.line(format_args!(
            "{what} at the end cut short, and left out: what was synced before is there"
        ))?;
    }
    findings(&errors, &details, deep, out)?;
    out.value(&json!({
        "left_out": left_out, "files": files, "bytes": bytes, "errors": errors, "details": details, "data_read": deep,
    }))?;
    match errors.is_empty() {
        true => Ok(()),
        false => Err(CommandError::found_errors(path, &errors, &details, deep)),
    }
}

/// `zea rm`.
pub fn remove(
    path: &Path,
    name: &str,
    recursive: bool,
    yes: bool,
    out: &mut Output,
) -> CommandResult {
    let device: Arc<dyn ZonedDevice> = Arc::new(drive_file::open(path)?);
    let fs = ZeaFs::mount(device, Runtime::system())?;
    let folder = format!("{}/", name.trim_end_matches('/'));
    let is_directory = fs.metadata(&folder).is_ok();
    let names = match is_directory {
        true if !recursive => {
            return fail!(Usage, "{name}: a directory"; "-r removes it with all it holds");
        }
        true => fs.list(&folder),
        false if fs.metadata(name).is_err() => return Err(no_such_file(path, name)),
        false => vec![name.to_owned()],
    };
    if names.len() > 1 {
        let files = count(names.len() as u64 - 1, "file");
        let lost = format!("removing {folder} from {} destroys {files}", path.display());
        question::confirm(yes, &lost)?;
    }
    for name in names.iter().rev() {
        fs.delete(name)?;
    }
    fs.unmount()?;
    let removed = (names.len() - usize::from(is_directory)) as u64;
    out.line(format_args!("{name}: {} removed", count(removed, "file")))?;
    out.value(&json!({ "path": name, "files_removed": removed }))
}

impl From<zeafs::Error> for CommandError {
    fn from(error: zeafs::Error) -> Self {
        use zeafs::Error as E;
        let error = match error {
            E::Drive(error) => return error.into(),
            E::Zea(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            E::NotFormatted => NotFormatted, "`zonestore zea mkfs --fs DRIVE` makes one";
            E::UnsupportedVersion { .. } => Failed, "use the program version that made it";
            E::GeometryChanged { .. } => Damaged, "was the drive copied onto one of another shape?";
            E::Corrupt { .. } | E::DamagedFile { .. } | E::UsedUp { .. } => Damaged, "keep a copy; nothing has been changed";
            E::DriveTooSmall { .. } => Usage, "take a larger drive";
            E::TooFewActiveZones { .. } => Usage, "take another drive";
            E::NotEmpty => Refused, "--force erases it";
            E::NoSpace | E::MetadataFull { .. } => NoSpace,
                "remove something; or `zonestore zea backup DRIVE ARCHIVE` packs all files, and `zonestore fs restore` puts them on a \
                 larger drive with BlueFS, where `zonestore leveldb` goes on with them";
            E::NotFound { .. } => NotFound;
            E::Exists { .. } | E::IsDirectory { .. } | E::NotEmptyDirectory { .. } | E::BadName { .. }
            | E::Longer { .. } | E::Locked { .. } | E::Stopped { .. } => Refused;
            E::Zea(_) | E::Drive(_) => Failed;
        }
    }
}
