//! The drive and its store at one moment. Taking it may block, and takes as long as the drive wants.

use crate::codes::Codes;
use bluefs::BlueFs;
use device::ZonedDevice;
use device::stats::{Stats, StatsSnapshot};
use inspect::{Snapshot, User, ZoneView, advanced};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Caches, CleanerStatus, Health, Statfs, Store};
use zone::ZoneId;

/// How often zones are looked at again that changed meanwhile, and how long to wait in between.
const LOOKS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(3);
/// What is lost or at risk may take a pass over all objects to tell. It is asked for so often at most, and so rarely that
/// the asking takes no more than this part of the time.
const HEALTH_EVERY: Duration = Duration::from_secs(15);
const HEALTH_PART: u32 = 50;

/// What is looked at.
pub struct Served {
    /// The drive's path.
    pub name: String,
    /// The drive, which counts what passes to it.
    pub device: Arc<Stats<Arc<dyn ZonedDevice>>>,
    /// The store on it.
    pub store: Store,
    /// Lines that could not be written, by log.
    pub lost_lines: Box<dyn Fn() -> Vec<(&'static str, u64)> + Send + Sync>,
}

/// The drive and its store at one moment.
#[derive(Clone)]
pub struct Look {
    pub(crate) taken: Instant,
    pub(crate) commands: StatsSnapshot,
    pub(crate) space: Statfs,
    pub(crate) cleaner: CleanerStatus,
    pub(crate) caches: Caches,
    /// `None` before the drive has once been looked at.
    pub(crate) drive: Option<Arc<DriveLook>>,
    health: Option<HealthLook>,
    /// What could not be told.
    pub(crate) problems: Vec<String>,
}

/// What is lost or at risk: when that was asked, and how long the answer took.
#[derive(Clone)]
struct HealthLook {
    asked: Instant,
    took: Duration,
    told: Arc<Health>,
}

/// The zones.
pub(crate) struct DriveLook {
    taken: Instant,
    /// Without the zones.
    pub sums: Snapshot,
    pub zones: Vec<ZoneView>,
    pub codes: Codes,
}

impl Served {
    /// Looks; what an earlier look found is kept where it is young enough, or nothing newer can be had.
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
        let health = self.health(before).unwrap_or_else(|error| {
            told("the health", &error);
            before.and_then(|before| before.health.clone())
        });
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
        // Past the counters: looking is no load.
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

    fn health(&self, before: Option<&Look>) -> store::Result<Option<HealthLook>> {
        let asked = Instant::now();
        let before = before.and_then(|before| before.health.as_ref());
        if let Some(last) = before
            && asked.duration_since(last.asked) < HEALTH_EVERY.max(last.took * HEALTH_PART)
            && self.store.failure().is_none()
        {
            return Ok(before.cloned());
        }
        let told = Arc::new(self.store.health()?);
        let took = asked.elapsed();
        Ok(Some(HealthLook { asked, took, told }))
    }
}

impl Look {
    /// What is lost or at risk, as far as it was told.
    pub(crate) fn health(&self) -> Option<&Health> {
        self.health.as_ref().map(|health| &*health.told)
    }
}
