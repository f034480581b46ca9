//! `smrfs unmount`: when it succeeds, all changes are durable and the drive is free.

use super::opening::{check_directory, drive_at, not_mounted, open_drive};
use crate::errors::{CommandError, CommandResult};
use crate::output::Output;
use serde_json::json;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;
use terminal::shell_word;

/// `smrfs unmount`.
pub fn unmount(directory: &Path, out: &mut Output) -> CommandResult {
    let (shown, word) = (directory.display(), shell_word(directory));
    check_directory(directory)?;
    let canonical = directory.canonicalize();
    let canonical = canonical.map_err(|error| CommandError::file(directory, &error))?;
    let Some(drive) = drive_at(&canonical) else {
        return not_mounted(directory);
    };
    // Syncs first, while an error can still be reported.
    let synced = File::open(&canonical).and_then(|root| root.sync_all());
    synced.map_err(|error| {
        CommandError::file(directory, &error).hint(format_args!(
            "it stays mounted, for what was written last is not on the drive; `umount -i {word}` \
             (`fusermount3 -u {word}` if you are not root) gives that up"
        ))
    })?;
    leave(&canonical).map_err(|error| {
        let made = CommandError::host(&format!("{shown}: cannot be unmounted: {error}"), &error);
        match error.kind() {
            // `fusermount3` prints the reason, and returns only that it failed.
            io::ErrorKind::ResourceBusy | io::ErrorKind::Other => made.hint(format_args!(
                "`fuser -vm {word}` names who has files or directories open in it; `umount -l {word}` \
                 (`fusermount3 -uz {word}` if you are not root) takes it away now, and it ends with the last of them"
            )),
            _ => made,
        }
    })?;
    drop(open_drive(&drive, true)?);
    out.line(format_args!(
        "{shown} is unmounted, {} is free",
        drive.display()
    ))?;
    out.value(&json!({ "drive": drive.display().to_string(), "directory": shown.to_string() }))
}

/// Unmounts a directory, unless files in it are open.
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
