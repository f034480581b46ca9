//! Tries a salvage in place on a model of the drive in memory, so that what cannot be done is known before the drive is
//! written to.
//!
//! The model gets the same metadata as the drive and takes as much memory. Zones that are kept have no bytes in it,
//! since nothing reads them.

use super::Salvage;
use super::in_place::writing;
use super::lost::Lost;
use super::plan::{Copied, Plan};
use crate::opened::Opened;
use crate::options::MountOptions;
use crate::{Error, Result, Store};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zone::{ZoneCondition, ZoneId};

impl Salvage {
    /// Adds the objects in `copied` for which there will be no room to the plan.
    ///
    /// # Errors
    /// Errors of a drive on which the new metadata cannot be made.
    pub(super) fn rehearse(
        &self,
        lost: &Lost,
        plan: &mut Plan,
        copied: &[Copied],
        options: &MountOptions,
    ) -> Result<()> {
        let mut options = writing(options);
        let device = if lost.is_placed() {
            options.read_only = true;
            self.device.clone()
        } else {
            // No rehearsal for a drive whose shape the memory drive does not support.
            let Some(model) = self.model(plan)? else {
                return Ok(());
            };
            let model: Arc<dyn ZonedDevice> = Arc::new(model);
            self.write_index(model.clone(), plan, &options)?;
            model
        };
        if copied.is_empty() {
            return Ok(());
        }
        let opened = Opened::open_unfinished(device, &options)?;
        Store::mount_opened(opened, &options)?.used_for(|store| {
            let block = store.inner.device.geometry().block_size;
            let mut taken = 0;
            for object in copied {
                let (collection, name) = (&object.collection, &object.name);
                let has_collection = store.collection(collection)?.is_some();
                if has_collection && store.stat(collection, name)?.is_some() {
                    continue;
                }
                let size = object.size.next_multiple_of(block.into());
                if store.has_room(size.saturating_add(taken)) {
                    taken += size;
                } else {
                    let words = format!("{collection}/{}", crate::Name::from(&name[..]));
                    plan.without_room.insert(object.key.clone(), words);
                }
            }
            Ok::<_, Error>(())
        })
    }

    /// An empty memory drive that can write the same zones as this drive.
    fn model(&self, plan: &Plan) -> Result<Option<MemoryDrive>> {
        let geometry = self.device.geometry();
        let Ok(model) = MemoryDrive::new(geometry.clone()) else {
            return Ok(None);
        };
        for zone in self.device.report(ZoneId(0), geometry.zone_count)? {
            if matches!(
                zone.condition,
                ZoneCondition::ReadOnly | ZoneCondition::Offline
            ) {
                model.set_condition(zone.id, zone.condition)?;
            } else if plan.kept.contains(&zone.id) {
                model.finish(zone.id)?;
            }
        }
        Ok(Some(model))
    }
}
