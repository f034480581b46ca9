//! `zonestore smrfs …`: POSIX file systems on drives.

use crate::args::{SmrfsCommand, SmrfsMkfs, SmrfsMount};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, fail, sorted};
use crate::output::{Output, findings};
use device::{ZonedDevice, erase};
use inspect::Content;
use runtime::Runtime;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use smrfs::{Error, FileSystem, MkfsOptions, MountOptions, Policy};
use terminal::{Progress, count, human};
use zone_alloc::Pressure;

/// Carries out a command on a file system.
pub fn run(command: SmrfsCommand, out: &mut Output) -> CommandResult {
    match command {
        SmrfsCommand::Mkfs(arguments) => mkfs(&arguments, out),
        SmrfsCommand::Mount(arguments) if arguments.foreground => mount(&arguments, out),
        SmrfsCommand::Mount(arguments) => mount_in_background(&arguments, out),
        SmrfsCommand::Fsck { drive, deep } => fsck(&drive, deep, out),
        SmrfsCommand::Df(which) => df(&which.drive, out),
        SmrfsCommand::Clean {
            drive,
            bands,
            policy,
        } => clean(&drive, bands, policy, out),
    }
}

fn mkfs(arguments: &SmrfsMkfs, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let drive = drive_file::open(path)?;
    let shown = path.display();
    if !arguments.force {
        let content = Content::of(&drive);
        let is_written = !erase::written_zones(&drive, 0..drive.geometry().zone_count)?.is_empty();
        if content != Content::Empty || is_written {
            let what = match content {
                Content::Empty => "zones with data".to_owned(),
                content => content.words(),
            };
            return fail!(Refused, "{shown}: holds {what}"; "--force erases it");
        }
    } else {
        // Whatever it was known by is gone first.
        let written = erase::written_zones(&drive, 0..drive.geometry().zone_count)?;
        erase::reset(&drive, &written, true, &mut || ())?;
    }
    let block_size = u32::try_from(arguments.block_size.0).unwrap_or(u32::MAX);
    let options = MkfsOptions {
        block_size,
        whole_files: arguments.whole_files,
        label: arguments.label.clone(),
        owner: (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        ),
    };
    let shape = FileSystem::mkfs(Arc::new(drive), &Runtime::system(), &options)?;
    let kind = if shape.is_whole {
        "whole files"
    } else {
        "segments"
    };
    out.line(format_args!(
        "{shown}: an empty file system, {kind}, blocks of {}",
        human(shape.block_size.into())
    ))?;
    out.value(&json!({
        "path": path.display().to_string(), "uuid": hex(&shape.uuid), "label": shape.label,
        "block_size": shape.block_size, "whole_files": shape.is_whole,
    }))
}

/// Refuses to make something else where such a file system is. It may lie in conventional zones alone.
pub fn refuse(drive: &dyn ZonedDevice) -> CommandResult {
    if Content::of(drive) == Content::Smrfs {
        let what = Content::Smrfs.words();
        return fail!(Refused, "the drive holds {what}"; "--force erases it");
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn open(path: &Path, options: MountOptions) -> CommandResult<FileSystem> {
    let drive = match options.read_only {
        true => drive_file::open_read_only(path)?,
        false => drive_file::open(path)?,
    };
    Ok(FileSystem::mount(
        Arc::new(drive),
        Runtime::system(),
        options,
    )?)
}

const READ_ONLY: MountOptions = MountOptions {
    read_only: true,
    buffer_bytes: 0,
    policy: Policy::CostBenefit,
};

fn mount(arguments: &SmrfsMount, out: &mut Output) -> CommandResult {
    let (path, directory) = (&arguments.drive, &arguments.directory);
    let runtime = Runtime::system();
    let options = MountOptions {
        read_only: arguments.read_only,
        buffer_bytes: arguments.buffer.0,
        policy: arguments.policy,
    };
    let shown = directory.display();
    if !directory.is_dir() {
        return fail!(NotFound, "{shown}: no directory"; "mkdir {shown} makes one");
    }
    let fs = Arc::new(open(path, options)?);
    let options = smrfs_fuse::Options {
        source: path.display().to_string(),
        read_only: arguments.read_only,
        allow_other: arguments.allow_other,
        commit_every: Duration::from_secs(arguments.commit_seconds),
        ..smrfs_fuse::Options::default()
    };
    let mounted = smrfs_fuse::mount(fs, &runtime, directory, &options).map_err(|error| {
        let made = CommandError::host(&format!("{shown}: cannot be mounted: {error}"), &error);
        made.hint("mounting needs /dev/fuse, and root or fusermount3")
    })?;
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let place = directory.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            if let Err(error) = smrfs_fuse::unmount(&place) {
                tracing::error!(%error, "cannot be unmounted");
            }
        }
    });
    if arguments.ready {
        println!("ready");
    } else {
        say_mounted(arguments, out)?;
    }
    mounted
        .wait()
        .map_err(|error| CommandError::host(&format!("{}: {error}", path.display()), &error))
}

fn say_mounted(arguments: &SmrfsMount, out: &mut Output) -> CommandResult {
    let (drive, directory) = (arguments.drive.display(), arguments.directory.display());
    out.line(format_args!("{drive} is at {directory}"))?;
    out.value(&json!({ "drive": drive.to_string(), "directory": directory.to_string() }))?;
    out.flush()
}

/// Starts this program once more and waits until it has mounted or says why not.
fn mount_in_background(arguments: &SmrfsMount, out: &mut Output) -> CommandResult {
    let mut log = match &arguments.log {
        Some(path) => OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(path)
            .map_err(|error| CommandError::file(path, &error))?,
        None => tempfile::tempfile()?,
    };
    let start = log.seek(std::io::SeekFrom::End(0))?;
    let errors: File = log.try_clone()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .args(["--foreground", "--ready"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .process_group(0)
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    if !line.is_empty() {
        return say_mounted(arguments, out);
    }
    let status = child.wait()?;
    log.seek(std::io::SeekFrom::Start(start))?;
    let mut told = String::new();
    log.read_to_string(&mut told)?;
    // As the child said it.
    _ = std::io::stderr().write_all(told.as_bytes());
    std::process::exit(status.code().unwrap_or(Exit::Failed as i32))
}

fn fsck(path: &Path, deep: bool, out: &mut Output) -> CommandResult {
    let report = open(path, READ_ONLY)?.check(deep);
    out.line(format_args!(
        "{}, {} of data read",
        count(report.inodes, "inode"),
        human(report.bytes_read)
    ))?;
    let errors = report
        .errors
        .iter()
        .map(|(kind, count)| ((*kind).to_owned(), *count))
        .collect();
    findings(&errors, &report.details, deep, out)?;
    out.value(&json!({
        "inodes": report.inodes, "bytes_read": report.bytes_read, "data_read": deep,
        "errors": report.errors, "details": report.details,
    }))?;
    if errors.is_empty() {
        return Ok(());
    }
    Err(CommandError::found_errors(path, &errors))
}

fn df(path: &Path, out: &mut Output) -> CommandResult {
    let fs = open(path, READ_ONLY)?;
    let (space, shape) = (fs.space(), fs.shape());
    out.pairs(&[
        ("capacity", human(space.capacity_bytes)),
        ("used", human(space.used_bytes)),
        (
            "free",
            human(space.capacity_bytes.saturating_sub(space.used_bytes)),
        ),
        (
            "dead",
            format!("{}, given back by cleaning", human(space.dead_bytes)),
        ),
        (
            "bands",
            format!(
                "{} free of {}, {} each",
                space.free_bands,
                space.bands,
                human(space.band_bytes)
            ),
        ),
        ("inodes", space.inodes.to_string()),
        (
            "metadata",
            format!(
                "{} of {}",
                human(space.metadata_bytes),
                human(space.metadata_capacity_bytes)
            ),
        ),
        ("blocks", human(space.block_size.into())),
        (
            "files are",
            if shape.is_whole {
                "whole"
            } else {
                "in segments"
            }
            .to_owned(),
        ),
        ("label", shape.label.clone()),
    ])?;
    out.value(&json!({
        "space": space, "label": shape.label, "uuid": hex(&shape.uuid), "whole_files": shape.is_whole,
    }))
}

fn clean(path: &Path, bands: Option<u64>, policy: Policy, out: &mut Output) -> CommandResult {
    let options = MountOptions {
        policy,
        ..MountOptions::default()
    };
    let fs = open(path, options)?;
    let before = fs.space();
    let progress = Progress::steps("cleaning bands", bands);
    let mut cleaned = 0;
    // Each band that is cleaned leaves fewer dead bytes; one that has as many as it gives back is the end.
    let mut dead = u64::MAX;
    while bands.is_none_or(|bands| cleaned < bands) {
        let now = fs.space().dead_bytes;
        if now >= dead || !fs.clean(Pressure::Any)? {
            break;
        }
        dead = now;
        cleaned += 1;
        progress.advance(1);
    }
    drop(progress);
    fs.sync()?;
    let after = fs.space();
    out.line(format_args!(
        "{} cleaned, {} moved, {} free now",
        count(cleaned, "band"),
        human(after.moved_bytes),
        count(after.free_bands, "band"),
    ))?;
    out.value(&json!({
        "cleaned_bands": cleaned, "moved_bytes": after.moved_bytes, "free_bands": after.free_bands,
        "free_bands_before": before.free_bands, "dead_bytes": after.dead_bytes,
    }))
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        use Error as E;
        let error = match error {
            E::Drive(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            E::NotFormatted => NotFormatted, "make a file system: zonestore smrfs mkfs DRIVE";
            E::NoSpace | E::NoMetadataSpace => NoSpace, "mount it and remove files";
            E::DamagedMetadata { .. } | E::DamagedData { .. } => Damaged,
                "nothing was changed; keep a copy of the drive, and restore from a backup";
            E::Version { .. } => Failed, "use the program version that made the file system";
            E::Shape(_) => Usage, "make another drive: `zonestore help drive create`";
            _ => Failed;
        }
    }
}
