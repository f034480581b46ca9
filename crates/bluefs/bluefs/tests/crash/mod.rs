//! Every state-changing command of short histories is a crash point, and every state that a power cut there may leave
//! is mounted and checked: synced data is there, names change atomically and in order, the check is clean, and the file
//! system can be written to.

mod files;
mod mounting;
mod moving;
mod names;
mod used_again;

use crate::support;
use crate::support::Step::{self, *};
use crate::support::{Pair, assert_clean, format, format_copies, geometry, mount, read};
use bluefs::{BlueFs, Role};
use device::faults::{Fault, Faults, Plan};
use device::power_cut::{CrashLimits, CrashState};
use device::{MemoryDrive, PowerCut, ZonedDevice};
use std::io;
use std::sync::Arc;
use zone::{Geometry, ZoneCommand, ZoneId};

fn limits() -> CrashLimits {
    CrashLimits {
        max_states: 48,
        max_choices_per_zone: 12,
        seed: 1 + support::seed(),
    }
}

/// A flush covers both copies: whichever half of all pairs cannot be read after it, the other half has all synced data.
fn examine_halves(image: &MemoryDrive, pair: &Pair<PowerCut>, told: &dyn Fn(&str) -> String) {
    let report = image
        .report(ZoneId(0), image.geometry().zone_count)
        .unwrap();
    let twins = BlueFs::observe(image, &report).unwrap().twins;
    let (first, second): (Vec<_>, Vec<_>) = twins.into_iter().unzip();
    for (lost, which) in [(first, "first"), (second, "second")] {
        if lost.is_empty() {
            continue;
        }
        let half = Arc::new(Faults::new(image.snapshot()));
        for zone in lost {
            let unreadable = Fault::Io(io::ErrorKind::Other);
            half.add(Plan::from(ZoneCommand::Read, 1, unreadable).in_zone(zone));
        }
        let pool = support::pool(&*half);
        let fs = support::mount_in(half, pool, true)
            .unwrap_or_else(|e| panic!("{}", told(&format!("without the {which} copies: {e}"))));
        if let Some(why) = pair.model.contradiction(&fs) {
            panic!("{}", told(&format!("without the {which} copies: {why}")));
        }
    }
}

/// Mounts each state that the cut may leave, compares it with the model, and writes more. Returns the number of states.
fn examine(device: &PowerCut, pair: &Pair<PowerCut>, point: u64) -> u64 {
    let told = |what: &str| format!("{what}, cut at command {point}, nothing left");
    // The state without any unflushed write: unflushed data may be in either copy only.
    let nothing = device.image(&CrashState::default());
    examine_halves(&nothing, pair, &told);
    let mut states = 0;
    for state in device.crash_states(limits()) {
        states += 1;
        let image = Arc::new(device.image(&state));
        let told = |what: &str| format!("{what}, cut at command {point}, left {state:?}");
        let fs = mount(image.clone()).unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
        if let Some(why) = pair.model.contradiction(&fs) {
            panic!("{}", told(&why));
        }
        let mut found = fs.check(true).unwrap().details;
        if !found.is_empty() {
            // If no further zone may be active, one copy stays shorter than the other. That is counted, and a scrub
            // repairs it once a zone is free.
            let known = fs.usage().damaged_copies > 0;
            assert!(known, "{}", told(&format!("{found:?}")));
            found.retain(|what| !what.starts_with("one of two copies is damaged"));
        }
        assert!(found.is_empty(), "{}", told(&format!("{found:?}")));
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
        fs.repair_copies()
            .unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
        let report = fs.check(true).unwrap();
        assert!(report.is_clean(), "{:?}", report.details);
    }
    states
}

/// Runs `steps` once for each command they cause, with the power cut at that command. Returns the number of states.
fn enumerate(g: &Geometry, copies: u32, before: &[Step], steps: &[Step]) -> u64 {
    let mut states = 0;
    for point in 1.. {
        let device = Arc::new(PowerCut::new(g.clone()).unwrap());
        format_copies(&*device, Role::Alone, copies);
        let mut pair = Pair::new(device.clone()).unwrap();
        for step in before {
            pair.step(*step).unwrap();
        }
        device.cut_after(point);
        let through = steps.iter().all(|step| pair.step(*step).is_ok());
        // Also when all steps are done: data that was not flushed may be lost.
        states += examine(&device, &pair, point);
        if through && !device.is_cut() {
            return states;
        }
    }
    states
}

/// Kinds of drives, each with its number of copies.
fn geometries() -> [(Geometry, u32); 7] {
    [
        (geometry(40, 0, 0), 1),
        (geometry(40, 0, 6), 1),
        (geometry(40, 4, 0), 1),
        (geometry(40, 40, 0), 1),
        (geometry(40, 0, 10), 2),
        (geometry(40, 12, 0), 2),
        (geometry(40, 40, 0), 2),
    ]
}

fn all(name: &str, before: &[Step], steps: &[Step]) {
    let states: u64 = geometries()
        .iter()
        .map(|(g, copies)| enumerate(g, *copies, before, steps))
        .sum();
    println!("{name}: {states} states after power cuts mounted and checked");
    assert!(states > 20);
}
