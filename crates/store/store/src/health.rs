//! What is lost or at risk, and what the store waits for: one look for people and scripts.

use crate::Result;
use crate::format::key;
use crate::format::onode::Onode;
use crate::inner::Inner;
use crate::owners::Owners;
use crate::rows::{corrupt, decode_extent, read_blob_row};
use crate::watchdog::PATIENCE;
use crate::zone_failures::SetAside;
use object::{BlobId, BlobName, Content};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use zone::{ZoneCommand, ZoneId};

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

/// What is known to be wrong. Damage that nobody has met yet, only `fsck` with `deep` finds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Health {
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
    /// Files of the metadata with bytes in zones that cannot be read, and other damage to it.
    pub metadata: Vec<String>,
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
            && self.metadata.is_empty()
    }
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

    pub(crate) fn health(&self) -> Result<Health> {
        let zones = self.freelist.all_set_aside().into_iter();
        let zones = zones.map(|zone| ZoneAtRisk {
            zone: zone.zone,
            why: zone.why,
            error: zone.error,
            live_bytes: zone.live,
        });
        let mut health = Health {
            failure: self.failure.get().cloned(),
            waiting: self.waiting(),
            zones: zones.collect(),
            set_aside_bytes: self.freelist.set_aside_bytes(),
            unusable_zones: self.pool.counts().unusable,
            ..Health::default()
        };
        // What follows may need what the drive does not answer.
        if !health.waiting.is_empty() {
            return Ok(health);
        }
        let maps = self.maps_in(&mut health);
        let mut objects = 0;
        self.objects_of(&maps, &mut |name| {
            objects += 1;
            if health.object_names.len() < MAX_NAMES {
                health.object_names.push(name);
            }
        })?;
        health.objects = Some(objects);
        let damage = self.fs.damage().into_iter().map(|error| error.to_string());
        // After a failed flush the drive's zones are not asked for.
        let files = self.fs.damaged_files().unwrap_or_default().into_iter();
        let files = files.map(|file| format!("{} (zone {})", file.path, file.zone));
        health.metadata.extend(damage.chain(files));
        health.metadata.truncate(MAX_NAMES);
        Ok(health)
    }

    /// The maps that show blobs in zones at risk, as far as the metadata tells.
    fn maps_in(&self, health: &mut Health) -> BTreeSet<u64> {
        let (mut maps, mut blobs) = (BTreeSet::new(), BTreeSet::new());
        for zone in &health.zones {
            let all = self.each_place(zone.zone, &mut |_, name| {
                match name {
                    BlobName::Own { map, .. } => _ = maps.insert(map),
                    BlobName::Shared(id) => _ = blobs.insert(id),
                }
                true
            });
            health.metadata.extend(all.err().map(|e| e.to_string()));
        }
        let showing = self.maps_showing(&mut maps, blobs);
        health.metadata.extend(showing.err().map(|e| e.to_string()));
        maps
    }

    /// Adds the maps that show shared blobs: one pass over all extents if several maps show one of them.
    fn maps_showing(&self, maps: &mut BTreeSet<u64>, mut blobs: BTreeSet<BlobId>) -> Result<()> {
        let kv = self.kv()?;
        for id in std::mem::take(&mut blobs) {
            match read_blob_row(&kv, id)?.map(|shared| shared.map) {
                Some(Some(map)) => _ = maps.insert(map),
                Some(None) => _ = blobs.insert(id),
                None => {}
            }
        }
        if blobs.is_empty() {
            return Ok(());
        }
        for row in kv.scan(&[key::EXTENT], Some(&[key::EXTENT + 1])) {
            let (key, value) = row?;
            let (map, _, extent) = decode_extent(&key, &value)?;
            if let Content::Shared { blob, .. } = extent.content
                && blobs.contains(&blob)
            {
                maps.insert(map);
            }
        }
        Ok(())
    }

    /// Names the objects that have any of these maps: one pass over all objects, and none if there are no
    /// maps.
    fn objects_of(&self, maps: &BTreeSet<u64>, named: &mut dyn FnMut(String)) -> Result<()> {
        if maps.is_empty() {
            return Ok(());
        }
        let owners = Owners::of_all(&self.collections());
        let kv = self.kv()?;
        let rows = |namespace: u8| kv.scan(&[namespace], Some(&[namespace + 1]));
        for row in key::ONODES.into_iter().flat_map(rows) {
            let (key, value) = row?;
            let onode = Onode::decode(&value);
            let onode = onode.ok_or_else(|| corrupt(&key, "no onode", value.len()))?;
            if onode.segments.iter().any(|s| maps.contains(&s.map)) {
                named(owners.words(&key));
            }
        }
        Ok(())
    }
}
