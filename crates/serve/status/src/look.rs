//! Snapshots of a drive and its store. Taking one blocks for as long as the drive takes to answer.

use crate::codes::Codes;
use bluefs::BlueFs;
use device::ZonedDevice;
use device::stats::{Stats, StatsSnapshot};
use inspect::{Snapshot, User, ZoneView, advanced};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Caches, CleanerStatus, Health, HealthLook, Statfs, Store};
use zone::ZoneId;

/// How many times the zones are read if they change meanwhile, and the pause between two reads.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(3);

/// The parts of a served drive that a snapshot is taken of.
pub struct Served {
    /// The drive's path.
    pub name: String,
    /// The drive, with counters of the commands sent to it.
    pub device: Arc<Stats<Arc<dyn ZonedDevice>>>,
    /// The store on it.
    pub store: Store,
    /// Number of lines that could not be written, by log.
    pub lost_lines: Box<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>,
}

/// A snapshot of a drive and its store.
#[derive(Clone)]
pub struct Look {
    pub(crate) taken: Instant,
    pub(crate) commands: StatsSnapshot,
    pub(crate) space: Statfs,
    pub(crate) cleaner: CleanerStatus,
    pub(crate) caches: Caches,
    /// `None` if the zones were never read.
    pub(crate) drive: Option<Arc<DriveLook>>,
    health: Option<Arc<HealthLook>>,
    /// Parts that failed, with the reason.
    pub(crate) problems: Vec<String>,
}

/// Snapshot of the zones.
pub(crate) struct DriveLook {
    taken: Instant,
    /// Totals, without the single zones.
    pub sums: Snapshot,
    pub zones: Vec<ZoneView>,
    pub codes: Codes,
}

impl Served {
    /// Takes a snapshot; parts of the snapshot `before` are kept if they are recent enough, or if the new ones fail.
    pub(crate) fn look(&self, before: Option<&Look>) -> Look {
        let mut problems = Vec::new();
        let mut told = |what: &str, problem: &dyn ToString| {
            problems.push(format!("{what}: {}", problem.to_string()));
        };
        let drive = self.zones(before.and_then(|before| before.drive.as_deref()));
        let drive = match drive {
            Ok(drive) => Some(Arc::new(drive)),
            Err(error) => {
                told("the zones", &error);
                before.and_then(|before| before.drive.clone())
            }
        };
        let known = before.and_then(|before| before.health.clone());
        let health = match self.store.health_after(known.as_deref()) {
            Ok(health) => Some(Arc::new(health)),
            Err(error) => {
                told("the health", &error);
                known
            }
        };
        let caches = self.store.caches().unwrap_or_else(|error| {
            told("the caches", &error);
            Caches::default()
        });
        Look {
            taken: Instant::now(),
            commands: self.device.snapshot(),
            space: self.store.statfs(),
            cleaner: self.store.clean_status(),
            caches,
            drive,
            health,
            problems,
        }
    }

    fn zones(&self, before: Option<&DriveLook>) -> Result<DriveLook, bluefs::Error> {
        // Reads below the counters, so that snapshots do not count as load.
        let drive = BlueFs::view(self.device.inner().clone())?;
        let geometry = drive.geometry().clone();
        let mut looks = 0;
        let (report, seen) = loop {
            let report = drive.report(ZoneId(0), geometry.zone_count)?;
            let seen = BlueFs::observe(&*drive, &report)?;
            looks += 1;
            if seen.whole || looks == LOOKS {
                break (report, seen);
            }
            std::thread::sleep(PAUSE);
        };
        let taken = Instant::now();
        let mut sums = Snapshot::new(inspect::Look {
            path: self.name.clone(),
            user: User::Server {
                pid: std::process::id(),
            },
            geometry,
            report,
            tells_open: true,
            seen,
            store: Some(self.store.zones()),
            notes: Vec::new(),
        });
        if let Some(before) = before {
            let seconds = taken.duration_since(before.taken).as_secs_f64();
            let bytes = advanced(&before.zones, &sums.zones);
            sums.written_bytes_per_second = (seconds > 0.0).then(|| bytes as f64 / seconds);
        }
        Ok(DriveLook {
            taken,
            codes: Codes::of(&sums.zones),
            zones: std::mem::take(&mut sums.zones),
            sums,
        })
    }
}

impl Look {
    /// Losses of data and risks to it, if known.
    pub(crate) fn health(&self) -> Option<&Health> {
        self.health.as_ref().map(|health| &health.health)
    }

    /// Time spent on finding objects that are lost or at risk.
    pub(crate) fn objects_took(&self) -> Duration {
        let health = self.health.as_ref();
        health.map_or(Duration::ZERO, |health| health.objects_took)
    }

    /// Age of the names and numbers of objects in [`Self::health`].
    pub(crate) fn lost_objects_age(&self) -> Option<Duration> {
        let health = self.health.as_ref()?;
        Some(health.objects_age + self.taken.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::wrap::faults::Faults;
    use device::{MemoryDrive, profile};
    use kv_rocksdb::RocksDb;
    use store::{Attributes, MkfsOptions, MountOptions, Transaction};
    use zone::ZoneCondition;

    fn put(store: &Store, name: &str) {
        let mut writer = store.writer(Some(100_000)).unwrap();
        writer.write(&[7; 100_000]).unwrap();
        let mut change = Transaction::new();
        change.put("c", name, writer.finish().unwrap(), Attributes::new());
        store.commit(change).unwrap();
    }

    #[test]
    fn each_look_knows_of_damage_and_of_its_end() {
        let profile = profile::by_name("test-small").unwrap();
        let geometry = profile.geometry(64 << 20, None).unwrap();
        let drive = Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()));
        let device: Arc<dyn ZonedDevice> = drive.clone();
        Store::mkfs(device.clone(), &MkfsOptions::new(RocksDb)).unwrap();
        let device = Arc::new(Stats::new(device));
        let store = Store::mount(device.clone(), MountOptions::new(RocksDb)).unwrap();
        let mut change = Transaction::new();
        change.create_collection("c", Attributes::new());
        store.commit(change).unwrap();
        ["one", "two"].iter().for_each(|name| put(&store, name));
        let served = Served {
            name: "in memory".to_owned(),
            device,
            store: store.clone(),
            lost_lines: Box::new(Vec::new),
        };
        let before = served.look(None);
        assert!(before.health().unwrap().is_healthy());

        drive.break_zone(store.zones()[0].zone, ZoneCondition::Offline);
        let reader = store.open("c", "one").unwrap();
        reader.read_at(0, &mut [0; 4096]).unwrap_err();
        drop(reader);
        let damaged = served.look(Some(&before));
        let health = damaged.health().unwrap();
        assert_eq!((health.zones.len(), health.lost_objects), (1, 2));

        ["one", "two"].iter().for_each(|name| put(&store, name));
        // A pass over the objects that found damage has to rest for some of its own length.
        let mut last = served.look(Some(&damaged));
        while !last.health().unwrap().is_healthy() {
            assert!(last.health().unwrap().zones.is_empty());
            last = served.look(Some(&last));
        }
        store.unmount().unwrap();
    }
}
