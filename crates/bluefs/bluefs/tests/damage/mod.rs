//! Every block of short histories is damaged: a bit is flipped, the block is zeroed, exchanged with another,
//! overwritten with a copy of another, or gets back its earlier content. Then all acknowledged data is there, or a
//! mount for writing is refused without a write, and a check says why. Only the very last step before an unclean stop
//! may be missing, and only where no write pointer proves it: no later mark says that it was durable.

mod accept;
mod agreed;
mod both_copies;
mod copies;
mod counted;
mod drives;
mod examine;
mod journal_counted;
mod torn;
mod turned;
mod unreadable;
mod ways;

use crate::support;
use crate::support::Step::{self, *};
use crate::support::{
    NAMES, Pair, format_copies, geometry, mount, mount_in, pool as pool_of, read,
};
use bluefs::{BlueFs, Error, Loss, MountOptions, Role};
use device::{MemoryDrive, ZonedDevice};
use drives::{BLOCK, block, changed, image};
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneId, ZoneKind};

/// Groups of steps, each durable at its end.
type History<'a> = &'a [&'a [Step]];

const LOGS: History<'static> = &[
    &[Create(1), Append(1, 450), Sync(1)],
    &[Append(1, 450), Sync(1)],
    &[Append(1, 1700), Sync(1)],
    &[Create(4), Append(4, 900), Sync(4)],
    &[Append(1, 30), Sync(1)],
    &[Append(4, 700), Sync(4)],
    &[Append(1, 30), Sync(1)],
    &[Append(1, 30), Sync(1)],
];

/// A log continues in other zones and is truncated; another log takes over; an SST is written and moved.
const ZONES: History<'static> = &[
    &[Create(1), Append(1, 20_000), Sync(1)],
    &[Append(1, 15_000), Sync(1)],
    &[Create(0), Append(0, 30_000), Sync(0), Close(0)],
    &[Truncate(1, 34_000), Append(1, 1000), Sync(1)],
    &[Append(1, 2000), Sync(1), Close(1)],
    &[Create(3), Append(3, 2000), Sync(3)],
    &[Append(3, 2000), Sync(3)],
    &[Rename(0, 2), SyncNames],
    &[Delete(1), SyncNames],
    &[Append(3, 100), Sync(3)],
];

/// Changes of names and SSTs, with the journal written last.
const NAMES_AND_TABLES: History<'static> = &[
    &[Create(1), Append(1, 3000), Sync(1)],
    &[Create(2), Append(2, 16), Sync(2)],
    &[Rename(2, 5), SyncNames],
    &[Append(1, 3000), Sync(1), Close(1)],
    &[Create(2), Append(2, 20), Sync(2)],
    &[Rename(2, 5), SyncNames],
    &[Link(5, 0), SyncNames],
];

/// A clean and an unclean mount.
const MOUNTS: History<'static> = &[
    &[Create(1), Append(1, 3000), Sync(1)],
    &[Remount],
    &[Append(1, 600), Sync(1)],
    &[Kill],
    &[Append(1, 600), Sync(1)],
    &[Create(0), Append(0, 5000), Sync(0)],
    &[Append(1, 600), Sync(1)],
];

/// All files and their contents.
fn contents(fs: &BlueFs) -> BTreeMap<&'static str, Vec<u8>> {
    readable(fs).unwrap()
}

/// All files and their contents, or the error of the first that cannot be read.
fn readable(fs: &BlueFs) -> Result<BTreeMap<&'static str, Vec<u8>>, Error> {
    let there = NAMES.into_iter().filter(|name| fs.exists(name));
    there.map(|name| Ok((name, read(fs, name)?))).collect()
}

const HISTORIES: [History<'static>; 4] = [LOGS, ZONES, NAMES_AND_TABLES, MOUNTS];

#[derive(Default, Debug)]
struct Seen {
    refused: u32,
    all_there: u32,
    reported: u32,
    last_step_missing: u32,
    /// Number of files that a repair lost without naming them.
    named_by_nothing: u32,
}

/// A history that was carried out completely.
struct Past {
    device: Arc<MemoryDrive>,
    /// The drive after each step.
    snapshots: Vec<MemoryDrive>,
    /// All files at the end. `before`: the files after each earlier step, the latest first.
    all: BTreeMap<&'static str, Vec<u8>>,
    before: Vec<BTreeMap<&'static str, Vec<u8>>>,
    /// All blocks that were ever written.
    blocks: Vec<ZoneAddress>,
    clean: bool,
    name: String,
}

fn everywhere(name: &str, history: History<'_>) {
    for (conventional, active) in [(0, 0), (0, 6), (4, 0), (40, 0)] {
        for clean in [false, true] {
            let past = Past::new(history, conventional, active, clean);
            let (mut damaged, mut misplaced) = (Seen::default(), Seen::default());
            past.flip_and_zero(&mut damaged);
            past.misplace(1, &mut misplaced);
            println!(
                "{name}, {conventional} conventional, clean {clean}: {damaged:?}, {misplaced:?}"
            );
            assert!(damaged.refused > 0 && misplaced.refused > 0);
            // The last step is a record or frame of a few blocks.
            assert!(
                clean || conventional == 0 || damaged.last_step_missing > 0,
                "the last step is covered by no mark"
            );
        }
    }
}

#[test]
fn in_a_log_that_was_written_before_the_journal_was_compacted() {
    let mut history = vec![
        vec![Create(1), Append(1, 3000), Sync(1)],
        vec![Append(1, 300), Sync(1)],
        vec![Create(0), Sync(0), Close(0)],
    ];
    for _ in 0..26 {
        history.extend([vec![Rename(0, 2), SyncNames], vec![Rename(2, 0), SyncNames]]);
    }
    let history: Vec<&[Step]> = history.iter().map(Vec::as_slice).collect();
    for conventional in [0, 40] {
        for clean in [false, true] {
            let past = Past::new(&history, conventional, 0, clean);
            let mut seen = Seen::default();
            past.flip_and_zero(&mut seen);
            past.misplace(2, &mut seen);
            println!("compacted, {conventional} conventional, clean {clean}: {seen:?}");
            assert!(seen.refused > 0);
        }
    }
}

#[test]
fn in_two_logs() {
    everywhere("two logs", LOGS);
}

#[test]
fn in_logs_over_zones() {
    everywhere("logs over zones", ZONES);
}

#[test]
fn in_names_and_tables() {
    everywhere("names and tables", NAMES_AND_TABLES);
}

#[test]
fn over_mounts() {
    everywhere("mounts", MOUNTS);
}
