//! The cleaner's controls: who cleans, when, and how fast. The work is done in `cleaning.rs`.

use crate::cleaner_status::{CleanerStatus, Reason, ZoneInHand};
use crate::cleaning_job::{CleaningJob, CleaningWork};
use crate::cluster_turn::{AHEAD, ClusterTurn, Until};
use crate::gains::Gains;
use crate::recent::Recent;
use runtime::Runtime;
use runtime::sync::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use zone::ZoneId;
use zone_alloc::{CleaningPolicy, Filling, Hours, Pace, Pacer, Pressure, Requests, Watermarks};

/// Between two looks at the hour, where that matters.
const LOOK_AT_HOURS: Duration = Duration::from_secs(20);
/// Between two looks whether the next piece may go. What nobody is woken for is seen then.
const LOOK_AT_PACE: Duration = Duration::from_millis(100);
/// How long bytes that die are gathered before the thread looks at them: a wake-up costs more than a small commit.
const GATHER: Duration = Duration::from_millis(20);

/// What the cleaner is held to from now on; what is `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CleanerChange {
    /// How fast it goes while nobody waits for a zone.
    pub pace: Option<Pace>,
    /// When it starts by itself before zones are urgently needed.
    pub hours: Option<Hours>,
    /// How many zones it keeps free.
    pub free_zones: Option<Watermarks>,
}

/// In words, for logs.
impl fmt::Display for CleanerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pace,
            hours,
            free_zones,
        } = self;
        let words = [
            pace.map(|pace| format!("pace {pace}")),
            hours.map(|hours| format!("hours {hours}")),
            free_zones.map(|zones| format!("free zones {zones}")),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        match words.is_empty() {
            true => f.write_str("no change"),
            false => f.write_str(&words.join(", ")),
        }
    }
}

struct State {
    running: bool,
    automatic: bool,
    requested: bool,
    shutdown: bool,
    free_zones: Watermarks,
    hours: Hours,
    /// It was one of them at the last look.
    in_hours: bool,
    /// What the cluster said last.
    cluster: Until,
    /// How fast users fill zones.
    filling: Filling,
    /// It was held back at the last look.
    was_held: bool,
    /// There was a zone to clean when it was held back, and none has been looked for in vain since.
    waits_for_turn: bool,
    pacer: Pacer,
    /// How many wait for a zone.
    in_need: u32,
    in_hand: Option<ZoneInHand>,
    /// Bytes that died since a look at all zones last found none worth cleaning.
    died: u64,
    /// Of these, bytes that the thread knows of.
    heard: u64,
    /// The last round has cleaned a zone.
    again: bool,
    doomed: bool,
    /// Since the mount, whoever asked for it.
    did: CleaningWork,
    /// For the last [`Cleaner::start`].
    started: CleaningWork,
    /// How often it was stopped.
    stops: u64,
    recent: Recent,
    gains: Gains,
}

impl State {
    /// There is something to do besides looking at what has died.
    const fn has_news(&self) -> bool {
        self.shutdown || self.requested || self.doomed || self.again
    }

    /// Nothing is cleaned any more unless somebody needs a zone.
    const fn is_over(&self) -> bool {
        self.shutdown || !self.requested && !self.automatic
    }

    /// The zone in hand is cleaned for nobody who waits, and the cluster lets another drive clean.
    fn gives_way(&self, now: Duration) -> bool {
        let is_ahead = self.in_hand.is_some_and(|zone| zone.why == Reason::Ahead);
        is_ahead && self.in_need == 0 && self.cluster.holds(now)
    }
}

/// What a round of work is for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    /// Somebody asked for everything to be cleaned.
    pub requested: bool,
    pub automatic: bool,
    /// It may be done before it is urgent.
    pub in_hours: bool,
    /// The cluster lets another drive clean.
    pub held: bool,
    /// There is a zone that the turn was waited for.
    pub waits_for_turn: bool,
    /// Bytes that died since a look at all zones last found none worth cleaning.
    pub died: u64,
}

/// The right to clean: one at a time has it.
pub(crate) struct Turn<'a>(&'a Cleaner);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().in_hand = None;
        *self.0.taken.lock() = false;
        self.0.over.notify_all();
    }
}

/// The cleaner's controls.
pub(crate) struct Cleaner {
    policy: Arc<dyn CleaningPolicy>,
    runtime: Runtime,
    state: Mutex<State>,
    wake: Condvar,
    /// Somebody cleans. Taken before the state.
    taken: Mutex<bool>,
    /// Nobody does any more.
    over: Condvar,
    /// Zones that the mount reset, and the bytes in them.
    at_mount: (u32, u64),
}

impl Cleaner {
    /// At full speed and at any hour, before [`Self::change`].
    pub fn new(
        policy: Arc<dyn CleaningPolicy>,
        automatic: bool,
        at_mount: (u32, u64),
        runtime: Runtime,
    ) -> Self {
        let state = Mutex::new(State {
            running: false,
            automatic,
            requested: false,
            shutdown: false,
            free_zones: Watermarks::default(),
            hours: Hours::ALWAYS,
            in_hours: true,
            cluster: Until::default(),
            filling: Filling::default(),
            was_held: false,
            waits_for_turn: false,
            pacer: Pacer::new(Pace::Full),
            in_need: 0,
            in_hand: None,
            died: 0,
            heard: 0,
            again: false,
            doomed: false,
            did: CleaningWork::default(),
            started: CleaningWork::default(),
            stops: 0,
            recent: Recent::default(),
            gains: Gains::default(),
        });
        Self {
            policy,
            runtime,
            state,
            wake: Condvar::new(),
            taken: Mutex::new(false),
            over: Condvar::new(),
            at_mount,
        }
    }

    /// What is known here; the rest is zeros.
    pub fn status(&self) -> CleanerStatus {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let s = &mut *state;
        let (turn_seconds, hold_seconds) = s.cluster.left(now);
        CleanerStatus {
            running: s.running,
            automatic: s.automatic,
            requested: s.requested,
            in_hand: s.in_hand,
            pace: s.pacer.pace(),
            pace_bytes_per_second: s.pacer.rate(),
            hours: s.hours,
            utc_offset_minutes: self.runtime.utc_offset_minutes(),
            is_in_hours: self.is_one_of(s.hours),
            free_zones: s.free_zones,
            turn_seconds,
            hold_seconds,
            waits_for_turn: s.waits_for_turn && s.cluster.holds(now),
            started: s.started,
            job: CleaningJob { stops: s.stops },
            zones_cleaned: s.did.zones_cleaned,
            bytes_moved: s.did.bytes_moved,
            bytes_freed: s.did.bytes_freed,
            bytes_per_second: s.recent.per_second(now),
            mount_zones_reset: self.at_mount.0,
            mount_bytes_freed: self.at_mount.1,
            ..CleanerStatus::default()
        }
    }

    /// Holds it to something else from now on. Answers above which time a user's read is slow then.
    pub fn change(&self, change: CleanerChange) -> Option<Duration> {
        let mut state = self.state.lock();
        if let Some(pace) = change.pace {
            state.pacer = Pacer::new(pace);
        }
        state.hours = change.hours.unwrap_or(state.hours);
        state.free_zones = change.free_zones.unwrap_or(state.free_zones);
        // There may be more to do.
        state.again = true;
        self.wake.notify_all();
        state.pacer.slow_above()
    }

    /// What the cluster says holds from now on, in the place of what it said before.
    pub fn take_turn(&self, turn: ClusterTurn) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        state.cluster = turn.at(now);
        // It is said each second: only a change is looked at.
        if state.cluster.holds(now) != state.was_held {
            state.was_held = !state.was_held;
            state.again = true;
            self.wake.notify_all();
        }
    }

    /// There is a zone to clean, or none, while the cluster lets another drive clean.
    pub fn waits_for_turn(&self, waits: bool) {
        self.state.lock().waits_for_turn = waits;
    }

    /// Asks for everything to be cleaned, and lets the cleaner start by itself again.
    pub fn start(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.requested, true) {
            state.started = CleaningWork::default();
        }
        state.automatic = true;
        state.gains = Gains::default();
        self.wake.notify_all();
    }

    /// Stops behind what is being copied, and ends all jobs; it does not start by itself until [`Self::start`].
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stops += 1;
        state.requested = false;
        state.automatic = false;
        self.wake.notify_all();
    }

    /// Whether somebody has stopped the cleaner since the job began.
    pub fn has_stopped(&self, job: CleaningJob) -> bool {
        self.state.lock().stops != job.stops
    }

    /// Which zone to clean.
    pub fn policy(&self) -> &dyn CleaningPolicy {
        &*self.policy
    }

    /// What a zone has to gain to be cleaned while `free` zones of so many bytes are, of `all`; `None` if enough are. In a
    /// cluster that has drives clean in turns, more have to be: as many as will be filled until the turn comes. Users have
    /// `written` so many bytes.
    pub fn pressure(&self, free: u32, all: u32, zone_bytes: u64, written: u64) -> Option<Pressure> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let zones = (zone_bytes, all);
        let filled = state.filling.zones_in(AHEAD, (now, written), zones);
        let filled = if state.cluster.speaks(now) { filled } else { 0 };
        state.free_zones.pressure_before(free, all, filled)
    }

    /// Waits until nobody else cleans; `None` once there is no need to any more. After each zone those
    /// who wait see whether it was enough, so nobody waits for a second one while a zone is free. Who is at
    /// it goes on at full speed as long as anybody waits.
    pub fn turn(&self, is_needed: impl Fn() -> bool) -> Option<Turn<'_>> {
        let mut taken = self.taken.lock();
        while is_needed() {
            if !*taken {
                *taken = true;
                return Some(Turn(self));
            }
            self.state.lock().in_need += 1;
            self.wake.notify_all();
            self.over.wait(&mut taken);
            self.state.lock().in_need -= 1;
        }
        None
    }

    pub fn shutdown(&self) {
        self.state.lock().shutdown = true;
        self.wake.notify_all();
    }

    /// A reader has gone: a doomed map may be free now.
    pub fn nudge(&self) {
        self.state.lock().doomed = true;
        self.wake.notify_all();
    }

    pub fn after_commit(&self, died: u64, doomed: bool) {
        if died > 0 || doomed {
            let mut state = self.state.lock();
            // Who came before has woken it otherwise.
            let is_first = state.died <= state.heard;
            state.died += died;
            state.doomed |= doomed;
            if died > 0 {
                state.gains = Gains::default();
            }
            if is_first || doomed {
                self.wake.notify_all();
            }
        }
    }

    fn is_one_of(&self, hours: Hours) -> bool {
        hours.is_always() || hours.contains(self.runtime.minute_of_day())
    }

    /// Waits for something to do; false if there will be nothing any more.
    pub fn wait_for_work(&self) -> bool {
        let mut state = self.state.lock();
        state.running = false;
        while !state.has_news() && state.died <= state.heard {
            let now = self.runtime.now();
            let held = state.cluster.holds(now);
            let began = !state.in_hours && self.is_one_of(state.hours);
            if began || held != state.was_held {
                state.was_held = held;
                state.again = true;
                break;
            }
            let hours = (!state.hours.is_always()).then_some(LOOK_AT_HOURS);
            let cluster = state.cluster.changes(now).map(|at| at - now);
            match hours.into_iter().chain(cluster).min() {
                Some(look) => {
                    self.wake.wait_for(&mut state, look);
                }
                None => self.wake.wait(&mut state),
            }
        }
        if !state.has_news() {
            self.wake.wait_for(&mut state, GATHER);
        }
        state.doomed = false;
        state.again = false;
        state.running = !state.shutdown;
        state.running
    }

    pub fn asked(&self) -> Asked {
        let mut state = self.state.lock();
        state.heard = state.died;
        state.in_hours = self.is_one_of(state.hours);
        let held = state.cluster.holds(self.runtime.now());
        state.was_held = held;
        Asked {
            requested: state.requested,
            automatic: state.automatic,
            in_hours: state.in_hours,
            held,
            waits_for_turn: state.waits_for_turn,
            died: state.died,
        }
    }

    /// Whether nothing more is gained by cleaning, while so many bytes are dead.
    pub fn is_in_vain(&self, dead: u64) -> bool {
        self.state.lock().gains.are_over(dead)
    }

    /// A round has cleaned a zone: there may be more to do.
    pub fn cleaned(&self) {
        self.state.lock().again = true;
    }

    /// That much was done for [`Self::start`].
    pub fn credit_start(&self, did: CleaningWork) {
        self.state.lock().started += did;
    }

    /// No zone was worth cleaning, whatever was asked for.
    pub fn found_nothing(&self, asked: Asked) {
        let mut state = self.state.lock();
        state.requested &= !asked.requested;
        state.waits_for_turn = false;
        // Another round may have counted the same: `Store::tend` beside the store's own threads, and one that failed.
        state.died = state.died.saturating_sub(asked.died);
        state.heard = state.heard.saturating_sub(asked.died);
    }

    /// A round failed: waits until it is asked again, or more dies.
    pub fn failed(&self) {
        let mut state = self.state.lock();
        state.requested = false;
        (state.died, state.heard) = (0, 0);
    }

    /// When a piece may be read or written, as long as nobody waits for a zone; `None` if it goes now.
    pub fn next_piece(&self, bytes: u64, requests: &Requests) -> Option<Duration> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let next = match state.is_over() || state.in_need > 0 || state.gives_way(now) {
            true => now,
            false => state.pacer.next(now, requests),
        };
        if let Some(zone) = &mut state.in_hand {
            zone.waits = next > now;
        }
        if next > now {
            return Some(next);
        }
        state.pacer.spend(bytes, now);
        None
    }

    /// Waits until `moment`, until a zone is needed or until it is over, or for a shorter time.
    pub fn wait_until(&self, moment: Duration) {
        let mut state = self.state.lock();
        let left = moment.saturating_sub(self.runtime.now());
        if !left.is_zero() && !state.is_over() && state.in_need == 0 {
            self.wake.wait_for(&mut state, left.min(LOOK_AT_PACE));
        }
    }

    /// Whether the store is being unmounted.
    pub fn has_ended(&self) -> bool {
        self.state.lock().shutdown
    }

    /// Whether the zone in hand is left as it is, for nothing is to be cleaned any more.
    pub fn is_over(&self) -> bool {
        self.state.lock().is_over()
    }

    /// Whether the zone in hand is left for the cluster lets another drive clean; not once a zone is urgently needed.
    pub fn gives_way(&self) -> bool {
        self.state.lock().gives_way(self.runtime.now())
    }

    /// A zone is being cleaned, until the turn ends.
    pub fn begin(&self, zone: ZoneId, live_bytes: u64, why: Reason) {
        self.state.lock().in_hand = Some(ZoneInHand {
            zone,
            why,
            live_bytes,
            moved_bytes: 0,
            waits: false,
        });
    }

    /// Counts bytes that were copied out of the zone in hand.
    pub fn count_moved(&self, bytes: u64) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        state.did.bytes_moved += bytes;
        state.recent.add(now, bytes);
        if let Some(zone) = &mut state.in_hand {
            zone.moved_bytes += bytes;
        }
    }

    /// Counts a zone that was reset, and bytes that this freed.
    pub fn count_cleaned(&self, freed: u64, dead: u64) {
        let mut state = self.state.lock();
        state.gains.cleaned(dead);
        state.did.zones_cleaned += 1;
        state.did.bytes_freed += freed;
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
