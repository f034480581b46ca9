//! Chooses and opens zones for writers and for moved data, within the budget of open zones and of free ones.

use crate::shared::Shared;
use crate::slot::{Choice, Class, Open, Slot, Want, choose};
use crate::state::State;
use crate::tenants::Need;
use crate::zone_table::{Opened, Stage};
use crate::{Error, Result};
use appender::is_of_zone;
use device::ZonedDevice;
use std::sync::Arc;
use std::time::Duration;
use zone_alloc::Owner;

/// How often a writer that needs space tries again to move data that cannot be read, and the pause before it does.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_secs(1);

impl Shared {
    /// How many data zones may be open at once: at least two less those that wait for a reset, and 16 if the drive has
    /// no limit.
    pub fn slot_budget(&self, state: &State) -> usize {
        let Some(quota) = self.slot_quota(state) else {
            return 16;
        };
        let budget = quota.saturating_sub(state.budget_cut);
        // Zones that wait for a reset are active until it is done.
        let waiting = state.zones.count(Stage::is_active_until_reset);
        budget.max(2).saturating_sub(waiting as usize)
    }

    /// How many data zones BlueFS's share of the active zones is enough for; `None` if the drive has no limit.
    fn slot_quota(&self, state: &State) -> Option<usize> {
        // The journal counts even while it is in a conventional zone, because the next one may not be.
        let journal = 1;
        let rings = state.rings.active_zones(self.device.geometry());
        let quota = self.pool.active_quota(Owner::BlueFs)? as usize;
        let each = self.copies as usize;
        Some((quota.saturating_sub(rings) / each).saturating_sub(journal))
    }

    /// Opens one zone fewer from now on, but not fewer than two: the drive has refused to open one.
    pub fn cut_budget(&self, state: &mut State) {
        let most = self.slot_quota(state).unwrap_or(0).saturating_sub(2);
        state.budget_cut = most.min(state.budget_cut + 1);
    }

    /// A slot for a writer, if `kept` empty zones are left to others; `None` if space has to be made first.
    pub fn take_slot(&self, state: &mut State, want: Want, kept: u32) -> Result<Option<Arc<Slot>>> {
        let class = want.class;
        let open = self.open_zones(state, kept);
        let budget = self.slot_budget(state);
        let finished = self.flusher.finished();
        let ready = state
            .zones
            .ready(self.pool.prefers_conventional(), finished);
        let can_take = ready.is_some() && self.available(state) > kept;
        match (choose(want, &open, budget, can_take), ready) {
            (Choice::Open(index), _) => {
                let Some(old) = state.zones.opened().nth(index).map(|o| o.slot.clone()) else {
                    return Ok(None);
                };
                if open[index].writers == 0 && old.class != class {
                    // The zone changes from one family to another, so its new users get a slot of their class.
                    let slot = state.slot_behind(&old, class);
                    state.zones.renew(&old, 0, slot);
                }
                state.zones.enter(old.zone).map(Some)
            }
            (Choice::New, Some(zone)) => {
                let capacity = self.device.geometry().capacity(zone);
                let slot = state.new_slot(zone, class, capacity, 0);
                state.zones.open(slot.clone(), finished)?;
                self.wake.call();
                Ok(Some(slot))
            }
            (Choice::New, None) | (Choice::Nothing, _) => Ok(None),
        }
    }

    /// The open zones as a writer sees them that leaves `kept` empty zones to others.
    fn open_zones(&self, state: &State, kept: u32) -> Vec<Open> {
        let of = |opened: &Opened| Open {
            class: opened.slot.class,
            writers: opened.writers,
            room: opened.slot.capacity - opened.slot.used(),
        };
        let mut open: Vec<_> = state.zones.opened().map(of).collect();
        let last = Need::Move.kept();
        if kept > last && self.available(state) <= last {
            // Moved data has taken the last zone allowed for it, so the room in that zone is left to moved data.
            let idle = open.iter_mut().filter(|open| open.writers == 0);
            if let Some(roomiest) = idle.max_by_key(|open| open.room) {
                roomiest.room = 0;
            }
        }
        open
    }

    /// Whether `bytes` more of a write-ahead log find room without making any: in an empty zone, or in an open one. A
    /// quarter of that is left to those that write at the same time.
    pub fn takes_log(&self, bytes: u64) -> bool {
        let state = self.state.lock();
        let kept = Need::Log.kept();
        if self.available(&state) > kept {
            return true;
        }
        let mut open = self.open_zones(&state, kept);
        for (open, opened) in open.iter_mut().zip(state.zones.opened()) {
            if open.room < 2 * bytes + opened.slot.capacity / 4 {
                open.room = 0;
            }
        }
        let budget = self.slot_budget(&state);
        choose(Class::Wal.into(), &open, budget, false) != Choice::Nothing
    }

    /// A slot for a writer; makes space if necessary. [`Error::NoSpace`] if that is not possible.
    pub fn acquire_slot(&self, want: Want, need: Need) -> Result<Arc<Slot>> {
        let kept = need.kept();
        let (mut hopeless, mut failed) = (false, 0);
        for _ in 0..self.device.geometry().zone_count {
            {
                let mut state = self.state.lock();
                state.check()?;
                let first = self.pool.prefers_conventional();
                let ready = state.zones.ready(first, self.flusher.finished());
                if ready.is_none() && self.available(&state) > kept {
                    self.top_up(&mut state)?;
                    drop(state);
                    self.commit()?;
                    state = self.state.lock();
                    state.check()?;
                }
                if let Some(slot) = self.take_slot(&mut state, want, kept)? {
                    return Ok(slot);
                }
                // If empty zones are available, too many are open until some have been reset; trying again may help.
                hopeless = hopeless && self.available(&state) <= kept;
            }
            if hopeless {
                break;
            }
            // Even if it moved nothing: its flush may have made a zone ready.
            hopeless = match self.make_space() {
                // The drive reads nothing for a moment: an error would end a log for good.
                Err(Error::Drive(error)) if is_of_zone(&error) && failed < TRIES => {
                    failed += 1;
                    self.runtime.wait_until(self.runtime.now() + PAUSE);
                    false
                }
                done => !done?,
            };
        }
        // Without any other space, failed resets are retried at once.
        if self.reset_again(Duration::ZERO)? {
            return self.acquire_slot(want, need);
        }
        let free_zones = self.available(&self.state.lock());
        Err(Error::NoSpace { free_zones })
    }
}

#[cfg(test)]
mod tests {
    use crate::evacuate::tests::mounted_on;
    use crate::ready::Outcome;

    #[test]
    fn each_round_of_resets_gives_one_zone_of_the_budget_back() {
        let (_drive, fs) = mounted_on(0, 14, 1);
        let mut state = fs.shared.state.lock();
        let full = fs.shared.slot_budget(&state);
        assert!(full > 5, "{full}");
        (0..2 * full).for_each(|_| fs.shared.cut_budget(&mut state));
        for budget in 2..6 {
            assert_eq!(fs.shared.slot_budget(&state), budget);
            let resets = Outcome {
                empty: vec![state.superblock.spare_zone; 2],
                broken: Vec::new(),
            };
            fs.shared.recycle(&mut state, resets).unwrap();
        }
    }
}
