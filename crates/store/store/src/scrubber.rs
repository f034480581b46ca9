//! The scrub's controls: when it begins, how fast it goes, how far it is. The work is done in `scrub.rs`.

use runtime::Runtime;
use runtime::sync::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use zone::ZoneId;
use zone_alloc::{Pace, Pacer, Requests};

/// Between two looks whether it is time, and whether the next piece may go.
const LOOK: (Duration, Duration) = (Duration::from_secs(10), Duration::from_millis(100));
/// Until it begins by itself again after it has failed.
const AFTER_FAILURE: Duration = Duration::from_hours(1);
/// Between two looks at all metadata because of damaged copies, by the scrub or by the database.
const DAMAGED: Duration = Duration::from_mins(10);

/// So far ahead, a time that was written down is one of a clock that was wrong.
const AHEAD: Duration = Duration::from_hours(1);

/// A time that was written down; 0, for never, if it is still to come: the next look is not to wait for it.
pub(crate) fn believed(micros: u64, now_micros: u64) -> u64 {
    if micros <= now_micros.saturating_add(AHEAD.as_micros() as u64) {
        micros
    } else {
        0
    }
}

/// Asked in front of each piece of so many bytes; false: no more.
pub(crate) type Goes<'a> = &'a mut dyn FnMut(u64) -> bool;

/// When a store looks at everything by itself, and how fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScrubPlan {
    /// From one look at all metadata to the next; `None`: only when asked for.
    pub metadata_every: Option<Duration>,
    /// Likewise for all data.
    pub data_every: Option<Duration>,
    /// How fast it goes.
    pub pace: Pace,
}

impl ScrubPlan {
    /// Nothing by itself.
    pub const NEVER: Self = Self {
        metadata_every: None,
        data_every: None,
        pace: Pace::Full,
    };
    /// Metadata each day, data each thirty days, 16 MiB a second: a disk of 20 TB takes half of these.
    pub const DEFAULT: Self = Self {
        metadata_every: Some(Duration::from_hours(24)),
        data_every: Some(Duration::from_hours(24 * 30)),
        pace: Pace::Rate(16 << 20),
    };

    /// Whether it is time for a look, and whether for one at the data too. A stop counts as the end of a pass, so what was
    /// stopped rests until the one behind it.
    fn is_due(&self, seen: &Seen, stopped_micros: u64, now_micros: u64) -> (bool, bool) {
        let stopped = believed(stopped_micros, now_micros);
        let is_due = |every: Option<Duration>, last: u64| {
            let since = now_micros.saturating_sub(last.max(stopped));
            every.is_some_and(|every| since >= every.as_micros() as u64)
        };
        // What a kill has cut short goes on by itself, unless nothing is to.
        let goes_on = seen.is_under_way && stopped_micros == 0 && self.data_every.is_some();
        let deep = goes_on || is_due(self.data_every, seen.data_micros);
        (
            deep || is_due(self.metadata_every, seen.metadata_micros),
            deep,
        )
    }
}

/// What the scrub does and has done. Times are Unix time in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScrubStatus {
    /// It is at work.
    pub running: bool,
    /// Somebody has asked for it, and it has not begun yet.
    pub requested: bool,
    /// The zone with objects whose bytes it reads.
    pub zone: Option<ZoneId>,
    /// Bytes of objects that the pass under way has read.
    pub bytes_read: u64,
    /// Bytes of objects that there are.
    pub bytes_all: u64,
    /// When this pass began; the next start of a server goes on with it.
    pub began_micros: Option<u64>,
    /// When somebody stopped it: it begins when it is asked for, or when the next pass is due, counted from here.
    pub stopped_micros: Option<u64>,
    /// When all metadata had been looked at for the last time.
    pub metadata_micros: Option<u64>,
    /// When all data had been.
    pub data_micros: Option<u64>,
    /// Places of metadata that were damaged in one copy, and have been written anew since the mount, whoever found them.
    pub copies_repaired: u64,
    /// Places of metadata that the mount made whole before any scrub: one copy was shorter, damaged or lost.
    pub mended_at_mount: u64,
    /// What of the metadata is damaged in all copies: files, and what reading rows has met.
    pub metadata_lost: u64,
    /// Runs of bytes that are damaged and that objects still have.
    pub damaged_places: u64,
    /// Rows that were in no readable segment summary, and have been written to one since the mount.
    pub rows_copied: u64,
}

/// What the thread looks at while it waits.
pub(crate) struct Seen {
    /// When all metadata and all data had been looked at, Unix time in microseconds.
    pub metadata_micros: u64,
    pub data_micros: u64,
    /// A pass over the data was begun and has not ended.
    pub is_under_way: bool,
    /// Zones of the metadata with a copy that a read has found damaged: the other one is read since.
    pub damaged_copies: u32,
}

#[derive(Default)]
struct State {
    shutdown: bool,
    /// Damaged copies that were an occasion to look, and when that was.
    damaged_copies: (u32, Option<Duration>),
    /// Somebody asked for it; true: for the data too.
    requested: Option<bool>,
    /// What is under way ends behind what is being read.
    ends: bool,
    /// When somebody stopped it, and nobody has asked for it since; 0: so it is not. It begins by the plan as if a pass had
    /// ended then. Damaged copies are looked after.
    stopped_micros: u64,
    /// When databases were allowed to look at both copies of their files again.
    heal_allowed: Duration,
    /// It has failed, and does not begin by itself before this moment.
    not_before: Duration,
    status: ScrubStatus,
}

/// See the head of this file.
pub(crate) struct Scrubber {
    runtime: Runtime,
    plan: ScrubPlan,
    pacer: Mutex<Pacer>,
    state: Mutex<State>,
    wake: Condvar,
    /// Held by whoever does the work.
    pub working: Mutex<()>,
    /// Held by whoever starts or stops it, until that is written down.
    pub changing: Mutex<()>,
}

impl Scrubber {
    /// `stopped_micros`: when an earlier mount was told to stop; 0: it was not.
    pub fn new(plan: ScrubPlan, stopped_micros: u64, runtime: Runtime) -> Self {
        let state = State {
            stopped_micros,
            ..State::default()
        };
        Self {
            runtime,
            plan,
            pacer: Mutex::new(Pacer::new(plan.pace)),
            state: Mutex::new(state),
            wake: Condvar::new(),
            working: Mutex::new(()),
            changing: Mutex::new(()),
        }
    }

    /// What is known here.
    pub fn status(&self) -> ScrubStatus {
        let state = self.state.lock();
        ScrubStatus {
            requested: state.requested.is_some(),
            stopped_micros: Some(state.stopped_micros).filter(|micros| *micros > 0),
            ..state.status
        }
    }

    pub fn note(&self, change: impl FnOnce(&mut ScrubStatus)) {
        change(&mut self.state.lock().status);
    }

    /// It is stopped no more; true if it was.
    pub fn release(&self) -> bool {
        std::mem::take(&mut self.state.lock().stopped_micros) > 0
    }

    /// Asks the thread for a look at everything.
    pub fn request(&self, deep: bool) {
        let mut state = self.state.lock();
        state.requested = Some(deep | state.requested.unwrap_or(false));
        state.ends = false;
        self.wake.notify_all();
    }

    /// Ends what is under way behind the piece in hand.
    pub fn stop(&self, now_micros: u64) {
        let mut state = self.state.lock();
        state.requested = None;
        (state.ends, state.stopped_micros) = (true, now_micros);
        self.wake.notify_all();
    }

    /// There is something to write down.
    pub fn wake(&self) {
        self.wake.notify_all();
    }

    /// What is under way has failed: it is tried again after a while, unless somebody asks before.
    pub fn failed(&self) {
        self.state.lock().not_before = self.runtime.now() + AFTER_FAILURE;
    }

    pub fn shutdown(&self) {
        self.state.lock().shutdown = true;
        self.wake.notify_all();
    }

    /// Waits until it is time, or a read has found a damaged copy. Whether the data is to be read too; `None` at the end.
    pub fn wait_for_work(&self, see: impl Fn() -> Seen) -> Option<bool> {
        loop {
            let seen = see();
            let now = self.runtime.unix_micros();
            let mut state = self.state.lock();
            if state.shutdown {
                return None;
            }
            let (is_due, deep) = self.plan.is_due(&seen, state.stopped_micros, now);
            let asked = state.requested.take();
            let is_damaged = self.is_damaged(&mut state, seen.damaged_copies);
            let may_begin = self.runtime.now() >= state.not_before;
            if asked.is_some() || is_damaged || is_due && may_begin {
                // A stop was of what went before.
                state.ends = false;
                // Who asked sees one or the other until it is over.
                state.status.running = true;
                return Some(asked.unwrap_or(deep));
            }
            self.wake.wait_for(&mut state, LOOK.0);
        }
    }

    /// Whether it is time to let the database look at both copies of its files again, should that have been in vain.
    pub fn may_heal_again(&self) -> bool {
        let now = self.runtime.now();
        let allowed = &mut self.state.lock().heal_allowed;
        let is_due = now >= *allowed + DAMAGED;
        if is_due {
            *allowed = now;
        }
        is_due
    }

    /// Whether there are damaged copies that nobody has looked after, and it was not looked lately.
    fn is_damaged(&self, state: &mut State, copies: u32) -> bool {
        let (seen, at) = &mut state.damaged_copies;
        let now = self.runtime.now();
        // What has been written anew may be damaged once more.
        *seen = copies.min(*seen);
        let is_new = copies > *seen && at.is_none_or(|at| now >= at + DAMAGED);
        if is_new {
            (*seen, *at) = (copies, Some(now));
        }
        is_new
    }

    /// Waits until so many bytes may be read; false if nothing more is to be.
    pub fn next(&self, bytes: u64, requests: impl Fn() -> Requests) -> bool {
        loop {
            let now = self.runtime.now();
            let next = {
                let mut pacer = self.pacer.lock();
                let next = pacer.next(now, &requests());
                if next <= now {
                    // A pace is of bytes that are read and written.
                    pacer.spend(bytes.saturating_mul(2), now);
                }
                next
            };
            let mut state = self.state.lock();
            if state.shutdown || state.ends {
                return false;
            }
            if next <= now {
                return true;
            }
            self.wake.wait_for(&mut state, (next - now).min(LOOK.1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::SimulatedClock;
    use std::sync::Arc;

    #[test]
    fn every_ten_minutes_the_database_may_look_again() {
        let clock = Arc::new(SimulatedClock::default());
        let runtime = Runtime::seeded(0).with_clock(clock.clone());
        let scrubber = Scrubber::new(ScrubPlan::NEVER, 0, runtime);
        assert!(!scrubber.may_heal_again());
        clock.advance(DAMAGED);
        assert!(scrubber.may_heal_again());
        assert!(!scrubber.may_heal_again());
        clock.advance(DAMAGED / 2);
        assert!(!scrubber.may_heal_again());
        clock.advance(DAMAGED / 2);
        assert!(scrubber.may_heal_again());
    }

    #[test]
    fn what_was_stopped_rests_until_the_next_pass_is_due() {
        let day = Duration::from_hours(24).as_micros() as u64;
        let begun = |data_days: u64, metadata_days: u64| Seen {
            metadata_micros: metadata_days * day,
            data_micros: data_days * day,
            is_under_way: true,
            damaged_copies: 0,
        };
        let due = |seen: &Seen, stopped: u64, now: u64| {
            ScrubPlan::DEFAULT.is_due(seen, stopped * day, now * day)
        };
        // Cut short by a kill, and by somebody, in a pass that was due.
        assert_eq!(due(&begun(60, 99), 0, 99), (true, true));
        assert_eq!(due(&begun(60, 99), 99, 99), (false, false));
        assert_eq!(due(&begun(60, 99), 99, 100), (true, false));
        assert_eq!(due(&begun(60, 128), 99, 128), (false, false));
        assert_eq!(due(&begun(60, 128), 99, 129), (true, true));
        // One that was not due, but asked for.
        assert_eq!(due(&begun(90, 99), 0, 99), (true, true));
        assert_eq!(due(&begun(90, 119), 99, 120), (true, false));
        // By a clock that was ahead.
        assert_eq!(due(&begun(90, 119), 9_999, 100), (false, false));
        assert_eq!(due(&begun(90, 119), 9_999, 120), (true, true));
        let never = ScrubPlan::NEVER;
        assert_eq!(never.is_due(&begun(0, 0), 0, 999 * day), (false, false));
    }
}
