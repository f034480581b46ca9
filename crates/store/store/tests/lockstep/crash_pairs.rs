//! Power cuts at every command of the second step, for every pair of kinds. `ZONESTORE_CRASH_STATES=n` sets the number
//! of states after each cut.

use super::carry_out::everything;
use super::difference::difference;
use super::kinds::{self, Prepared};
use super::step::Step;
use super::world::World;
use crate::common::seed;
use device::PowerCut;
use device::power_cut::CrashLimits;
use fastrand::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Takes both steps. Returns what the store may hold after a power cut at the end, and the drive's command count when
/// the last step began.
fn run(prepared: &Prepared, drive: &Arc<PowerCut>, steps: &[Step; 2]) -> (Vec<World>, u64) {
    let mut may = vec![prepared.world.clone()];
    let Ok(store) = prepared.mount(drive.clone()) else {
        return (may, 0);
    };
    let (mut waiting, mut first) = (None, 0);
    for step in steps {
        first = drive.operation_count();
        let last = &may[may.len() - 1];
        let next = kinds::after(last, step).unwrap();
        match kinds::take(&store, last, step) {
            Err(error) => {
                assert!(drive.is_cut(), "{error}");
                may.push(next);
                break;
            }
            Ok(Some(pending)) if !pending.is_durable() => {
                may.push(next);
                waiting = Some(pending);
            }
            // The commit before is readable and not yet durable, so either outcome is allowed.
            Ok(_) if waiting.as_ref().is_some_and(|first| !first.is_durable()) => may.push(next),
            Ok(_) => may = vec![next],
        }
    }
    (may, first)
}

fn check(
    prepared: &Prepared,
    drive: &PowerCut,
    limits: CrashLimits,
    may: &[World],
) -> Result<usize, String> {
    let states = drive.crash_states(limits);
    for state in &states {
        let failed = |what: String| format!("{state:?}: {what}");
        let store = prepared.mount(Arc::new(drive.image(state)));
        let store = store.map_err(|e| failed(e.to_string()))?;
        let found = everything(&store).map_err(|e| failed(e.to_string()))?;
        if !may.contains(&found) {
            let ways = may.iter().map(|may| difference(&found, may));
            return Err(failed(ways.collect::<Vec<_>>().join("; or ")));
        }
        let report = store
            .fsck(true, &mut |_, _| {})
            .map_err(|e| failed(e.to_string()))?;
        if !report.is_clean() {
            return Err(failed(format!("{:#?}", report.details)));
        }
        let below = store
            .bluefs()
            .check(true)
            .map_err(|e| failed(e.to_string()))?;
        if !below.is_clean() {
            return Err(failed(format!("{:#?}", below.details)));
        }
    }
    Ok(states.len())
}

/// Cuts one pair of steps at every command of the second. Returns the number of cuts and of states.
fn cut_everywhere(prepared: &Prepared, pair: [u8; 2], seed: u64) -> (usize, usize) {
    let mut random = Rng::with_seed(seed);
    let first = kinds::step_of(&mut random, pair[0], &prepared.world);
    let after = kinds::after(&prepared.world, &first).unwrap();
    let second = kinds::step_of(&mut random, pair[1], &after);
    let steps = [first, second];
    let whole = prepared.copy();
    let before = whole.operation_count();
    let (_, second) = run(prepared, &whole, &steps);
    let (from, to) = (second - before, whole.operation_count() - before);
    let max_states = std::env::var("ZONESTORE_CRASH_STATES").ok();
    let max_states = max_states.map_or(2, |states| states.parse().unwrap());
    let mut states = 0;
    for cut in from..=to {
        let drive = prepared.copy();
        drive.cut_after(cut);
        let (may, _) = run(prepared, &drive, &steps);
        let limits = CrashLimits {
            max_states,
            seed: seed ^ cut,
            ..CrashLimits::default()
        };
        let checked = check(prepared, &drive, limits, &may);
        states += checked.unwrap_or_else(|e| panic!("{steps:?} (seed {seed}), cut at {cut}: {e}"));
    }
    ((to - from) as usize + 1, states)
}

#[test]
fn a_cut_in_the_second_of_every_pair_of_kinds() {
    let prepared: Vec<_> = (0..2)
        .map(|n| Prepared::new(seed() * 16 + 2 * n, n == 0))
        .collect();
    let (next, cuts, states) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let all = usize::from(kinds::KINDS);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= all * all {
                        return;
                    }
                    let pair = [(number / all) as u8, (number % all) as u8];
                    let pair_seed = seed() << 32 | number as u64;
                    let (c, s) =
                        cut_everywhere(&prepared[number % prepared.len()], pair, pair_seed);
                    cuts.fetch_add(c, Ordering::Relaxed);
                    states.fetch_add(s, Ordering::Relaxed);
                }
            });
        }
    });
    let (cuts, states) = (cuts.into_inner(), states.into_inner());
    println!("{} pairs, {cuts} cuts, {states} states", all * all);
    assert!(cuts > 2 * all * all && states > cuts);
}
