//! `smrfs mkfs`: a file system, and the Caveat-Scriptor drive under it if one is asked for.

use super::opening::open_drive;
use crate::args::{SmrfsKind, SmrfsMkfs};
use crate::errors::{CommandResult, fail};
use crate::output::Output;
use ::smrfs::{FileSystem, Medium, MkfsOptions};
use caveat::{CaveatDevice, CaveatShape};
use device::{Drive, ZonedDevice, erase};
use inspect::Content;
use runtime::Runtime;
use serde_json::json;
use std::sync::Arc;
use terminal::human;

/// Refuses to make something else where such a file system is. It may lie in conventional zones alone.
pub fn refuse(drive: &dyn ZonedDevice) -> CommandResult {
    if Content::of(drive) == Content::Smrfs {
        let what = Content::Smrfs.words();
        return fail!(Refused, "the drive holds {what}"; "--force erases it");
    }
    Ok(())
}

/// What the file system is to lie on.
fn medium(drive: Drive, arguments: &SmrfsMkfs) -> CommandResult<Medium> {
    let shown = arguments.drive.display();
    let has_caveat = caveat::is_there(&drive)?;
    let is_wanted = arguments.kind != Some(SmrfsKind::StrictAppend);
    if has_caveat && is_wanted && arguments.isolation_distance.is_none() {
        let medium = Medium::of(Arc::new(drive))?;
        if !arguments.force && medium.has_file_system()? {
            return fail!(Refused, "{shown}: holds {}", Content::Smrfs.words(); "--force erases it");
        }
        return Ok(medium);
    }
    if arguments.kind == Some(SmrfsKind::Caveat) && arguments.isolation_distance.is_none() {
        return fail!(
            Usage, "{shown}: no Caveat-Scriptor drive yet";
            "say how far a write may damage: --isolation-distance BLOCKS"
        );
    }
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
    let Some(isolation_distance) = arguments.isolation_distance else {
        return Ok(Medium::Bands(Arc::new(drive)));
    };
    let bytes = drive.geometry().size_bytes();
    let shape = CaveatShape {
        block_size: 4096,
        isolation_distance,
        no_overlap_range: arguments.no_overlap_range,
        unshingled_bytes: arguments
            .unshingled
            .map_or((bytes / 32).max(1 << 20), |size| size.0),
    };
    let made = CaveatDevice::create(Arc::new(drive), &shape);
    Ok(Medium::Caveat(Arc::new(
        made.map_err(::smrfs::Error::from)?,
    )))
}

/// `smrfs mkfs`.
pub fn mkfs(arguments: &SmrfsMkfs, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let shown = path.display();
    let medium = medium(open_drive(path, false)?, arguments)?;
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
