//! Measures how much the store's cleaner delays reads on a host-managed disk.
//!
//! The model has the mechanics of a whole disk on few tracks, so that heads travel as far as on all tracks. One
//! request is served after the other: reads that arrive while the cleaner has a piece of I/O under way wait for its
//! end, and are served before the next piece.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::filled_store::FilledStore;
use device::ZonedDevice;
use drive_model::{Profile, Random, Timed};
use runtime::{Clock, Runtime, SimulatedClock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use store::{CleanerChange, Pace};

const MIB: u64 = 1 << 20;
const DISK: &str = "hm-smr-14tb";
const DISK_BYTES: u64 = 4 << 30;
const ZONE: u64 = 16 * MIB;
const OBJECT: u64 = MIB;
/// Live share of the declared capacity.
const LIVE: f64 = 0.7;
/// Reads before cleaning is switched on or off.
const TURN: u64 = 2_000;

/// The arrival of reads of 64 KiB to 1 MiB.
#[derive(Clone, Copy)]
enum Load {
    /// This many readers, each of which reads one range after the other.
    AtOnce(usize),
    /// This many reads a second, whatever the disk is doing.
    ASecond(f64),
}

/// p99 of reads ÷ p99 without cleaning, at most: with the cleaner at full pace, and at a pace that gives way.
const TARGETS: [f64; 2] = [1.5, 1.1];
/// The name of a load, the load, its tolerance for both targets, and the pace that gives way. Where the disk is
/// mostly idle, a read waits for hardly anything but the cleaner's last piece, so that both targets are missed there.
const CASES: [(&str, Load, f64, &str); 2] = [
    ("8 readers at once", Load::AtOnce(8), 0.05, "1MiB/s"),
    ("20 reads a second", Load::ASecond(20.0), 0.25, "1MiB/s"),
];

pub const LATENCY: Experiment = Experiment {
    id: "cleaning-latency",
    title: "Who reads hardly notices the store's cleaner",
    source: "ZoneStore's own targets: p99 of reads beside that without cleaning",
    expected: || {
        let rows = CASES.into_iter().flat_map(|(reads, _, off, pace)| {
            let paces = [Pace::Full.to_string(), pace.to_owned()].into_iter();
            paces.zip(TARGETS).flat_map(move |(pace, most)| {
                let what = format!("{reads}, cleaning at {pace}");
                let factor = format!("{what}: p99 ÷ without cleaning");
                [
                    Expected::at_most(factor, "", most).part(off).ours(),
                    Expected::at_least(format!("{what}: live data moved"), "MiB/s", 0.5).ours(),
                ]
            })
        });
        rows.collect()
    },
    measure: |run| {
        let reads = run.scaled(20_000, 2 * TURN);
        let mut disk = Disk::filled(run, |drive| drive)?;
        let mut measured = Vec::new();
        for (what, load, _, slow) in CASES {
            for pace in ["full", slow] {
                run.next(&format!("{what}, cleaning at {pace}"))?;
                measured.extend(disk.compared(run, load, pace, reads)?);
            }
        }
        Ok(Outcome::from(measured))
    },
};

/// A disk with a store, in virtual time.
struct Disk {
    clock: Arc<SimulatedClock>,
    filled: FilledStore,
    random: Random,
}

/// A series of reads, and their latencies in seconds.
struct Arrivals {
    load: Load,
    random: Random,
    /// Times at which reads have arrived or will arrive, in order.
    next: VecDeque<Duration>,
    left: u64,
    latencies: Vec<f64>,
    failed: Option<Stopped>,
}

impl Disk {
    /// `wrap` may put something in front of the drive.
    fn filled(
        run: &Run<'_>,
        wrap: impl FnOnce(Arc<dyn ZonedDevice>) -> Arc<dyn ZonedDevice>,
    ) -> Result<Self, Stopped> {
        let mut profile = Profile::named(DISK)?;
        let parts = profile.capacity_bytes / DISK_BYTES;
        profile.capacity_bytes = DISK_BYTES;
        profile.shape.heads = 1;
        // One head instead of sixteen.
        profile.shape.cylinders = (profile.shape.cylinders as u64 * 16 / parts) as u32 + 8;
        // With few tracks, the next one is a larger part of the way across.
        profile.shape.track_skew_us = 1_000.0;
        if let Some(zones) = &mut profile.zones {
            zones.zone_size_bytes = ZONE;
            zones.conventional_zones = 4;
        }
        let clock = Arc::new(SimulatedClock::default());
        let model = Box::new(profile.zoned(run.seed)?);
        let drive = Timed::in_memory(model, clock.clone()).map_err(Stopped::store)?;
        let runtime = Runtime::seeded(run.seed).with_clock(clock.clone());
        let mut filled = FilledStore::on(wrap(Arc::new(drive)), OBJECT, runtime)?;
        filled.level(LIVE)?;
        let random = run.random(51);
        let mut disk = Self {
            clock,
            filled,
            random,
        };
        disk.overwrite(run)?;
        Ok(disk)
    }

    /// Overwrites a third of the objects, whose old copies are dead from then on.
    fn overwrite(&mut self, run: &Run<'_>) -> Result<(), Stopped> {
        let third = self.filled.objects / 3;
        self.filled.overwrite(run, third, None, &mut self.random)
    }

    /// Compares reads while the cleaner works at a pace with as many reads while it does not, in turns. Returns p99 ÷
    /// p99 without cleaning, and the MiB moved a second.
    fn compared(
        &mut self,
        run: &Run<'_>,
        load: Load,
        pace: &str,
        reads: u64,
    ) -> Result<[f64; 2], Stopped> {
        let pace: Pace = pace.parse().map_err(Stopped::store)?;
        let (mut alone, mut beside) = (
            Arrivals::new(load, run.random(52)),
            Arrivals::new(load, run.random(53)),
        );
        let (mut moved, mut time) = (0, Duration::ZERO);
        while beside.count() < reads {
            self.held_to(Pace::Full);
            self.overwrite(run)?;
            alone.come(self.clock.now(), TURN);
            alone.until(self, Duration::MAX);
            alone.none_failed()?;
            let (before, began) = (self.filled.store.clean_status(), self.clock.now());
            beside.come(began, TURN);
            self.held_to(pace);
            self.filled.store.clean_start()?;
            let waits = &mut |moment| beside.until(self, moment);
            while self.filled.store.tend_with(waits)? {}
            beside.none_failed()?;
            // Nothing is left to clean, or all reads are done.
            self.filled.store.clean_stop();
            moved += self.filled.store.clean_status().bytes_moved - before.bytes_moved;
            time += self.clock.now() - began;
        }
        let factor = beside.p99() / alone.p99();
        Ok([factor, moved as f64 / MIB as f64 / time.as_secs_f64()])
    }

    fn held_to(&self, pace: Pace) {
        self.filled.store.clean_change(CleanerChange {
            pace: Some(pace),
            ..CleanerChange::default()
        });
    }
}

impl Arrivals {
    const fn new(load: Load, random: Random) -> Self {
        Self {
            load,
            random,
            next: VecDeque::new(),
            left: 0,
            latencies: Vec::new(),
            failed: None,
        }
    }

    fn count(&self) -> u64 {
        self.latencies.len() as u64
    }

    /// Has `left` reads arrive from `moment` on, none of which has waited before.
    fn come(&mut self, moment: Duration, left: u64) {
        self.left = left;
        self.next = match self.load {
            Load::AtOnce(readers) => vec![moment; readers].into(),
            Load::ASecond(_) => [self.after(moment, moment)].into(),
        };
    }

    /// When the next read arrives, after one that arrived at `came` and was served at `served`.
    fn after(&mut self, came: Duration, served: Duration) -> Duration {
        match self.load {
            Load::AtOnce(_) => served,
            Load::ASecond(rate) => {
                let part = (self.random.below(1 << 30) + 1) as f64 / f64::from(1 << 30);
                came + Duration::from_secs_f64(-part.ln() / rate)
            }
        }
    }

    /// Serves the reads that arrive until `moment`, and at least those that have arrived by now.
    fn until(&mut self, disk: &Disk, moment: Duration) {
        let until = moment.max(disk.clock.now());
        while self.left > 0
            && self.failed.is_none()
            && let Some(came) = self.next.pop_front_if(|next| *next <= until)
        {
            disk.clock.wait_until(came);
            self.failed = self.read(disk).err();
            let served = disk.clock.now();
            self.latencies.push((served - came).as_secs_f64());
            self.left -= 1;
            let next = self.after(came, served);
            self.next.push_back(next);
        }
        if self.left == 0 {
            disk.filled.store.clean_stop();
        } else if moment != Duration::MAX {
            disk.clock.wait_until(moment);
        }
    }

    fn read(&mut self, disk: &Disk) -> Result<(), Stopped> {
        let reader = disk.filled.open(self.random.below(disk.filled.objects))?;
        let length = 16 + self.random.below(256 - 16 + 1);
        let offset = self.random.below(256 - length + 1);
        let mut bytes = vec![0; length as usize * 4096];
        reader.read_at(offset * 4096, &mut bytes)?;
        Ok(())
    }

    /// After a read has failed, no more are served.
    fn none_failed(&mut self) -> Result<(), Stopped> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// The least latency that 99 of 100 reads do not exceed (nearest rank), in seconds. There has to be a read.
    fn p99(mut self) -> f64 {
        self.latencies.sort_by(f64::total_cmp);
        self.latencies[(self.latencies.len() * 99).div_ceil(100) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;
    use device::faults::{Fault, Faults, Plan};
    use std::io::ErrorKind;
    use zone::ZoneCommand;

    #[test]
    fn p99_is_of_the_nearest_rank() {
        for (count, p99) in [(1u8, 1.0), (100, 99.0), (101, 100.0), (200, 198.0)] {
            let mut reads = Arrivals::new(Load::AtOnce(1), Random::new(1));
            reads.latencies = (1..=count).rev().map(f64::from).collect();
            assert_eq!(reads.p99(), p99);
        }
    }

    #[test]
    fn a_read_that_fails_ends_the_run() {
        let run = Run {
            seed: 1,
            scale: Scale::SMALL,
            figures: false,
            interrupted: Arc::default(),
            progress: &mut |_| (),
        };
        let mut faults = None;
        let disk = Disk::filled(&run, |drive| {
            faults.insert(Arc::new(Faults::new(drive))).clone()
        });
        let (mut disk, faults) = (disk.unwrap(), faults.unwrap());
        let fault = Fault::Io(ErrorKind::Other);
        faults.add(Plan::from(ZoneCommand::Read, 1, fault));
        let mut reads = Arrivals::new(Load::AtOnce(8), run.random(52));
        reads.come(disk.clock.now(), TURN);
        reads.until(&disk, Duration::MAX);
        assert_eq!(reads.count(), 1);
        let failed = reads.none_failed();
        assert!(matches!(failed, Err(Stopped::Store { .. })), "{failed:?}");
        let result = disk.compared(&run, Load::AtOnce(8), "full", TURN);
        assert!(matches!(result, Err(Stopped::Store { .. })), "{result:?}");
    }
}
