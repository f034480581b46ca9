//! Every operation after every other, with the power cut at every command, on drives with and without conventional
//! zones and limits of active zones. `ZONESTORE_CRASH_STATES=n` checks more states for each cut.

use crate::support::Step::{self, *};
use crate::support::{Pair, format, geometry, mount, number, read};
use device::changed::{Change, Changed};
use device::faults::{Fault, Faults, Plan};
use device::power_cut::CrashLimits;
use device::{Keeps, MemoryDrive, PowerCut, ZonedDevice};
use std::io::ErrorKind;
use std::sync::Arc;
use zeafs::{Error, ZeaFs};
use zone::{Geometry, ZoneAddress, ZoneCommand, ZoneId};

const OPERATIONS: [(&str, &[Step]); 14] = [
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
    // One frame names extents whose zones are reset right after it.
    (
        "come and gone",
        &[Create(3), Append(3, 50_000), Close(3), Delete(3), SyncNames],
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

/// Mounts a state that a cut left, compares it with the model, writes more, and mounts again.
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

/// Carries out `before` and then `steps`, with the power cut at command `point` of the latter. Returns the drive, the
/// pair, whether the cut came, and how many steps were completed.
fn cut(
    g: &Geometry,
    before: &[Step],
    steps: &[Step],
    point: u64,
    worn: &dyn Fn(Arc<PowerCut>) -> Arc<dyn ZonedDevice>,
) -> (Arc<PowerCut>, Pair, bool, usize) {
    let device = Arc::new(PowerCut::new(g.clone()).unwrap());
    format(&*device);
    let mut pair = Pair::new(worn(device.clone())).unwrap();
    for step in before {
        pair.step(*step).unwrap();
    }
    device.cut_after(point);
    let mut done = 0;
    for step in steps {
        if let Err(error) = pair.step(*step) {
            assert!(device.is_cut(), "{step:?}: {error}");
            break;
        }
        done += 1;
    }
    let is_cut = device.is_cut();
    (device, pair, is_cut, done)
}

/// Cuts the power at each command of `steps`. Returns the number of cuts and of states.
fn enumerate(
    g: &Geometry,
    name: &str,
    before: &[Step],
    steps: &[Step],
    max_states: usize,
) -> (u64, u64) {
    enumerate_on(g, name, before, (steps, 0), max_states, &|device| device)
}

/// Like [`enumerate`], on the drive that `worn` makes of the power-cut model. Cuts during the first `seen` steps are
/// skipped, for they have been checked.
fn enumerate_on(
    g: &Geometry,
    name: &str,
    before: &[Step],
    (steps, seen): (&[Step], usize),
    max_states: usize,
    worn: &dyn Fn(Arc<PowerCut>) -> Arc<dyn ZonedDevice>,
) -> (u64, u64) {
    let (mut cuts, mut states) = (0, 0);
    for point in 1.. {
        let (device, pair, is_cut, done) = cut(g, before, steps, point, worn);
        if done < seen {
            continue;
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
        if !is_cut {
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
                // Cuts during the first operation are checked with the first of its pairs.
                let seen = if second == OPERATIONS[0].0 {
                    0
                } else {
                    a.len()
                };
                let steps = (&steps[..], seen);
                let (c, s) = enumerate_on(&g, &name, &BEFORE, steps, max_states, &|device| device);
                cuts += c;
                states += s;
            }
        }
    }
    println!("pairs: {cuts} cuts, {states} states mounted and checked");
    assert!(states > cuts);
}

/// On a nearly full drive, cleaning moves live bytes; the power is cut while it does.
#[test]
fn cleaning() {
    // Bytes that stay and bytes that are removed share zones.
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
        // Finds the first round in which the cleaner moves bytes; that round is cut.
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

/// Frames fill a checkpoint area, so that the next checkpoint goes into the other one. The power is cut at each command
/// around that and around a mount after it.
#[test]
fn checkpoints_and_mounting() {
    let (mut cuts, mut states) = (0, 0);
    for g in geometries() {
        // So many frames of one block that the next ones do not fit.
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
    println!("checkpoints: {cuts} cuts, {states} states mounted and checked");
}

/// The power is cut at each of the last commands of a sync, and again at each command of the next mount: whatever the
/// first mount found, the next one finds too.
#[test]
fn mounting_behind_a_sync_that_was_cut() {
    let steps = [
        Create(3),
        Append(3, 9000),
        Rename(0, 4),
        Sync(1),
        Delete(3),
        Append(1, 700),
        Create(2),
        Append(2, 2500),
        Sync(2),
    ];
    let few = CrashLimits {
        max_states: 12,
        ..CrashLimits::default()
    };
    let (mut cuts, mut states) = (0, 0);
    for g in geometries() {
        let (device, ..) = cut(&g, &BEFORE, &[], u64::MAX, &|device| device);
        let before = device.operation_count();
        let (device, ..) = cut(&g, &BEFORE, &steps, u64::MAX, &|device| device);
        let commands = device.operation_count() - before;
        for first in commands - 5..=commands + 1 {
            let (device, pair, ..) = cut(&g, &BEFORE, &steps, first, &|device| device);
            device.cut_after(0);
            for state in device.crash_states(few) {
                for point in 1.. {
                    let second = Arc::new(device.restart(&state));
                    second.cut_after(point);
                    let _ = mount(second.clone());
                    cuts += 1;
                    for left in second.crash_states(few) {
                        states += 1;
                        let image: Arc<dyn ZonedDevice> = Arc::new(second.image(&left));
                        judge(&image, &pair, &|what| {
                            format!(
                                "mounting: {what}, cut at {first}, left {state:?}, cut at {point}, left {left:?}"
                            )
                        });
                    }
                    if !second.is_cut() {
                        break;
                    }
                }
            }
        }
    }
    println!("mounting: {cuts} cuts, {states} states mounted and checked");
}

/// Zones cannot be finished, so write pointers stay as they were. If a zone was reset and a power cut undoes that, the
/// old write pointer is above the data written after the reset.
#[test]
fn zones_that_cannot_be_finished() {
    let steps = [
        Create(3),
        Append(3, 50_000),
        Sync(3),
        Delete(3),
        SyncNames,
        Create(2),
        Append(2, 30_000),
        Sync(2),
    ];
    let worn = |device: Arc<PowerCut>| -> Arc<dyn ZonedDevice> {
        let faults = Faults::new(device);
        let broken = Fault::Io(ErrorKind::Other);
        faults.add(Plan::from(ZoneCommand::Finish, 1, broken));
        Arc::new(faults)
    };
    let (mut cuts, mut states) = (0, 0);
    for g in [geometry(10, 1, 0), geometry(12, 0, 0)] {
        let (c, s) = enumerate_on(&g, "not finished", &BEFORE, (&steps, 0), 12, &worn);
        cuts += c;
        states += s;
    }
    println!("not finished: {cuts} cuts, {states} states mounted and checked");
}

/// A drive in a file, of which the host may lose any block.
struct OfHost;
impl Change<MemoryDrive> for OfHost {
    fn keeps(&self, _: &MemoryDrive) -> Keeps {
        Keeps::Blocks
    }
}

/// The host of a drive file loses power: any blocks that no flush has covered may be zeros, also below the write
/// pointer.
#[test]
fn a_host_that_lost_power() {
    let two = CrashLimits {
        max_states: 2,
        ..CrashLimits::default()
    };
    let (mut cuts, mut states) = (0, 0);
    for g in [geometry(10, 1, 0), geometry(12, 0, 0)] {
        for (name, steps) in OPERATIONS {
            for point in 1.. {
                let (device, pair, is_cut, _) = cut(&g, &BEFORE, steps, point, &|device| device);
                let both = device.crash_states(two);
                let (nothing, all) = (device.image(&both[0]), device.image(both.last().unwrap()));
                let lost = differing(&nothing, &all);
                cuts += 1;
                for seed in 0..number("ZONESTORE_CRASH_STATES", 6) {
                    let mut random = fastrand::Rng::with_seed(seed + 100 * point);
                    let image = all.snapshot();
                    let share = random.u32(1..4);
                    for (at, before) in &lost {
                        if random.u32(..4) < share {
                            image.decay(*at, 512, |block| block.copy_from_slice(before));
                        }
                    }
                    states += 1;
                    let image: Arc<dyn ZonedDevice> = Arc::new(Changed {
                        drive: image,
                        change: OfHost,
                    });
                    judge(&image, &pair, &|what| {
                        format!("{name}: {what}, cut at command {point}, seed {seed}")
                    });
                }
                if !is_cut {
                    break;
                }
            }
        }
    }
    println!("host: {cuts} cuts, {states} states mounted and checked");
}

/// The blocks below the write pointers of `second` in which the drives differ: their addresses, and their content in
/// `first`.
fn differing(first: &MemoryDrive, second: &MemoryDrive) -> Vec<(ZoneAddress, Vec<u8>)> {
    let g = first.geometry();
    let mut found = Vec::new();
    for zone in second.report(ZoneId(0), g.zone_count).unwrap() {
        let end = match zone.write_pointer_valid() {
            true => zone.write_pointer,
            false => g.capacity(zone.id),
        };
        for offset in (0..end.min(g.capacity(zone.id))).step_by(512) {
            let at = ZoneAddress::new(zone.id, offset);
            let (mut before, mut now) = ([0; 512], [0; 512]);
            first.read(g.absolute(at), &mut before).unwrap();
            second.read(g.absolute(at), &mut now).unwrap();
            if before != now {
                found.push((at, before.to_vec()));
            }
        }
    }
    found
}

/// The process is killed at any command, then the power is cut at each command of the next mount. That mount sees data
/// in the drive's cache, which it may rely on only after a flush.
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
