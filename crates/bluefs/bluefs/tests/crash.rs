//! Every state-changing command of short histories is a crash point, and every state that a power
//! cut there may leave is mounted and checked: what was synced is there, names change atomically
//! and in order, the check is clean, and the file system can be written to.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::Role;
use device::power_cut::CrashLimits;
use device::{PowerCut, ZonedDevice};
use std::sync::Arc;
use support::Step::{self, *};
use support::{Pair, assert_clean, format, geometry, mount, read};
use zone::Geometry;

fn limits() -> CrashLimits {
    CrashLimits {
        max_states: 48,
        max_choices_per_zone: 12,
        seed: 1 + support::seed(),
    }
}

/// Mounts what is left, compares it with the model, and goes on with it a little.
fn examine(device: &PowerCut, pair: &Pair<PowerCut>, point: u64) -> u64 {
    let mut states = 0;
    for state in device.crash_states(limits()) {
        states += 1;
        let image = Arc::new(device.image(&state));
        let told = |what: &str| format!("{what}, cut at command {point}, left {state:?}");
        let fs = mount(image.clone()).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
        if let Some(why) = pair.model.contradiction(&fs) {
            panic!("{}", told(&why));
        }
        assert_clean(&fs);
        for name in ["/000077.log", "/new.sst"] {
            let mut writer = fs.create(name).unwrap();
            for _ in 0..3 {
                writer.append(&[7; 9000]).unwrap();
                writer
                    .sync()
                    .unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
            }
        }
        drop(fs);
        let fs = mount(image).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
        for name in ["/000077.log", "/new.sst"] {
            assert!(read(&fs, name).unwrap() == [7; 27_000], "{}", told(name));
        }
        assert_clean(&fs);
    }
    states
}

/// Runs `steps` once for each command they make, the power cut at that command.
fn enumerate(g: &Geometry, before: &[Step], steps: &[Step]) -> u64 {
    let mut states = 0;
    for point in 1.. {
        let device = Arc::new(PowerCut::new(g.clone()).unwrap());
        format(&*device, Role::Alone);
        let mut pair = Pair::new(device.clone()).unwrap();
        for step in before {
            pair.step(*step).unwrap();
        }
        device.cut_after(point);
        let through = steps.iter().all(|step| pair.step(*step).is_ok());
        // Also when all is done: what was not flushed may be lost.
        states += examine(&device, &pair, point);
        if through && !device.is_cut() {
            return states;
        }
    }
    states
}

fn geometries() -> [Geometry; 4] {
    [
        geometry(40, 0, 0),
        geometry(40, 0, 6),
        geometry(40, 4, 0),
        geometry(40, 40, 0),
    ]
}

fn all(name: &str, before: &[Step], steps: &[Step]) {
    let states: u64 = geometries()
        .iter()
        .map(|g| enumerate(g, before, steps))
        .sum();
    println!("{name}: {states} states after power cuts mounted and checked");
    assert!(states > 20);
}

#[test]
fn a_log_and_a_table() {
    let steps = [
        Create(1),
        Append(1, 450),
        Sync(1),
        Append(1, 450),
        Sync(1),
        Create(0),
        Append(0, 9000),
        Sync(0),
        Append(1, 2000),
        Sync(1),
        Close(0),
        Delete(1),
        SyncNames,
        Append(0, 700),
        Sync(0),
    ];
    all("a log and a table", &[], &steps);
}

#[test]
fn files_over_several_zones() {
    let steps = [
        Create(0),
        Append(0, 60_000),
        Sync(0),
        Create(1),
        Append(1, 50_000),
        RangeSync(1),
        Append(1, 10),
        Sync(1),
        Delete(0),
        SyncNames,
        Create(2),
        Append(2, 30_000),
        Sync(2),
    ];
    all("files over several zones", &[], &steps);
}

#[test]
fn replacing_by_rename() {
    let before = [Create(5), Append(5, 16), Sync(5), Close(5)];
    let steps = [
        Create(2),
        Append(2, 16),
        Sync(2),
        Rename(2, 5),
        SyncNames,
        Create(2),
        Append(2, 20),
        Sync(2),
        Rename(2, 5),
        Link(5, 0),
        SyncNames,
        Delete(5),
        Append(0, 5),
        Sync(0),
    ];
    all("replacing by rename", &before, &steps);
}

#[test]
fn truncating() {
    let before = [
        Create(1),
        Append(1, 3000),
        Sync(1),
        Create(0),
        Append(0, 3000),
        Sync(0),
    ];
    let steps = [
        Truncate(1, 1234),
        Append(1, 600),
        Sync(1),
        Truncate(0, 1234),
        Append(0, 600),
        Sync(0),
        Truncate(1, 5),
        Sync(1),
        Close(1),
        Append(1, 700),
        Sync(1),
        Truncate(0, 5),
        Sync(0),
    ];
    all("truncating", &before, &steps);
}

#[test]
fn zones_that_are_used_again() {
    // Each file fills zones that an earlier one left; their resets may be lost.
    let mut steps = Vec::new();
    for round in 0..4 {
        let file = [0, 1][round % 2];
        steps.extend([
            Create(file),
            Append(file, 23_000),
            RangeSync(file),
            Sync(file),
        ]);
        steps.extend([Close(file), Delete(file), SyncNames]);
    }
    for g in [
        geometry(14, 0, 0),
        geometry(14, 0, 6),
        geometry(14, 3, 0),
        geometry(14, 14, 0),
    ] {
        let states = enumerate(&g, &[], &steps);
        println!("zones that are used again: {states} states after power cuts");
    }
}

#[test]
fn records_and_frames_that_no_flush_has_parted() {
    // Of two that were written one behind the other, a conventional zone may lose the first. The
    // second must not have covered it.
    let closed = [Append(1, 450), Close(1)];
    let mut steps = vec![Create(1), Append(1, 450), Sync(1)];
    for _ in 0..3 {
        steps.extend(closed);
    }
    steps.extend([Append(1, 450), Sync(1)]);
    all("records without a flush between", &[], &steps);
    let mut steps = vec![Create(0)];
    for _ in 0..700 {
        steps.extend([Rename(0, 2), Rename(2, 0)]);
    }
    steps.push(SyncNames);
    all("frames without a flush between", &[], &steps);
}

#[test]
fn records_that_an_earlier_log_of_the_same_mount_left() {
    // Logs of many records come and go; in a conventional zone a longer one lies under each.
    let mut steps = Vec::new();
    for round in 0..18 {
        let appends = [6, 2][usize::from(round > 9)];
        steps.push(Create(1));
        steps.extend([Append(1, 450), Sync(1)].repeat(appends));
        steps.extend([Close(1), Delete(1), SyncNames]);
    }
    let states = enumerate(&geometry(14, 14, 0), &[], &steps);
    println!("logs that come and go: {states} states after power cuts");
}

#[test]
fn moving_ahead_of_need() {
    // A file shares a zone with one that goes. What is left is moved, then written on, cut, and moved
    // once more from where it went.
    let before = [
        Create(2),
        Append(2, 2000),
        Sync(2),
        Close(2),
        Create(5),
        Append(5, 30_000),
        Sync(5),
        Close(5),
        Delete(5),
        SyncNames,
    ];
    let steps = [
        Clean,
        Append(2, 30_000),
        Sync(2),
        Truncate(2, 3500),
        SyncNames,
        Clean,
        Append(2, 700),
        Sync(2),
        Create(5),
        Append(5, 25_000),
        Sync(5),
        Clean,
    ];
    all("moving ahead of need", &before, &steps);
    moves(&before, &steps);
}

/// Without a power cut, the steps move something on every drive, and it is all there.
fn moves(before: &[Step], steps: &[Step]) {
    for g in geometries() {
        let device = Arc::new(PowerCut::new(g).unwrap());
        format(&*device, Role::Alone);
        let mut pair = Pair::new(device).unwrap();
        for step in before.iter().chain(steps) {
            pair.step(*step).unwrap();
        }
        pair.verify_exactly();
        let cleaned = pair.fs.statistics().zones_cleaned_ahead;
        assert!(cleaned >= 1, "{cleaned}, {:?}", pair.fs.device().geometry());
        pair.step(Kill).unwrap();
    }
}

#[test]
fn moving_logs_ahead_of_need() {
    // A manifest that is open, of many synced records, and one that was cut and closed.
    let mut before = vec![Create(4)];
    before.extend([Append(4, 90), Sync(4)].repeat(60));
    before.extend([Create(3), Append(3, 40_000), Sync(3), Truncate(3, 3000)]);
    before.extend([Sync(3), Close(3)]);
    let steps = [
        Clean,
        Append(4, 300),
        Sync(4),
        Clean,
        Append(4, 300),
        Append(3, 500),
        Sync(3),
        Clean,
        Truncate(4, 2000),
        Append(4, 700),
        Sync(4),
        Rename(4, 1),
        SyncNames,
    ];
    all("moving logs ahead of need", &before, &steps);
    moves(&before, &steps);
}

#[test]
fn mounting() {
    // A power cut while a mount begins its new journal, over and over.
    for g in geometries() {
        let mut states = 0;
        for point in 1..20 {
            let device = Arc::new(PowerCut::new(g.clone()).unwrap());
            format(&*device, Role::Alone);
            let mut pair = Pair::new(device.clone()).unwrap();
            for step in [
                Create(1),
                Append(1, 700),
                Sync(1),
                Create(0),
                Append(0, 9000),
                Sync(0),
            ] {
                pair.step(step).unwrap();
            }
            let Pair { model, .. } = &pair;
            device.cut_after(0);
            let mut device = Arc::new(device.restart(&device.crash_states(limits())[0]));
            for round in 0..12 {
                device.cut_after(point);
                let mounted = mount(device.clone());
                let left = device.crash_states(limits());
                states += left.len();
                for state in &left {
                    let fs = mount(Arc::new(device.image(state)))
                        .unwrap_or_else(|e| panic!("{e} in round {round}, cut at {point}"));
                    assert_eq!(model.contradiction(&fs), None);
                    assert_clean(&fs);
                }
                drop(mounted);
                device = Arc::new(device.restart(&left[(round + point as usize) % left.len()]));
            }
        }
        println!("mounting: {states} states after power cuts");
    }
}

#[test]
fn a_drive_without_power_is_left_alone() {
    let device = Arc::new(PowerCut::new(geometry(40, 0, 0)).unwrap());
    format(&*device, Role::Alone);
    let mut pair = Pair::new(device.clone()).unwrap();
    pair.step(Create(0)).unwrap();
    device.cut_after(0);
    pair.step(Append(0, 100)).unwrap();
    assert!(pair.step(Sync(0)).is_err());
    assert!(pair.step(SyncNames).is_err());
    assert!(device.report_zone(zone::ZoneId(0)).is_err());
}
