//! Salvage on the drive itself.
//!
//! Order of writes. The new file system is made on a model of the drive first. No zone with anything that may be an object's is written to or reset; they are finished at most.
//! 1. The other zones get a new file system and in it a database with two rows: the store's record, and that a salvage
//!    is under way (`Ssalvage` 1).
//! 2. Rows of what stays in place are written, then what follows from them, then `Ssalvage` 2.
//! 3. The store is mounted for the first time, and what cannot stay where it is is copied. Then `Ssalvage` goes.
//!
//! Whoever stops before `Ssalvage` is 2 leaves the data zones as they were and metadata that do not count: the next
//! salvage begins anew. Behind that it goes on with the copies, of which none is made twice.

use super::Salvage;
use super::copy::SalvageOptions;
use super::lost::{Lost, Stage};
use super::plan::Plan;
use super::report::SalvageReport;
use crate::format::record::SuperRecord;
use crate::format::{FORMAT_VERSION, key};
use crate::mkfs::mkfs_with;
use crate::opened::Opened;
use crate::options::{MkfsOptions, MountOptions};
use crate::repair::{self, Changes};
use crate::{Result, Store};
use device::kept::Kept;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use std::sync::Arc;
use zone::{ZoneCondition, ZoneId};

/// What the caller has to say of a salvage in place.
#[derive(Clone, Copy, Debug)]
pub struct InPlaceOptions {
    /// The new file system's identity: another one each time.
    pub uuid: [u8; 16],
    /// What is left of damaged objects goes to a collection of its own.
    pub damaged: bool,
}

impl Salvage {
    /// Carries out a plan. `progress` gets objects done and objects in all, of the last step.
    pub fn in_place(
        &self,
        lost: &Lost,
        plan: Plan,
        options: &MountOptions,
        in_place: InPlaceOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<SalvageReport> {
        let options = MountOptions {
            read_only: false,
            background: false,
            ..options.clone()
        };
        if lost.stage == Stage::Lost {
            self.write_index(plan, in_place.uuid, &options)?;
        }
        let opened = Opened::open_unfinished(self.device.clone(), &options)?;
        let store = Store::mount_opened(opened, &options)?;
        store.used_for(|store| {
            let options = SalvageOptions {
                to: Some(store),
                damaged: in_place.damaged,
                in_place: true,
            };
            let report = self.copy(options, progress)?;
            let mut end = Batch::default();
            end.delete(key::SUPER_SALVAGE);
            store.inner.kv()?.write(&end, Durability::Synced)?;
            Ok(report)
        })
    }

    /// An empty drive in memory with the zones that this one can still write: a drive that cannot be formatted is found before
    /// anything is written to it.
    fn model(&self) -> Result<Option<MemoryDrive>> {
        let geometry = self.device.geometry();
        // A drive of a shape that nobody can emulate goes without.
        let Ok(model) = MemoryDrive::new(geometry.clone()) else {
            return Ok(None);
        };
        for zone in self.device.report(ZoneId(0), geometry.zone_count)? {
            if matches!(
                zone.condition,
                ZoneCondition::ReadOnly | ZoneCondition::Offline
            ) {
                model.set_condition(zone.id, zone.condition)?;
            }
        }
        Ok(Some(model))
    }

    fn write_index(&self, mut plan: Plan, uuid: [u8; 16], options: &MountOptions) -> Result<()> {
        let now = options.runtime.unix_micros();
        let mkfs = MkfsOptions {
            engine: options.engine.clone(),
            // Epochs of the journal follow from it, and those of before must not come again.
            uuid,
            metadata_copies: Some(plan.copies),
            force: true,
            runtime: options.runtime.clone(),
        };
        let record = SuperRecord {
            version: FORMAT_VERSION,
            // Summaries go on to be this store's.
            uuid: self.scanned.uuid,
        };
        let mut first = Batch::default();
        first.put(key::SUPER_FORMAT, &record.encode());
        first.put(key::SUPER_SALVAGE, &1_u64.to_le_bytes());
        if let Some(model) = self.model()? {
            mkfs_with(Arc::new(Kept::new(model, plan.kept.clone())), &mkfs, &first)?;
        }
        self.keep_unplaced(&mut plan, now)?;
        let Plan {
            index,
            kept,
            next_collection,
            ..
        } = plan;
        let (rows, next_number) = index.finish(&self.found);
        let mut changes = Changes::default();
        for (key, value) in &rows {
            changes.put(key, value);
        }
        changes.put(key::SUPER_NEXT_NUMBER, &next_number.to_le_bytes());
        let next_collection = u64::from(next_collection);
        changes.put(key::SUPER_NEXT_COLLECTION, &next_collection.to_le_bytes());

        let geometry = self.device.geometry();
        for zone in self.device.report(ZoneId(0), geometry.zone_count)? {
            // The new file system needs as many active zones as the old one.
            let is_active = !matches!(
                zone.condition,
                ZoneCondition::Empty | ZoneCondition::Full | ZoneCondition::NotWritePointer
            );
            if is_active && zone.write_pointer_valid() && kept.contains(&zone.id) {
                appender::finish(&*self.device, zone.id);
            }
        }
        let device: Arc<dyn ZonedDevice> = Arc::new(Kept::new(self.device.clone(), kept));
        mkfs_with(device.clone(), &mkfs, &first)?;

        let opened = Opened::open_unfinished(device, options)?;
        changes.apply(&opened.kv)?;
        let (opened, done) = repair::put_in_order(opened, now, &mut |_| true);
        let done = done.and_then(|report| {
            if !report.given_up.is_empty() {
                tracing::warn!(given_up = ?report.given_up, "not everything fits");
            }
            let mut placed = Batch::default();
            placed.put(key::SUPER_SALVAGE, &2_u64.to_le_bytes());
            Ok(opened.kv.write(&placed, Durability::Synced)?)
        });
        let closed = opened.close();
        done.and(closed)
    }
}
