//! `store mkfs|df|fsck|clean`: the store as a whole.

use super::{Access, make, with_store, with_view};
use crate::args::{StoreClean, Tolerance};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail};
use crate::output::{Output, accept_damage, findings};
use control::api::Action;
use control::{Opened, StoreView};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use terminal::{Progress, count, human};

/// `store mkfs`.
pub fn mkfs(path: &Path, force: bool, out: &mut Output) -> CommandResult {
    let drive = Arc::new(drive_file::open(path)?);
    let uuid = hexadecimal(&make(drive, force)?);
    out.line(format_args!("{}: an empty store, {uuid}", path.display()))?;
    out.value(&json!({ "path": path.display().to_string(), "uuid": uuid }))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `store df`.
pub fn df(path: &Path, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_view(path, damage.into(), |store| {
        // First: whatever else is asked may have to wait for it too.
        let waiting = store.waiting()?;
        for command in &waiting {
            out.line(format_args!("{command}"))?;
        }
        accept_damage(&store.damage()?, out);
        out.flush()?;
        let space = store.space()?;
        out.table(&[0, 3], &space.rows())?;
        out.line(format_args!(
            "{} zones: {} with objects, {} of metadata, {} free",
            space.zones, space.store_zones, space.metadata_zones, space.free_zones
        ))?;
        if let Some(free) = space.host_free_bytes {
            let (free, kept) = (human(free), human(space.host_kept_bytes));
            let rest = format!("; below {kept} nothing new is stored, and deleting goes on");
            let is_low = space.host_free_bytes < Some(space.host_kept_bytes);
            let rest = if is_low { rest.as_str() } else { "" };
            out.line(format_args!("host's disk: {free} free{rest}"))?;
        }
        if let Some(why) = space.why_small() {
            out.line(format_args!(
                "{why}: a larger drive, or smaller zones (drive create --zone-size), leaves more for objects."
            ))?;
        }
        let caches = store.caches()?;
        for line in caches.iter().flat_map(store::Caches::lines) {
            out.line(format_args!("{line}"))?;
        }
        let mut value = serde_json::to_value(space)?;
        value["caches"] = serde_json::to_value(caches)?;
        value["waiting"] = serde_json::to_value(waiting)?;
        out.value(&value)
    })
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
            "{} read and compared with checksums; {}",
            human(report.bytes_verified),
            report.copies()
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
        let doing = status.doing();
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
        return fail!(
            NotFound, "{}: no server has this drive", path.display();
            "without --start and --stop, `store clean` cleans at once"
        );
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
    fn identities_are_hexadecimal() {
        assert_eq!(hexadecimal(&[0, 0x1f, 0xff]), "001fff");
    }
}
