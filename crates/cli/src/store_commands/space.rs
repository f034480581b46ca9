//! `store mkfs|df|fsck|clean`: the store as a whole.

use super::{Access, make, with_store};
use crate::args::StoreClean;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult};
use crate::output::Output;
use crate::progress::Progress;
use crate::size::{count, human};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use store::Store;

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
pub fn df(path: &Path, out: &mut Output) -> CommandResult {
    with_store(path, Access::Read, |store| {
        let space = store.statfs();
        let of_drive = |bytes: u64| percent(bytes, space.drive_bytes);
        let of_capacity = |bytes: u64| percent(bytes, space.capacity_bytes);
        let row = |name: &str, bytes: u64, share: String, what: &str| {
            vec![name.to_owned(), human(bytes), share, what.to_owned()]
        };
        let live = space.live_bytes;
        let dead = space.dead_bytes;
        let free = space.free_bytes;
        out.table(
            &[0, 3],
            &[
                row(
                    "drive",
                    space.drive_bytes,
                    String::new(),
                    "what its zones can hold",
                ),
                row(
                    "metadata",
                    space.metadata_bytes,
                    of_drive(space.metadata_bytes),
                    "zones of BlueFS",
                ),
                row(
                    "  more for it",
                    space.conventional_free_bytes,
                    of_drive(space.conventional_free_bytes),
                    "free conventional zones, for metadata only",
                ),
                row(
                    "reserve",
                    space.reserve_bytes,
                    of_drive(space.reserve_bytes),
                    "for the cleaner and for metadata to grow",
                ),
                row(
                    "unusable",
                    space.unusable_bytes,
                    of_drive(space.unusable_bytes),
                    "read-only and offline zones",
                ),
                row(
                    "capacity",
                    space.capacity_bytes,
                    of_drive(space.capacity_bytes),
                    "what objects can fill",
                ),
                row(
                    "  live",
                    live,
                    of_capacity(live),
                    "of the capacity: objects",
                ),
                row("  dead", dead, of_capacity(dead), "cleaning gives it back"),
                row("  free", free, of_capacity(free), "can be written at once"),
                row(
                    "available",
                    space.available_bytes,
                    of_capacity(space.available_bytes),
                    "of the capacity: can still be stored",
                ),
            ],
        )?;
        out.line(format_args!(
            "{} zones: {} with objects, {} of metadata, {} free",
            space.zones, space.store_zones, space.metadata_zones, space.free_zones
        ))?;
        out.value(&space)
    })
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!("{:.1} %", part as f64 * 100.0 / whole as f64)
}

/// `store fsck`.
pub fn fsck(path: &Path, deep: bool, out: &mut Output) -> CommandResult {
    let report = with_store(path, Access::Read, |store| {
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
    out.findings(&report.errors, &report.details)?;
    out.value(&report)?;
    if report.is_clean() {
        return Ok(());
    }
    Err(CommandError::found_errors(path, &report.errors))
}

/// `store clean`.
pub fn clean(arguments: &StoreClean, out: &mut Output) -> CommandResult {
    let access = if arguments.status {
        Access::Read
    } else {
        Access::Write
    };
    with_store(&arguments.drive, access, |store| {
        let dirty = u64::from(store.clean_status().dirty_zones);
        let dead = store.statfs().dead_bytes;
        if arguments.status {
            out.line(format_args!(
                "{} with dead bytes, {} in all",
                count(dirty, "zone"),
                human(dead)
            ))?;
            return out.value(&json!({ "dirty_zones": dirty, "dead_bytes": dead }));
        }
        let most = arguments.zones.unwrap_or(u64::MAX);
        let progress = Progress::steps("cleaning zones", Some(dirty.min(most)));
        let mut asked = 0;
        while asked < most && store.clean_one()? {
            asked += 1;
            progress.set(asked);
        }
        if arguments.zones.is_none() && dead_and_written(store) {
            // What is left lies in the zones that data was going to last.
            store.seal_open_zones()?;
            while store.clean_one()? {
                asked += 1;
                progress.set(asked);
            }
        }
        drop(progress);
        let status = store.clean_status();
        out.line(format_args!(
            "{} cleaned, {} of live data moved, {} given back",
            count(status.zones_cleaned, "zone"),
            human(status.bytes_moved),
            human(status.bytes_freed)
        ))?;
        out.value(&status)
    })
}

/// Whether there are dead bytes other than tails that were never written.
fn dead_and_written(store: &Store) -> bool {
    let space = store.statfs();
    space.dead_bytes > space.unwritten_tail_bytes
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
