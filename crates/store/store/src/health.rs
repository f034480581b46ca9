//! What is lost or at risk, and what the store waits for: one look for people and scripts.

use crate::Result;
use crate::database::is_text_log;
use crate::grade::{Grade, Wear};
use crate::inner::Inner;
use crate::losses::{Loss, Places};
use crate::metadata_damage::or_name;
use crate::scrubber::ScrubStatus;
use crate::watchdog::PATIENCE;
use crate::zone_failures::SetAside;
use bluefs::{BlueFs, ZonePurpose};
use device::ZonedDevice;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use zone::{ZoneCommand, ZoneCondition, ZoneId};
use zone_alloc::Owner;

/// Most objects and files that are named; all objects are counted.
const MAX_NAMES: usize = 100;

/// A command that the drive has not answered for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Waiting {
    /// What it is.
    pub command: ZoneCommand,
    /// The zone it begins in, if it is of one.
    pub zone: Option<ZoneId>,
    /// For how long it has been under way.
    pub seconds: u64,
}

/// A zone with object data that is left as it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ZoneAtRisk {
    /// The zone.
    pub zone: ZoneId,
    /// What is wrong with it.
    pub why: SetAside,
    /// What the drive said when that was found.
    pub error: String,
    /// Bytes of objects in it.
    pub live_bytes: u64,
}

/// A zone of the metadata that cannot be written to any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MetadataZone {
    /// The zone.
    pub zone: ZoneId,
    /// What is in it.
    pub purpose: ZonePurpose,
    /// Offline, or read-only.
    pub condition: ZoneCondition,
}

/// What is known to be wrong. Damage that nobody has met yet, a scrub finds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// What the drive is worth.
    pub grade: Grade,
    /// What that follows from.
    pub wear: Wear,
    /// Why nothing can be written any more.
    pub failure: Option<String>,
    /// What the drive has not answered for ten seconds or more.
    pub waiting: Vec<Waiting>,
    /// Zones with object data that cannot be read, or only be read.
    pub zones: Vec<ZoneAtRisk>,
    /// Objects with data in these zones; `None` while the drive does not answer.
    pub objects: Option<u64>,
    /// The first of them, as COLLECTION/OBJECT.
    pub object_names: Vec<String>,
    /// Objects with bytes that are lost: in zones that are offline, and where a scrub found damage.
    pub lost_objects: u64,
    /// How many bytes these are.
    pub lost_bytes: u64,
    /// The first of these objects, and which bytes.
    pub losses: Vec<Loss>,
    /// Files of the metadata with bytes in zones that cannot be read, and other damage to it, also what a scrub has found
    /// and could not mend.
    pub metadata: Vec<String>,
    /// Zones of the metadata that are read-only or offline; what other zones have counts.
    pub metadata_zones: Vec<MetadataZone>,
    /// In how many zones each byte of metadata is.
    pub metadata_copies: u32,
    /// Pairs of zones with metadata of which one is known to be damaged; what is in them is written anew.
    pub damaged_copies: u32,
    /// What the scrub has looked at; `None` while the drive does not answer.
    pub scrub: Option<ScrubStatus>,
    /// Bytes that cannot be given back before these objects are removed.
    pub set_aside_bytes: u64,
    /// Zones that are read-only, offline or out of use, with nothing in them.
    pub unusable_zones: u32,
}

impl Health {
    /// Whether nothing is lost, at risk or waited for. Zones that are out of use with nothing in them are
    /// no harm: drives have some.
    pub fn is_healthy(&self) -> bool {
        self.failure.is_none()
            && self.waiting.is_empty()
            && self.zones.is_empty()
            && self.lost_objects == 0
            && self.metadata.is_empty()
    }

    /// With what objects have in places that are damaged or at risk.
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
    /// What is live in these zones: an object that is put again or removed changes it.
    pub live: Vec<(ZoneId, u64)>,
    /// How often bytes got or lost an object that shows them: a clone of one in these zones changes nothing else.
    pub shows: u64,
}

impl PlacesAtRisk {
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }
}

/// What objects have there. See the fields of [`Health`].
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectsAtRisk {
    objects: u64,
    names: Vec<String>,
    lost_objects: u64,
    lost_bytes: u64,
    losses: Vec<Loss>,
    /// What of the metadata could not be read for it.
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

    /// What costs no look at the drive.
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

    /// What the drive is worth, from all that has been found.
    pub(crate) fn judge(&self, health: &mut Health) {
        let mut lost = self.out_of_use();
        lost.extend(health.zones.iter().map(|zone| zone.zone));
        if health.waiting.is_empty() {
            lost.extend(self.look_at_zones(health));
        }
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

    /// Zones that are read-only, offline or out of use, with nothing in them: whoever counts them or their bytes asks here.
    /// The store's own are among them as soon as they are empty, whether the cleaner has come to them or not.
    pub(crate) fn out_of_use(&self) -> BTreeSet<ZoneId> {
        let emptied = self.freelist.out_of_use();
        self.pool.unusable().into_iter().chain(emptied).collect()
    }

    /// Parts of a conventional zone fail together, and are one zone to whoever looks at the drive.
    fn of_drive(&self, zones: impl IntoIterator<Item = ZoneId>) -> BTreeSet<ZoneId> {
        let geometry = self.device.geometry();
        let zones = zones.into_iter();
        zones.map(|zone| geometry.zone_of_drive(zone).0).collect()
    }

    /// Zones of the drive that are read-only or offline, whoever has them.
    fn look_at_zones(&self, health: &mut Health) -> Vec<ZoneId> {
        let geometry = self.device.geometry();
        // A drive that does not even tell has failed already.
        let mut zones = self
            .device
            .report(ZoneId(0), geometry.zone_count)
            .unwrap_or_default();
        zones.retain(|zone| {
            matches!(
                zone.condition,
                ZoneCondition::ReadOnly | ZoneCondition::Offline
            )
        });
        let purposes: BTreeMap<ZoneId, ZonePurpose> = self.fs.zones().into_iter().collect();
        let of_metadata = zones.iter().filter_map(|told| {
            Some(MetadataZone {
                zone: geometry.zone_of_drive(told.id).0,
                purpose: *purposes.get(&told.id)?,
                condition: told.condition,
            })
        });
        health.metadata_zones = of_metadata.collect();
        // Of the parts of a conventional zone one is named.
        health.metadata_zones.sort_by_key(|told| told.zone);
        health.metadata_zones.dedup_by_key(|told| told.zone);
        let zones: Vec<ZoneId> = zones.into_iter().map(|zone| zone.id).collect();
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

    /// From where on a zone has nothing any more that objects had in it, whether that was written down or not: it is offline,
    /// or has gone back.
    fn lost_from(&self, zone: ZoneId) -> Option<u64> {
        if self.pool.owner(zone) != Some(Owner::Store) {
            return Some(0);
        }
        // After a failed flush the drive's zones are not asked for.
        let told = self.device.report_zone(zone).ok()?;
        match told.condition {
            ZoneCondition::Offline => Some(0),
            _ => told.write_pointer_valid().then_some(told.write_pointer),
        }
    }

    /// Where bytes of objects are at risk or lost.
    pub(crate) fn places_at_risk(&self, health: &mut Health) -> Result<PlacesAtRisk> {
        // Taken first: what comes meanwhile is looked for again.
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

    /// What objects have there: a pass over all of them, if there is anything.
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
