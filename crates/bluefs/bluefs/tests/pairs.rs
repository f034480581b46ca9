//! Every operation after every other, and some triples of operations, with the power cut at every command, on every
//! kind of drive. `ZONESTORE_CRASH_STATES=n` checks more states for each cut, `ZONESTORE_CRASH_TRIPLES=1` all triples.

use crate::support;
use crate::support::Step::{self, *};
use crate::support::{Pair, assert_clean, format, geometry, mount, read};
use bluefs::Role;
use device::power_cut::CrashLimits;
use device::{PowerCut, ZonedDevice};
use std::sync::Arc;
use zone::Geometry;

const OPERATIONS: [(&str, &[Step]); 16] = [
    ("plain file", &[Create(0), Append(0, 3000), Sync(0)]),
    (
        "file over zones",
        &[Create(0), Append(0, 30_000), Sync(0), Close(0)],
    ),
    (
        "synced log",
        &[Create(1), Append(1, 450), Sync(1), Append(1, 30), Sync(1)],
    ),
    (
        "synced appends",
        &[Append(1, 900), Sync(1), Append(0, 700), Sync(0)],
    ),
    (
        "appends",
        &[
            Append(1, 2000),
            RangeSync(1),
            Close(1),
            Append(0, 2000),
            Close(0),
        ],
    ),
    ("manifest", &[Create(4), Append(4, 5000), Sync(4)]),
    (
        "rename over",
        &[Create(2), Append(2, 16), Sync(2), Rename(2, 5), SyncNames],
    ),
    (
        "rename a log",
        &[Rename(1, 3), Append(3, 300), Sync(3), Rename(3, 1)],
    ),
    ("link", &[Link(0, 2), SyncNames, Delete(0)]),
    ("delete", &[Delete(0), Delete(1), SyncNames]),
    (
        "truncate",
        &[
            Truncate(1, 333),
            Append(1, 40),
            Sync(1),
            Truncate(0, 777),
            Sync(0),
        ],
    ),
    (
        "turn over",
        &[Create(3), Append(3, 20_000), Sync(3), Delete(3), SyncNames],
    ),
    (
        "moved ahead of need",
        &[
            Create(2),
            Append(2, 30_000),
            Sync(2),
            Truncate(2, 2000),
            SyncNames,
            Clean,
            Append(2, 600),
            Sync(2),
        ],
    ),
    (
        "log moved ahead of need",
        &[
            Create(4),
            Append(4, 40_000),
            Sync(4),
            Truncate(4, 3000),
            Sync(4),
            Clean,
            Append(4, 500),
            Sync(4),
        ],
    ),
    ("clean restart", &[Remount]),
    ("unclean restart", &[Kill]),
];

const BEFORE: [Step; 8] = [
    Create(0),
    Append(0, 1500),
    Sync(0),
    Create(1),
    Append(1, 800),
    Sync(1),
    Create(5),
    Sync(5),
];

fn number(name: &str, default: usize) -> usize {
    std::env::var(name)
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(default)
}

fn geometries() -> [Geometry; 3] {
    [geometry(24, 4, 0), geometry(24, 0, 0), geometry(24, 0, 6)]
}

/// Cuts the power at each command of `steps`. Returns the number of cuts and of states. Cuts during the first `seen`
/// steps are skipped, for they have been checked.
fn enumerate(
    g: &Geometry,
    name: &str,
    steps: &[Step],
    seen: usize,
    max_states: usize,
) -> (u64, u64) {
    let (mut points, mut states) = (0, 0);
    for point in 1.. {
        let device = Arc::new(PowerCut::new(g.clone()).unwrap());
        format(&*device, Role::Alone);
        let mut pair = Pair::new(device.clone()).unwrap();
        for step in BEFORE {
            pair.step(step).unwrap();
        }
        device.cut_after(point);
        let mut done = 0;
        for step in steps {
            if let Err(error) = pair.step(*step) {
                assert!(device.is_cut(), "{name}: {step:?}: {error}");
                break;
            }
            done += 1;
        }
        if done < seen {
            continue;
        }
        points += 1;
        let limits = CrashLimits {
            max_states,
            max_choices_per_zone: 12,
            seed: point + (support::seed() << 32),
        };
        for state in device.crash_states(limits) {
            states += 1;
            let told =
                |what: &str| format!("{name}: {what}, cut at command {point}, left {state:?}");
            let image = Arc::new(device.image(&state));
            let fs = mount(image.clone()).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
            if let Some(why) = pair.model.contradiction(&fs) {
                panic!("{}", told(&why));
            }
            assert_clean(&fs);
            goes_on(&fs).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
            drop(fs);
            let fs = mount(image).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
            for name in ["/000077.log", "/new.sst"] {
                assert!(read(&fs, name).unwrap() == [7; 2700], "{}", told(name));
            }
            assert_clean(&fs);
        }
        if done == steps.len() && !device.is_cut() {
            break;
        }
    }
    (points, states)
}

fn goes_on(fs: &bluefs::BlueFs) -> Result<(), bluefs::Error> {
    for name in ["/000077.log", "/new.sst"] {
        let mut writer = fs.create(name)?;
        for _ in 0..3 {
            writer.append(&[7; 900])?;
            writer.sync()?;
        }
    }
    Ok(())
}

#[test]
fn every_pair_of_operations() {
    let max_states = number("ZONESTORE_CRASH_STATES", 8);
    let (mut points, mut states) = (0, 0);
    for g in geometries() {
        for (first, a) in OPERATIONS {
            for (second, b) in OPERATIONS {
                let steps = [a, b].concat();
                let name = format!("{first}, {second}");
                // Cuts during the first operation are checked with the first of its pairs.
                let seen = if second == OPERATIONS[0].0 {
                    0
                } else {
                    a.len()
                };
                let (p, s) = enumerate(&g, &name, &steps, seen, max_states);
                points += p;
                states += s;
            }
        }
    }
    println!("pairs: {points} crash points, {states} states mounted and checked");
    assert!(states > points);
}

/// After a power cut, zones that had been full may be partly written and so active: more of them than may be active
/// beside the journal and a superblock.
#[test]
fn zones_that_had_been_full() {
    for (first, a) in OPERATIONS.iter().filter(|o| o.0 == "rename over") {
        for (second, b) in OPERATIONS
            .iter()
            .filter(|o| o.0 == "log moved ahead of need")
        {
            let steps = [*a, *b].concat();
            for g in geometries() {
                let (points, _) = enumerate(&g, &format!("{first}, {second}"), &steps, 0, 40);
                assert!(points > 0);
            }
        }
    }
}

#[test]
fn some_threes_of_operations() {
    let all = number("ZONESTORE_CRASH_TRIPLES", 0) > 0;
    let (mut points, mut states, mut count) = (0, 0, 0usize);
    for (first, a) in OPERATIONS {
        for (second, b) in OPERATIONS {
            for (third, c) in OPERATIONS {
                count += 1;
                // 31 shares no factor with the number of operations, so that each operation comes in each position.
                if !all && !count.is_multiple_of(31) {
                    continue;
                }
                let g = &geometries()[count % 3];
                let steps = [a, b, c].concat();
                let name = format!("{first}, {second}, {third}");
                let (p, s) = enumerate(g, &name, &steps, 0, number("ZONESTORE_CRASH_STATES", 8));
                points += p;
                states += s;
            }
        }
    }
    println!("threes: {points} crash points, {states} states mounted and checked");
}

#[test]
fn compaction_of_the_journal_and_unmounting() {
    // With zones of 1 MiB and blocks of 4 KiB, every synced file adds a block to the journal, which is compacted after
    // some 250. The power is cut around that and around an unmount.
    let (mut points, mut states) = (0, 0);
    for (conventional, active) in [(4, 0), (0, 0), (0, 6)] {
        let mut g = geometry(24, conventional, active);
        (g.block_size, g.zone_size, g.zone_capacity) = (4096, 1 << 20, 1 << 20);
        let mut compacted = 0;
        for point in 0..24 {
            let device = Arc::new(PowerCut::new(g.clone()).unwrap());
            format(&*device, Role::Alone);
            let mut pair = Pair::new(device.clone()).unwrap();
            pair.step(Create(0)).unwrap();
            let generation = pair.fs.info().generation;
            // A compaction writes the superblock last; the cut is tried at every command up to that.
            let mut cut = false;
            for i in 0..400usize {
                if !cut && pair.fs.statistics().journal_bytes_written >= (1 << 20) - 4096 * 3 {
                    cut = true;
                    device.cut_after(point + 1);
                }
                if pair
                    .step(Append(0, 1 + i % 50))
                    .and_then(|()| pair.step(Sync(0)))
                    .is_err()
                {
                    break;
                }
                compacted += u32::from(pair.fs.info().generation > generation);
            }
            if !device.is_cut() {
                let _ = pair.fs.unmount();
            }
            points += 1;
            for state in device.crash_states(CrashLimits {
                max_states: 12,
                ..CrashLimits::default()
            }) {
                states += 1;
                let image: Arc<dyn ZonedDevice> = Arc::new(device.image(&state));
                let fs = mount(image).unwrap_or_else(|e| panic!("{e}, cut {point}, {state:?}"));
                let why = pair.model.contradiction(&fs);
                assert!(why.is_none(), "{why:?}, cut {point}, {state:?}");
                assert_clean(&fs);
            }
        }
        assert!(compacted > 0, "the cut never came behind the compaction");
    }
    println!("compaction: {points} crash points, {states} states mounted and checked");
}
