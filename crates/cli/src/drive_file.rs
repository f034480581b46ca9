//! Opening and creating the drives of commands: drive files, and zoned devices of the host.

use crate::args::NewDrive;
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::occupant;
use crate::smrfs;
use control::Opened;
use device::profile::ProfileError;
use device::{Drive, FileDrive, FileDriveError, ShapeError, ShapeRequest};
use drive_model::AnyProfile;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use terminal::{shell_text, shell_word};
use zone::Geometry;

/// Opens a drive for reading and writing, exclusively.
pub fn open(path: &Path) -> CommandResult<Drive> {
    check_kind(path)?;
    Ok(Opened::alone(path, true)?)
}

/// Opens a drive for reading; other processes may read it at the same time.
pub fn open_read_only(path: &Path) -> CommandResult<Drive> {
    check_kind(path)?;
    Ok(Opened::alone(path, false)?)
}

/// Opens a drive, or connects to the server that has it open.
pub fn open_or_ask(path: &Path, writable: bool) -> CommandResult<Opened> {
    check_kind(path)?;
    Ok(Opened::open(path, writable)?)
}

/// Creates a drive file, which must not exist.
pub fn create(path: &Path, shape: &NewDrive) -> CommandResult<FileDrive> {
    let shape = ShapeRequest::from(shape);
    FileDrive::create(path, &geometry(&shape)?, shape.profile()).map_err(|error| match error {
        FileDriveError::Exists { .. } => {
            let made = CommandError::from(error);
            let what = occupant::describe(path).map(|what| format!(": {what}"));
            let message = made.message + &what.unwrap_or_default();
            CommandError { message, ..made }
        }
        error => error.into(),
    })
}

/// The geometry that the command line asks for.
pub fn geometry(shape: &ShapeRequest) -> CommandResult<Geometry> {
    shape.geometry().map_err(|error| match error {
        ShapeError::Geometry(error) => error.into(),
        ShapeError::Profile(error) => match AnyProfile::named(shape.profile()) {
            Ok(model) if matches!(error, ProfileError::Unknown { .. }) => no_zones(&model),
            _ => error.into(),
        },
    })
}

/// The error for a profile whose model has no zones.
fn no_zones(model: &AnyProfile) -> CommandError {
    let (name, class) = (model.name(), model.class());
    let word = shell_text(name.as_bytes());
    let error = CommandError::new(
        Exit::Usage,
        format_args!("--profile: {name} is {}, and has no zones", class.name()),
    );
    if class.takes_any_write() {
        return error.hint(format_args!(
            "`zonestore model export {word} --nbd SOCKET` makes it a block device"
        ));
    }
    error.hint("`zonestore drive profiles` says which have zones")
}

/// Checks that an existing drive matches the command line's description of a new one.
pub fn check_shape(drive: &Drive, shape: &NewDrive) -> CommandResult {
    let wrong = ShapeRequest::from(shape).differences(drive);
    if wrong.is_empty() {
        return Ok(());
    }
    let wrong = wrong.into_iter().map(|(option, asked, found)| {
        let verb = if option == "profile" { "is" } else { "has" };
        format!("--{option} {asked}: it {verb} {found}")
    });
    let wrong = wrong.collect::<Vec<_>>().join("; ");
    let path = drive.path().display();
    fail!(
        Usage, "{path}: exists and is not what is asked for ({wrong})";
        "leave these options out to serve the drive as it is, or name another file"
    )
}

/// Path of the drive that was opened last, for error messages.
static LAST: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Path of the drive that this process opened last, or tried to open.
pub fn last() -> Option<PathBuf> {
    LAST.lock().ok()?.clone()
}

/// Says which drive error messages are about from here on.
pub fn set_last(path: &Path) {
    if let Ok(mut last) = LAST.lock() {
        *last = Some(path.to_owned());
    }
}

/// Refuses directories and the like with a clear message, before the drive's magic is checked.
pub fn check_kind(path: &Path) -> CommandResult {
    set_last(path);
    if path.as_os_str().as_bytes().ends_with(b"/") && path.components().as_path().is_file() {
        let shown = path.display();
        return fail!(Usage, "{shown}: a drive is a file"; "leave out the slash at its end");
    }
    match std::fs::metadata(path) {
        Ok(metadata)
            if metadata.is_dir()
                && let Some(drive) = smrfs::drive_at(path) =>
        {
            let (shown, drive, word) = (path.display(), drive.display(), shell_word(path));
            fail!(
                Usage, "{shown}: a directory; {drive} is the drive that is mounted here";
                "`zonestore smrfs df|top {word}` look at it as it is; behind `zonestore smrfs unmount {word}`, name the drive"
            )
        }
        Ok(metadata) if !metadata.is_file() && !device::is_host_device(path) => {
            let hint = "drives are made by `zonestore drive create`";
            fail!(Damaged, "{}: not a drive", path.display(); "{hint}")
        }
        _ => Ok(()),
    }
}
