//! The changes that a mount for writing makes on the drive before the file system is used.

use crate::Result;
use crate::failing::DamagedFile;
use crate::format::superblock::Role;
use crate::journal::first_header;
use crate::shared::Shared;
use crate::slot::Class;
use crate::state::State;
use crate::worn_out::{UNREADABLE_PLACES, is_worn_out};
use crate::zone_failures::damaged_files;
use appender::is_of_zone;
use device::ZonedDevice;
use std::collections::BTreeSet;
use zone::{ZoneDescriptor, ZoneId, ZoneResult};
use zone_alloc::Owner;

impl Shared {
    /// Notes which zones with data are read-only or offline, and logs the files that have lost bytes.
    pub fn learn_of_zones(&self, report: &[ZoneDescriptor]) {
        let state = self.state.lock();
        self.failing
            .learn(report, &*self.device, |zone| state.zones.has_data(zone));
        for DamagedFile { path, zone, .. } in damaged_files(&state, report) {
            tracing::error!(path, %zone, "a file has lost bytes");
        }
        self.wake.call();
    }

    /// Number of pairs with a damaged copy and of rings without a readable superblock.
    fn damaged_places(&self, state: &State) -> u64 {
        self.device.damaged().len() as u64 + state.rings.without_superblock().count() as u64
    }

    /// Active zones that BlueFS does not own, those with the lowest write pointers first. They may be the store's, so
    /// they can be reset only once the store's zones are known.
    fn active_of_others(&self, report: &[ZoneDescriptor]) -> Vec<ZoneId> {
        let mut others = self.pool.unclaimed();
        others.extend(self.pool.unusable());
        let mut active: Vec<_> = others
            .into_iter()
            .filter_map(|zone| report.get(zone.index()))
            .filter(|zone| zone.condition.is_active())
            .map(|zone| (zone.write_pointer, zone.id))
            .collect();
        active.sort_unstable();
        active.into_iter().map(|(_, zone)| zone).collect()
    }

    /// Finishes zones in which a failed mount began a journal, as many as exceed the active zones left to other users
    /// of the drive. Zones of a store are not finished: until the store's log has been replayed, their write pointers
    /// are witnesses of what a power cut has lost.
    fn finish_left_journals(&self, report: &[ZoneDescriptor]) {
        let Some(quota) = self.pool.active_quota(Owner::BlueFs) else {
            return;
        };
        let most = self.drive.geometry().max_active_zones.saturating_sub(quota);
        let active = self.active_of_others(report);
        let more = active.len().saturating_sub(most as usize);
        let journals = active
            .into_iter()
            .filter(|zone| first_header(&*self.drive, *zone).is_some());
        for zone in journals.take(more) {
            appender::finish(&*self.drive, zone);
        }
    }

    /// Zones of each copy that can still become active on the drive.
    fn active_left(&self) -> Result<usize> {
        let g = self.drive.geometry();
        let report = self.drive.report(ZoneId(0), g.zone_count)?;
        let active = report.iter().filter(|zone| zone.condition.is_active());
        let left = (g.max_active_zones as usize).saturating_sub(active.count());
        Ok(left / self.copies as usize)
    }

    /// Finishes zones if a power cut has left so many active that the next journal would find none. First BlueFS's own
    /// partly written zones, with their unused room, until enough are free; a zone whose write pointer is a witness is
    /// not finished. Full zones of uploads may have become partly written ones after a power cut, and then other users
    /// exceed their share. If finishing its own zones is not enough, other users' fullest zones follow: this mount has
    /// noted their write pointers before, so a witness is lost only if this mount is cut short as well.
    fn finish_what_is_too_many(
        &self,
        state: &State,
        partly: &mut Vec<ZoneDescriptor>,
        lacking: &BTreeSet<ZoneId>,
        report: &[ZoneDescriptor],
    ) -> Result<()> {
        const NEXT_JOURNAL: usize = 1;
        let left = self.active_left()? + partly.len();
        let mut budget = self
            .slot_budget(state)
            .min(left.saturating_sub(NEXT_JOURNAL));
        while partly.len() > budget {
            let fullest = partly.iter().rposition(|z| !lacking.contains(&z.id));
            let Some(index) = fullest else { break };
            if !finished(self.device.finish(partly.remove(index).id))? {
                budget = budget.saturating_sub(1);
            }
        }
        let mut others = self.active_of_others(report);
        while self.active_left()? == 0 {
            let Some(zone) = others.pop() else { break };
            appender::finish(&*self.drive, zone);
        }
        Ok(())
    }

    /// Prepares the drive for writing: levels the copies, resets zones that hold nothing live, begins a new journal,
    /// and continues in partly written zones.
    pub fn begin(&self, report: &[ZoneDescriptor], lacking: &BTreeSet<ZoneId>) -> Result<()> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        // If the process that wrote the journal died or its writes failed, the frames that were replayed may be in the
        // drive's cache only. A power cut would then bring back an older journal, whose zones are reset from here on.
        self.drive.flush()?;
        self.finish_left_journals(report);
        state.rings.finish_others(&*self.device);
        let known = self.damaged_places(state);
        if self.copies > 1 {
            let levelled = self.level_copies(state)?;
            self.counters.add_mended(levelled);
        }
        // Zones that were taken and hold nothing live. Resetting them changes nothing for another replay of the old
        // journal, and the flush in the compaction makes the resets durable.
        let owned = state.names.owned.iter().copied();
        let empty: Vec<ZoneId> = owned.filter(|z| state.zones.is_foreign(*z)).collect();
        let outcome = self.reset(&empty)?;
        self.recycle(state, outcome)?;
        self.top_up(state)?;
        let limited = self.pool.active_quota(Owner::BlueFs).is_some();
        let mut partly: Vec<_> = state
            .zones
            .holding()
            .filter_map(|(zone, _)| report.get(zone.index()))
            .filter(|z| z.write_pointer_valid() && z.condition.is_active())
            // No appends to a zone in which data of a file is missing.
            .filter(|z| !self.missing.iter().any(|(_, at)| at.zone == z.id))
            .copied()
            .collect();
        partly.sort_unstable_by_key(|z| (z.write_pointer, z.id));
        // While the old journal counts, the write pointer of a zone with missing data is the witness of that.
        if limited {
            self.finish_what_is_too_many(state, &mut partly, lacking, report)?;
        }
        drop(guard);
        self.compact_if(&|_| true)?;
        let state = &mut *self.state.lock();
        let left = self.damaged_places(state);
        self.counters.add_mended(known.saturating_sub(left));
        if state.superblock.role == Role::Alone {
            let unclaimed = self.pool.unclaimed();
            for zone in &unclaimed {
                let front = UNREADABLE_PLACES as u64 * u64::from(self.drive.geometry().block_size);
                if is_worn_out(&*self.drive, *zone, front)? {
                    self.worn_out.add(*zone);
                }
            }
            let outcome = self.reset(&unclaimed)?;
            self.recycle(state, outcome)?;
        }
        // Continues in partly written zones; those beyond the budget are finished, so that they hold no active
        // resource.
        let budget = self.slot_budget(state) / 2;
        for (index, zone) in partly.into_iter().enumerate() {
            if index < budget {
                let slot =
                    state.new_slot(zone.id, Class::Medium, zone.capacity, zone.write_pointer);
                state.zones.reopen(slot)?;
            } else if limited {
                finished(self.device.finish(zone.id))?;
            }
        }
        Ok(())
    }
}

/// Whether a zone was finished. One that was not is left with its data and its active resource: no reason to refuse
/// the mount.
fn finished(result: ZoneResult<()>) -> ZoneResult<bool> {
    match result {
        Err(error) if is_of_zone(&error) => {
            tracing::warn!(%error, "a partly written zone cannot be finished");
            Ok(false)
        }
        result => result.map(|()| true),
    }
}
