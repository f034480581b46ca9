//! On the modelled host-managed disk, in its own time: puts cost what plain writes do, and the start-up grows with
//! extents and falls with back pointers.

#![allow(clippy::unwrap_used)]

use device::ZonedDevice;
use drive_model::{AnyProfile, Timed};
use runtime::{Runtime, SimulatedClock};
use std::sync::Arc;
use zea_bench::{Bed, Error, Work, start_ups, transfers};

struct Disks {
    clock: Arc<SimulatedClock>,
    runtime: Runtime,
    write_cache: bool,
}

impl Disks {
    fn new(write_cache: bool) -> Self {
        let clock = Arc::new(SimulatedClock::default());
        Self {
            runtime: Runtime::seeded(1).with_clock(clock.clone()),
            clock,
            write_cache,
        }
    }
}

impl Bed for Disks {
    fn fresh(&mut self) -> Result<Arc<dyn ZonedDevice>, Error> {
        let mut model = AnyProfile::named("hm-smr-14tb").unwrap().model(1).unwrap();
        model.set_volatile_cache(self.write_cache);
        Ok(Arc::new(
            Timed::in_memory(model, self.clock.clone()).unwrap(),
        ))
    }

    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn next(&mut self, _: &str) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn puts_cost_what_plain_writes_do() {
    let work = Work {
        extents: 300,
        get_bytes: 16 << 20,
        back_pointers: 16,
        fill: 0,
        rounds: 1,
    };
    let sizes: Vec<u64> = (0..10).map(|power| 4096 << power).collect();
    for write_cache in [false, true] {
        let all = transfers(&mut Disks::new(write_cache), &sizes, work).unwrap();
        for t in &all {
            println!("cache {write_cache}: {t:?}");
        }
        if !write_cache {
            for t in &all {
                assert!(t.put_ratio > 0.95, "{t:?}");
            }
        }
    }
}

#[test]
fn a_start_up_grows_with_extents_and_falls_with_back_pointers() {
    let counts = [1000, 2000, 4000];
    let all = start_ups(&mut Disks::new(false), &[1, 4, 16, 64], &counts, 4096, 0).unwrap();
    for start in &all {
        println!("{start:?}");
    }
    let rows: Vec<Vec<f64>> = all
        .chunks(3)
        .map(|row| row.iter().map(|s| s.seconds).collect())
        .collect();
    for row in &rows {
        for (at, count) in counts.iter().enumerate() {
            let linear = row[2] * *count as f64 / 4000.0;
            assert!((0.75..1.35).contains(&(row[at] / linear)), "{row:?}");
        }
    }
    for two in rows.windows(2) {
        assert!(two[1][2] < two[0][2] * 0.7, "{rows:?}");
    }
}
