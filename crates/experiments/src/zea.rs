//! Compares an extent allocator on zones (ZEA) with the plain drive.
//!
//! The paper prints curves without numbers and describes them; the experiments measure its statements. Its disk
//! masked the write of metadata by the time in which the head settles, so the volatile write cache is off here.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use device::ZonedDevice;
use drive_model::{AnyProfile, Timed};
use plot::{Figure, Panel};
use runtime::{Runtime, SimulatedClock};
use std::sync::Arc;
use zea_bench::{Bed, Error, StartUp, Work, start_ups, transfers};

const DISK: &str = "hm-smr-14tb";
const EXTENT: u64 = 4096;
const BACK_POINTERS: [u32; 4] = [1, 4, 16, 64];
/// Sizes in KiB: 4 KiB to 2 MiB.
const SIZES: [u64; 10] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

pub const FIGURE_2A: Experiment = Experiment {
    id: "zea-figure-2a",
    title: "Finding all extents again takes time in proportion to them, and less with more back pointers",
    source: "Manzanares et al., ZEA, A Data Management Approach for SMR, figure 2a",
    expected: || {
        let linear = BACK_POINTERS.map(|n| {
            let what = format!("{n} back pointers: twice as many extents, so much longer");
            Expected::value(what, "", 2.0).part(0.1).words("linearly")
        });
        let falling = [4, 16, 64].map(|n| {
            let what = format!("{n} back pointers: time ÷ that with a quarter of them");
            Expected::at_most(what, "", 0.95).ours()
        });
        linear.into_iter().chain(falling).collect()
    },
    measure: |run| {
        let most = run.scaled(16_000, 2_000);
        let counts: Vec<u64> = (1..=4).map(|quarter| most * quarter / 4).collect();
        let mut bed = Disks::new(run);
        let all = start_ups(&mut bed, &BACK_POINTERS, &counts, EXTENT, 0).map_err(stopped)?;
        let rows: Vec<&[StartUp]> = all.chunks(counts.len()).collect();
        let linear = rows.iter().map(|row| row[3].seconds / row[1].seconds);
        let falling = rows
            .windows(2)
            .map(|two| two[1][3].seconds / two[0][3].seconds);
        let measured: Vec<f64> = linear.chain(falling).collect();
        let panel = Panel::new("", "extents of 4 KiB", "start-up (s)");
        let panel = rows.iter().fold(panel.logarithmic(), |panel, row| {
            let points = row.iter().map(|s| (s.extents as f64, s.seconds));
            panel.line(
                format!("{} back pointers", row[0].back_pointers),
                points.collect(),
            )
        });
        Ok(Outcome::from(measured).with(Figure {
            number: "zea-2a",
            title: "Start-up time of ZEA",
            caption: format!("{DISK} in virtual time."),
            panels: vec![panel],
        }))
    },
};

pub const FIGURE_2BC: Experiment = Experiment {
    id: "zea-figure-2bc",
    title: "Puts cost what plain writes do, and gets somewhat more than plain reads",
    source: "Manzanares et al., ZEA, A Data Management Approach for SMR, figures 2b and 2c",
    expected: || {
        let row = |kib: u64| {
            [
                Expected::at_least(format!("{kib} KiB: put ÷ plain write"), "", 0.95)
                    .words("no overhead"),
                Expected::at_most(format!("{kib} KiB: get ÷ plain read"), "", 1.0)
                    .by(0.05)
                    .words("slower"),
            ]
        };
        SIZES.into_iter().flat_map(row).collect()
    },
    measure: |run| {
        // With few small extents, the angle of the platter would decide the result.
        let work = |extents| Work {
            extents,
            get_bytes: 1 << 30,
            back_pointers: 16,
            fill: 0,
            rounds: 1,
        };
        let (small, large) = (work(1024), work(run.scaled(1024, 200)));
        let sizes = SIZES.map(|kib| kib << 10);
        let mut bed = Disks::new(run);
        let mut all = transfers(&mut bed, &sizes[..5], small).map_err(stopped)?;
        all.extend(transfers(&mut bed, &sizes[5..], large).map_err(stopped)?);
        let measured: Vec<f64> = all
            .iter()
            .flat_map(|t| [t.put_ratio, t.get_ratio])
            .collect();
        let mib = f64::from(1 << 20);
        let series = |of: fn(&zea_bench::Transfer) -> f64| {
            all.iter()
                .map(|t| ((t.size >> 10) as f64, of(t) / mib))
                .collect()
        };
        let (size, rate) = ("KiB of an extent", "MiB/s");
        let puts = Panel::new("writes", size, rate)
            .line("put", series(|t| t.put))
            .line("plain write", series(|t| t.write));
        let gets = Panel::new("reads", size, rate)
            .line("get", series(|t| t.get))
            .line("plain read", series(|t| t.read));
        Ok(Outcome::from(measured).with(Figure {
            number: "zea-2bc",
            title: "ZEA beside the plain drive",
            caption: format!("{DISK} in virtual time, volatile write cache off."),
            panels: vec![puts, gets],
        }))
    },
};

/// Makes new disks, one after the other, on one virtual clock.
struct Disks<'a, 'b> {
    run: &'a mut Run<'b>,
    clock: Arc<SimulatedClock>,
    runtime: Runtime,
}

impl<'a, 'b> Disks<'a, 'b> {
    fn new(run: &'a mut Run<'b>) -> Self {
        let clock = Arc::new(SimulatedClock::default());
        let runtime = Runtime::seeded(run.seed).with_clock(clock.clone());
        Self {
            run,
            clock,
            runtime,
        }
    }
}

impl Bed for Disks<'_, '_> {
    fn fresh(&mut self) -> Result<Arc<dyn ZonedDevice>, Error> {
        let model = AnyProfile::named(DISK).and_then(|profile| profile.model(self.run.seed));
        let mut model = model.map_err(|error| Error::NoDrive(error.to_string()))?;
        model.set_volatile_cache(false);
        let timed = Timed::in_memory(model, self.clock.clone());
        Ok(Arc::new(
            timed.map_err(|error| Error::NoDrive(error.to_string()))?,
        ))
    }

    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn next(&mut self, what: &str) -> Result<(), Error> {
        self.run.next(what).map_err(|_| Error::Interrupted)
    }
}

fn stopped(error: Error) -> Stopped {
    match error {
        Error::Interrupted => Stopped::Interrupted,
        error => Stopped::store(error),
    }
}
