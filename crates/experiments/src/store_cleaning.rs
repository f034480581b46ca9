//! What cleaning costs the store itself, beside closed forms and the simulator.
//!
//! The store runs on a drive in memory with the small database, without threads: after each object comes what
//! the cleaner's thread would do then, so that a seed gives one figure. Metadata is counted apart.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice};
use drive_model::Random;
use kv_log::KvLog;
use runtime::Runtime;
use sim::cleaning::{Load, Skew};
use sim::closed_form;
use sim::placement::Placement;
use std::sync::Arc;
use store::{Attributes, MkfsOptions, MountOptions, Store, Transaction};
use zone::{Geometry, ZoneKind};
use zone_alloc::CostBenefit;

const ZONES: u32 = 1024;
const ZONE: u64 = 256 << 10;
const OBJECTS_PER_ZONE: u32 = 16;
const OBJECT: u64 = ZONE / OBJECTS_PER_ZONE as u64;
const COLLECTION: &str = "overwritten";
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

/// A store, and the drive that counts for it.
struct Filled {
    drive: Arc<Stats<MemoryDrive>>,
    store: Store,
    objects: u64,
}

impl Filled {
    fn new(seed: u64) -> Result<Self, Stopped> {
        let geometry = Geometry {
            block_size: 4096,
            zone_size: ZONE,
            zone_capacity: ZONE,
            zone_count: ZONES,
            conventional_zones: 0,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 14,
            max_active_zones: 14,
            max_append_bytes: 0,
        };
        let memory = MemoryDrive::new(geometry).map_err(Stopped::store)?;
        let drive = Arc::new(Stats::new(memory));
        let device: Arc<dyn ZonedDevice> = drive.clone();
        let runtime = Runtime::seeded(seed);
        let made = MkfsOptions {
            runtime: runtime.clone(),
            ..MkfsOptions::new(KvLog)
        };
        Store::mkfs(device.clone(), &made)?;
        let options = MountOptions {
            background: false,
            runtime,
            ..MountOptions::new(KvLog)
        };
        let store = Store::mount(device, options)?;
        let mut transaction = Transaction::new();
        transaction.create_collection(COLLECTION, Attributes::new());
        store.commit(transaction)?;
        Ok(Self {
            drive,
            store,
            objects: 0,
        })
    }

    /// Adds or removes objects until so much of the declared capacity is live: what metadata needs, and so
    /// what is left for data, follows from the objects and from what was done to them.
    fn level(&mut self, utilization: f64) -> Result<(), Stopped> {
        while self.live_share() < utilization {
            self.put(self.objects)?;
            self.objects += 1;
        }
        while self.live_share() > utilization + 0.001 {
            self.objects -= 1;
            let mut transaction = Transaction::new();
            transaction.remove(COLLECTION, self.objects.to_string());
            self.store.commit(transaction)?;
        }
        Ok(())
    }

    fn live_share(&self) -> f64 {
        let space = self.store.statfs();
        space.live_bytes as f64 / space.capacity_bytes as f64
    }

    fn put(&self, object: u64) -> Result<(), Stopped> {
        let name = object.to_string();
        let mut writer = self
            .store
            .writer(Some(OBJECT))?
            .replacing(COLLECTION, &name);
        writer.write(&[object as u8; OBJECT as usize])?;
        let data = writer.finish()?;
        let mut transaction = Transaction::new();
        transaction.put(COLLECTION, &name, data, Attributes::new());
        self.store.commit(transaction)?;
        while self.store.tend()? {}
        Ok(())
    }

    /// So many objects are written again; those that are `hot`, if some are, get the rest of the writes.
    fn overwrite(
        &self,
        run: &Run<'_>,
        count: u64,
        hot: Option<f64>,
        random: &mut Random,
    ) -> Result<(), Stopped> {
        for _ in 0..count {
            if run.is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            let few = (self.objects as f64 * hot.unwrap_or(1.0)) as u64;
            let is_hot = hot.is_none_or(|hot| random.below(1_000) as f64 >= hot * 1_000.0);
            self.put(if is_hot {
                random.below(few)
            } else {
                few + random.below(self.objects - few)
            })?;
        }
        Ok(())
    }

    /// Bytes of data that went to the drive.
    fn written(&self) -> u64 {
        let metadata = self.store.bluefs().statistics().bytes_written();
        self.drive.snapshot().bytes_written() - metadata
    }
}

/// Data written ÷ user bytes, and the zones of the declared capacity.
fn measured_cost(
    run: &Run<'_>,
    (utilization, hot): (f64, Option<f64>),
) -> Result<(f64, u32), Stopped> {
    let mut filled = Filled::new(run.seed)?;
    filled.level(utilization)?;
    let mut random = run.random(41);
    for _ in 0..SETTLING {
        filled.overwrite(run, filled.objects, hot, &mut random)?;
        filled.level(utilization)?;
    }
    let before = filled.written();
    let count = run.scaled(10 * filled.objects, filled.objects);
    filled.overwrite(run, count, hot, &mut random)?;
    let cost = (filled.written() - before) as f64 / (count * OBJECT) as f64;
    let zones = filled.store.statfs().capacity_bytes / ZONE;
    Ok((cost, zones as u32))
}
