//! Salvage on the drive itself.
//!
//! Everything but the copies is first tried on a model of the drive (`rehearsal`). Zones that may hold object data are
//! neither written to nor reset, at most finished. Order of writes:
//! 1. The other zones get a new file system, and in it a database with two rows: the store's record, and the mark that
//!    a salvage is under way (`Ssalvage` 1).
//! 2. Rows of what stays in place are written, then those derived from them, then `Ssalvage` 2.
//! 3. The store is mounted for the first time, and what cannot stay in place is copied. Then `Ssalvage` is removed.
//!
//! A stop before `Ssalvage` is 2 leaves the data zones as they were and metadata that does not count: the next salvage
//! starts again. After that, it resumes the copies, of which none is made twice.

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
use device::ZonedDevice;
use device::kept::Kept;
use kv::{Batch, Durability};
use std::sync::Arc;
use zone::{ZoneCondition, ZoneId};

impl Salvage {
    /// Carries out a plan. `progress` is called with objects done and objects in all, during the copies.
    pub fn in_place(
        &self,
        lost: &Lost,
        plan: &Plan,
        options: &MountOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<SalvageReport> {
        let options = writing(options);
        if lost.stage == Stage::Lost {
            self.finish_kept(plan)?;
            self.write_index(self.device.clone(), plan, &options)?;
        }
        let opened = Opened::open_unfinished(self.device.clone(), &options)?;
        let store = Store::mount_opened(opened, &options)?;
        store.used_for(|store| {
            let copied = SalvageOptions {
                to: Some(store),
                damaged: plan.how.damaged,
                in_place: true,
            };
            let report = self.copy_but(copied, &plan.without_room, progress)?;
            let mut end = Batch::default();
            end.delete(key::SUPER_SALVAGE);
            store.inner.kv()?.write(&end, Durability::Synced)?;
            Ok(report)
        })
    }

    /// Finishes zones that are kept, because the new file system needs as many active zones as the old one.
    fn finish_kept(&self, plan: &Plan) -> Result<()> {
        let geometry = self.device.geometry();
        for zone in self.device.report(ZoneId(0), geometry.zone_count)? {
            let is_active = !matches!(
                zone.condition,
                ZoneCondition::Empty | ZoneCondition::Full | ZoneCondition::NotWritePointer
            );
            if is_active && zone.write_pointer_valid() && plan.kept.contains(&zone.id) {
                appender::finish(&*self.device, zone.id);
            }
        }
        Ok(())
    }

    /// Makes a file system with a database of all rows; `device` is the drive, or a model of it.
    pub(super) fn write_index(
        &self,
        device: Arc<dyn ZonedDevice>,
        plan: &Plan,
        options: &MountOptions,
    ) -> Result<()> {
        let mkfs = MkfsOptions {
            engine: options.engine.clone(),
            // The journal's epochs depend on it, and those of the old file system must not recur.
            uuid: plan.how.uuid,
            metadata_copies: Some(plan.copies),
            force: true,
            runtime: options.runtime.clone(),
        };
        let record = SuperRecord {
            version: FORMAT_VERSION,
            // The old store's identity, so that its summaries remain valid.
            uuid: self.scanned.uuid,
        };
        let mut first = Batch::default();
        first.put(key::SUPER_FORMAT, &record.encode());
        first.put(key::SUPER_SALVAGE, &1_u64.to_le_bytes());
        // Not all rows that follow are as a summary has them.
        repair::forget_copies(&mut first);
        let device: Arc<dyn ZonedDevice> = Arc::new(Kept::new(device, plan.kept.clone()));
        mkfs_with(device.clone(), &mkfs, &first)?;

        let opened = Opened::open_unfinished(device, options)?;
        let mut changes = Changes::default();
        for (key, value) in &plan.rows {
            changes.put(key, value);
        }
        changes.apply(&opened.kv)?;
        let now = options.runtime.unix_micros();
        let (opened, done) = repair::put_in_order(opened, now, &mut |_| true, &mut |_, _| {});
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

pub(super) fn writing(options: &MountOptions) -> MountOptions {
    MountOptions {
        read_only: false,
        background: false,
        ..options.clone()
    }
}
