//! Loads that can be simulated, and those that cannot.

use sim::cleaning::{Load, Skew};
use sim::placement::Placement;
use sim::policy::Policy;
use zone_alloc::Greedy;

const PLACEMENTS: [Placement; 5] = [
    Placement::Mixed,
    Placement::MovedApart,
    Placement::ByHeat,
    Placement::ByLifetime,
    Placement::SepBit,
];

const UNIFORM: Load = Load {
    zones: 2_000,
    blocks_per_zone: 64,
    utilization: 0.8,
    skew: None,
    placement: Placement::Mixed,
    writes: 1_000_000,
    seed: 1,
};

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
    for placement in PLACEMENTS {
        for (zones, blocks_per_zone) in [(2, 1), (2, 64), (3, 2), (10, 8)] {
            let utilization = f64::from(zones - 1) / f64::from(zones);
            let skew = (zones * blocks_per_zone > 2).then_some(Skew {
                data: 0.2,
                writes: 0.8,
                shifts: zones == 10,
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
    for utilization in [0.0, -1.0, f64::NAN, 1.0, 7.0, 1e308, f64::INFINITY] {
        let load = Load {
            utilization,
            ..UNIFORM
        };
        assert!(load.run(&Greedy, |_, _| {}).is_err(), "{utilization}");
    }
    for (data, writes) in [(0.0, 0.5), (0.5, 1.0), (f64::NAN, 0.5)] {
        let load = Load {
            skew: Some(Skew {
                data,
                writes,
                shifts: false,
            }),
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

/// Full zones may be wholly live while what is dead lies in open ones.
#[test]
fn every_policy_ends_where_the_streams_take_all_spare_zones() {
    for policy in Policy::ALL.map(|(_, policy, _)| policy) {
        for placement in PLACEMENTS {
            let load = Load {
                zones: 20,
                utilization: 0.95,
                placement,
                writes: 20_000,
                ..UNIFORM
            };
            let cost = policy.measure(&load, |_, _| {}).unwrap();
            assert_eq!(cost.blocks_written, 20_000);
        }
    }
}

#[test]
fn a_hot_set_that_moves_finds_zones_under_every_placement() {
    for placement in PLACEMENTS {
        for (zones, utilization) in [(200, 0.5), (200, 0.9), (500, 0.8)] {
            let load = Load {
                zones,
                utilization,
                skew: Some(Skew {
                    data: 0.1,
                    writes: 0.9,
                    shifts: true,
                }),
                placement,
                writes: 100_000,
                ..UNIFORM
            };
            load.run(&Greedy, |_, _| {}).unwrap();
        }
    }
}
