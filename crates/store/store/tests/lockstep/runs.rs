//! Long random runs. A run that fails is shortened and printed with its seed.
//!
//!     ZONESTORE_SEED=n ZONESTORE_STEPS=n cargo test -p store --test store lockstep::runs

use super::deal;
use super::machine::{Machine, Wrong};
use super::plan::{On, Plan};
use super::shrink::shrink;
use super::step::Step;
use crate::common::seed;
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Limit of the bytes in objects, chosen by the seed: from little of the drive, so that nothing may be refused, to so
/// much that writers have to clean.
fn most_bytes(plan: Plan) -> usize {
    let sixteenths = [4, 8, 14][plan.seed as usize % 3];
    plan.geometry().capacity_bytes() as usize / 16 * sixteenths
}

/// Number of steps that may be tried to shorten a failing run.
const WORK: usize = 300_000;

fn is_same_again(plan: Plan, steps: &[Step]) -> Result<(), Wrong> {
    let done = catch_unwind(AssertUnwindSafe(|| {
        let mut machine = Machine::new(plan);
        for step in steps {
            machine.step(step)?;
        }
        machine.check()
    }));
    done.unwrap_or_else(|_| Err("a panic".into()))
}

/// Carries out at least `count` operations and compares all answers; panics with a shortened run on a difference.
fn run(plan: Plan, count: usize) {
    let mut random = Rng::with_seed(plan.seed);
    let (mut steps, mut operations) = (Vec::new(), 0);
    let mut machine = Machine::new(plan);
    let mut wrong = None;
    while wrong.is_none() && operations < count {
        let step = deal::step(&mut random, &machine.world, most_bytes(plan));
        operations += match &step {
            Step::Commit { calls, .. } => calls.len(),
            _ => 1,
        };
        steps.push(step);
        let done = catch_unwind(AssertUnwindSafe(|| machine.step(steps.last().unwrap())));
        wrong = done.unwrap_or_else(|_| Err("a panic".into())).err();
    }
    let (refused, full, mounts) = (machine.refused, machine.full, machine.mounts);
    let wrong = wrong.or_else(|| machine.check().err());
    let Some(wrong) = wrong else {
        println!(
            "{plan:?}: {operations} operations in {} steps, {refused} refused, {full} without space, {mounts} mounts",
            steps.len()
        );
        return;
    };
    drop(machine);
    println!("{plan:?}: step {}: {wrong}", steps.len());
    let steps = shrink(steps, WORK, |steps| is_same_again(plan, steps).is_err());
    let wrong = is_same_again(plan, &steps);
    for step in &steps {
        println!("{step:?}");
    }
    panic!("{plan:?}: {wrong:?} after these {} steps", steps.len());
}

/// Number of operations, from `ZONESTORE_STEPS` for a long run.
fn operations(usually: usize) -> usize {
    let given = std::env::var("ZONESTORE_STEPS").ok();
    given.map_or(usually, |steps| steps.parse().unwrap())
}

fn plan(on: On, is_small: bool, number: u64) -> Plan {
    Plan {
        on,
        is_small,
        seed: seed() * 16 + number,
    }
}

#[test]
fn fifty_thousand_operations_on_a_drive_in_memory() {
    run(plan(On::Memory, true, 0), operations(50_000));
}

#[test]
fn other_drives_in_memory() {
    (1..4).for_each(|number| run(plan(On::Memory, true, number), operations(4_000)));
}

#[test]
fn with_rocksdb() {
    (0..2).for_each(|number| run(plan(On::Memory, false, number), operations(3_000)));
}

#[test]
fn on_a_drive_in_a_file() {
    (0..2).for_each(|number| run(plan(On::File, number == 0, number), operations(3_000)));
}

#[test]
fn on_a_drive_that_fails_now_and_then() {
    (0..4).for_each(|number| run(plan(On::Faulty, number < 3, number), operations(4_000)));
}

#[test]
fn on_a_drive_that_loses_its_power() {
    (0..4).for_each(|number| run(plan(On::PowerCut, true, number), operations(4_000)));
}

#[test]
fn on_a_drive_of_tiny_zones() {
    (0..4).for_each(|number| run(plan(On::TinyZones, true, number), operations(1_500)));
}
