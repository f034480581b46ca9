//! Opening and making the drives that commands work on: drive files, and zoned devices of the host.

use crate::args::NewDrive;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::occupant;
use control::Opened;
use device::{Drive, FileDrive, FileDriveError, ZonedDevice, profile};
use drive_model::AnyProfile;
use std::path::Path;
use terminal::human;
use zone::Geometry;

/// Opens a drive for this process alone.
pub fn open(path: &Path) -> CommandResult<Drive> {
    check_kind(path)?;
    Ok(Opened::alone(path, true)?)
}

/// Opens a drive for reading; others may read it at the same time.
pub fn open_read_only(path: &Path) -> CommandResult<Drive> {
    check_kind(path)?;
    Ok(Opened::alone(path, false)?)
}

/// Opens a drive, or finds the server that has it.
pub fn open_or_ask(path: &Path, writable: bool) -> CommandResult<Opened> {
    check_kind(path)?;
    Ok(Opened::open(path, writable)?)
}

/// Makes a drive; the file must not exist.
pub fn create(path: &Path, shape: &NewDrive) -> CommandResult<FileDrive> {
    let geometry = geometry(shape)?;
    FileDrive::create(path, &geometry, shape.profile()).map_err(|error| match error {
        FileDriveError::Exists { .. } => {
            let made = CommandError::from(error);
            match occupant::describe(path) {
                Some(what) => made.context(format_args!("it is {what}")),
                None => made,
            }
        }
        error => error.into(),
    })
}

/// The geometry that the command line asks for.
pub fn geometry(shape: &NewDrive) -> CommandResult<Geometry> {
    let name = shape.profile();
    let profile = profile::by_name(name).map_err(|error| match AnyProfile::named(name) {
        Ok(model) => no_zones(&model),
        Err(_) => error.into(),
    })?;
    let size = shape.size.map_or(profile.default_size_bytes, |size| size.0);
    let mut geometry = profile.geometry(size, shape.zone_size.map(|size| size.0))?;
    if let Some(capacity) = shape.zone_capacity {
        geometry.zone_capacity = capacity.0;
    }
    if let Some(zones) = shape.conventional {
        geometry.conventional_zones = zones;
    }
    if let Some(zones) = shape.max_active {
        geometry.max_active_zones = zones;
        if shape.max_open.is_none() && zones != 0 {
            geometry.max_open_zones = geometry.max_open_zones.min(zones);
        }
    }
    if let Some(zones) = shape.max_open {
        geometry.max_open_zones = zones;
        if shape.max_active.is_none() && geometry.max_active_zones != 0 {
            geometry.max_active_zones = geometry.max_active_zones.max(zones);
        }
    }
    geometry.validate()?;
    Ok(geometry)
}

/// A drive that has a model, but no zones.
fn no_zones(model: &AnyProfile) -> CommandError {
    let (name, class) = (model.name(), model.class());
    let error = CommandError::new(
        Exit::Usage,
        format_args!("--profile: {name} is {}, and has no zones", class.name()),
    );
    if class.takes_any_write() {
        return error.hint(format_args!(
            "`zonestore model export {name} --nbd SOCKET` makes it a block device"
        ));
    }
    error.hint("`zonestore drive profiles` says which have zones")
}

/// Makes sure that a drive that exists has what the command line asks for of a new one.
pub fn check_shape(drive: &Drive, shape: &NewDrive) -> CommandResult {
    let there = drive.geometry();
    let mut wrong = Vec::new();
    if let Some(asked) = &shape.profile
        && asked != drive.profile_name()
    {
        wrong.push(format!("--profile {asked}: it is {}", drive.profile_name()));
    }
    let sizes = [
        // A new drive is rounded down to whole zones.
        (
            "--size",
            shape.size.map(|size| size.0 - size.0 % there.zone_size),
            there.size_bytes(),
        ),
        (
            "--zone-size",
            shape.zone_size.map(|size| size.0),
            there.zone_size,
        ),
        (
            "--zone-capacity",
            shape.zone_capacity.map(|size| size.0),
            there.zone_capacity,
        ),
    ];
    for (option, asked, found) in sizes {
        if let Some(asked) = asked.filter(|asked| *asked != found) {
            wrong.push(format!(
                "{option} {}: it has {}",
                human(asked),
                human(found)
            ));
        }
    }
    let counts = [
        (
            "--conventional",
            shape.conventional,
            there.conventional_zones,
        ),
        ("--max-open", shape.max_open, there.max_open_zones),
        ("--max-active", shape.max_active, there.max_active_zones),
    ];
    for (option, asked, found) in counts {
        if let Some(asked) = asked.filter(|asked| *asked != found) {
            wrong.push(format!("{option} {asked}: it has {found}"));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(CommandError::new(
        Exit::Usage,
        format_args!(
            "{}: exists and is not what is asked for ({})",
            drive.path().display(),
            wrong.join("; ")
        ),
    )
    .hint("leave these options out to serve the drive as it is, or name another file"))
}

/// Directories and the like get a clear word before the drive looks for its magic.
pub fn check_kind(path: &Path) -> CommandResult {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !device::is_host_device(path) => {
            Err(CommandError::new(
                Exit::Damaged,
                format_args!("{}: not a drive", path.display()),
            )
            .hint("drives are made by `zonestore drive create`"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use terminal::Size;

    fn shape() -> NewDrive {
        NewDrive {
            profile: Some("zns-zn540".to_owned()),
            size: Some(Size(64 << 30)),
            zone_size: None,
            zone_capacity: None,
            conventional: None,
            max_open: None,
            max_active: None,
        }
    }

    #[test]
    fn one_limit_takes_the_other_with_it() {
        let geometry = |change: fn(&mut NewDrive)| {
            let mut shape = shape();
            change(&mut shape);
            geometry(&shape)
                .map(|g| (g.max_open_zones, g.max_active_zones))
                .unwrap()
        };
        assert_eq!(geometry(|_| ()), (14, 14));
        assert_eq!(geometry(|s| s.max_open = Some(20)), (20, 20));
        assert_eq!(geometry(|s| s.max_open = Some(8)), (8, 14));
        assert_eq!(geometry(|s| s.max_active = Some(8)), (8, 8));
        assert_eq!(geometry(|s| s.max_active = Some(0)), (14, 0));
    }

    #[test]
    fn what_cannot_be_is_a_mistake_of_usage() {
        let mut wrong = shape();
        (wrong.max_open, wrong.max_active) = (Some(9), Some(8));
        assert_eq!(geometry(&wrong).unwrap_err().exit, Exit::Usage);
        wrong = shape();
        wrong.profile = Some("floppy".to_owned());
        assert_eq!(geometry(&wrong).unwrap_err().exit, Exit::Usage);
    }
}
