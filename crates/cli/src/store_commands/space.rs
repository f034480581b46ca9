//! `store mkfs|df|clean`: commands on the whole store.

use super::{Access, make, with_view};
use crate::args::{Mkfs, StoreClean, Tolerance};
use crate::drive_file;
use crate::errors::{CommandResult, fail};
use crate::output::{Output, accept_damage};
use control::api::Action;
use control::{Opened, StoreView};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use store::{CleanerChange, Name};
use terminal::{Progress, count, human};

/// `store mkfs`.
pub fn mkfs(new: &Mkfs, out: &mut Output) -> CommandResult {
    let path = &new.drive;
    let drive = Arc::new(drive_file::open(path)?);
    let (uuid, made) = make(drive, new.force, new.metadata_copies)?;
    let uuid = Name::from(&uuid[..]).hex();
    out.line(format_args!("{}: an empty store, {uuid}", path.display()))?;
    match made.one_copy {
        Some(why) => out.line(format_args!("metadata is in one copy: {why}"))?,
        None if made.metadata_copies == 2 => {
            out.line(format_args!(
                "metadata is in two copies, in different zones"
            ))?;
        }
        None => {}
    }
    out.value(&json!({
        "path": path.display().to_string(), "uuid": uuid, "metadata_copies": made.metadata_copies,
    }))
}

/// `store df`.
pub fn df(path: &Path, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_view(path, damage.into(), |store| {
        // Queried first: the other queries may have to wait for the same commands.
        let waiting = store.waiting()?;
        for command in &waiting {
            out.line(format_args!("{command}"))?;
        }
        accept_damage(&store.damage()?, out);
        out.flush()?;
        let space = store.space()?;
        out.table(&[0, 3], &space.rows())?;
        for line in space.lines() {
            out.line(format_args!("{line}"))?;
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

/// `store clean`.
pub fn clean(arguments: &StoreClean, out: &mut Output) -> CommandResult {
    let change = arguments.change();
    if arguments.start || arguments.stop || change != CleanerChange::default() {
        return order(arguments, &change, out);
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
        for line in did.lines() {
            out.line(format_args!("{line}"))?;
        }
        out.value(&did)?;
        if did.stopped {
            return fail!(
                Failed, "stopped by `store clean --stop`; {} with dead bytes left", count(did.dirty_zones.into(), "zone");
                "what was cleaned stays so; the same command goes on"
            );
        }
        Ok(())
    })
}

/// `store clean --status`.
fn clean_status(store: &StoreView, out: &mut Output) -> CommandResult {
    let status = store.cleaner()?;
    let dead = store.space()?.dead_bytes;
    out.line(format_args!("{}; {} dead", status.to_clean(), human(dead)))?;
    if matches!(store, StoreView::Served(_)) {
        for line in status.lines() {
            out.line(format_args!("{line}"))?;
        }
    }
    let mut value = serde_json::to_value(status)?;
    value["dead_bytes"] = dead.into();
    out.value(&value)
}

/// `store clean --start`, `--stop`, `--pace` and the like: controls the cleaner of a server.
fn order(arguments: &StoreClean, change: &CleanerChange, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let Opened::Served(client) = drive_file::open_or_ask(path, false)? else {
        return fail!(
            NotFound, "{}: no server has this drive", path.display();
            "`store clean` without these options cleans at once; `serve --clean-pace` and the like say how a \
             server begins"
        );
    };
    // An older server does not support changes.
    let mut status = match *change == CleanerChange::default() {
        true => client.cleaner()?,
        false => client.change_cleaner(change)?,
    };
    out.line(format_args!("{}", status.held_to()))?;
    if arguments.start {
        status = client.clean(Action::Start, None)?.status;
        out.line(format_args!(
            "cleaning in the background; --status says how far it is"
        ))?;
    } else if arguments.stop {
        status = client.clean(Action::Stop, None)?.status;
        out.line(format_args!(
            "the cleaner stops, until --start; so does any other `store clean` under way"
        ))?;
    }
    out.value(&status)
}
