//! `smrfs unmount`: behind it everything is on the drive, and the drive is free.

use super::opening::{check_directory, mounts, not_mounted, open_drive};
use crate::errors::{CommandError, CommandResult};
use crate::output::Output;
use serde_json::json;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;

/// `smrfs unmount`.
pub fn unmount(directory: &Path, out: &mut Output) -> CommandResult {
    let shown = directory.display();
    check_directory(directory)?;
    let canonical = directory.canonicalize();
    let canonical = canonical.map_err(|error| CommandError::file(directory, &error))?;
    let mounts = mounts();
    let found = mounts.iter().rev().find(|(_, place)| *place == canonical);
    let Some((drive, _)) = found else {
        return not_mounted(directory);
    };
    // Most of it becomes durable while it can still be said whether it did.
    let synced = File::open(&canonical).and_then(|root| root.sync_all());
    synced.map_err(|error| CommandError::file(directory, &error))?;
    leave(&canonical).map_err(|error| {
        CommandError::host(&format!("{shown}: cannot be unmounted: {error}"), &error)
    })?;
    drop(open_drive(drive, true)?);
    out.line(format_args!(
        "{shown} is unmounted, {} is free",
        drive.display()
    ))?;
    out.value(&json!({ "drive": drive.display().to_string(), "directory": shown.to_string() }))
}

/// Takes a mount from the tree, unless files in it are open.
fn leave(directory: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let flags = rustix::mount::UnmountFlags::empty();
        return Ok(rustix::mount::unmount(directory, flags)?);
    }
    let done = Command::new("fusermount3")
        .arg("-u")
        .arg(directory)
        .status()?;
    match done.success() {
        true => Ok(()),
        false => Err(io::Error::other("fusermount3 -u failed")),
    }
}
