//! `zonestore fs …`: BlueFS on a drive, for RocksDB and LevelDB programs; that of an object store can be
//! looked at as well.

mod archive;
mod files;
mod inside;

use crate::args::{FsCommand, Tolerance};
use crate::conformance;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::{Output, accept_damage, findings};
use crate::top;
use bluefs::{BlueFs, FormatOptions, Loss, MountOptions, Role};
use device::{Drive, ZonedDevice};
use runtime::Runtime;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use terminal::{count, human, utc};

/// Carries out a command on a file system.
pub fn run(command: FsCommand, out: &mut Output) -> CommandResult {
    match command {
        FsCommand::Mkfs { drive, force } => mkfs(&drive, force, out),
        FsCommand::MountInfo { drive } => inside::mount_info(&drive, out),
        FsCommand::Ls {
            drive,
            path,
            damage,
        } => list(&drive, &path, damage, out),
        FsCommand::Df { drive, damage } => df(&drive, damage, out),
        FsCommand::Cat {
            drive,
            path,
            damage,
        } => files::get(&drive, &path, Path::new("-"), damage, out),
        FsCommand::Get {
            drive,
            path,
            file,
            damage,
        } => files::get(&drive, &path, &file, damage, out),
        FsCommand::Put { drive, file, path } => files::put(&drive, &file, &path, out),
        FsCommand::Rm {
            drive,
            path,
            recursive,
            yes,
        } => files::remove(&drive, &path, recursive, yes, out),
        FsCommand::Fsck {
            drive,
            deep,
            repair,
            yes,
        } => {
            let lost = if repair {
                inside::repair(&drive, yes, out)?
            } else {
                Vec::new()
            };
            fsck(&drive, deep, &lost, out)
        }
        FsCommand::Scrub { drive } => fsck(&drive, true, &[], out),
        FsCommand::Backup {
            drive,
            archive,
            force,
            damage,
        } => archive::backup(&drive, &archive, force, damage, out),
        FsCommand::Restore {
            drive,
            archive,
            foreign,
        } => archive::restore(&drive, &archive, foreign, out),
        FsCommand::Conformance(arguments) => conformance::bluefs(&arguments, out),
        FsCommand::Top(arguments) => top::run(&arguments, out),
        FsCommand::Dump { drive, damage } => inside::dump(&drive, damage, out),
    }
}

fn mkfs(path: &Path, force: bool, out: &mut Output) -> CommandResult {
    make(&drive_file::open(path)?, force)?;
    out.line(format_args!(
        "{}: an empty file system for RocksDB and LevelDB",
        path.display()
    ))?;
    out.value(&json!({ "path": path }))
}

/// Makes a file system with an identity of its own.
pub fn make(drive: &impl ZonedDevice, force: bool) -> CommandResult {
    let uuid = Runtime::system().bytes()?;
    Ok(BlueFs::format(
        drive,
        &FormatOptions {
            uuid,
            role: Role::Alone,
            force,
        },
    )?)
}

/// Makes sure that the drive holds a file system of its own, and that nobody uses it.
fn check_alone(path: &Path) -> CommandResult {
    match BlueFs::probe(&drive_file::open(path)?)?.role {
        Role::Alone => Ok(()),
        Role::Shared => Err(CommandError::new(
            Exit::Refused,
            format_args!(
                "{}: holds an object store, whose database is its own",
                path.display()
            ),
        )
        .hint("take another drive: zonestore drive create, then zonestore fs mkfs")),
    }
}

/// Mounts the file system for reading, does the work and unmounts it. The file system of an object
/// store can be looked at as well. If metadata is damaged, this is refused unless that is accepted, and
/// then the output says so.
fn with_file_system<T>(
    path: &Path,
    damage: Tolerance,
    out: &mut Output,
    work: impl FnOnce(&BlueFs, &mut Output) -> CommandResult<T>,
) -> CommandResult<T> {
    let options = MountOptions {
        read_only: true,
        accept_damage: damage.accept_damage,
        ..MountOptions::default()
    };
    with_mounted(drive_file::open_read_only(path)?, options, |fs| {
        accept_damage(&fs.damage(), out);
        work(fs, out)
    })
}

/// The same for whoever asks what is damaged.
fn with_damaged<T>(
    path: &Path,
    work: impl FnOnce(&BlueFs) -> CommandResult<T>,
) -> CommandResult<T> {
    let options = MountOptions {
        read_only: true,
        accept_damage: true,
        ..MountOptions::default()
    };
    with_mounted(drive_file::open_read_only(path)?, options, work)
}

/// The same for writing, which only a file system that is alone on its drive allows.
fn with_writable<T>(
    path: &Path,
    work: impl FnOnce(&BlueFs) -> CommandResult<T>,
) -> CommandResult<T> {
    check_alone(path)?;
    with_mounted(drive_file::open(path)?, MountOptions::default(), work)
}

fn with_mounted<T>(
    drive: Drive,
    options: MountOptions,
    work: impl FnOnce(&BlueFs) -> CommandResult<T>,
) -> CommandResult<T> {
    BlueFs::with_mounted(Arc::new(drive), options, work)
}

fn list(drive: &Path, path: &str, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_file_system(drive, damage, out, |fs, out| {
        let mut entries = Vec::new();
        let names = if fs.metadata(path)?.is_directory {
            let folder = path.trim_end_matches('/');
            fs.list(path)?
                .into_iter()
                .map(|name| (format!("{folder}/{name}"), name))
                .collect()
        } else {
            vec![(path.to_owned(), path.to_owned())]
        };
        for (full, name) in names {
            let found = fs.metadata(&full)?;
            if found.is_directory {
                out.exact_line(format_args!("{:>14}  {:19}  {name}/", "", ""))?;
            } else {
                let time = utc(found.modified_micros);
                out.exact_line(format_args!("{:>14}  {time}  {name}", found.size))?;
            }
            entries.push(json!({
                "name": name, "directory": found.is_directory, "size": found.size,
                "modified_micros": found.modified_micros,
            }));
        }
        out.value(&json!({ "path": path, "entries": entries }))
    })
}

fn df(path: &Path, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_file_system(path, damage, out, |fs, out| {
        let usage = fs.usage();
        out.pairs(&[
            ("files", usage.files.to_string()),
            ("used", format!("{} of file data", human(usage.live_bytes))),
            ("free", human(usage.free_bytes)),
            (
                "zones",
                format!(
                    "{}, {} of them with file data",
                    usage.zones, usage.data_zones
                ),
            ),
        ])?;
        out.value(&usage)
    })
}

/// Checks a file system, from which a repair has just `lost` something.
fn fsck(path: &Path, deep: bool, lost: &[Loss], out: &mut Output) -> CommandResult {
    let report = with_damaged(path, |fs| Ok(fs.check(deep)?))?;
    out.line(format_args!(
        "{}, {} extents and records, {}",
        count(report.files, "file"),
        report.extents,
        human(report.bytes)
    ))?;
    findings(&report.errors, &report.details, deep, out)?;
    let mut value = serde_json::to_value(&report)?;
    value["data_read"] = deep.into();
    value["lost"] = json!(lost);
    out.value(&value)?;
    if !report.is_clean() {
        return Err(CommandError::found_errors(path, &report.errors));
    }
    if lost.is_empty() {
        return Ok(());
    }
    let what = count(lost.len() as u64, "file");
    Err(CommandError::new(
        Exit::Lost,
        format_args!("{}: repaired; {what} lost something", path.display()),
    )
    .hint("the lines above name them: restore them from a copy"))
}
