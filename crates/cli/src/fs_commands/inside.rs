//! `fs mount-info|dump` and `fs fsck --repair`: the internals of the file system, and the repair of damage.

use super::{with_damaged, with_file_system};
use crate::args::Tolerance;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult};
use crate::output::Output;
use crate::question::confirm;
use backup::tree::walk;
use bluefs::{BlueFs, GivenUp, Loss, MountOptions, Role};
use device::ZonedDevice;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use terminal::{count, human};

/// `fs mount-info`.
pub fn mount_info(drive: &Path, out: &mut Output) -> CommandResult {
    with_damaged(drive, |fs| {
        let info = fs.info();
        let damage: Vec<String> = fs.damage().iter().map(ToString::to_string).collect();
        let files = fs.damaged_files()?;
        let mut known = Vec::new();
        if !damage.is_empty() {
            known.push(format!(
                "{}: it is read with --accept-damage only",
                count(damage.len() as u64, "place")
            ));
        }
        known.extend(files.iter().map(|file| {
            let lost = human(file.bytes);
            let path = out.name(&file.path);
            format!(
                "{path} has lost {lost} in zone {}, which is offline",
                file.zone
            )
        }));
        if known.is_empty() {
            known.push("none known".to_owned());
        }
        let known = known.join("; ");
        let mut pairs = info.in_words();
        pairs.push(("damage", known));
        out.pairs(&pairs)?;
        out.value(&json!({
            "uuid": info.identity(), "format_version": info.version,
            "role": match info.role { Role::Alone => "alone", Role::Shared => "shared" },
            "generation": info.generation, "journal_epoch": info.journal_epoch,
            "journal_zone": info.journal_zone.0, "journal_frames": info.journal_frames,
            "spare_zone": info.spare_zone.0, "block_size": info.block_size,
            "zone_size": info.zone_size, "zone_capacity": info.zone_capacity,
            "zone_count": info.zone_count, "damage": damage,
            "damaged_files": files.iter().map(|file| json!({
                "path": file.path, "zone": file.zone.0, "bytes": file.bytes,
            })).collect::<Vec<_>>(),
        }))
    })
}

/// `fs dump`.
pub fn dump(drive: &Path, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_file_system(drive, damage, out, |fs, out| {
        let mut files = Vec::new();
        walk::<CommandError>(fs, "/", &mut |path, found| {
            if found.is_directory {
                return Ok(());
            }
            out.line(format_args!("{}  {} bytes", out.name(path), found.size))?;
            let extents = fs.extents(path)?;
            for extent in &extents {
                out.line(format_args!(
                    "  byte {:>12}  {:>12} bytes at {}",
                    extent.file_offset, extent.length, extent.at
                ))?;
            }
            files.push(json!({ "path": path, "size": found.size, "extents": extents }));
            Ok(())
        })?;
        let zones = fs.zones();
        for (zone, purpose) in &zones {
            out.line(format_args!("zone {zone}  {purpose:?}"))?;
        }
        out.value(&json!({
            "files": files,
            "zones": zones
                .iter()
                .map(|(zone, purpose)| json!({ "zone": zone.0, "purpose": purpose }))
                .collect::<Vec<_>>(),
        }))
    })
}

/// `fs fsck --repair`: continues with the metadata before the damage, if there is any. Returns the losses.
pub fn repair(drive: &Path, yes: bool, out: &mut Output) -> CommandResult<Vec<Loss>> {
    // It stays open, so that no other process writes to it between the question and the answer.
    let opened: Arc<dyn ZonedDevice> = Arc::new(drive_file::open(drive)?);
    let options = MountOptions {
        read_only: true,
        accept_damage: true,
        ..MountOptions::default()
    };
    let (agreed, role) = BlueFs::with_mounted(opened.clone(), options.clone(), |fs| {
        let (damage, losses) = (fs.damage(), fs.losses()?);
        CommandResult::Ok((GivenUp { damage, losses }, fs.info().role))
    })?;
    let (damage, losses) = (agreed.damage.len() as u64, agreed.losses.clone());
    if damage == 0 {
        mend_copies(opened, options, out)?;
        return Ok(losses);
    }
    for error in &agreed.damage {
        out.line(format_args!("damage: {error}"))?;
    }
    for Loss { path, what } in &losses {
        out.line(format_args!("loses: {} {what}", out.name(path)))?;
    }
    if role == Role::Shared {
        out.line(format_args!(
            "the drive serves an object store: objects that were put, changed or removed behind the damage may be \
             older, gone or back; `zonestore store fsck DRIVE --repair` comes next, or, if the store cannot be opened, \
             `zonestore store salvage DRIVE`"
        ))?;
    }
    out.flush()?;
    confirm(
        yes,
        "What was acknowledged behind the damage is gone for good, and the evidence with it: keep a copy \
         of the drive first",
    )?;
    let options = MountOptions {
        read_only: false,
        agreed: Some(agreed),
        ..options
    };
    BlueFs::with_mounted(opened, options, |fs| CommandResult::Ok(fs.repair_copies()?))?;
    out.line(format_args!(
        "repaired: {} gone without",
        count(damage, "damaged place")
    ))?;
    Ok(losses)
}

/// Rewrites metadata of which one of two copies is damaged, which loses nothing. A drive without damage is not
/// written.
fn mend_copies(
    drive: Arc<dyn ZonedDevice>,
    looking: MountOptions,
    out: &mut Output,
) -> CommandResult {
    let is_clean = BlueFs::with_mounted(drive.clone(), looking, |fs| {
        CommandResult::Ok(fs.check(true)?.is_clean())
    })?;
    let mended = match is_clean {
        true => 0,
        false => BlueFs::with_mounted(drive, MountOptions::default(), |fs| {
            fs.repair_copies()?;
            // The mount may have repaired copies too.
            let counted = fs.statistics();
            CommandResult::Ok(counted.copies_repaired + counted.mended_at_mount)
        })?,
    };
    match mended {
        0 => out.line(format_args!("nothing to repair in the metadata")),
        some => out.line(format_args!(
            "{some:>8}  repaired: copies of metadata that differ"
        )),
    }
}
