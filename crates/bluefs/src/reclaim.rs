//! Making space: first what is free but not reset yet, then zones that are mostly dead. Either when
//! somebody waits for it, or ahead of need, a step at a time.

use crate::cleaner::Budget;
use crate::format::journal::Kind;
use crate::node::Node;
use crate::shared::{KEPT_BACK, KEPT_FOR_LOGS, KEPT_FOR_URGENT, Shared, State, Use};
use crate::slot::Held;
use crate::{Error, Result};
use device::ZonedDevice;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use zone::ZoneId;
use zone_alloc::{Candidate, Supply, next_to_clean};

/// Zones that are left when somebody has no other way: the journal may need its next one.
const KEPT_IN_NEED: u32 = 1;
/// Zones below which a compaction does not get any.
const KEPT_AHEAD: u32 = KEPT_BACK + KEPT_FOR_LOGS + KEPT_FOR_URGENT;

impl Shared {
    /// Frees a zone or makes room in an open one; false if nothing more can be done.
    pub fn make_space(&self) -> Result<bool> {
        let waiting = {
            let mut state = self.state.lock();
            let resetting = state.resetting > 0;
            if resetting {
                self.recycled.wait(&mut state);
            }
            resetting || !(state.freed.is_empty() && state.awaiting.is_empty())
        };
        self.commit()?;
        if waiting {
            return Ok(true);
        }
        {
            let mut state = self.state.lock();
            state.check()?;
            let zones = &state.journal.zones;
            let held = zones.iter().skip(1).any(|zone| self.is_sequential(*zone));
            if held && state.journal.bytes > 2 * state.snapshot_bytes {
                self.compact(&mut state)?;
                return Ok(true);
            }
        }
        let Some(alone) = self.moving.try_lock() else {
            // Somebody is emptying a zone: two at once would need twice the room.
            drop(self.moving.lock());
            return Ok(true);
        };
        // What is urgent needs neither an allowance nor an order of ages.
        let supply = Supply {
            free: 0,
            begin: 0,
            urgent: 1,
        };
        let mut candidates = self.candidates(&self.state.lock());
        // These give nothing back.
        candidates.retain(|c| !self.failing.contains(c.zone));
        let Some(victim) = next_to_clean(supply, true, 0, candidates) else {
            return Ok(false);
        };
        tracing::debug!(zone = %victim.zone, "moving live files to make space");
        self.evacuate(victim.zone, KEPT_IN_NEED, &|| false, &mut 0)?;
        drop(alone);
        self.commit()?;
        // Even if the live data took a zone for the one that was freed: it has room at its end.
        Ok(true)
    }

    /// Empties one zone ahead of need, if that is worth it and allowed. False if there is nothing
    /// to do for now; `stop` is asked now and then whether to give up.
    pub fn clean_ahead(&self, budget: &Budget, stop: &dyn Fn() -> bool) -> Result<bool> {
        let Some(alone) = self.moving.try_lock() else {
            return Ok(false);
        };
        let victim = {
            let state = self.state.lock();
            state.check()?;
            let supply = self.supply(&state, budget);
            self.next_ahead(&state, supply, budget)
        };
        let Some(zone) = victim else {
            return Ok(false);
        };
        tracing::debug!(%zone, "moving live files ahead of need");
        let mut moved = 0;
        let result = self.evacuate(zone, KEPT_AHEAD, stop, &mut moved);
        budget.spend(moved);
        let ahead = &self.counters.moved_ahead;
        ahead.fetch_add(moved, Ordering::Relaxed);
        drop(alone);
        match result {
            Ok(()) => {}
            // Whoever needs space more urgently has it.
            Err(Error::NoSpace { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.commit()?;
        self.counters.cleaned_ahead.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// A zone that can only be read, or one that is worth cleaning.
    fn next_ahead(&self, state: &State, supply: Supply, budget: &Budget) -> Option<ZoneId> {
        let ours = |zone: &&ZoneId| self.failing.is_read_only(**zone);
        let rescues = supply.free > supply.urgent && state.zones.keys().any(|z| ours(&z));
        if supply.free >= supply.begin && !rescues {
            return None;
        }
        let mut candidates = self.candidates(state);
        let rescued = candidates.iter().map(|c| &c.zone).find(ours);
        if let Some(zone) = rescued.filter(|_| rescues) {
            return Some(*zone);
        }
        candidates.retain(|c| !self.failing.contains(c.zone));
        let allowed = budget.allows(self.counters.users_written());
        let victim = next_to_clean(supply, allowed, state.runs, candidates);
        victim.map(|victim| victim.zone)
    }

    /// Cleaning begins when fewer zones are free than a compaction leaves to others and an eighth of
    /// those with data, at least two, on top.
    fn supply(&self, state: &State, budget: &Budget) -> Supply {
        let data = state.zones.len() as u32;
        let urgent = KEPT_AHEAD + 1;
        let begin = urgent + (data / 8).max(2);
        Supply {
            free: self.available(state),
            begin: budget.begin_below().unwrap_or(begin),
            urgent,
        }
    }

    /// Zones that can be emptied. Left alone are those that are open, where a piece may grow or not
    /// have been registered yet; those that hold files which are open and have lost their name; and
    /// those of which something cannot be read.
    fn candidates(&self, state: &State) -> Vec<Candidate> {
        let g = self.device.geometry();
        let is_open = |h: &&Held| h.writers > 0 || *h.slot.used.lock() < h.slot.capacity;
        let open = state.slots.iter().filter(is_open).map(|h| h.slot.zone);
        let mut fixed: HashSet<ZoneId> = open.collect();
        let mut named: HashMap<ZoneId, u32> = HashMap::new();
        let mut live: HashMap<ZoneId, u64> = HashMap::new();
        for node in state.names.nodes.values() {
            let body = node.body.read();
            for zone in Node::zones(&body, node.kind) {
                *named.entry(zone).or_default() += 1;
            }
            if node.kind == Kind::Log {
                fixed.extend(Node::zones(&body, node.kind));
            }
            for piece in &body.pieces {
                *live.entry(piece.at.zone).or_default() += g.round_up(piece.length);
            }
        }
        let movable = |(zone, held): &(&ZoneId, &Use)| {
            let all_named = named.get(*zone).copied() == Some(held.extents);
            all_named && !held.stuck && !fixed.contains(zone)
        };
        let zones = state.zones.iter().filter(movable);
        zones
            .map(|(zone, held)| Candidate {
                zone: *zone,
                live: live.get(zone).copied().unwrap_or(0),
                // What was not written of it is gained too.
                written: g.capacity(*zone),
                filled_at: held.taken_at,
            })
            .collect()
    }
}
