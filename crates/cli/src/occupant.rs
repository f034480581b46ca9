//! The contents of a drive: what must not be overwritten by mistake, and which commands fit a drive on which another
//! command has failed.

use crate::args::{Command, ProgramFiles};
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::smrfs;
use device::{Drive, ZonedDevice, erase};
use drive_model::StateFile;
use inspect::Content;
use std::path::Path;
use terminal::shell_word;

/// Describes a drive or saved model at `path`; `None` for everything else, and if nothing is there.
pub fn describe(path: &Path) -> Option<String> {
    let state = || StateFile::is_one(path).then(|| "the saved state of a model".to_owned());
    inspect::drive_at(path).or_else(state)
}

/// Refuses to overwrite a drive or a saved model.
pub fn refuse(path: &Path) -> CommandResult {
    let Some(what) = describe(path) else {
        return Ok(());
    };
    let shown = path.display();
    fail!(Refused, "{shown}: {what}; it is not overwritten"; "name another file")
}

/// Refuses a drive with contents that BlueFS does not detect, because they may lie in conventional zones alone.
pub fn refuse_content(drive: &dyn ZonedDevice) -> CommandResult {
    match Content::of(drive) {
        content @ (Content::Smrfs | Content::ZeaFs | Content::Zea) => fail!(
            Refused, "the drive holds {}; nothing has been changed", content.words();
            "--force erases it"
        ),
        Content::Store | Content::BlueFs | Content::Empty | Content::Unknown(_) => Ok(()),
    }
}

/// Refuses a drive on which there is anything.
pub fn refuse_unless_empty(drive: &Drive) -> CommandResult {
    let zones = drive.geometry().zone_count;
    let what = match Content::of(drive) {
        Content::Empty if erase::written_zones(drive, 0..zones)?.is_empty() => return Ok(()),
        Content::Empty => "zones with data".to_owned(),
        content => content.words(),
    };
    fail!(
        Refused, "{} holds {what}; nothing has been changed", drive.path().display();
        "--force erases it"
    )
}

/// The contents that a command works on.
pub fn wanted(command: &Command) -> &'static [Content] {
    match command {
        Command::Store(_)
        | Command::Serve(_)
        | Command::Daemon(_)
        | Command::Fs(_)
        | Command::Rocksdb(_) => &[Content::Store, Content::BlueFs],
        Command::Leveldb(arguments) => match arguments.fs {
            Some(ProgramFiles::Bluefs) => &[Content::BlueFs],
            Some(ProgramFiles::Zeafs) => &[Content::ZeaFs],
            None => &[Content::BlueFs, Content::ZeaFs],
        },
        Command::Smrfs(_) => &[Content::Smrfs],
        Command::Zea(_) => &[Content::ZeaFs, Content::Zea],
        _ => &[],
    }
}

/// The commands that inspect and use a kind of contents.
fn commands(content: &Content, drive: &Path) -> Option<String> {
    let drive = shell_word(drive);
    Some(match content {
        Content::Store => format!("`zonestore store ls|df|fsck {drive}` look at it"),
        Content::BlueFs => format!(
            "`zonestore fs ls|df|fsck {drive}` look at it, and `zonestore leveldb|rocksdb {drive} -- PROGRAM` run on it"
        ),
        Content::Smrfs => format!(
            "`zonestore smrfs df|fsck {drive}` look at it, and `zonestore smrfs mount {drive} DIRECTORY` mounts it"
        ),
        Content::ZeaFs => format!(
            "`zonestore zea ls|df|get|backup|fsck {drive}` look at it, and `zonestore leveldb {drive} -- PROGRAM` runs on it"
        ),
        Content::Zea => format!("`zonestore zea ls|df|fsck {drive}` look at it"),
        Content::Empty | Content::Unknown(_) => return None,
    })
}

/// Adapts a command's error to the actual contents of its drive: a drive with other contents is not damaged, and the
/// hint must not suggest a new file system on a drive that has data.
pub fn explain(error: CommandError, wanted: &[Content], path: &Path) -> CommandError {
    if error.exit == Exit::Busy
        && let Some(directory) = smrfs::mounted_at(path)
    {
        let at = shell_word(&directory);
        return error.hint(format_args!(
            "it is mounted at {at}: `zonestore smrfs top {at}` looks at it, `zonestore smrfs unmount {at}` ends that"
        ));
    }
    let is_of_content = matches!(error.exit, Exit::NotFormatted | Exit::Damaged);
    if wanted.is_empty() || !(is_of_content || error.exit == Exit::Busy) {
        return error;
    }
    let Ok(drive) = Drive::observe(path) else {
        return error;
    };
    let shown = path.display();
    if error.exit == Exit::Busy {
        return match Content::of(&drive) {
            // `fs top` does not support them.
            Content::ZeaFs | Content::Zea => error.hint("wait for it, or stop it"),
            _ => error,
        };
    }
    let is_missing = error.exit == Exit::NotFormatted;
    match Content::of(&drive) {
        Content::Empty if is_missing && wanted.contains(&Content::ZeaFs) => {
            let made = "`zonestore zea mkfs --fs` makes a ZEAFS of an empty drive";
            let other = match wanted.contains(&Content::BlueFs) {
                true => "`zonestore fs mkfs` a BlueFS",
                false => "`zonestore zea mkfs` extent allocators",
            };
            error.hint(format_args!("{made}, {other}"))
        }
        Content::Unknown(what) if is_missing => error.hint(format_args!(
            "it holds {what}; if it had one, keep a copy of the drive"
        )),
        content => match commands(&content, path) {
            Some(commands) if !wanted.contains(&content) => {
                let what = content.words();
                CommandError::new(Exit::NotFormatted, format_args!("{shown} holds {what}"))
                    .hint(commands)
            }
            Some(commands) if is_missing => error.hint(commands),
            _ => error,
        },
    }
}
