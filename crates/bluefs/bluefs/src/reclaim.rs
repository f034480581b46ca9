//! Makes space: first by resetting freed zones, then by emptying zones that are mostly dead. Either while a writer
//! waits for it, or ahead of need, one step at a time.

use crate::cleaner::Budget;
use crate::format::log_record::HEADER;
use crate::move_log::range_of;
use crate::node::Body;
use crate::shared::Shared;
use crate::slot::Slot;
use crate::state::State;
use crate::tenants::Need;
use crate::zone_table::{Content, Stage};
use crate::{Error, Result};
use appender::IN_NEED;
use device::ZonedDevice;
use runtime::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use zone::{Geometry, ZoneId};
use zone_alloc::{Candidate, CleaningPolicy, Greedy, Pressure, Supply, ZoneView};

/// How many zones are tried if there is no room for the live data of the first.
const ATTEMPTS: u32 = 4;
impl Shared {
    /// Frees a zone or makes room in an open one; false if no more space can be gained.
    pub fn make_space(&self) -> Result<bool> {
        let waiting = {
            let mut state = self.state.lock();
            let waiting = waiting_for_resets(&state);
            if state.zones.count(|s| matches!(s, Stage::Resetting { .. })) > 0 {
                self.recycled.wait(&mut state);
            }
            waiting.max(waiting_for_resets(&state))
        };
        self.commit()?;
        if waiting > 0 && waiting_for_resets(&self.state.lock()) >= waiting {
            self.reset_behind_readers()?;
        }
        if waiting > 0 || self.reset_again(IN_NEED)? {
            return Ok(true);
        }
        let is_long = |state: &State| {
            let zones = &state.journal.zones;
            let held = zones.iter().skip(1).any(|zone| self.is_sequential(*zone));
            held && state.journal.bytes > 2 * state.snapshot_bytes
        };
        if self.compact_in_need(&is_long)? {
            return Ok(true);
        }
        let Some(alone) = self.moving.try_lock() else {
            // Another thread is emptying a zone; emptying two at once would need twice the room.
            drop(self.moving.lock());
            return Ok(true);
        };
        let emptiest = |zones: &[Candidate]| greedy(zones, Pressure::Urgent);
        let empty = |logs| {
            let mut candidates = self.candidates(&self.state.lock(), logs);
            // Emptying a failing zone gains no space.
            candidates.retain(|c| !self.failing.contains(c.zone));
            self.empty_one(candidates, &emptiest, Need::Move.kept(), &|| false, &mut 0)
        };
        // Moved log records need a zone apart from other files, and logs are short-lived anyway: only if nothing else
        // can be emptied.
        let emptied = match empty(false) {
            Ok(false) => empty(true),
            done => done,
        };
        drop(alone);
        // Compacts the journal even if little of it is dead.
        let holds_more = |s: &State| s.journal.zones.len() as u64 > self.zones_of_snapshot(s);
        match emptied {
            Ok(true) => {}
            Ok(false) => return self.compact_in_need(&holds_more),
            // All open zones allowed are in use, perhaps only until zones that others have freed meanwhile are reset:
            // that is not a lack of space.
            Err(Error::NoSpace { .. }) => {
                let waiting = waiting_for_resets(&self.state.lock());
                self.commit()?;
                return Ok(waiting > 0 || self.compact_in_need(&holds_more)?);
            }
            Err(error) => return Err(error),
        }
        self.commit()?;
        // Even if the moved data took a zone for the one that was freed: that zone has room at its end.
        Ok(true)
    }

    /// Empties the sequential zone with the least live data, however much it has. False if there is nothing to move.
    pub fn leave_sequential_zone(&self) -> Result<bool> {
        let alone = self.moving.lock();
        let mut candidates = self.candidates(&self.state.lock(), true);
        candidates.retain(|c| self.is_sequential(c.zone) && !self.failing.contains(c.zone));
        let emptiest = |zones: &[Candidate]| zones.iter().min_by_key(|c| c.live).copied();
        let emptied = self.empty_one(candidates, &emptiest, Need::Move.kept(), &|| false, &mut 0);
        drop(alone);
        self.commit()?;
        emptied
    }

    /// Makes every writer that appends to a sequential zone continue in another one; false if no such zone was open.
    /// Idle zones can be emptied from now on, others once their writers have released them.
    pub fn close_sequential_zones(&self) -> Result<bool> {
        self.close_zones(&|zone| self.is_sequential(zone))
    }

    /// Closes the partly written open zones that `which` selects.
    pub fn close_zones(&self, which: &dyn Fn(ZoneId) -> bool) -> Result<bool> {
        // Zones with a writer are not taken over by others, so entering them as a writer protects them meanwhile.
        let slots = {
            let mut state = self.state.lock();
            let with_room = |slot: &Slot| slot.used() > 0 && slot.used() < slot.capacity;
            let open = state.zones.opened().map(|opened| &opened.slot);
            let zones: Vec<_> = open
                .filter(|slot| which(slot.zone) && with_room(slot))
                .map(|slot| slot.zone)
                .collect();
            let enter = |zone| state.zones.enter(zone);
            zones.into_iter().map(enter).collect::<Result<Vec<_>>>()?
        };
        for slot in &slots {
            self.close(slot, slot.fill());
        }
        let mut state = self.state.lock();
        slots.iter().for_each(|slot| state.release(slot));
        Ok(!slots.is_empty())
    }

    /// After a write at the drive's limit of active zones: finishes a partly written sequential zone, preferably an idle
    /// one, and opens one fewer from now on, because another user of the drive has more than its share. False if no such
    /// zone is open.
    pub fn leave_an_open_zone(&self) -> Result<bool> {
        let left = {
            let mut state = self.state.lock();
            self.cut_budget(&mut state);
            let partly = |slot: &Slot| slot.used() > 0 && slot.used() < slot.capacity;
            let is_active = |slot: &Slot| self.is_sequential(slot.zone) && partly(slot);
            let open = state.zones.opened().filter(|o| is_active(&o.slot));
            let left = open.min_by_key(|o| (o.writers, o.slot.capacity - o.slot.used()));
            left.map(|opened| opened.slot.zone)
        };
        let Some(left) = left else { return Ok(false) };
        // If its writer has filled it meanwhile, it is active no more either.
        self.close_zones(&|zone| zone == left)?;
        Ok(true)
    }

    /// Compacts the journal if that `is_due`; false also if there is no space for it.
    fn compact_in_need(&self, is_due: &dyn Fn(&State) -> bool) -> Result<bool> {
        match self.compact_if(is_due) {
            Err(Error::NoSpace { .. }) => Ok(false),
            done => done,
        }
    }

    /// Empties one zone ahead of need, if that is worth its cost and the budget allows it. False if there is nothing to
    /// do for now; `stop` is asked between two pieces whether to give up.
    pub fn clean_ahead(&self, budget: &Budget, stop: &dyn Fn() -> bool) -> Result<bool> {
        let Some(alone) = self.moving.try_lock() else {
            return Ok(false);
        };
        let allowed = budget.allows(self.counters.users_written());
        let (pressure, candidates) = {
            let state = self.state.lock();
            state.check()?;
            let supply = self.supply(&state, budget);
            let pressure = supply.pressure(allowed);
            (pressure, self.worth_a_look(&state, supply, pressure))
        };
        let damaged = self.device.damaged();
        let is_rescued =
            |c: &&Candidate| self.failing.contains(c.zone) || damaged.contains(&c.zone);
        let best = |zones: &[Candidate]| {
            let rescued = zones.iter().find(is_rescued).copied();
            rescued.or_else(|| greedy(zones, pressure?))
        };
        let mut moved = 0;
        let result = self.empty_one(candidates, &best, Need::Background.kept(), stop, &mut moved);
        budget.spend(moved);
        let ahead = &self.counters.moved_ahead_bytes_written;
        ahead.fetch_add(moved, Ordering::Relaxed);
        drop(alone);
        match result {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            // A user with a more urgent need has taken the space.
            Err(Error::NoSpace { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.commit()?;
        self.counters
            .zones_cleaned_ahead
            .fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// Candidates for emptying ahead of need. Read-only zones give no space back, so they have to wait while zones are
    /// urgently needed.
    fn worth_a_look(
        &self,
        state: &State,
        supply: Supply,
        pressure: Option<Pressure>,
    ) -> Vec<Candidate> {
        let has_data = |zone| state.zones.has_data(zone);
        let is_damaged = || self.device.damaged().into_iter().any(has_data);
        let rescues =
            supply.free > supply.urgent && (self.failing.any_read_only(has_data) || is_damaged());
        if pressure.is_none() && !rescues {
            return Vec::new();
        }
        let mut candidates = self.candidates(state, supply.free >= supply.urgent);
        let is_rescued = |zone| rescues && self.failing.is_read_only(zone);
        candidates.retain(|c| !self.failing.contains(c.zone) || is_rescued(c.zone));
        candidates
    }

    /// Empties the zone that `choose` prefers, or the next if there is no room for its live data, because logs and SSTs
    /// need different zones. False if `choose` returns none.
    fn empty_one(
        &self,
        mut candidates: Vec<Candidate>,
        choose: &dyn Fn(&[Candidate]) -> Option<Candidate>,
        kept: u32,
        stop: &dyn Fn() -> bool,
        written: &mut u64,
    ) -> Result<bool> {
        for attempt in 1.. {
            let Some(Candidate { zone, live, .. }) = choose(&candidates) else {
                break;
            };
            tracing::debug!(%zone, live, "moving live files");
            match self.evacuate(zone, kept, stop, written) {
                Err(Error::NoSpace { .. }) if attempt < ATTEMPTS => {
                    candidates.retain(|c| c.zone != zone);
                }
                result => return result.map(|()| true),
            }
        }
        Ok(false)
    }

    /// The number of free zones and its thresholds. Cleaning begins below the zones that a compaction leaves to others
    /// plus a sixteenth of the zones with data, at least two. Before that, dead bytes matter once fewer zones are free
    /// than have data.
    fn supply(&self, state: &State, budget: &Budget) -> Supply {
        let data = state.zones.data_zones();
        let urgent = Need::Background.kept() + 1;
        let begin = urgent + (data / 16).max(2);
        Supply {
            free: self.available(state),
            tidy: data,
            begin: budget.begin_below().unwrap_or(begin),
            urgent,
        }
    }

    /// Zones that can be emptied. Excluded are open zones, where a piece may grow or not be registered yet; zones with
    /// data of unlinked files that are still open; zones with unreadable data; and, unless `logs`, zones with log
    /// records.
    fn candidates(&self, state: &State, logs: bool) -> Vec<Candidate> {
        let g = self.device.geometry();
        let nameless = state.nameless.values();
        let fixed = nameless.flat_map(|node| node.extents(g, &node.body.read()));
        let fixed: HashSet<ZoneId> = fixed.map(|(zone, _)| zone).collect();
        let mut of_logs: HashMap<ZoneId, u64> = HashMap::default();
        for node in state.names.logs.values() {
            for (zone, cost) in cost_of_moving(g, &node.body.read()) {
                *of_logs.entry(zone).or_default() += cost;
            }
        }
        let candidate = |(zone, content): (ZoneId, &Content)| {
            let of_logs = of_logs.get(&zone).copied();
            let movable = !content.stuck && !fixed.contains(&zone) && (logs || of_logs.is_none());
            movable.then(|| Candidate {
                zone,
                live: u64::from(content.live_blocks) * u64::from(g.block_size)
                    + of_logs.unwrap_or(0),
                // The unwritten rest of the zone is gained, too.
                written: g.capacity(zone),
                // The emptiest zone is chosen first, whatever its age.
                filled_at: 0,
            })
        };
        state.zones.holding().filter_map(candidate).collect()
    }
}

/// Number of freed zones that are being reset or will be.
fn waiting_for_resets(state: &State) -> u32 {
    state.zones.count(Stage::is_waiting_for_reset)
}

/// Chooses the emptiest zone. *Not* by benefit to cost with the age of a zone: that pays where data that has lived long
/// lives on, but how long an SST lives depends on its key range (`ARCHITECTURE.md`).
fn greedy(zones: &[Candidate], pressure: Pressure) -> Option<Candidate> {
    Greedy.choose(ZoneView { zones, now: 0 }, pressure)
}

/// Bytes written elsewhere to move a log's records out of each of its zones.
///
/// A move packs the records closely; the cost is that of packed records, so that a zone of packed records does not seem
/// worth moving again.
fn cost_of_moving(g: &Geometry, body: &Body) -> HashMap<ZoneId, u64> {
    // Each run begins a new record, which is padded.
    let padding = HEADER as u64 + u64::from(g.block_size) - 1;
    let mut costs: HashMap<ZoneId, u64> = HashMap::default();
    for (index, segment) in body.segments.iter().enumerate() {
        let range = range_of(body, index);
        *costs.entry(segment.at.zone).or_default() += range.end - range.start + padding;
    }
    costs
        .values_mut()
        .for_each(|bytes| *bytes = g.round_up(*bytes));
    costs
}

#[cfg(test)]
mod tests {
    use crate::evacuate::tests::{append, mounted_on, zone_of};

    #[test]
    fn only_a_zone_that_is_active_is_left() {
        for conventional in [40, 0] {
            let (_drive, fs) = mounted_on(conventional, 0, 1);
            let mut file = fs.create("/1.sst").unwrap();
            append(&mut file).unwrap();
            let zone = zone_of(&fs, "/1.sst");
            let is_sequential = conventional == 0;
            assert_eq!(fs.shared.is_sequential(zone), is_sequential);
            assert_eq!(fs.shared.leave_an_open_zone().unwrap(), is_sequential);
            append(&mut file).unwrap();
            let places = fs.extents("/1.sst").unwrap();
            let goes_on = places.iter().all(|extent| extent.at.zone == zone);
            assert_eq!(goes_on, !is_sequential, "{places:?}");
        }
    }
}
