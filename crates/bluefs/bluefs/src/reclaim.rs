//! Making space: first what is free but not reset yet, then zones that are mostly dead. Either when
//! somebody waits for it, or ahead of need, a step at a time.

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

/// How many zones are tried, if there is no room for what is in the first.
const ATTEMPTS: u32 = 4;
impl Shared {
    /// Frees a zone or makes room in an open one; false if nothing more can be done.
    pub fn make_space(&self) -> Result<bool> {
        let waiting = {
            let mut state = self.state.lock();
            let waiting = is_waiting_for_resets(&state);
            if state.zones.count(|s| matches!(s, Stage::Resetting { .. })) > 0 {
                self.recycled.wait(&mut state);
            }
            waiting || is_waiting_for_resets(&state)
        };
        self.commit()?;
        if waiting || self.reset_again(IN_NEED)? {
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
            // Somebody is emptying a zone: two at once would need twice the room.
            drop(self.moving.lock());
            return Ok(true);
        };
        let emptiest = |zones: &[Candidate]| greedy(zones, Pressure::Urgent);
        let empty = |logs| {
            let mut candidates = self.candidates(&self.state.lock(), logs);
            // These give nothing back.
            candidates.retain(|c| !self.failing.contains(c.zone));
            self.empty_one(candidates, &emptiest, Need::Move.kept(), &|| false, &mut 0)
        };
        // What is moved of a log needs a zone apart from other files, and logs come and go: only if
        // there is nothing else.
        let emptied = match empty(false) {
            Ok(false) => empty(true),
            done => done,
        };
        drop(alone);
        // Even if little of the journal is dead.
        let holds_more = |s: &State| s.journal.zones.len() as u64 > self.zones_of_snapshot(s);
        match emptied {
            Ok(true) => {}
            Ok(false) => return self.compact_in_need(&holds_more),
            // As many zones are open as may be, perhaps only until some are reset that others have
            // freed meanwhile: not a lack of space.
            Err(Error::NoSpace { .. }) => {
                let waiting = is_waiting_for_resets(&self.state.lock());
                self.commit()?;
                return Ok(waiting || self.compact_in_need(&holds_more)?);
            }
            Err(error) => return Err(error),
        }
        self.commit()?;
        // Even if the live data took a zone for the one that was freed: it has room at its end.
        Ok(true)
    }

    /// Moves what is in the emptiest sequential zone elsewhere, however much is live in it. False if there is
    /// nothing to move.
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

    /// Has everybody who appends to a sequential zone go on in another one; false if nobody does. Zones that
    /// were idle can be emptied from now on, others when their writers have left them.
    pub fn close_sequential_zones(&self) -> Result<bool> {
        self.close_zones(&|zone| self.is_sequential(zone))
    }

    /// The same for some zones.
    pub fn close_zones(&self, which: &dyn Fn(ZoneId) -> bool) -> Result<bool> {
        // Nobody takes over a zone that somebody writes to: so these count as written to meanwhile.
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

    /// False also if there is no space for it.
    fn compact_in_need(&self, is_due: &dyn Fn(&State) -> bool) -> Result<bool> {
        match self.compact_if(is_due) {
            Err(Error::NoSpace { .. }) => Ok(false),
            done => done,
        }
    }

    /// Empties one zone ahead of need, if that is worth it and allowed. False if there is nothing
    /// to do for now; `stop` is asked now and then whether to give up.
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
            // Whoever needs space more urgently has it.
            Err(Error::NoSpace { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.commit()?;
        self.counters
            .zones_cleaned_ahead
            .fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// What may be emptied ahead of need. Zones that can only be read give no space back, so they have
    /// to wait when that is urgent.
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

    /// Empties the zone that `choose` likes best, or one of the next if there is no room for what is
    /// in it: logs and SSTs go to different zones. False if it likes none.
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

    /// Cleaning begins when fewer zones are free than a compaction leaves to others and a sixteenth of
    /// those with data, at least two, on top. Before that, dead bytes matter when fewer zones are free
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

    /// Zones that can be emptied. Left alone are those that are open, where a piece may grow or not
    /// have been registered yet; those that hold files which are open and have lost their name; and
    /// those of which something cannot be read; and those with logs unless `logs` may be moved.
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
                // What was not written of it is gained too.
                written: g.capacity(zone),
                // The emptiest goes first, however old.
                filled_at: 0,
            })
        };
        state.zones.holding().filter_map(candidate).collect()
    }
}

/// Whether zones are on their way from freed to empty.
fn is_waiting_for_resets(state: &State) -> bool {
    state.zones.count(Stage::is_waiting_for_reset) > 0
}

/// Always the emptiest. *Not* by benefit to cost with the age of a zone: that pays where what has lived
/// long lives on, and SSTs die by where their keys lie (`ARCHITECTURE.md`).
fn greedy(zones: &[Candidate], pressure: Pressure) -> Option<Candidate> {
    Greedy.choose(ZoneView { zones, now: 0 }, pressure)
}

/// Bytes that it takes elsewhere to empty zones of a log. Its records are put together when they are
/// moved; a zone that this was done to must not seem worth it again.
fn cost_of_moving(g: &Geometry, body: &Body) -> HashMap<ZoneId, u64> {
    // Each run begins a record, which is padded.
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
