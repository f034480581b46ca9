//! Every block of short histories is damaged: a bit is changed, the block is zeroed, swapped with
//! another one, overwritten with a copy of another one, or goes back to what it held before. What was
//! acknowledged is there, or a writable mount is refused without a write, and a check says why. Only
//! after an unclean stop may the very last step be missing: nothing behind it says that it was durable.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::{BlueFs, Error, Loss, MountOptions, Role};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::Step::{self, *};
use support::{NAMES, Pair, format, geometry, mount, mount_in, pool as pool_of, read};
use zone::{ZoneAddress, ZoneId, ZoneKind};

/// Steps, each durable at its end.
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

/// A log goes on in other zones, and is cut; another one takes over; an SST is written and moved.
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

/// Names and SSTs, the journal last.
const NAMES_AND_TABLES: History<'static> = &[
    &[Create(1), Append(1, 3000), Sync(1)],
    &[Create(2), Append(2, 16), Sync(2)],
    &[Rename(2, 5), SyncNames],
    &[Append(1, 3000), Sync(1), Close(1)],
    &[Create(2), Append(2, 20), Sync(2)],
    &[Rename(2, 5), SyncNames],
    &[Link(5, 0), SyncNames],
];

/// Over a mount, a clean and an unclean one.
const MOUNTS: History<'static> = &[
    &[Create(1), Append(1, 3000), Sync(1)],
    &[Remount],
    &[Append(1, 600), Sync(1)],
    &[Kill],
    &[Append(1, 600), Sync(1)],
    &[Create(0), Append(0, 5000), Sync(0)],
    &[Append(1, 600), Sync(1)],
];

/// All files, with what is in them.
fn contents(fs: &BlueFs) -> BTreeMap<&'static str, Vec<u8>> {
    readable(fs).unwrap()
}

/// All files, or why one of them cannot be read.
fn readable(fs: &BlueFs) -> Result<BTreeMap<&'static str, Vec<u8>>, Error> {
    let there = NAMES.into_iter().filter(|name| fs.exists(name));
    there.map(|name| Ok((name, read(fs, name)?))).collect()
}

/// Bytes of a block of these drives.
const BLOCK: usize = 512;

fn block(device: &MemoryDrive, at: ZoneAddress) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK];
    device
        .read(device.geometry().absolute(at), &mut bytes)
        .unwrap();
    bytes
}

/// The drive with other bytes in some of its blocks.
fn changed(device: &MemoryDrive, blocks: &[(ZoneAddress, Vec<u8>)]) -> Arc<MemoryDrive> {
    let copy = device.snapshot();
    let g = copy.geometry().clone();
    for (at, bytes) in blocks {
        if g.kind(at.zone) == ZoneKind::Conventional {
            copy.write(g.absolute(*at), bytes).unwrap();
            continue;
        }
        let end = copy.report_zone(at.zone).unwrap().write_pointer;
        let mut zone = vec![0; end as usize];
        copy.read(g.start(at.zone), &mut zone).unwrap();
        zone[at.offset as usize..][..BLOCK].copy_from_slice(bytes);
        copy.reset(at.zone).unwrap();
        copy.write(g.start(at.zone), &zone).unwrap();
    }
    Arc::new(copy)
}

fn image(device: &MemoryDrive) -> Vec<Vec<u8>> {
    let g = device.geometry();
    let zone = |zone: ZoneId| {
        let mut bytes = vec![0; g.capacity(zone) as usize];
        device.read(g.start(zone), &mut bytes).unwrap();
        bytes
    };
    g.zones().map(zone).collect()
}

#[derive(Default, Debug)]
struct Seen {
    refused: u32,
    all_there: u32,
    reported: u32,
    last_step_missing: u32,
    /// Files that a repair lost without naming them.
    named_by_nothing: u32,
}

/// A history that came to its end.
struct Past {
    device: Arc<MemoryDrive>,
    /// The drive after each step.
    snapshots: Vec<MemoryDrive>,
    /// All files at the end, and after each step but the last, the newest first.
    all: BTreeMap<&'static str, Vec<u8>>,
    before: Vec<BTreeMap<&'static str, Vec<u8>>>,
    /// All blocks that anything was written to.
    blocks: Vec<ZoneAddress>,
    clean: bool,
    name: String,
}

impl Past {
    fn new(history: History<'_>, conventional: u32, active: u32, clean: bool) -> Self {
        let device = Arc::new(MemoryDrive::new(geometry(40, conventional, active)).unwrap());
        format(&*device, Role::Alone);
        let mut pair = Pair::new(device.clone()).unwrap();
        let mut before = Vec::new();
        let mut snapshots = Vec::new();
        for steps in history {
            before.insert(0, contents(&pair.fs));
            for step in *steps {
                pair.step(*step).unwrap();
            }
            snapshots.push(device.snapshot());
        }
        let all = contents(&pair.fs);
        if clean {
            pair.fs.unmount().unwrap();
        }
        let mut blocks = Vec::new();
        for (zone, _) in pair.fs.zones() {
            let report = device.report_zone(zone).unwrap();
            let used = if report.write_pointer_valid() {
                report.write_pointer
            } else {
                report.capacity
            };
            let places = (0..used).step_by(BLOCK);
            let places = places.map(|offset| ZoneAddress::new(zone, offset));
            blocks.extend(places.filter(|at| block(&device, *at) != [0; BLOCK]));
        }
        Self {
            device,
            snapshots,
            all,
            before,
            blocks,
            clean,
            name: format!("{history:?} {conventional} {active} {clean}"),
        }
    }

    /// What is left after damage is right, or damage is said.
    fn examine(&self, what: &str, blocks: &[(ZoneAddress, Vec<u8>)], seen: &mut Seen) {
        let damaged = changed(&self.device, blocks);
        let told = format!("{}: {what}", self.name);
        let untouched = image(&damaged);
        let fs = match mount(damaged.clone()) {
            Ok(fs) => fs,
            Err(
                Error::Corrupt { .. } | Error::JournalDamaged { .. } | Error::LogDamaged { .. },
            ) => {
                seen.refused += 1;
                assert!(image(&damaged) == untouched, "{told}: written to");
                return self.accept(&damaged, &untouched, blocks, seen, &told);
            }
            Err(error) => panic!("{told}: {error}"),
        };
        let found = match readable(&fs) {
            Ok(found) => found,
            // A table that is read whole is compared with its checksum.
            Err(Error::Corrupt { .. }) => {
                seen.reported += 1;
                assert!(!fs.check(true).unwrap().is_clean(), "{told}");
                return;
            }
            Err(error) => panic!("{told}: {error}"),
        };
        if found == self.all {
            seen.all_there += 1;
        } else if !fs.check(true).unwrap().is_clean() {
            seen.reported += 1;
        } else {
            seen.last_step_missing += 1;
            let sizes = |files: &BTreeMap<&str, Vec<u8>>| -> Vec<_> {
                files
                    .iter()
                    .map(|(n, f)| (n.to_string(), f.len()))
                    .collect()
            };
            // No mark covers the last step. Where it is damaged as well, nothing may be left that
            // covers the one before.
            let earlier = &self.snapshots[self.snapshots.len() - 2];
            let is_last = |at: &ZoneAddress| block(earlier, *at) != block(&self.device, *at);
            let may_miss = blocks
                .len()
                .min(1 + blocks.iter().filter(|(at, _)| is_last(at)).count());
            assert!(
                !self.clean && self.before[..may_miss].contains(&found),
                "{told}: {:?} of {:?}",
                sizes(&found),
                sizes(&self.all)
            );
        }
    }

    fn flip_and_zero(&self, seen: &mut Seen) {
        for at in &self.blocks {
            let good = block(&self.device, *at);
            let begins = [&b"BFJL"[..], b"BFWR", b"ZSBL"]
                .iter()
                .any(|m| good.starts_with(m));
            let all_fields = &[0, 5, 9, 17, 25, 29, 33, 41, 49, 57, 65, 69, 73, 81, 300];
            let bytes: &[usize] = if begins { all_fields } else { &[9] };
            for &byte in bytes {
                let mut bad = good.clone();
                bad[byte] ^= 1 << (byte % 8);
                self.examine(&format!("{at} byte {byte}"), &[(*at, bad)], seen);
            }
            self.examine(&format!("{at} zeroed"), &[(*at, vec![0; BLOCK])], seen);
        }
    }

    /// Blocks in the places of others, those of logs, of the journal and of SSTs alike, and blocks
    /// as they were earlier.
    fn misplace(&self, seed: u64, seen: &mut Seen) {
        let mut random = seed + 2 * support::seed();
        for (index, at) in self.blocks.iter().enumerate() {
            let good = block(&self.device, *at);
            let neighbour = self.blocks.get(index + 1).copied();
            let others = (0..4).map(|_| {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                self.blocks[(random >> 33) as usize % self.blocks.len()]
            });
            for other in neighbour.into_iter().chain(others) {
                let bytes = block(&self.device, other);
                if bytes == good {
                    continue;
                }
                let copied = [(*at, bytes.clone())];
                self.examine(&format!("{other} copied over {at}"), &copied, seen);
                // Without the superblock of an epoch, only its second frame tells of it.
                if [&good, &bytes].iter().any(|b| b.starts_with(b"ZSBL")) {
                    continue;
                }
                let swapped = [(*at, bytes), (other, good.clone())];
                self.examine(&format!("{at} and {other} swapped"), &swapped, seen);
            }
            let mut earlier: Vec<_> = self.snapshots.iter().map(|s| block(s, *at)).collect();
            earlier.dedup();
            for bytes in earlier.into_iter().filter(|bytes| *bytes != good) {
                self.examine(&format!("{at} as it was"), &[(*at, bytes)], seen);
            }
        }
    }
}

/// What a repair names when it cannot know all that a damaged frame held.
const NOT_ALL_IS_KNOWN: &str = "the file system";

impl Past {
    /// A damaged drive can be read and is reported; damage that is accepted once is forgotten. What is not
    /// named as lost is there, apart from what only the damaged frame knew of.
    fn accept(
        &self,
        damaged: &Arc<MemoryDrive>,
        untouched: &[Vec<u8>],
        blocks: &[(ZoneAddress, Vec<u8>)],
        seen: &mut Seen,
        told: &str,
    ) {
        let read_only = MountOptions {
            read_only: true,
            ..MountOptions::default()
        };
        let refused = BlueFs::mount(damaged.clone(), pool_of(&**damaged), read_only);
        assert!(refused.is_err(), "{told}");
        let pool = pool_of(&**damaged);
        let fs = mount_in(damaged.clone(), pool, true).unwrap();
        assert!(!fs.check(false).unwrap().is_clean(), "{told}");
        let lost = fs.losses().unwrap();
        assert!(image(damaged) == untouched, "{told}: written to");
        drop(fs);
        let accepting = MountOptions {
            accept_damage: true,
            ..MountOptions::default()
        };
        let pool = pool_of(&**damaged);
        let fs = BlueFs::mount(damaged.clone(), pool, accepting).unwrap();
        let told = format!("{told}: {lost:?}");
        let check = fs.check(false).unwrap();
        assert!(check.is_clean(), "{told}: accepting {check:?}");
        drop(fs);
        let fs = mount(damaged.clone()).unwrap();
        let check = fs.check(false).unwrap();
        assert!(check.is_clean(), "{told}: afterwards {check:?}");
        self.is_right_or_named(&fs, &lost, blocks, seen, &told);
    }

    fn is_right_or_named(
        &self,
        fs: &BlueFs,
        lost: &[Loss],
        blocks: &[(ZoneAddress, Vec<u8>)],
        seen: &mut Seen,
        told: &str,
    ) {
        let is_named = |path: &str| lost.iter().any(|loss| loss.path == path);
        let states = || self.before.iter().chain([&self.all]);
        let mut unnamed = 0;
        for path in NAMES {
            let found = fs.exists(path).then(|| read(fs, path));
            if let Some(Err(error)) = &found {
                // Bytes of a table; a check that reads says so.
                assert!(matches!(error, Error::Corrupt { .. }), "{told}: {error}");
                assert!(!fs.check(true).unwrap().is_clean(), "{told}");
                continue;
            }
            let found = found.map(Result::unwrap);
            if found.as_ref() == self.all.get(path) {
                continue;
            }
            if let Some(found) = &found {
                // Under this name or an earlier one.
                let mut was = states().flat_map(BTreeMap::values);
                assert!(was.any(|was| was.starts_with(found)), "{told}: {path}");
            }
            // No mark covers the last step.
            let last = self.before.first().filter(|_| !self.clean);
            if is_named(path) || last.is_some_and(|last| last.get(path) == found.as_ref()) {
                continue;
            }
            // Records of a log tell of it without the journal.
            let is_known_of = |loss: &Loss| loss.path.contains("whose name is");
            let is_log = !path.ends_with("sst") && !path.ends_with("CURRENT");
            let was_shorter = found.is_some() && self.all.contains_key(path);
            if blocks.len() == 1 && is_log {
                assert!(!was_shorter, "{told}: {path} is shorter");
                let is_gone = found.is_none();
                assert!(!is_gone || lost.iter().any(is_known_of), "{told}: {path}");
            }
            unnamed += 1;
        }
        assert!(unnamed == 0 || is_named(NOT_ALL_IS_KNOWN), "{told}");
        seen.named_by_nothing += unnamed;
    }
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
            // One record or frame of a few blocks.
            assert!(
                clean || damaged.last_step_missing > 0,
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
