//! Every operation behind every other, the power cut at every command, on drives with and without conventional zones and
//! limits. `ZONESTORE_CRASH_STATES=n` looks at more states at each cut.

#![allow(clippy::unwrap_used)]

mod support;

use device::faults::{Fault, Faults, Plan};
use device::power_cut::CrashLimits;
use device::{PowerCut, ZonedDevice};
use std::io::ErrorKind;
use std::sync::Arc;
use support::Step::{self, *};
use support::{Pair, format, geometry, mount, number, read};
use zeafs::{Error, ZeaFs};
use zone::{Geometry, ZoneCommand};

const OPERATIONS: [(&str, &[Step]); 13] = [
    ("file", &[Create(0), Append(0, 3000), Sync(0)]),
    (
        "file over zones",
        &[Create(2), Append(2, 30_000), Sync(2), Close(2)],
    ),
    (
        "synced appends",
        &[Create(1), Append(1, 450), Sync(1), Append(1, 30), Sync(1)],
    ),
    (
        "synced by another",
        &[Append(1, 900), Close(1), Append(0, 70), Sync(0)],
    ),
    (
        "appends",
        &[Append(1, 2000), Append(0, 2600), Close(0), Append(1, 5)],
    ),
    (
        "rename over",
        &[Create(3), Append(3, 16), Sync(3), Rename(3, 0), SyncNames],
    ),
    (
        "rename",
        &[Rename(1, 4), Append(4, 300), Sync(4), Rename(4, 1)],
    ),
    ("delete", &[Delete(0), Delete(1), SyncNames]),
    ("replace", &[Create(1), Append(1, 700)]),
    (
        "truncate",
        &[
            Truncate(1, 333),
            Append(1, 40),
            Sync(1),
            Truncate(0, 777),
            SyncNames,
        ],
    ),
    (
        "turn over",
        &[Create(3), Append(3, 20_000), Sync(3), Delete(3), SyncNames],
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

fn geometries() -> [Geometry; 3] {
    [geometry(10, 1, 0), geometry(12, 0, 0), geometry(12, 0, 6)]
}

fn goes_on(fs: &ZeaFs) -> Result<(), Error> {
    for name in ["db/000077.log", "new.ldb"] {
        let mut writer = fs.create(name)?;
        for _ in 0..3 {
            writer.append(&[7; 900])?;
            writer.sync()?;
        }
    }
    Ok(())
}

/// Mounts what a cut left, compares it with the model, goes on, and mounts again.
fn judge(image: &Arc<dyn ZonedDevice>, pair: &Pair, told: &dyn Fn(&str) -> String) {
    let fs = mount(image.clone()).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
    if let Some(why) = pair.model.contradiction(&fs) {
        panic!("{}", told(&why));
    }
    goes_on(&fs).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
    drop(fs);
    let fs = mount(image.clone()).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
    for name in ["db/000077.log", "new.ldb"] {
        assert!(read(&fs, name).unwrap() == [7; 2700], "{}", told(name));
    }
}

/// Cuts the power at each command of `steps`; answers how many cuts and states that were.
fn enumerate(
    g: &Geometry,
    name: &str,
    before: &[Step],
    steps: &[Step],
    max_states: usize,
) -> (u64, u64) {
    let (mut cuts, mut states) = (0, 0);
    for point in 1.. {
        let device = Arc::new(PowerCut::new(g.clone()).unwrap());
        format(&*device);
        let mut pair = Pair::new(device.clone()).unwrap();
        for step in before {
            pair.step(*step).unwrap();
        }
        device.cut_after(point);
        let mut through = true;
        for step in steps {
            if let Err(error) = pair.step(*step) {
                assert!(device.is_cut(), "{name}: {step:?}: {error}");
                through = false;
                break;
            }
        }
        cuts += 1;
        let limits = CrashLimits {
            max_states,
            max_choices_per_zone: 12,
            seed: point,
        };
        for state in device.crash_states(limits) {
            states += 1;
            let image: Arc<dyn ZonedDevice> = Arc::new(device.image(&state));
            judge(&image, &pair, &|what| {
                format!("{name}: {what}, cut at command {point}, left {state:?}")
            });
        }
        if through && !device.is_cut() {
            break;
        }
    }
    (cuts, states)
}

#[test]
fn every_pair_of_operations() {
    let max_states = number("ZONESTORE_CRASH_STATES", 8) as usize;
    let (mut cuts, mut states) = (0, 0);
    for g in geometries() {
        for (first, a) in OPERATIONS {
            for (second, b) in OPERATIONS {
                let steps = [a, b].concat();
                let name = format!("{first}, {second}");
                let (c, s) = enumerate(&g, &name, &BEFORE, &steps, max_states);
                cuts += c;
                states += s;
            }
        }
    }
    println!("pairs: {cuts} cuts, {states} states mounted and checked");
    assert!(states > cuts);
}

/// The drive is nearly full, so that live bytes are moved, and zones with them.
#[test]
fn cleaning() {
    // What stays and what goes lie in the same zones.
    const KEPT: [Step; 5] = [Create(1), Create(5), Create(2), Append(2, 3000), Sync(2)];
    let churn = [
        Create(3),
        Append(3, 5000),
        Append(1, 700),
        Sync(1),
        Append(3, 4000),
        Append(5, 600),
        Sync(3),
        Sync(5),
    ];
    let (mut cuts, mut states) = (0, 0);
    for g in [geometry(5, 1, 0), geometry(7, 0, 0), geometry(7, 0, 6)] {
        let mut before = KEPT.to_vec();
        before.extend(churn.repeat(6));
        let device = Arc::new(PowerCut::new(g.clone()).unwrap());
        format(&*device);
        let mut pair = Pair::new(device).unwrap();
        for step in &before {
            pair.step(*step).unwrap();
        }
        // The round that moves something is the one that is cut.
        for round in 0.. {
            assert!(round < 30, "nothing was moved");
            let moved = pair.fs.usage().moved_bytes;
            for step in churn {
                pair.step(step).unwrap();
            }
            if pair.fs.usage().moved_bytes > moved {
                break;
            }
            before.extend(churn);
        }
        let (c, s) = enumerate(&g, "cleaning", &before, &churn, 8);
        cuts += c;
        states += s;
    }
    println!("cleaning: {cuts} cuts, {states} states mounted and checked");
}

/// Frames fill the area, and the next checkpoint goes into the other one; the cut walks over that, and over a mount
/// behind it.
#[test]
fn checkpoints_and_mounting() {
    let (mut cuts, mut states) = (0, 0);
    for g in geometries() {
        // So many frames of a block that the next ones find no room.
        let room = if g.conventional_zones > 0 { 32 } else { 48 };
        let mut before = BEFORE.to_vec();
        let frames = (room - 10) / 2;
        before.extend([Append(1, 20), Sync(1)].repeat(frames));
        let steps = [
            Append(1, 20),
            Sync(1),
            Rename(1, 4),
            SyncNames,
            Rename(4, 1),
            SyncNames,
        ]
        .repeat(9);
        let (c, s) = enumerate(&g, "checkpoints", &before, &steps, 10);
        cuts += c;
        states += s;
    }
    for g in geometries() {
        for point in 1.. {
            let device = Arc::new(PowerCut::new(g.clone()).unwrap());
            format(&*device);
            let mut pair = Pair::new(device.clone()).unwrap();
            for step in BEFORE.into_iter().chain([
                Create(3),
                Append(3, 9000),
                Rename(0, 4),
                Sync(1),
                Delete(3),
            ]) {
                pair.step(step).unwrap();
            }
            // The mount after a cut is cut too.
            device.cut_after(0);
            let again = device.crash_states(CrashLimits::default());
            let mut any = false;
            for state in &again {
                let second = Arc::new(device.restart(state));
                second.cut_after(point);
                let _ = mount(second.clone());
                any |= second.is_cut();
                cuts += 1;
                for left in second.crash_states(CrashLimits {
                    max_states: 12,
                    ..CrashLimits::default()
                }) {
                    states += 1;
                    let image: Arc<dyn ZonedDevice> = Arc::new(second.image(&left));
                    judge(&image, &pair, &|what| {
                        format!("mounting: {what}, cut {point}, {left:?}")
                    });
                }
            }
            if !any {
                break;
            }
        }
    }
    println!("checkpoints: {cuts} cuts, {states} states mounted and checked");
}

/// The process ends at any command, and not the drive: what the drive has in its cache the next mount sees, and it may
/// count on that only behind a flush. The power is cut at each command of that mount.
#[test]
fn a_process_that_is_killed_before_the_power_is_cut() {
    let steps = [
        Append(1, 500),
        Sync(1),
        Delete(0),
        Create(3),
        Append(3, 3000),
        Sync(3),
        Delete(1),
        SyncNames,
    ];
    let (mut cuts, mut states) = (0, 0);
    for g in geometries() {
        for end in 1.. {
            let mut killed = false;
            for point in 1.. {
                let device = Arc::new(PowerCut::new(g.clone()).unwrap());
                format(&*device);
                let faults = Arc::new(Faults::new(device.clone()));
                let mut pair = Pair::new(faults.clone()).unwrap();
                for step in BEFORE {
                    pair.step(step).unwrap();
                }
                let kill = |command| Plan::from(command, end, Fault::Io(ErrorKind::Other));
                for command in [ZoneCommand::Flush, ZoneCommand::Reset] {
                    faults.add(kill(command));
                }
                killed = steps.iter().any(|step| pair.step(*step).is_err());
                device.cut_after(point);
                let _ = mount(device.clone());
                cuts += 1;
                let limits = CrashLimits {
                    max_states: 12,
                    ..CrashLimits::default()
                };
                for left in device.crash_states(limits) {
                    states += 1;
                    let image: Arc<dyn ZonedDevice> = Arc::new(device.image(&left));
                    judge(&image, &pair, &|what| {
                        format!(
                            "killed at {end}: {what}, cut at command {point} of the mount, left {left:?}"
                        )
                    });
                }
                if !device.is_cut() {
                    break;
                }
            }
            if !killed {
                break;
            }
        }
    }
    println!("killed: {cuts} cuts, {states} states mounted and checked");
}
