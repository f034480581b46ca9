//! A snapshot of the use of a drive's zones, and the results derived from it: sums, the nearest limit, the
//! zones to clean. Nothing here does I/O.

use crate::owner::Owner;
use crate::totals::{Totals, totals};
use crate::user::User;
use crate::zone_view::{ZoneView, of_bluefs, of_others};
use bluefs::Observation;
use runtime::HashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use store::ZoneUse;
use zone::{Geometry, ZoneDescriptor, ZoneId};

/// The sums over the zones of one owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Share {
    /// Number of zones.
    pub zones: u32,
    /// Bytes written to the zones for which that is known; `None` if it is known for none.
    pub written_bytes: Option<u64>,
    /// Bytes of files or objects; `None` as above.
    pub live_bytes: Option<u64>,
    /// Bytes no longer needed; `None` as above.
    pub dead_bytes: Option<u64>,
}

/// The use of a drive's zones at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// Path of the drive.
    pub path: String,
    /// The process that has the drive open.
    pub user: User,
    /// Whether an object store shares it with BlueFS.
    pub has_store: bool,
    /// Zones and limits of the drive.
    pub geometry: Geometry,
    /// Number of files in BlueFS.
    pub files: u64,
    /// Sums over all zones.
    pub totals: Totals,
    /// Sums by owner, for the owners that have zones.
    pub owners: BTreeMap<Owner, Share>,
    /// Bytes by which write pointers have advanced a second since the previous snapshot; `None` in the first
    /// one.
    pub written_bytes_per_second: Option<f64>,
    /// Facts that are missing from this snapshot, and why.
    pub notes: Vec<String>,
    /// All zones.
    pub zones: Vec<ZoneView>,
}

/// The data that a snapshot is made from.
pub struct Look {
    /// Path of the drive.
    pub path: String,
    /// The process that has the drive open.
    pub user: User,
    /// Zones and limits of the drive.
    pub geometry: Geometry,
    /// The drive's zone report.
    pub report: Vec<ZoneDescriptor>,
    /// Whether the report distinguishes open zones from closed ones.
    pub tells_open: bool,
    /// The state of BlueFS's journal.
    pub seen: Observation,
    /// The store's use of its zones, from its server; `None` if unknown.
    pub store: Option<Vec<ZoneUse>>,
    /// Problems that occurred on the way.
    pub notes: Vec<String>,
}

impl Snapshot {
    /// Combines the data into a snapshot.
    pub fn new(look: Look) -> Self {
        let Look {
            path,
            user,
            geometry,
            report,
            tells_open,
            seen,
            store,
            mut notes,
        } = look;
        let objects: Option<HashMap<ZoneId, ZoneUse>> =
            store.map(|zones| zones.into_iter().map(|zone| (zone.zone, zone)).collect());
        let idle = user == User::Nobody;
        let zones: Vec<ZoneView> = report
            .iter()
            .map(|told| match seen.zones.get(&told.id) {
                Some(zone) => of_bluefs(told, zone, idle),
                None => of_others(told, seen.is_shared(), objects.as_ref()),
            })
            .collect();
        let totals = totals(&geometry, &zones, tells_open, seen.is_shared());
        if !totals.dead_is_complete && objects.is_none() {
            notes.push(
                "what is dead among objects only the store knows: `store df`, or serve the drive"
                    .to_owned(),
            );
        }
        let mut owners: BTreeMap<Owner, Share> = BTreeMap::new();
        for zone in &zones {
            let share = owners.entry(zone.owner).or_default();
            share.zones += 1;
            for (sum, bytes) in [
                (&mut share.written_bytes, zone.written_bytes),
                (&mut share.live_bytes, zone.live_bytes),
                (&mut share.dead_bytes, zone.dead_bytes),
            ] {
                if let Some(bytes) = bytes {
                    *sum = Some(sum.unwrap_or(0) + bytes);
                }
            }
        }
        Self {
            path,
            user,
            has_store: seen.is_shared(),
            geometry,
            files: seen.files,
            totals,
            owners,
            written_bytes_per_second: None,
            notes,
            zones,
        }
    }

    /// Zones with dead bytes, in descending order of dead bytes.
    pub fn most_dead(&self) -> Vec<ZoneView> {
        let dead = |zone: &ZoneView| zone.dead_bytes.unwrap_or(0);
        let mut zones: Vec<ZoneView> = self.zones.iter().filter(|z| dead(z) > 0).copied().collect();
        zones.sort_unstable_by_key(|zone| (std::cmp::Reverse(dead(zone)), zone.zone));
        zones
    }
}
