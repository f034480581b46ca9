//! `smrfs mkfs`: creates a file system, and the Caveat-Scriptor drive below it if requested.

use super::opening::open_drive;
use crate::args::{SmrfsKind, SmrfsMkfs};
use crate::errors::{CommandResult, fail};
use crate::occupant;
use crate::output::Output;
use ::smrfs::{FileSystem, Medium, MkfsOptions};
use caveat::{CaveatDevice, CaveatShape};
use device::{Drive, ZonedDevice, erase};
use inspect::Content;
use runtime::Runtime;
use serde_json::json;
use std::sync::Arc;
use terminal::human;

/// Prepares the medium. Nothing is erased before it is known that the file system is possible.
fn medium(drive: Drive, arguments: &SmrfsMkfs, options: &MkfsOptions) -> CommandResult<Medium> {
    let shown = arguments.drive.display();
    let drive = Arc::new(drive);
    let is_wanted = arguments.kind != Some(SmrfsKind::StrictAppend);
    if caveat::is_there(&*drive)? && is_wanted && arguments.isolation_distance.is_none() {
        let medium = Medium::of(drive)?;
        if !arguments.force && medium.has_file_system()? {
            let what = Content::Smrfs.words();
            return fail!(Refused, "{shown} holds {what}; nothing has been changed"; "--force erases it");
        }
        return Ok(medium);
    }
    if arguments.kind == Some(SmrfsKind::Caveat) && arguments.isolation_distance.is_none() {
        return fail!(
            Usage, "{shown}: no Caveat-Scriptor drive yet";
            "say how far a write may damage: --isolation-distance BLOCKS"
        );
    }
    let bytes = drive.geometry().size_bytes();
    let shape = arguments.isolation_distance.map(|distance| CaveatShape {
        block_size: 4096,
        isolation_distance: distance,
        no_overlap_range: arguments.no_overlap_range,
        unshingled_bytes: arguments
            .unshingled
            .map_or((bytes / 32).max(1 << 20), |size| size.0),
    });
    let planned = match &shape {
        None => Medium::Bands(drive.clone()),
        Some(shape) => {
            let planned = CaveatDevice::planned(drive.clone(), shape);
            Medium::Caveat(Arc::new(planned.map_err(::smrfs::Error::from)?))
        }
    };
    FileSystem::check_mkfs(&planned, options)?;
    if arguments.force {
        // Everything that identifies the old contents is erased first.
        let written = erase::written_zones(&*drive, 0..drive.geometry().zone_count)?;
        erase::reset(&*drive, &written, true, &mut || ())?;
    } else {
        occupant::refuse_unless_empty(&drive)?;
    }
    let Some(shape) = shape else {
        return Ok(planned);
    };
    let made = CaveatDevice::create(drive, &shape).map_err(::smrfs::Error::from)?;
    Ok(Medium::Caveat(Arc::new(made)))
}

/// `smrfs mkfs`.
pub fn mkfs(arguments: &SmrfsMkfs, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let shown = path.display();
    let options = MkfsOptions {
        block_size: u32::try_from(arguments.block_size.0).unwrap_or(u32::MAX),
        whole_files: arguments.whole_files,
        clean_when_full: arguments.clean_when_full,
        label: arguments.label.clone(),
        owner: (
            rustix::process::getuid().as_raw(),
            rustix::process::getgid().as_raw(),
        ),
    };
    let is_append = arguments.kind == Some(SmrfsKind::StrictAppend);
    if is_append && arguments.isolation_distance.is_some() {
        return fail!(
            Usage, "--isolation-distance makes a Caveat-Scriptor drive, and --kind strict-append is for one with bands";
            "leave one of the two out"
        );
    }
    let medium = medium(open_drive(path, false)?, arguments, &options)?;
    let shape = FileSystem::mkfs_on(&medium, &Runtime::system(), &options)?;
    let (kind, files) = (
        if shape.is_caveat {
            "Caveat-Scriptor"
        } else {
            "strict-append"
        },
        if shape.is_whole {
            "whole files"
        } else {
            "segments"
        },
    );
    out.line(format_args!(
        "{shown}: an empty file system, {kind}, {files}, blocks of {}",
        human(shape.block_size.into())
    ))?;
    out.value(&json!({
        "path": shown.to_string(), "uuid": shape.uuid_text(), "label": shape.label, "caveat": shape.is_caveat,
        "block_size": shape.block_size, "whole_files": shape.is_whole, "clean_when_full": shape.is_cleaned,
    }))
}
