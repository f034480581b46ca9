//! Zones on their way between the pool and the files: taken but not used yet, freed but not reset yet, given up but not
//! returned yet. Each step waits until the one before is durable.

use crate::format::operation::JournalOperation;
use crate::journal::Journal;
use crate::shared::Shared;
use crate::state::State;
use crate::tenants::READY_ZONES;
use crate::zone_table::{SetAside, Stage, ZoneTable};
use crate::{Error, Result};
use std::sync::atomic::Ordering;
use zone::{ZoneCommand, ZoneCondition, ZoneError, ZoneId, ZoneResult};
use zone_alloc::Purpose;

/// Most bytes that a recorded change takes in the journal, unless its path is long.
const PENDING: u64 = 512;

/// The outcome of [`Shared::reset`].
pub(crate) struct Outcome {
    pub empty: Vec<ZoneId>,
    pub broken: Vec<Unreset>,
}

/// A zone whose reset failed, as the drive described it then.
pub(crate) struct Unreset {
    pub zone: ZoneId,
    /// A later reset may succeed.
    may_be_later: bool,
    pub active: bool,
    /// Itself and its twin, as far as they are read-only or offline.
    broken: Vec<ZoneId>,
}

impl Shared {
    /// Empty zones that files can have: BlueFS's own and free ones of the pool, less those kept for the journal.
    pub fn available(&self, state: &State) -> u32 {
        let kept = self.kept_for_snapshots(state, state.journal.zones.len());
        self.empty_zones(state).saturating_sub(kept)
    }

    fn empty_zones(&self, state: &State) -> u32 {
        state.zones.count(Stage::is_ready) + self.free_zones()
    }

    /// Empty zones that must be kept so that a journal of `held` zones can be compacted: zones for all of a snapshot
    /// but its first part, which goes to the spare zone, and as many again for the next compaction, for which the
    /// `held` zones count. One of them is among the zones that every user leaves to the journal.
    pub fn kept_for_snapshots(&self, state: &State, held: usize) -> u32 {
        kept_for(self.zones_of_snapshot(state), held)
    }

    /// Zones that a snapshot takes, at least one.
    pub fn zones_of_snapshot(&self, state: &State) -> u64 {
        let length = self.snapshot_length(state);
        length
            .div_ceil(self.device.geometry().least_capacity())
            .max(1)
    }

    /// Upper bound of the bytes that a snapshot takes.
    fn snapshot_length(&self, state: &State) -> u64 {
        let g = self.device.geometry();
        // A snapshot is no larger than the journal plus the recorded changes, and grows no faster, but for renames of
        // directories.
        let bytes =
            |pending: usize| state.journal.bytes + state.names_grown + pending as u64 * PENDING;
        let least = bytes(state.pending.len()) + u64::from(g.block_size);
        if least <= g.least_capacity() {
            return least;
        }
        let (epoch, before, length) = state.snapshot_length.get();
        let grown = bytes(state.pending.len()).saturating_sub(before);
        if epoch == state.journal.epoch && grown <= g.least_capacity() / 2 {
            return length + grown;
        }
        let length = Journal::length_of(g, &self.snapshot(state));
        let known = (state.journal.epoch, bytes(0), length);
        state.snapshot_length.set(known);
        length
    }

    /// Makes sure that names may be added, which takes zones of the journal only; [`Error::NoSpace`] if it has none.
    pub fn check_room_for_names(&self) -> Result<()> {
        for _ in 0..self.device.geometry().zone_count {
            {
                let state = self.state.lock();
                if self.zones_of_snapshot(&state) == 1 || self.available(&state) > 1 {
                    return Ok(());
                }
            }
            if !self.make_space()? {
                break;
            }
        }
        Err(Error::NoSpace { free_zones: 0 })
    }

    /// Whether a directory may be renamed, which changes all paths below it: a snapshot with the longer paths must find
    /// zones. If so, notes the bytes by which it grows.
    pub fn grow_names(&self, state: &mut State, from: &str, to: &str) -> bool {
        let longer = to.len().saturating_sub(from.len());
        if longer == 0 {
            return true;
        }
        let below = state.names.below(from).count() as u64;
        // Twice, because long paths fill the frames less well.
        let grown = 2 * (below + 1) * longer as u64;
        let capacity = self.device.geometry().least_capacity();
        let finds_room = |state: &State, length: u64| {
            let zones = length.div_ceil(capacity).max(1);
            let kept = kept_for(zones, state.journal.zones.len());
            zones == 1 || self.empty_zones(state).saturating_sub(kept) > 1
        };
        let estimate = self.snapshot_length(state) + grown;
        // In more zones than one, frames may leave up to half of each unused.
        let estimate = estimate * if estimate > capacity { 2 } else { 1 };
        if !finds_room(state, estimate) {
            let mut after = state.names.clone();
            let (from, to) = (from.to_owned(), to.to_owned());
            after.apply(&JournalOperation::Rename { from, to });
            let length = Journal::length_of(self.device.geometry(), &self.snapshot_of(&after));
            if !finds_room(state, length) {
                return false;
            }
            let bytes = state.journal.bytes + state.names_grown + grown;
            let known = (state.journal.epoch, bytes, length);
            state.snapshot_length.set(known);
        }
        state.names_grown += grown;
        true
    }

    /// Takes the next zone for the current journal, but none that its successor needs.
    pub fn next_journal_zone(&self, state: &mut State) -> Result<ZoneId> {
        let kept = self.kept_for_snapshots(state, state.journal.zones.len() + 1) + 1;
        if self.zones_of_snapshot(state) > 1 && self.empty_zones(state) <= kept {
            return Err(Error::NoSpace { free_zones: kept });
        }
        let zone = self.journal_zone(&mut state.zones)?.zone;
        state.journal.zones.push(zone);
        Ok(zone)
    }

    /// Takes zones from the pool until [`READY_ZONES`] are ready, so that the next frame records it and later writers
    /// need not wait.
    pub fn top_up(&self, state: &mut State) -> Result<()> {
        while state.zones.count(Stage::is_ready) < READY_ZONES {
            let Some(zone) = self.take_zone(Purpose::Files) else {
                break;
            };
            state.zones.take(zone, state.next_batch)?;
            if let Some(twin) = self.device.twin(zone) {
                state.record(JournalOperation::Twin { zone, twin });
            }
            state.operate(JournalOperation::Take { zone });
        }
        Ok(())
    }

    /// Takes a zone for the journal: a conventional one, because it holds no active resource, or else one that is
    /// recorded as BlueFS's.
    pub fn journal_zone(&self, zones: &mut ZoneTable) -> Result<SetAside> {
        if self.pool.counts().free_conventional > 0
            && let Some(zone) = self.take_zone(Purpose::Journal)
        {
            return zones.set_aside(zone);
        }
        let conventional_first = self.pool.prefers_conventional();
        let zone = zones.ready(conventional_first, self.flusher.finished());
        // After a power cut this zone may be written without being BlueFS's, or have its content from before its reset.
        // Either content is ignored, because it is of another epoch.
        let zone = zone.or_else(|| self.take_zone(Purpose::Journal));
        let zone = zone.or_else(|| zones.least_ready(conventional_first));
        zones.set_aside(zone.ok_or(Error::NoSpace { free_zones: 0 })?)
    }

    /// Waits until no reader is in one of BlueFS's zones, and resets it unless it is empty. A conventional zone is not reset,
    /// but must be writable.
    pub fn empty(&self, zone: ZoneId) -> ZoneResult<()> {
        self.gate.wait_for_readers(zone);
        let command = ZoneCommand::Reset;
        match self.is_sequential(zone) {
            true if appender::reset_if_written(&*self.device, zone)? => {
                self.counters.resets.fetch_add(1, Ordering::Relaxed);
            }
            true => {}
            false => match self.device.report_zone(zone)?.condition {
                ZoneCondition::Offline => return Err(ZoneError::Offline { command, zone }),
                ZoneCondition::ReadOnly => return Err(ZoneError::ReadOnly { command, zone }),
                _ => {}
            },
        }
        self.device.begin_again(zone);
        Ok(())
    }

    /// Resets zones whose places readers can no longer look up, except worn-out ones.
    pub fn reset(&self, zones: &[ZoneId]) -> ZoneResult<Outcome> {
        let zones = zones.iter().copied();
        let (worn_out, zones): (Vec<_>, Vec<_>) = zones.partition(|zone| self.is_worn_out(*zone));
        let mut resets = appender::reset_or_retire(&zones, |zone| self.empty(zone))?;
        resets.broken.extend(worn_out);
        // Now, because it takes commands to the drive, which may hang.
        let told = |zone| {
            let broken = self.broken_of(zone);
            let told = self.device.report_zone(zone);
            Unreset {
                zone,
                may_be_later: self.may_be_reset_later(zone, &broken),
                active: told.is_ok_and(|told| told.condition.is_active()),
                broken,
            }
        };
        Ok(Outcome {
            empty: resets.empty,
            broken: resets.broken.into_iter().map(told).collect(),
        })
    }

    /// Takes worn-out zones out of use that a mount had taken before it knew of them.
    pub fn give_worn_out(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        let mut state = self.state.lock();
        let ready = state.zones.iter().filter(|(_, stage)| stage.is_ready());
        let ready = ready.map(|(zone, _)| zone);
        let worn_out: Vec<ZoneId> = ready.filter(|zone| self.is_worn_out(*zone)).collect();
        if worn_out.is_empty() {
            return Ok(());
        }
        for zone in worn_out {
            let batch = state.next_batch;
            state.zones.give(zone, batch)?;
            state.operate(JournalOperation::Give { zone });
        }
        drop(state);
        self.commit()
    }

    /// Returns a zone that was set aside for the journal and not needed.
    pub fn put_back(&self, zones: &mut ZoneTable, aside: SetAside) {
        let zone = aside.zone;
        if zones.put_back(aside) {
            self.give_back(zone);
        }
    }

    /// After resets: keeps the empty zones as ready ones or gives them back to the pool, and retires or retries those
    /// whose reset failed.
    pub fn recycle(&self, state: &mut State, resets: Outcome) -> Result<()> {
        let next_flush = self.flusher.next();
        for unreset in resets.broken {
            let zone = unreset.zone;
            if unreset.may_be_later {
                // The spare zone is reset again when the next journal begins in it.
                if zone != state.superblock.spare_zone {
                    self.reset_later(state, &unreset)?;
                }
                continue;
            }
            state.zones.forget(zone)?;
            if state.names.owned.contains(&zone) {
                state.operate(JournalOperation::Give { zone });
            }
            self.retire(zone, unreset.broken);
        }
        if !resets.empty.is_empty() {
            // The drive may allow another active zone by now.
            state.budget_cut = state.budget_cut.saturating_sub(1);
        }
        for zone in resets.empty {
            if zone == state.superblock.spare_zone {
                continue;
            }
            if state.names.owned.contains(&zone) {
                state.zones.was_reset(zone, next_flush)?;
            } else {
                state.zones.forget(zone)?;
                self.give_back(zone);
            }
        }
        let kept = self.kept_for_snapshots(state, state.journal.zones.len());
        let is_too_much = |state: &State, zone: ZoneId| {
            state.zones.count(Stage::is_ready) > READY_ZONES + kept
                || self.is_sequential(zone) && self.pool.bluefs_is_in_the_way()
        };
        while let Some(zone) = state
            .zones
            .least_ready(self.pool.prefers_conventional())
            .filter(|zone| is_too_much(state, *zone))
        {
            state.zones.give(zone, state.next_batch)?;
            state.operate(JournalOperation::Give { zone });
        }
        Ok(())
    }
}

/// Zones to be kept for snapshots of `zones` zones while the journal holds `held`.
fn kept_for(zones: u64, held: usize) -> u32 {
    let more = zones - 1;
    let needed = more.max((2 * more).saturating_sub(held as u64 - 1));
    needed.saturating_sub(1) as u32
}

#[cfg(test)]
mod tests {
    use crate::evacuate::tests::mounted;

    #[test]
    fn a_rename_for_which_there_is_ample_room_encodes_no_snapshot() {
        let (_drive, fs) = mounted();
        fs.create_directory("/d").unwrap();
        for n in 0..100 {
            drop(fs.create(&format!("/d/{n}")).unwrap());
        }
        fs.sync_metadata().unwrap();
        let snapshot_length = || fs.shared.state.lock().snapshot_length.get();
        let before = snapshot_length();
        let mut state = fs.shared.state.lock();
        assert!(fs.shared.grow_names(&mut state, "/d", &"/d".repeat(60)));
        drop(state);
        assert_eq!(snapshot_length(), before);
        // This one may have none: only what a snapshot takes tells.
        let mut state = fs.shared.state.lock();
        assert!(fs.shared.grow_names(&mut state, "/d", &"/d".repeat(1000)));
        drop(state);
        assert!(snapshot_length().2 > 200_000);
    }
}
