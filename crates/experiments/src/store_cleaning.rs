//! Compares the cost of cleaning in the store itself with closed forms and the simulator.
//!
//! The store runs on a drive in memory, with the small database and without threads: after each object it does what
//! the cleaner's thread would do then, so that a seed gives one figure. Metadata is counted apart.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::filled_store::FilledStore;
use sim::cleaning::{Load, Skew};
use sim::closed_form;
use sim::placement::Placement;
use zone::{Geometry, ZoneKind};
use zone_alloc::CostBenefit;

/// Overwrites of all objects before counting begins, in which the zones reach a steady state.
const SETTLING: u64 = 5;
/// Overwrites before counting begins, at the small scale.
const FEW_SETTLING: u64 = 2;

#[derive(Clone, Copy)]
struct Case {
    zones: u32,
    /// Zones at the small scale.
    few_zones: u32,
    zone_bytes: u64,
    objects_per_zone: u32,
    /// Live ÷ declared capacity.
    utilization: f64,
    /// The share of the objects that is hot; they get 1 − this share of the writes.
    hot: Option<f64>,
}

/// Objects of 64 KiB, so that the small database's snapshots are small compared with the spare space: their room is
/// kept free, and cleaned for.
///
/// Of 1,024 zones, six that are open or free make a difference: they are spare and never full.
const SMALL: Case = Case {
    zones: 1024,
    few_zones: 1024,
    zone_bytes: 1 << 20,
    objects_per_zone: 16,
    utilization: 0.0,
    hot: None,
};

/// As many zones as a drive of a TB has.
const LARGE: Case = Case {
    zones: 4096,
    few_zones: 256,
    zone_bytes: 4 << 20,
    objects_per_zone: 64,
    ..SMALL
};

const fn at(utilization: f64, hot: Option<f64>, of: Case) -> Case {
    Case {
        utilization,
        hot,
        ..of
    }
}

const CASES: [Case; 9] = [
    at(0.7, None, SMALL),
    at(0.8, None, SMALL),
    at(0.9, None, SMALL),
    at(0.7, Some(0.2), SMALL),
    at(0.8, Some(0.2), SMALL),
    at(0.9, Some(0.2), SMALL),
    at(0.7, None, LARGE),
    at(0.8, None, LARGE),
    at(0.9, None, LARGE),
];

impl Case {
    fn name(&self) -> String {
        let load = match self.hot {
            None => "uniform".to_owned(),
            Some(hot) => format!("{:.0}/{:.0}", hot * 100.0, 100.0 - hot * 100.0),
        };
        let objects = self.objects_per_zone;
        format!("{load} at {}, {objects} objects a zone", self.utilization)
    }

    fn least(&self) -> f64 {
        match self.hot {
            None => closed_form::greedy(self.utilization, self.objects_per_zone),
            Some(hot) => closed_form::two_groups(self.utilization, hot, 1.0 - hot),
        }
    }
}

pub const STORE: Experiment = Experiment {
    id: "cleaning-store",
    title: "The store's own cleaner costs what the closed forms say",
    source: "P. Desnoyers, Analytic Modeling of SSD Write Performance, SYSTOR 2012; the simulator",
    expected: || {
        let rows = CASES.iter().flat_map(|case| {
            let what = format!("{}: data written ÷ user bytes", case.name());
            // Cost-benefit is for skewed loads, and costs 1 to 4 % more where all objects are alike.
            let cost = Expected::value(what, "", case.least()).part(0.13);
            // The simulator knows the history of each block, and has seven streams where the store has four.
            let simulated = format!("{}: ÷ simulated", case.name());
            [cost, Expected::at_most(simulated, "", 1.3).ours()]
        });
        rows.collect()
    },
    measure: |run| {
        let mut measured = Vec::new();
        for case in &CASES {
            run.next(&case.name())?;
            let (cost, zones) = measured_cost(run, case)?;
            let simulated = simulated_cost(run, case, zones)?;
            measured.extend([cost, cost / simulated]);
        }
        Ok(Outcome::from(measured))
    },
};

fn simulated_cost(run: &Run<'_>, case: &Case, zones: u32) -> Result<f64, Stopped> {
    let load = Load {
        zones,
        blocks_per_zone: case.objects_per_zone,
        utilization: case.utilization,
        skew: case.hot.map(|hot| Skew {
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

/// Measures data written ÷ user bytes. Returns it with the number of zones of the declared capacity.
fn measured_cost(run: &Run<'_>, case: &Case) -> Result<(f64, u32), Stopped> {
    let object_bytes = case.zone_bytes / u64::from(case.objects_per_zone);
    let geometry = Geometry {
        block_size: 4096,
        zone_size: case.zone_bytes,
        zone_capacity: case.zone_bytes,
        zone_count: run.scaled(case.zones.into(), case.few_zones.into()) as u32,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 14,
        max_active_zones: 14,
        max_append_bytes: 0,
    };
    let mut filled = FilledStore::new(geometry, object_bytes, run.seed)?;
    filled.level(case.utilization)?;
    let mut random = run.random(41);
    for _ in 0..run.scaled(SETTLING, FEW_SETTLING) {
        filled.overwrite(run, filled.objects, case.hot, &mut random)?;
        filled.level(case.utilization)?;
    }
    let before = filled.data_written();
    let count = run.scaled(10 * filled.objects, filled.objects);
    filled.overwrite(run, count, case.hot, &mut random)?;
    let cost = (filled.data_written() - before) as f64 / (count * object_bytes) as f64;
    let zones = filled.space().capacity_bytes / case.zone_bytes;
    Ok((cost, zones as u32))
}
