//! `store scrub`: verifies all stored data, in this process or in the drive's server.

use super::{Access, mounted};
use crate::args::StoreScrub;
use crate::drive_file;
use crate::errors::{CommandResult, fail};
use crate::output::Output;
use control::api::Scrub;
use control::{Client, Opened};
use std::path::Path;
use std::time::Duration;
use store::{ScrubStatus, Store};
use terminal::{Interrupt, Progress, count, shell_word};

/// Interval between two progress queries to the server.
const ASK: Duration = Duration::from_millis(300);
const READING: &str = "reading all data";

/// `store scrub`.
pub fn scrub(arguments: &StoreScrub, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let changes = !arguments.status;
    let status = match drive_file::open_or_ask(path, changes)? {
        Opened::Drive(_) if arguments.stop => {
            return fail!(
                NotFound, "{}: no server has this drive", path.display();
                "Ctrl-C stops a scrub that a command does"
            );
        }
        Opened::Drive(drive) => {
            let access = if changes { Access::Write } else { Access::Read };
            mounted(drive, access, |store| match arguments.status {
                true => Ok(store.scrub_status()?),
                false => here(store, arguments.deep),
            })?
        }
        Opened::Served(client) if arguments.status => client.scrub()?,
        Opened::Served(client) if arguments.stop => client.order_scrub(Scrub::Stop)?,
        Opened::Served(client) => served(&client, arguments.deep)?,
    };
    for line in status.lines() {
        out.line(format_args!("{line}"))?;
    }
    out.value(&status)?;
    judged(path, &status)
}

fn here(store: &Store, deep: bool) -> CommandResult<ScrubStatus> {
    let interrupt = Interrupt::listen()?;
    let progress = Progress::bytes(
        if deep {
            READING
        } else {
            "reading the metadata"
        },
        Some(0),
    );
    let mut looks = 0_u32;
    let done = store.scrub(deep, |_| {
        looks += 1;
        if looks.is_multiple_of(16)
            && let Ok(status) = store.scrub_status()
        {
            progress.set_of(status.bytes_read, status.bytes_all);
        }
        !interrupt.is_wished()
    })?;
    drop(progress);
    if !done {
        if deep {
            store.scrub_stop()?;
        }
        return fail!(Failed, "stopped before everything was looked at"; "the same command goes on, or a server when the next pass is due");
    }
    Ok(store.scrub_status()?)
}

/// Orders the scrub from the server, and waits until it is done.
fn served(client: &Client, deep: bool) -> CommandResult<ScrubStatus> {
    let before = client.scrub()?;
    client.order_scrub(if deep { Scrub::Data } else { Scrub::Metadata })?;
    let progress = Progress::bytes("the server reads", Some(0));
    loop {
        std::thread::sleep(ASK);
        let status = client.scrub()?;
        progress.set_of(status.bytes_read, status.bytes_all);
        if status.running || status.requested {
            continue;
        }
        drop(progress);
        let time = |s: &ScrubStatus| {
            if deep {
                s.data_micros
            } else {
                s.metadata_micros
            }
        };
        if time(&status) == time(&before) {
            return fail!(
                Failed, "the server's scrub was stopped before everything was looked at";
                "its log says why; the same command goes on"
            );
        }
        return Ok(status);
    }
}

fn judged(path: &Path, status: &ScrubStatus) -> CommandResult {
    let (places, files) = (status.damaged_places, status.metadata_lost);
    if places + files == 0 {
        return Ok(());
    }
    let mut found = Vec::new();
    if places > 0 {
        found.push(format!(
            "{} of bytes of objects",
            count(places, "damaged run")
        ));
    }
    if files > 0 {
        found.push(format!(
            "{} of the metadata damaged in all copies",
            count(files, "part")
        ));
    }
    fail!(
        Damaged, "{}: {}", path.display(), found.join(", ");
        "`zonestore store health {}` says what that is, and which objects have lost what", shell_word(path)
    )
}
