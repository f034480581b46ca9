//! `store mkfs|df|fsck|clean`: the store as a whole.

use super::health;
use super::{Access, make, with_store, with_view};
use crate::args::{StoreClean, Tolerance};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::{Output, accept_damage, findings};
use control::api::Action;
use control::{Opened, StoreView};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use store::Statfs;
use terminal::{Progress, count, human};

/// `store mkfs`.
pub fn mkfs(path: &Path, force: bool, out: &mut Output) -> CommandResult {
    let drive = Arc::new(drive_file::open(path)?);
    let uuid = hexadecimal(&make(drive, force)?);
    out.line(format_args!("{}: an empty store, {uuid}", path.display()))?;
    out.value(&json!({ "path": path, "uuid": uuid }))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `store df`.
pub fn df(path: &Path, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_view(path, damage.into(), |store| {
        // First: whatever else is asked may have to wait for it too.
        let waiting = store.waiting()?;
        health::waiting(&waiting, out)?;
        accept_damage(&store.damage()?, out);
        out.flush()?;
        let space = store.space()?;
        let (drive, capacity) = (space.drive_bytes, space.capacity_bytes);
        let small = "of the live: objects of up to 4 KiB, kept in the metadata";
        let more = space.conventional_free_bytes;
        let lost = "of zones with objects that cannot be read: see store health";
        let kept = "for the cleaner and for metadata to grow";
        let broken = "read-only and offline zones with nothing in them";
        let can = "of the capacity: can still be stored";
        // Bytes, and of what they are a part.
        let rows = [
            ("drive", drive, 0, "what its zones can hold"),
            ("metadata", space.metadata_bytes, drive, "zones of BlueFS"),
            (
                "  more for it",
                more,
                drive,
                "free conventional zones, for metadata only",
            ),
            ("reserve", space.reserve_bytes, drive, kept),
            ("unusable", space.unusable_bytes, drive, broken),
            ("set aside", space.set_aside_bytes, drive, lost),
            ("capacity", capacity, drive, "what objects can fill"),
            (
                "  live",
                space.live_bytes,
                capacity,
                "of the capacity: objects",
            ),
            ("    small", space.inline_bytes, capacity, small),
            (
                "  dead",
                space.dead_bytes,
                capacity,
                "cleaning gives it back",
            ),
            ("  free", space.free_bytes, capacity, "can be written"),
            ("available", space.available_bytes, capacity, can),
        ];
        let rows = rows.map(|(name, bytes, of, what)| {
            vec![
                name.to_owned(),
                human(bytes),
                percent(bytes, of),
                what.to_owned(),
            ]
        });
        out.table(&[0, 3], &rows)?;
        out.line(format_args!(
            "{} zones: {} with objects, {} of metadata, {} free",
            space.zones, space.store_zones, space.metadata_zones, space.free_zones
        ))?;
        if let Some(free) = space.host_free_bytes {
            let kept = space.host_kept_bytes;
            out.line(format_args!(
                "host's disk: {} free{}",
                human(free),
                if free < kept {
                    format!(
                        "; below {} nothing new is stored, and deleting goes on",
                        human(kept)
                    )
                } else {
                    String::new()
                }
            ))?;
        }
        if let Some(why) = why_small(&space) {
            out.line(format_args!("{why}"))?;
        }
        let mut value = serde_json::to_value(space)?;
        value["waiting"] = serde_json::to_value(waiting)?;
        out.value(&value)
    })
}

/// Explains a capacity that is far below what the drive can hold.
fn why_small(space: &Statfs) -> Option<String> {
    if space.zones == 0 || space.capacity_bytes >= space.drive_bytes / 4 * 3 {
        return None;
    }
    let zone = space.drive_bytes / u64::from(space.zones);
    Some(format!(
        "Metadata and reserves are counted in whole zones, and {} of about {} are few: a larger drive, or \
         smaller zones (drive create --zone-size), leaves more for objects.",
        count(space.zones.into(), "zone"),
        human(zone)
    ))
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}

/// `store fsck`.
pub fn fsck(path: &Path, deep: bool, out: &mut Output) -> CommandResult {
    let report = with_store(path, Access::ReadDamaged, |store| {
        let progress = Progress::bytes(if deep { "reading all data" } else { "checking" }, Some(0));
        Ok(store.fsck(deep, &mut |done, all| progress.set_of(done, all))?)
    })?;
    out.line(format_args!(
        "{}, {}, {}, {}",
        count(report.collections, "collection"),
        count(report.objects, "object"),
        count(report.extents, "extent"),
        human(report.bytes)
    ))?;
    if deep {
        out.line(format_args!(
            "{} read and compared with checksums",
            human(report.bytes_verified)
        ))?;
    }
    findings(&report.errors, &report.details, deep, out)?;
    out.value(&report)?;
    if report.is_clean() {
        return Ok(());
    }
    Err(CommandError::found_errors(path, &report.errors))
}

/// `store clean`.
pub fn clean(arguments: &StoreClean, out: &mut Output) -> CommandResult {
    if arguments.start || arguments.stop {
        return order(arguments, out);
    }
    let access = if arguments.status {
        Access::Read
    } else {
        Access::Write
    };
    with_view(&arguments.drive, access, |store| {
        if arguments.status {
            return clean_status(store, out);
        }
        let progress = Progress::steps("cleaning zones", Some(0));
        let did = store.clean(arguments.zones, &mut |done, all| progress.set_of(done, all))?;
        drop(progress);
        out.line(format_args!(
            "{} cleaned, {} of live data moved, {} given back",
            count(did.zones_cleaned, "zone"),
            human(did.bytes_moved),
            human(did.bytes_freed)
        ))?;
        if did.mount_zones_reset > 0 {
            out.line(format_args!(
                "{} without live data reset before that, when the store was mounted; {} given back",
                count(did.mount_zones_reset.into(), "zone"),
                human(did.mount_bytes_freed)
            ))?;
        }
        out.value(&did)
    })
}

/// `store clean --status`.
fn clean_status(store: &StoreView, out: &mut Output) -> CommandResult {
    let status = store.cleaner()?;
    let dead = store.space()?.dead_bytes;
    out.line(format_args!(
        "{} with dead bytes, {} in all",
        count(status.dirty_zones.into(), "zone"),
        human(dead)
    ))?;
    if matches!(store, StoreView::Served(_)) {
        let doing = match (status.running, status.requested, status.automatic) {
            (_, true, _) => "cleaning everything, as asked",
            (true, _, _) => "cleaning",
            (_, _, true) => "waits until free zones run low",
            _ => "stopped; writers still clean what they need",
        };
        out.line(format_args!("cleaner: {doing}"))?;
        out.line(format_args!(
            "since the server's start: {} cleaned, {} of live data moved, {} given back",
            count(
                status.zones_cleaned + u64::from(status.mount_zones_reset),
                "zone"
            ),
            human(status.bytes_moved),
            human(status.bytes_freed + status.mount_bytes_freed)
        ))?;
    }
    let mut value = serde_json::to_value(status)?;
    value["dead_bytes"] = dead.into();
    out.value(&value)
}

/// `store clean --start` and `--stop`: orders to the cleaner of a server.
fn order(arguments: &StoreClean, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let Opened::Served(client) = drive_file::open_or_ask(path, false)? else {
        return Err(CommandError::new(
            Exit::NotFound,
            format_args!("{}: no server has this drive", path.display()),
        )
        .hint("without --start and --stop, `store clean` cleans at once"));
    };
    let (action, said) = if arguments.start {
        (
            Action::Start,
            "cleaning in the background; --status says how far it is",
        )
    } else {
        (
            Action::Stop,
            "the cleaner stops after the zone in hand, until --start",
        )
    };
    let status = client.clean(action)?.status;
    out.line(format_args!("{said}"))?;
    out.value(&status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_identities() {
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(1, 0), "");
        assert_eq!(hexadecimal(&[0, 0x1f, 0xff]), "001fff");
    }
}
