//! What cleaning costs the store itself, beside closed forms and the simulator.
//!
//! The store runs on a drive in memory with the small database, without threads: after each object comes what
//! the cleaner's thread would do then, so that a seed gives one figure. Metadata is counted apart.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::filled_store::FilledStore;
use sim::cleaning::{Load, Skew};
use sim::closed_form;
use sim::placement::Placement;
use zone::{Geometry, ZoneKind};
use zone_alloc::CostBenefit;

const ZONES: u32 = 1024;
const ZONE: u64 = 256 << 10;
const OBJECTS_PER_ZONE: u32 = 16;
const OBJECT: u64 = ZONE / OBJECTS_PER_ZONE as u64;
/// Overwrites of everything before anything is counted, in which the zones become as they stay.
const SETTLING: u64 = 5;

/// Live ÷ declared capacity, and the part of the objects that gets the rest of the writes.
const LOADS: [(f64, Option<f64>); 6] = [
    (0.7, None),
    (0.8, None),
    (0.9, None),
    (0.7, Some(0.2)),
    (0.8, Some(0.2)),
    (0.9, Some(0.2)),
];

fn name((utilization, hot): (f64, Option<f64>)) -> String {
    match hot {
        None => format!("uniform at {utilization}"),
        Some(hot) => format!(
            "{:.0}/{:.0} at {utilization}",
            hot * 100.0,
            100.0 - hot * 100.0
        ),
    }
}

pub const STORE: Experiment = Experiment {
    id: "cleaning-store",
    title: "The store's own cleaner costs what the closed forms say",
    source: "P. Desnoyers, Analytic Modeling of SSD Write Performance, SYSTOR 2012; the simulator",
    expected: || {
        let rows = LOADS.into_iter().flat_map(|load| {
            let what = format!("{}: data written ÷ user bytes", name(load));
            // Of the spare zones four are open and never full, and one or two are free. Cost-benefit, which
            // is for skewed loads, costs 1 to 4 % where all objects are alike.
            let (u, hot) = load;
            let least = match hot {
                None => closed_form::greedy(u, OBJECTS_PER_ZONE),
                Some(hot) => closed_form::two_groups(u, hot, 1.0 - hot),
            };
            let cost = Expected::value(what, "", least).part(0.12);
            // The simulator knows the history of each block, and has seven streams for four.
            let simulated = format!("{}: ÷ simulated", name(load));
            [cost, Expected::at_most(simulated, "", 1.3)]
        });
        rows.collect()
    },
    measure: |run| {
        let mut measured = Vec::new();
        for load in LOADS {
            run.next(&name(load))?;
            let (cost, zones) = measured_cost(run, load)?;
            let simulated = simulated_cost(run, load, zones)?;
            measured.extend([cost, cost / simulated]);
        }
        Ok(Outcome::from(measured))
    },
};

fn simulated_cost(
    run: &Run<'_>,
    (utilization, hot): (f64, Option<f64>),
    zones: u32,
) -> Result<f64, Stopped> {
    let load = Load {
        zones,
        blocks_per_zone: OBJECTS_PER_ZONE,
        utilization,
        skew: hot.map(|hot| Skew {
            data: hot,
            writes: 1.0 - hot,
            shifts: false,
        }),
        placement: Placement::ByLifetime,
        writes: run.scaled(2_000_000, 500_000),
        seed: run.seed,
    };
    Ok(load.run(&CostBenefit, |_, _| {})?.write_amplification())
}

/// Data written ÷ user bytes, and the zones of the declared capacity.
fn measured_cost(
    run: &Run<'_>,
    (utilization, hot): (f64, Option<f64>),
) -> Result<(f64, u32), Stopped> {
    let geometry = Geometry {
        block_size: 4096,
        zone_size: ZONE,
        zone_capacity: ZONE,
        zone_count: ZONES,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 14,
        max_active_zones: 14,
        max_append_bytes: 0,
    };
    let mut filled = FilledStore::new(geometry, OBJECT, run.seed)?;
    filled.level(utilization)?;
    let mut random = run.random(41);
    for _ in 0..SETTLING {
        filled.overwrite(run, filled.objects, hot, &mut random)?;
        filled.level(utilization)?;
    }
    let before = filled.data_written();
    let count = run.scaled(10 * filled.objects, filled.objects);
    filled.overwrite(run, count, hot, &mut random)?;
    let cost = (filled.data_written() - before) as f64 / (count * OBJECT) as f64;
    let zones = filled.space().capacity_bytes / ZONE;
    Ok((cost, zones as u32))
}
