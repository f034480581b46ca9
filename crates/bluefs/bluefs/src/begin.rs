//! What a writable mount changes on the drive before anybody uses it.

use crate::Result;
use crate::failing::DamagedFile;
use crate::format::superblock::Role;
use crate::journal::first_header;
use crate::shared::Shared;
use crate::slot::Class;
use crate::state::State;
use crate::worn_out::{UNREADABLE_PLACES, is_worn_out};
use crate::zone_failures::damaged_files;
use device::ZonedDevice;
use std::collections::BTreeSet;
use zone::{ZoneDescriptor, ZoneId};
use zone_alloc::Owner;

impl Shared {
    /// Remembers which zones with data are read-only or offline, and says what is lost.
    pub fn learn_of_zones(&self, report: &[ZoneDescriptor]) {
        let state = self.state.lock();
        self.failing
            .learn(report, &*self.device, |zone| state.zones.has_data(zone));
        for DamagedFile { path, zone, .. } in damaged_files(&state, report) {
            tracing::error!(path, %zone, "a file has lost bytes");
        }
        self.wake.call();
    }

    /// Pairs of zones with a damaged copy, and lost copies of the superblock.
    fn damaged_places(&self, state: &State) -> u64 {
        self.device.damaged().len() as u64 + state.rings.without_superblock().count() as u64
    }

    /// Finishes zones in which a mount that failed began a journal, as far as others have more of the drive's active zones than
    /// is left to them. Nobody owns these, and they are reset only when it is known what is the store's. Never a zone of
    /// the store's: its write pointer is a witness of what a power cut has lost, until the store's log has been replayed.
    fn finish_left_journals(&self, report: &[ZoneDescriptor]) {
        let Some(quota) = self.pool.active_quota(Owner::BlueFs) else {
            return;
        };
        let most = self.drive.geometry().max_active_zones.saturating_sub(quota);
        let mut others = self.pool.unclaimed();
        others.extend(self.pool.unusable());
        let mut active: Vec<_> = others
            .into_iter()
            .filter_map(|zone| report.get(zone.index()))
            .filter(|zone| zone.condition.is_active())
            .map(|zone| (zone.write_pointer, zone.id))
            .collect();
        active.sort_unstable();
        let more = active.len().saturating_sub(most as usize);
        let zones = active.into_iter().map(|(_, zone)| zone);
        let journals = zones.filter(|zone| first_header(&*self.drive, *zone).is_some());
        for zone in journals.take(more) {
            appender::finish(&*self.drive, zone);
        }
    }

    /// What a writable mount changes on the drive.
    pub fn begin(&self, report: &[ZoneDescriptor], lacking: &BTreeSet<ZoneId>) -> Result<()> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        self.finish_left_journals(report);
        state.rings.finish_others(&*self.device)?;
        let known = self.damaged_places(state);
        if self.copies > 1 {
            let levelled = self.level_copies(state)?;
            self.counters.add_mended(levelled);
        }
        // Taken, and nothing in them counts. Resetting them now changes nothing for another replay
        // of the old journal, and the flush in the compaction makes it durable.
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
            .copied()
            .collect();
        partly.sort_unstable_by_key(|z| (z.write_pointer, z.id));
        // A power cut may leave more of them than were active: some had been full. The journal and a
        // superblock need their resources now. As long as the old journal counts, the write pointer is a
        // witness where it has shown that something is not there.
        let budget = self.slot_budget(state);
        while limited && partly.len() > budget {
            let fullest = partly.iter().rposition(|z| !lacking.contains(&z.id));
            let Some(index) = fullest else { break };
            self.device.finish(partly.remove(index).id)?;
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
        // Go on in zones that are partly written; what is too many is finished, so that it holds
        // no active resource.
        let budget = self.slot_budget(state) / 2;
        for (index, zone) in partly.into_iter().enumerate() {
            if index < budget {
                let slot =
                    state.new_slot(zone.id, Class::Medium, zone.capacity, zone.write_pointer);
                state.zones.reopen(slot)?;
            } else if limited {
                self.device.finish(zone.id)?;
            }
        }
        Ok(())
    }
}
