//! `smrfs mount`: mounts in this process, or in one in the background.

use super::opening::{check_directory, open_drive_while};
use super::{inherited, suits};
use crate::args::SmrfsMount;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use ::smrfs::{FileSystem, Fit, MountOptions};
use runtime::Runtime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use terminal::shell_word;

/// Mounts in this process.
pub fn mount(arguments: &SmrfsMount, out: &mut Output) -> CommandResult {
    let (path, directory) = (&arguments.drive, &arguments.directory);
    let runtime = Runtime::system();
    let options = MountOptions {
        read_only: arguments.read_only,
        buffer_bytes: arguments.buffer.0,
        policy: arguments.policy.unwrap_or_default(),
        fit: arguments.fit.unwrap_or(Fit::Best),
    };
    let shown = directory.display();
    check_directory(directory).map_err(|error| match error.exit {
        Exit::NotFound => error.hint(format_args!("mkdir {} makes one", shell_word(directory))),
        _ => error,
    })?;
    let directory = &directory.canonicalize()?;
    // The parent that waits for the drive may itself keep it busy, by an open file of the previous mount.
    let is_wanted = || !arguments.ready || is_awaited();
    let drive = Arc::new(open_drive_while(path, options.read_only, is_wanted)?);
    let fs = Arc::new(FileSystem::mount(drive, runtime.clone(), options)?);
    suits(&fs, arguments.policy.is_some(), arguments.fit.is_some())?;
    let options = smrfs_fuse::Options {
        // The path by which commands that wait for the drive look for the mount.
        source: path.canonicalize()?.display().to_string(),
        read_only: arguments.read_only,
        allow_other: arguments.allow_other,
        no_suid: arguments.no_suid,
        no_dev: arguments.no_dev,
        no_exec: arguments.no_exec,
        commit_every: Duration::from_secs(arguments.commit_seconds),
        ..smrfs_fuse::Options::default()
    };
    let mounted = smrfs_fuse::mount(fs, &runtime, directory, &options).map_err(|error| {
        let made = CommandError::host(&format!("{shown}: cannot be mounted: {error}"), &error);
        made.hint("mounting needs /dev/fuse, and root or fusermount3")
    })?;
    let mut signals = Signals::new(terminal::ending_signals())?;
    let place = mounted.place().clone();
    let unmount = move || {
        for _ in signals.forever() {
            if let Err(error) = place.unmount() {
                tracing::error!(%error, "cannot be unmounted");
            }
        }
    };
    if let Err(error) = runtime.spawn("signals", unmount) {
        mounted.unmount()?;
        return Err(CommandError::thread(&error));
    }
    if arguments.ready {
        // A mount in the background must not keep the user's directory busy.
        std::env::set_current_dir("/")?;
        if arguments.log.is_none() {
            // What the parent reads from is a file without a name, which would grow unseen as long as the mount lasts.
            let nothing = OpenOptions::new().write(true).open("/dev/null")?;
            rustix::stdio::dup2_stderr(&nothing).map_err(std::io::Error::from)?;
        }
        if let Err(error) = writeln!(std::io::stdout(), "ready") {
            mounted.unmount()?;
            return Err(error.into());
        }
    } else {
        say_mounted(arguments, out)?;
    }
    mounted
        .wait()
        .map_err(|error| CommandError::host(&format!("{}: {error}", path.display()), &error))
}

/// Whether the parent process still waits for the mount.
fn is_awaited() -> bool {
    let output = std::io::stdout();
    let mut looked = [PollFd::new(&output, PollFlags::empty())];
    let asked = poll(&mut looked, Some(&Timespec::default()));
    asked.is_err() || !looked[0].revents().contains(PollFlags::ERR)
}

fn say_mounted(arguments: &SmrfsMount, out: &mut Output) -> CommandResult {
    let (drive, directory) = (arguments.drive.display(), arguments.directory.display());
    out.line(format_args!("{drive} is at {directory}"))?;
    out.value(&json!({ "drive": drive.to_string(), "directory": directory.to_string() }))?;
    out.flush()
}

/// Starts this program again, and waits until it has mounted or reports an error.
pub fn mount_in_background(arguments: &SmrfsMount, out: &mut Output) -> CommandResult {
    let mut log = match &arguments.log {
        Some(path) => OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(path)
            .map_err(|error| {
                let made = CommandError::file(path, &error).context("--log");
                match error.kind() {
                    ErrorKind::NotFound => made.hint("name a file in a directory that is there"),
                    ErrorKind::IsADirectory => {
                        let file = path.join("smrfs.log");
                        made.hint(format_args!("name a file, as {}", file.display()))
                    }
                    _ => made,
                }
            })?,
        None => tempfile::tempfile()?,
    };
    inherited::keep()?;
    let start = log.seek(std::io::SeekFrom::End(0))?;
    let errors: File = log.try_clone()?;
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // The first such word is the command's name. At the end, behind `--`, they would be names of files.
    let command = words.iter().position(|word| word == "mount");
    let behind = command.map_or(words.len(), |at| at + 1);
    let more = ["--foreground", "--ready"].map(OsString::from);
    words.splice(behind..behind, more);
    let mut child = Command::new(std::env::current_exe()?)
        .args(words)
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
    // Passes on the child's messages.
    _ = std::io::stderr().write_all(told.as_bytes());
    std::process::exit(status.code().unwrap_or(Exit::Failed as i32))
}
