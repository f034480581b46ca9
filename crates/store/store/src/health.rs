//! The store's health: lost data, data at risk, and commands that the drive does not answer, for people and scripts.

use crate::Result;
use crate::database::is_text_log;
use crate::grade::{Grade, Wear};
use crate::inner::Inner;
use crate::losses::{Loss, Places};
use crate::metadata_damage::or_name;
use crate::scrubber::ScrubStatus;
use crate::stream::why_set_aside;
use crate::watchdog::PATIENCE;
use crate::zone_failures::SetAside;
use bluefs::{BlueFs, ZonePurpose};
use device::ZonedDevice;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use zone::{ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneId};
use zone_alloc::Owner;

/// Most objects and files that are listed by name; all objects are counted.
const MAX_NAMES: usize = 100;

/// A command that the drive has not answered for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// The kind of command.
    pub command: ZoneCommand,
    /// The zone it begins in, if it concerns one.
    pub zone: Option<ZoneId>,
    /// Seconds since it was sent.
    pub seconds: u64,
}

/// A zone with object data that is set aside.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ZoneAtRisk {
    /// The zone.
    pub zone: ZoneId,
    /// Why it is set aside.
    pub why: SetAside,
    /// The error with which that was found.
    pub error: String,
    /// Live bytes of objects in it.
    pub live_bytes: u64,
}

/// A zone of the metadata that is read-only or offline.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MetadataZone {
    /// The zone.
    pub zone: ZoneId,
    /// What BlueFS used it for.
    pub purpose: ZonePurpose,
    /// Its condition: offline or read-only.
    pub condition: ZoneCondition,
}

/// Known losses, risks and failures. Only a scrub finds damage that no read has met yet.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Judgement of the drive.
    pub grade: Grade,
    /// The counters that the grade follows from.
    pub wear: Wear,
    /// Why the store takes no writes any more, if so.
    pub failure: Option<String>,
    /// Commands that the drive has not answered for ten seconds or more.
    pub waiting: Vec<Waiting>,
    /// Zones with object data that are unreadable or read-only.
    pub zones: Vec<ZoneAtRisk>,
    /// Objects with data in these zones; `None` while the drive does not answer.
    pub objects: Option<u64>,
    /// Names of the first of them, as COLLECTION/OBJECT.
    pub object_names: Vec<String>,
    /// Objects with lost bytes: in offline zones, and where a scrub found damage.
    pub lost_objects: u64,
    /// Number of lost bytes.
    pub lost_bytes: u64,
    /// The first of these objects, with their lost bytes.
    pub losses: Vec<Loss>,
    /// Files of the metadata with bytes in unreadable zones, and other damage to metadata, including what a scrub found
    /// and could not repair.
    pub metadata: Vec<String>,
    /// Zones of the metadata that are read-only or offline; copies in other zones are used.
    pub metadata_zones: Vec<MetadataZone>,
    /// Number of zones that each byte of metadata is written to.
    pub metadata_copies: u32,
    /// Pairs of metadata zones of which one is known to be damaged; their contents are rewritten.
    pub damaged_copies: u32,
    /// Status of the scrub; `None` while the drive does not answer.
    pub scrub: Option<ScrubStatus>,
    /// Bytes that cannot be reused before the objects in [`Self::zones`] are removed.
    pub set_aside_bytes: u64,
    /// Empty zones that are read-only, offline or out of use.
    pub unusable_zones: u32,
}

impl Health {
    /// Whether nothing is lost, at risk or waited for. Empty zones out of use do no harm: drives have some.
    pub fn is_healthy(&self) -> bool {
        self.failure.is_none()
            && self.waiting.is_empty()
            && self.zones.is_empty()
            && self.lost_objects == 0
            && self.metadata.is_empty()
    }

    /// Adds the objects with data in places that are damaged or at risk.
    pub(crate) fn name_objects(&mut self, found: &ObjectsAtRisk) {
        self.objects = Some(found.objects);
        self.object_names.clone_from(&found.names);
        self.lost_objects = found.lost_objects;
        self.lost_bytes = found.lost_bytes;
        self.losses.clone_from(&found.losses);
        self.metadata.extend(found.problems.iter().cloned());
        self.metadata.sort();
        self.metadata.dedup();
        self.metadata.truncate(MAX_NAMES);
    }
}

/// Where bytes of objects are at risk or lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PlacesAtRisk {
    pub at_risk: Places,
    pub lost: Places,
    /// Live bytes in these zones, which change when an object is put again or removed.
    pub live: Vec<(ZoneId, u64)>,
    /// `Inner::shows`: changes when bytes gain or lose an object, as by a clone, without a change of `live`.
    pub shows: u64,
}

impl PlacesAtRisk {
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}

/// The objects with data in [`PlacesAtRisk`]; see the fields of [`Health`].
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectsAtRisk {
    objects: u64,
    names: Vec<String>,
    lost_objects: u64,
    lost_bytes: u64,
    losses: Vec<Loss>,
    /// Metadata that could not be read in the search.
    problems: Vec<String>,
}

impl Inner {
    pub(crate) fn waiting(&self) -> Vec<Waiting> {
        let waiting = self.under_way.longer_than(PATIENCE).into_iter();
        waiting
            .map(|w| Waiting {
                command: w.command,
                zone: w.zone,
                seconds: w.age.as_secs(),
            })
            .collect()
    }

    /// The part of the report that needs no I/O.
    pub(crate) fn health_by_zones(&self) -> Health {
        let zones = self.freelist.all_set_aside().into_iter();
        let zones = zones.map(|zone| ZoneAtRisk {
            zone: zone.zone,
            why: zone.why,
            error: zone.error,
            live_bytes: zone.live,
        });
        let usage = self.fs.usage();
        Health {
            failure: self.failure.get().cloned(),
            waiting: self.waiting(),
            zones: zones.collect(),
            metadata_copies: usage.copies,
            damaged_copies: usage.damaged_copies,
            set_aside_bytes: self.freelist.totals().set_aside,
            unusable_zones: self.of_drive(self.out_of_use()).len() as u32,
            ..Health::default()
        }
    }

    /// Grades the drive by all that the report has found, `told` being what [`Self::worn_zones`] returned.
    pub(crate) fn judge(&self, health: &mut Health, told: &[ZoneDescriptor]) {
        let mut lost = self.out_of_use();
        lost.extend(health.zones.iter().map(|zone| zone.zone));
        lost.extend(self.look_at_zones(health, told));
        health.wear = Wear {
            zones: self.device.geometry().drive_zones(),
            zones_lost: self.of_drive(lost).len() as u32,
            failed_commands: self.freelist.failed_commands(),
            reads_repeated: self.reads_repeated.load(Ordering::Relaxed),
            slow_commands: self.slow_commands.load(Ordering::Relaxed) + health.waiting.len() as u64,
            damaged_copies: health.damaged_copies,
        };
        let is_lost = health.failure.is_some() || health.lost_objects > 0;
        health.grade = match is_lost || !health.metadata.is_empty() {
            true => Grade::Failing,
            false => Grade::of(&health.wear),
        };
    }

    /// Empty zones that are read-only, offline or out of use: the basis of all counts of them. The store's own zones
    /// are included as soon as they are empty, whether the cleaner has processed them or not.
    pub(crate) fn out_of_use(&self) -> BTreeSet<ZoneId> {
        let emptied = self.freelist.out_of_use();
        self.pool.unusable().into_iter().chain(emptied).collect()
    }

    /// The drive's own zones: parts of a conventional zone fail together and count once.
    fn of_drive(&self, zones: impl IntoIterator<Item = ZoneId>) -> BTreeSet<ZoneId> {
        let geometry = self.device.geometry();
        let zones = zones.into_iter();
        zones.map(|zone| geometry.zone_of_drive(zone).0).collect()
    }

    /// Zones of the drive that are read-only or offline, whatever they are used for. The store's own are set aside, so
    /// that the cleaner empties those that can be read: nothing else may ever write to a zone that is full.
    pub(crate) fn worn_zones(&self) -> Vec<ZoneDescriptor> {
        // A drive that does not even report its zones has failed already.
        let mut zones = self
            .device
            .report(ZoneId(0), self.device.geometry().zone_count)
            .unwrap_or_default();
        zones.retain(|told| match why_set_aside(told.condition) {
            Some(why) => {
                self.set_aside_told(told, why);
                true
            }
            None => false,
        });
        zones
    }

    fn set_aside_told(&self, told: &ZoneDescriptor, why: SetAside) {
        let (zone, what) = (told.id, format!("zone {} is {:?}", told.id, told.condition));
        if self.freelist.set_aside_for_good(zone, why, what) {
            tracing::error!(%zone, ?why, "a zone with object data is set aside");
            self.cleaner.nudge();
        }
    }

    /// Names the zones of the metadata among those that are read-only or offline; returns the numbers of all.
    fn look_at_zones(&self, health: &mut Health, zones: &[ZoneDescriptor]) -> Vec<ZoneId> {
        let geometry = self.device.geometry();
        let purposes: BTreeMap<ZoneId, ZonePurpose> = self.fs.zones().into_iter().collect();
        let of_metadata = zones.iter().filter_map(|told| {
            Some(MetadataZone {
                zone: geometry.zone_of_drive(told.id).0,
                purpose: *purposes.get(&told.id)?,
                condition: told.condition,
            })
        });
        health.metadata_zones = of_metadata.collect();
        // The parts of a conventional zone are reported once.
        health.metadata_zones.sort_by_key(|told| told.zone);
        health.metadata_zones.dedup_by_key(|told| told.zone);
        let zones: Vec<ZoneId> = zones.iter().map(|zone| zone.id).collect();
        for ring in BlueFs::superblock_zones(geometry).chunks(2) {
            if let [one, other] = ring
                && ring.iter().all(|zone| zones.contains(zone))
            {
                health.metadata.push(format!(
                    "superblock zones {one} and {other} are out of use, and the last copy is in others"
                ));
            }
        }
        zones
    }

    /// Offset in a zone from which objects have lost their bytes, whether that was recorded or not: 0 if it is offline
    /// or no longer the store's, else its write pointer.
    fn lost_from(&self, zone: ZoneId) -> Option<u64> {
        if self.pool.owner(zone) != Some(Owner::Store) {
            return Some(0);
        }
        // `None` after a failed flush, when the drive is not asked for its zones any more.
        let told = self.device.report_zone(zone).ok()?;
        match told.condition {
            ZoneCondition::Offline => Some(0),
            _ => told.write_pointer_valid().then_some(told.write_pointer),
        }
    }

    /// Places of zones where bytes of objects are at risk or lost.
    pub(crate) fn places_at_risk(&self, health: &mut Health) -> Result<PlacesAtRisk> {
        // Read first, so that a change during the search starts another one.
        let shows = self.shows.load(Ordering::Acquire);
        let mut lost = or_name(self.damaged_places(), &mut health.metadata)?;
        let mut at_risk = Places::new();
        for zone in &health.zones {
            let all = 0..self.device.geometry().capacity(zone.zone);
            at_risk.entry(zone.zone).or_default().push(all.clone());
            if let Some(from) = self.lost_from(zone.zone) {
                lost.entry(zone.zone).or_default().push(from..all.end);
            }
        }
        let zones: BTreeSet<ZoneId> = at_risk.keys().chain(lost.keys()).copied().collect();
        let live = zones
            .into_iter()
            .map(|zone| (zone, self.freelist.zone(zone).1));
        Ok(PlacesAtRisk {
            live: live.collect(),
            at_risk,
            lost,
            shows,
        })
    }

    /// The objects with data in these places: one pass over all objects, or none if there are no places.
    pub(crate) fn objects_at_risk(&self, places: &PlacesAtRisk) -> Result<ObjectsAtRisk> {
        let mut found = ObjectsAtRisk::default();
        let mut problems = self.objects_in(&places.at_risk, &mut |at_risk| {
            found.objects += 1;
            if found.names.len() < MAX_NAMES {
                found.names.push(at_risk.object);
            }
        })?;
        problems.extend(self.objects_in(&places.lost, &mut |loss| {
            found.lost_objects += 1;
            found.lost_bytes += loss.bytes();
            if found.losses.len() < MAX_NAMES {
                found.losses.push(loss);
            }
        })?);
        Ok(ObjectsAtRisk { problems, ..found })
    }

    pub(crate) fn look_at_metadata(&self, health: &mut Health) -> Result<()> {
        let damage = self.fs.damage().into_iter().map(|error| error.to_string());
        let files = self.fs.damaged_files().unwrap_or_default().into_iter();
        let files = files.filter(|file| !is_text_log(&file.path));
        let files = files.map(|file| format!("{} (zone {})", file.path, file.zone));
        health.metadata.extend(damage.chain(files));
        let (scrub, damage) = self.look_at_scrub()?;
        health.metadata.extend(damage);
        health.scrub = Some(scrub);
        Ok(())
    }
}
