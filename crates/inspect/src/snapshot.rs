//! What the zones of a drive are used for at one moment, and what follows from it: sums, the limit
//! that binds, the zones to clean. Nothing here does I/O.

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

/// Zones of one owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Share {
    /// How many.
    pub zones: u32,
    /// Bytes written to those that tell; unknown if none does.
    pub written_bytes: Option<u64>,
    /// Bytes of files or objects, likewise.
    pub live_bytes: Option<u64>,
    /// Bytes no longer needed, likewise.
    pub dead_bytes: Option<u64>,
}

/// A drive at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct Snapshot {
    /// The drive.
    pub path: String,
    /// Who has it open.
    pub user: User,
    /// Whether an object store shares it with BlueFS.
    pub has_store: bool,
    /// Its shape and limits.
    pub geometry: Geometry,
    /// Files of BlueFS.
    pub files: u64,
    /// Sums.
    pub totals: Totals,
    /// By owner, those that there are.
    pub owners: BTreeMap<Owner, Share>,
    /// Bytes that write pointers moved on by, a second, since the look before.
    pub written_bytes_per_second: Option<f64>,
    /// What this look does not know, and why.
    pub notes: Vec<String>,
    /// All zones.
    pub zones: Vec<ZoneView>,
}

/// What a look at a drive found.
pub struct Look {
    /// The drive.
    pub path: String,
    /// Who has it open.
    pub user: User,
    /// Its shape.
    pub geometry: Geometry,
    /// What the drive says.
    pub report: Vec<ZoneDescriptor>,
    /// Whether the report tells open zones from closed ones.
    pub tells_open: bool,
    /// What BlueFS's journal says.
    pub seen: Observation,
    /// What the store's server says.
    pub store: Option<Vec<ZoneUse>>,
    /// What went wrong.
    pub notes: Vec<String>,
}

impl Snapshot {
    /// Puts together what was found.
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

    /// Zones with dead bytes, those with the most first.
    pub fn most_dead(&self) -> Vec<ZoneView> {
        let dead = |zone: &ZoneView| zone.dead_bytes.unwrap_or(0);
        let mut zones: Vec<ZoneView> = self.zones.iter().filter(|z| dead(z) > 0).copied().collect();
        zones.sort_unstable_by_key(|zone| (std::cmp::Reverse(dead(zone)), zone.zone));
        zones
    }
}
