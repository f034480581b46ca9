//! The simulator against closed forms and published figures: both would have to be wrong alike.

use sim::baseline::{Fifo, Random};
use sim::cleaning::{Load, Placement, Skew};
use sim::closed_form;
use zone_alloc::{CleaningPolicy, CostBenefit, Greedy};

const UNIFORM: Load = Load {
    zones: 2_000,
    blocks_per_zone: 64,
    utilization: 0.8,
    skew: None,
    placement: Placement::Mixed,
    writes: 1_000_000,
    seed: 1,
};

fn assert_within(tolerance: f64, load: &Load, policy: &dyn CleaningPolicy, expected: f64) {
    let Ok(outcome) = load.run(policy, |_, _| {}) else {
        panic!("{load:?} is refused");
    };
    let found = outcome.write_amplification();
    let ratio = found / expected;
    let u = load.utilization;
    println!("{policy:?} at {u}: {found:.3}, expected {expected:.3}, ratio {ratio:.4}");
    assert!(
        (ratio - 1.0).abs() <= tolerance,
        "{policy:?} at {u}: {found}, not {expected}"
    );
}

#[test]
fn uniform_overwrites_cost_what_the_closed_forms_say() {
    for utilization in [0.7, 0.8, 0.9] {
        let load = Load {
            utilization,
            ..UNIFORM
        };
        let greedy = closed_form::greedy(utilization, load.blocks_per_zone);
        assert_within(0.01, &load, &Fifo, closed_form::fifo(utilization));
        assert_within(0.01, &load, &Greedy, greedy);
        let random = closed_form::random(utilization);
        assert_within(0.01, &load, &Random { seed: 3 }, random);
    }
}

#[test]
fn hot_and_cold_apart_cost_what_others_measured() {
    for (data, writes, utilization, apart, mixed) in [
        (0.2, 0.8, 0.8, 1.978, 2.971),
        (0.2, 0.8, 0.9, 3.454, 5.254),
        (0.1, 0.9, 0.8, 1.510, 3.498),
        (0.1, 0.9, 0.9, 2.284, 5.981),
    ] {
        let skew = Some(Skew { data, writes });
        let load = Load {
            utilization,
            skew,
            ..UNIFORM
        };
        assert_within(0.02, &load, &Greedy, mixed);
        let placement = Placement::ByHeat;
        assert_within(0.02, &Load { placement, ..load }, &CostBenefit, apart);
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let load = Load {
        zones: 50,
        writes: 20_000,
        ..UNIFORM
    };
    let run = |seed| Load { seed, ..load }.run(&Greedy, |_, _| {}).unwrap();
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn the_smallest_drives_go_on_and_impossible_ones_are_refused() {
    for placement in [Placement::Mixed, Placement::MovedApart, Placement::ByHeat] {
        for (zones, blocks_per_zone) in [(2, 1), (2, 64), (3, 2), (10, 8)] {
            let utilization = f64::from(zones - 1) / f64::from(zones);
            let skew = (zones * blocks_per_zone > 2).then_some(Skew {
                data: 0.2,
                writes: 0.8,
            });
            let load = Load {
                zones,
                blocks_per_zone,
                utilization,
                skew,
                placement,
                writes: 5_000,
                seed: 1,
            };
            load.run(&Greedy, |_, _| {}).unwrap();
        }
    }
    for utilization in [0.0, -1.0, f64::NAN, 1.0, 7.0] {
        let load = Load {
            utilization,
            ..UNIFORM
        };
        assert!(load.run(&Greedy, |_, _| {}).is_err(), "{utilization}");
    }
    for (data, writes) in [(0.0, 0.5), (0.5, 1.0), (f64::NAN, 0.5)] {
        let load = Load {
            skew: Some(Skew { data, writes }),
            ..UNIFORM
        };
        assert!(load.run(&Greedy, |_, _| {}).is_err(), "{data}/{writes}");
    }
    assert!(
        Load {
            zones: u32::MAX,
            ..UNIFORM
        }
        .run(&Greedy, |_, _| {})
        .is_err()
    );
}
