//! The cleaner's controls: when cleaning runs, how fast, and which thread does it. `cleaning.rs` does the work.
//!
//! One thread cleans at a time, the holder of a [`Turn`]. Locks: `Cleaner::taken` before `Cleaner::state`. Pace,
//! hours and the cluster's turns hold the cleaner back only while no thread waits for a free zone.

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

/// How often the thread that waits for work checks whether [`State::hours`] have begun.
const LOOK_AT_HOURS: Duration = Duration::from_secs(20);
/// How often the thread tries again to reset or empty zones.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// The longest sleep before the pacer is asked again: changes that wake no thread are noticed then.
const LOOK_AT_PACE: Duration = Duration::from_millis(100);
/// How long the thread gathers bytes that died before it starts a round: a wake-up costs more than a small commit.
const GATHER: Duration = Duration::from_millis(20);

/// New settings of the cleaner; a field that is `None` leaves its setting as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CleanerChange {
    /// Speed while no thread waits for a free zone.
    pub pace: Option<Pace>,
    /// Hours in which cleaning may start before zones are urgently needed.
    pub hours: Option<Hours>,
    /// Numbers of free zones at which cleaning starts and becomes urgent.
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
    /// At the last check, the clock was within [`Self::hours`].
    in_hours: bool,
    /// The last [`ClusterTurn`], and when it expires.
    cluster: Until,
    /// How fast users fill zones.
    filling: Filling,
    /// At the last check, [`Self::cluster`] held the cleaner back.
    was_held: bool,
    /// A zone was worth cleaning while the cluster held the cleaner back, and no later round found none.
    waits_for_turn: bool,
    pacer: Pacer,
    /// Threads that wait for a free zone.
    in_need: u32,
    in_hand: Option<ZoneInHand>,
    /// Bytes that died since a scan of all zones last found none worth cleaning.
    died: u64,
    /// The part of [`Self::died`] that the cleaner's thread has already seen.
    heard: u64,
    /// Start another round: the last one cleaned a zone, or the settings changed.
    again: bool,
    /// Start another round: there may be work other than bytes that died.
    nudged: bool,
    /// Work since the mount, by any thread.
    did: CleaningWork,
    /// Work since the last [`Cleaner::start`].
    started: CleaningWork,
    /// How often [`Cleaner::start`] was called.
    starts: u64,
    /// [`Self::starts`] as of the last [`Cleaner::asked`].
    starts_asked: u64,
    /// How often [`Cleaner::stop`] was called.
    stops: u64,
    recent: Recent,
    gains: Gains,
}

impl State {
    /// Whether there is work besides checking the bytes that died.
    const fn has_news(&self) -> bool {
        self.shutdown || self.requested || self.nudged || self.again
    }

    /// Whether cleaning has ended, except where a thread needs a zone.
    const fn is_over(&self) -> bool {
        self.shutdown || !self.requested && !self.automatic
    }

    /// Whether the zone in hand is left: it is cleaned ahead, no thread waits for a zone, and it is another drive's
    /// turn.
    fn gives_way(&self, now: Duration) -> bool {
        let is_ahead = self.in_hand.is_some_and(|zone| zone.why == Reason::Ahead);
        is_ahead && self.in_need == 0 && self.cluster.holds(now)
    }
}

/// State of the controls at the start of a round of cleaning.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    /// [`Cleaner::start`] asked for everything to be cleaned.
    pub requested: bool,
    /// How often it did.
    pub starts: u64,
    /// There may be work other than bytes that died: [`Cleaner::nudge`].
    pub nudged: bool,
    pub automatic: bool,
    /// The clock is within [`CleanerChange::hours`], so that cleaning ahead may start.
    pub in_hours: bool,
    /// It is another drive's turn to clean.
    pub held: bool,
    /// A zone worth cleaning waits for this drive's turn.
    pub waits_for_turn: bool,
    /// Bytes that died since a scan of all zones last found none worth cleaning.
    pub died: u64,
}

/// The right to clean, which one thread at a time holds.
pub(crate) struct Turn<'a>(&'a Cleaner);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().in_hand = None;
        *self.0.taken.lock() = false;
        self.0.over.notify_all();
    }
}

/// The cleaner's controls, shared by the cleaner's thread and all that need free zones.
pub(crate) struct Cleaner {
    policy: Arc<dyn CleaningPolicy>,
    runtime: Runtime,
    state: Mutex<State>,
    wake: Condvar,
    /// A thread holds a [`Turn`]. Locked before `state`.
    taken: Mutex<bool>,
    /// Notified when a [`Turn`] is dropped.
    over: Condvar,
    /// Zones that the mount reset, and the bytes in them.
    at_mount: (u32, u64),
}

impl Cleaner {
    /// Runs at full speed and at any hour until [`Self::change`] says otherwise.
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
            // A mount counts no bytes that died before it.
            nudged: true,
            did: CleaningWork::default(),
            started: CleaningWork::default(),
            starts: 0,
            starts_asked: 0,
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

    /// The fields known to the controls; the others stay zero.
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

    /// Applies new settings. Returns the latency above which the new pace counts a user's read as slow, if it has one.
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

    /// Replaces what the cluster last said about turns.
    pub fn take_turn(&self, turn: ClusterTurn) {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        state.cluster = turn.at(now);
        // The cluster repeats it each second: only a change wakes the thread.
        if state.cluster.holds(now) != state.was_held {
            state.was_held = !state.was_held;
            state.again = true;
            self.wake.notify_all();
        }
    }

    /// Records whether a zone is worth cleaning while it is another drive's turn.
    pub fn waits_for_turn(&self, waits: bool) {
        self.state.lock().waits_for_turn = waits;
    }

    /// Asks for everything to be cleaned, and lets the cleaner start by itself again.
    pub fn start(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.requested, true) {
            state.started = CleaningWork::default();
        }
        state.starts += 1;
        state.automatic = true;
        state.gains = Gains::default();
        self.wake.notify_all();
    }

    /// Stops after the piece that is being copied and ends all jobs; cleaning starts by itself only after
    /// [`Self::start`].
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stops += 1;
        state.requested = false;
        state.automatic = false;
        self.wake.notify_all();
    }

    /// Whether the cleaner was stopped since `job` began.
    pub fn has_stopped(&self, job: CleaningJob) -> bool {
        self.state.lock().stops != job.stops
    }

    /// The policy that picks the next zone to clean.
    pub fn policy(&self) -> &dyn CleaningPolicy {
        &*self.policy
    }

    /// How much a zone must gain to be worth cleaning while `free` of `all` zones are free; `None` if enough are. In a
    /// cluster whose drives clean in turns, enough includes the zones that users will fill until this drive's turn: an
    /// estimate from `written`, the bytes that users have written so far, and `zone_bytes`, the capacity of a zone.
    pub fn pressure(&self, free: u32, all: u32, zone_bytes: u64, written: u64) -> Option<Pressure> {
        let now = self.runtime.now();
        let mut state = self.state.lock();
        let zones = (zone_bytes, all);
        let filled = state.filling.zones_in(AHEAD, (now, written), zones);
        let filled = if state.cluster.speaks(now) { filled } else { 0 };
        state.free_zones.pressure_before(free, all, filled)
    }

    /// Waits until no other thread cleans; `None` once `is_needed` is false. Waiters check `is_needed` after each zone,
    /// so none waits for a second zone while one is free. As long as any thread waits, the holder of the turn cleans at
    /// full speed.
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

    /// Wakes the cleaner for work other than bytes that died: a reader has closed its object or ended its moment, so that a
    /// doomed map or a zone may be free now, or a zone was set aside.
    pub fn nudge(&self) {
        self.state.lock().nudged = true;
        self.wake.notify_all();
    }

    /// Wakes the cleaner after a commit that made `died` bytes dead; `nudges` as for [`Self::nudge`].
    pub fn after_commit(&self, died: u64, nudges: bool) {
        if died > 0 || nudges {
            let mut state = self.state.lock();
            // Otherwise an earlier commit has woken the thread already.
            let is_first = state.died <= state.heard;
            state.died += died;
            state.nudged |= nudges;
            if died > 0 {
                state.gains = Gains::default();
            }
            if is_first || nudges {
                self.wake.notify_all();
            }
        }
    }

    fn is_one_of(&self, hours: Hours) -> bool {
        hours.is_always() || hours.contains(self.runtime.minute_of_day())
    }

    /// Waits for work, for a minute at most while `is_unfinished`: zones could not be reset or emptied. False once the store
    /// is being unmounted.
    pub fn wait_for_work(&self, is_unfinished: impl Fn() -> bool) -> bool {
        let again = is_unfinished().then(|| self.runtime.now() + LOOK_AGAIN);
        let mut state = self.state.lock();
        state.running = false;
        while !state.has_news() && state.died <= state.heard {
            let now = self.runtime.now();
            let held = state.cluster.holds(now);
            let began = !state.in_hours && self.is_one_of(state.hours);
            if began || held != state.was_held || again.is_some_and(|at| at <= now) {
                state.was_held = held;
                state.again = true;
                break;
            }
            let hours = (!state.hours.is_always()).then_some(LOOK_AT_HOURS);
            let cluster = state.cluster.changes(now).map(|at| at - now);
            let again = again.map(|at| at - now);
            match hours.into_iter().chain(cluster).chain(again).min() {
                Some(look) => {
                    self.wake.wait_for(&mut state, look);
                }
                None => self.wake.wait(&mut state),
            }
        }
        if !state.has_news() {
            self.wake.wait_for(&mut state, GATHER);
        }
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
        state.starts_asked = state.starts;
        Asked {
            nudged: std::mem::take(&mut state.nudged),
            requested: state.requested,
            starts: state.starts,
            automatic: state.automatic,
            in_hours: state.in_hours,
            held,
            waits_for_turn: state.waits_for_turn,
            died: state.died,
        }
    }

    /// Bytes have died without a commit: cleaning may gain space again.
    pub fn gains_anew(&self) {
        self.state.lock().gains = Gains::default();
    }

    /// Whether cleaning has stopped gaining space, while `dead` bytes are dead.
    pub fn is_in_vain(&self, dead: u64) -> bool {
        self.state.lock().gains.are_over(dead)
    }

    /// Asks for another round after one that has cleaned a zone: there may be more to do.
    pub fn cleaned(&self) {
        self.state.lock().again = true;
    }

    /// Adds work to what was done since [`Self::start`].
    pub fn credit_start(&self, did: CleaningWork) {
        self.state.lock().started += did;
    }

    /// Records that a round found no zone worth cleaning under `asked`.
    pub fn found_nothing(&self, asked: Asked) {
        let mut state = self.state.lock();
        state.requested &= !asked.requested || state.starts != asked.starts;
        state.waits_for_turn = false;
        // Another round may have counted the same bytes: that of `Store::tend`, or one that failed.
        state.died = state.died.saturating_sub(asked.died);
        state.heard = state.heard.saturating_sub(asked.died);
    }

    /// Records that a round failed: the next one starts when cleaning is requested again or more bytes die.
    pub fn failed(&self) {
        let mut state = self.state.lock();
        state.requested &= state.starts != state.starts_asked;
        // Another drive can use the turn meanwhile.
        state.waits_for_turn = false;
        (state.died, state.heard) = (0, 0);
    }

    /// When the next `bytes` may be read or written at the current pace; `None` if now, as always when a thread needs a
    /// zone.
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

    /// Waits until `moment`, until a thread needs a zone or cleaning is over; at most 100 ms at once.
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

    /// Whether cleaning is stopped, so that the zone in hand is left as it is.
    pub fn is_over(&self) -> bool {
        self.state.lock().is_over()
    }

    /// Whether the zone in hand is left because it is another drive's turn; never once a zone is urgently needed.
    pub fn gives_way(&self) -> bool {
        self.state.lock().gives_way(self.runtime.now())
    }

    /// Marks `zone` as being cleaned, until the [`Turn`] ends.
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

    /// Counts a zone that was reset and the `freed` bytes; `dead` is what was dead on the drive then.
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
