//! `zonestore fs …`: BlueFS on a drive, for RocksDB and LevelDB programs. Commands that only read also take the file
//! system of an object store.

mod archive;
mod files;
mod inside;

use crate::args::{FsCommand, Mkfs, Tolerance};
use crate::conformance;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail};
use crate::occupant;
use crate::output::{Output, accept_damage, findings};
use crate::top;
use backup::tree::entries;
use bluefs::{BlueFs, FormatOptions, Loss, MountOptions, Role};
use runtime::Runtime;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use terminal::{count, human, utc};

/// Runs `zonestore fs …`.
pub fn run(command: FsCommand, out: &mut Output) -> CommandResult {
    match command {
        FsCommand::Mkfs(new) => mkfs(&new, out),
        FsCommand::MountInfo(which) => inside::mount_info(&which.drive, out),
        FsCommand::Ls {
            drive,
            path,
            damage,
        } => list(&drive, &path, damage, out),
        FsCommand::Df(which) => df(&which.drive, which.damage, out),
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
            // A repair reads all data, and what it cannot mend has to be named.
            fsck(&drive, deep || repair, &lost, out)
        }
        FsCommand::Scrub(which) => fsck(&which.drive, true, &[], out),
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
        FsCommand::Dump(which) => inside::dump(&which.drive, which.damage, out),
    }
}

fn mkfs(new: &Mkfs, out: &mut Output) -> CommandResult {
    let path = &new.drive;
    let options = FormatOptions {
        uuid: Runtime::system().bytes()?,
        role: Role::Alone,
        copies: new.metadata_copies.unwrap_or(1),
        force: new.force,
    };
    let drive = drive_file::open(path)?;
    if !new.force {
        occupant::refuse_content(&drive)?;
    }
    BlueFs::format(&drive, &options)?;
    let shown = path.display();
    out.line(format_args!(
        "{shown}: an empty file system for RocksDB and LevelDB"
    ))?;
    out.value(&json!({ "path": path.display().to_string() }))
}

/// Checks that the drive's file system is not part of an object store, and that no other process uses it.
fn check_alone(path: &Path) -> CommandResult {
    match BlueFs::probe(&drive_file::open(path)?)?.role {
        Role::Alone => Ok(()),
        Role::Shared => fail!(
            Refused, "{}: holds an object store, whose database is its own", path.display();
            "take another drive: zonestore drive create, then zonestore fs mkfs"
        ),
    }
}

/// Mounts the file system for reading, runs `work` and unmounts it; takes the file system of an object store too.
/// Damaged metadata is an error unless it is accepted, and then the output reports it.
fn with_file_system<T>(
    path: &Path,
    damage: Tolerance,
    out: &mut Output,
    work: impl FnOnce(&BlueFs, &mut Output) -> CommandResult<T>,
) -> CommandResult<T> {
    with_mounted(path, READ_ONLY, damage.accept_damage, |fs| {
        accept_damage(&fs.damage(), out);
        work(fs, out)
    })
}

/// As [`with_file_system`], for commands that report damage: it is no error.
fn with_damaged<T>(
    path: &Path,
    work: impl FnOnce(&BlueFs) -> CommandResult<T>,
) -> CommandResult<T> {
    with_mounted(path, READ_ONLY, true, work)
}

/// Mounts for writing, which is possible only if the file system is not part of an object store.
fn with_writable<T>(
    path: &Path,
    work: impl FnOnce(&BlueFs) -> CommandResult<T>,
) -> CommandResult<T> {
    check_alone(path)?;
    with_mounted(path, WRITABLE, false, work)
}

const READ_ONLY: bool = true;
const WRITABLE: bool = false;

fn with_mounted<T>(
    path: &Path,
    read_only: bool,
    accept_damage: bool,
    work: impl FnOnce(&BlueFs) -> CommandResult<T>,
) -> CommandResult<T> {
    let drive = match read_only {
        true => drive_file::open_read_only(path)?,
        false => drive_file::open(path)?,
    };
    let options = MountOptions {
        read_only,
        accept_damage,
        ..MountOptions::default()
    };
    BlueFs::with_mounted(Arc::new(drive), options, work)
}

fn list(drive: &Path, path: &str, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_file_system(drive, damage, out, |fs, out| {
        let entries = entries(fs, path)?;
        for entry in &entries {
            let (size, shown) = (entry.size, out.name(&entry.name).into_owned());
            if entry.directory {
                out.exact_line(format_args!("{:>14}  {:19}  {shown}/", "", ""))?;
            } else {
                let time = utc(entry.modified_micros);
                out.exact_line(format_args!("{size:>14}  {time}  {shown}"))?;
            }
        }
        out.value(&json!({ "path": path, "entries": entries }))
    })
}

fn df(path: &Path, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_file_system(path, damage, out, |fs, out| {
        let usage = fs.usage();
        out.pairs(&usage.in_words())?;
        out.value(&usage)
    })
}

/// Checks a file system, from which a repair may just have `lost` something.
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
        let error = CommandError::found_errors(path, &report.errors, &report.details, deep);
        return Err(match report.has_copies() {
            true => error.hint(
                "nothing is lost: `zonestore fs fsck DRIVE --repair` writes what is damaged anew from its other copy",
            ),
            false => error,
        });
    }
    if lost.is_empty() {
        return Ok(());
    }
    let what = count(lost.len() as u64, "file");
    fail!(
        Lost, "{}: repaired; {what} lost something", path.display();
        "the lines above name them: restore them from a copy"
    )
}
