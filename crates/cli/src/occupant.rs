//! What a path leads to that must not be overwritten for being in the way: drives, and saved models.
//! It is looked at, not locked, so a drive that is in use is told too.

use crate::errors::{CommandError, CommandResult, Exit};
use bluefs::BlueFs;
use device::Drive;
use device::file::format;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Says what is at `path` if it is of ours: "a drive with an object store (…)". `None` for everything
/// else, and where nothing is.
pub fn describe(path: &Path) -> Option<String> {
    if device::is_host_device(path) {
        // Other devices of the host are nobody's business here.
        return Drive::observe(path).ok().map(|drive| of_drive(&drive));
    }
    if !path.is_file() {
        return None;
    }
    let mut magic = [0; 8];
    File::open(path).ok()?.read_exact(&mut magic).ok()?;
    match magic {
        format::MAGIC => Some(Drive::observe(path).map_or_else(
            |_| "a drive file that is damaged".to_owned(),
            |drive| of_drive(&drive),
        )),
        drive_model::state::MAGIC => Some("the saved state of a model".to_owned()),
        _ => None,
    }
}

fn of_drive(drive: &Drive) -> String {
    match BlueFs::contents(drive) {
        Ok(contents) if contents.is_empty() => "an empty zoned drive".to_owned(),
        Ok(contents) => format!("a zoned drive with {contents}"),
        Err(error) => format!("a zoned drive that cannot be read: {error}"),
    }
}

/// Refuses to write over a drive or a saved model.
pub fn refuse(path: &Path) -> CommandResult {
    match describe(path) {
        None => Ok(()),
        Some(what) => Err(CommandError::new(
            Exit::Refused,
            format_args!("{}: {what}; it is not overwritten", path.display()),
        )
        .hint("name another file")),
    }
}
