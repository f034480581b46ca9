//! The scrub's controls: when it begins, how fast it runs, and its status. `scrub.rs` does the work.

use runtime::Runtime;
use runtime::sync::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use zone::ZoneId;
use zone_alloc::{Pace, Pacer, Requests};

/// How often the thread checks whether a pass is due, and whether the next piece may be read.
const LOOK: (Duration, Duration) = (Duration::from_secs(10), Duration::from_millis(100));
/// Pause before it begins by itself again after a failure.
const AFTER_FAILURE: Duration = Duration::from_hours(1);
/// Least time between two passes over the metadata because of damaged copies, by the scrub or by the database.
const DAMAGED: Duration = Duration::from_mins(10);

/// How far in the future a recorded time may be; beyond that, the clock was wrong.
const AHEAD: Duration = Duration::from_hours(1);

/// A recorded time; 0, for never, if it is in the future, so that the next pass does not wait for it.
pub(crate) fn believed(micros: u64, now_micros: u64) -> u64 {
    if micros <= now_micros.saturating_add(AHEAD.as_micros() as u64) {
        micros
    } else {
        0
    }
}

/// Called before each piece with its bytes; false stops the scrub.
pub(crate) type Goes<'a> = &'a mut dyn FnMut(u64) -> bool;

/// How often a store scrubs itself, and how fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ScrubPlan {
    /// Interval of passes over all metadata; `None`: only on request.
    pub metadata_every: Option<Duration>,
    /// Interval of passes over all data; `None`: only on request.
    pub data_every: Option<Duration>,
    /// Speed, in bytes read and written.
    pub pace: Pace,
}

impl ScrubPlan {
    /// No pass by itself.
    pub const NEVER: Self = Self {
        metadata_every: None,
        data_every: None,
        pace: Pace::Full,
    };
    /// Metadata each day, data each thirty days, at 16 MiB a second: a disk of 20 TB takes half of the thirty days.
    pub const DEFAULT: Self = Self {
        metadata_every: Some(Duration::from_hours(24)),
        data_every: Some(Duration::from_hours(24 * 30)),
        pace: Pace::Rate(16 << 20),
    };

    /// Whether a pass is due, and whether one over the data. A stop counts as the end of a pass, so a pass that was
    /// stopped is resumed only when the one after it would be due.
    fn is_due(&self, seen: &Seen, stopped_micros: u64, now_micros: u64) -> (bool, bool) {
        let stopped = believed(stopped_micros, now_micros);
        let is_due = |every: Option<Duration>, last: u64| {
            let since = now_micros.saturating_sub(last.max(stopped));
            every.is_some_and(|every| since >= every.as_micros() as u64)
        };
        // A pass that a kill has interrupted is resumed, unless data is never scrubbed by itself.
        let goes_on = seen.is_under_way && stopped_micros == 0 && self.data_every.is_some();
        let deep = goes_on || is_due(self.data_every, seen.data_micros);
        (
            deep || is_due(self.metadata_every, seen.metadata_micros),
            deep,
        )
    }
}

/// Status of the scrub. Times are Unix time in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScrubStatus {
    /// Whether a pass is running.
    pub running: bool,
    /// Whether a user has requested a pass that has not begun yet.
    pub requested: bool,
    /// The data zone that it is reading.
    pub zone: Option<ZoneId>,
    /// Bytes of objects that the current pass has read.
    pub bytes_read: u64,
    /// Bytes of all objects.
    pub bytes_all: u64,
    /// When the current pass began; the next start of a server resumes it.
    pub began_micros: Option<u64>,
    /// When a user stopped it: it is resumed on request, or when the next pass is due, counted from this time.
    pub stopped_micros: Option<u64>,
    /// When a pass over all metadata last ended.
    pub metadata_micros: Option<u64>,
    /// When a pass over all data last ended.
    pub data_micros: Option<u64>,
    /// Places of metadata that were damaged in one copy and have been rewritten since the mount, by the scrub or by
    /// others.
    pub copies_repaired: u64,
    /// Places of metadata that the mount itself repaired: one copy was shorter, damaged or lost.
    pub mended_at_mount: u64,
    /// Metadata that is damaged in all copies: files, and rows that could not be read.
    pub metadata_lost: u64,
    /// Damaged runs of bytes that objects still show.
    pub damaged_places: u64,
    /// Rows that were in no readable segment summary and have been written to one since the mount.
    pub rows_copied: u64,
}

/// The store's state that decides whether a pass is due.
pub(crate) struct Seen {
    /// When passes over all metadata and over all data last ended, Unix time in microseconds.
    pub metadata_micros: u64,
    pub data_micros: u64,
    /// Whether a pass over the data has begun and not ended.
    pub is_under_way: bool,
    /// Zones of the metadata with a copy found damaged by a read; the other copy is read since.
    pub damaged_copies: u32,
}

#[derive(Default)]
struct State {
    shutdown: bool,
    /// Number of damaged copies that last started a pass, and when.
    damaged_copies: (u32, Option<Duration>),
    /// A pass that a user requested; true: over the data too.
    requested: Option<bool>,
    /// The current pass ends after the piece that is being read.
    ends: bool,
    /// When a user stopped it, unless it was requested since; 0: it is not stopped. By its plan, it begins as if a pass
    /// had ended then. Damaged copies still start one.
    stopped_micros: u64,
    /// When databases were last allowed to read both copies of their files again.
    heal_allowed: Duration,
    /// After a failure, it does not begin by itself before this moment.
    not_before: Duration,
    status: ScrubStatus,
}

/// The scrub's plan, pace and state, shared by its thread and by those that control it.
pub(crate) struct Scrubber {
    runtime: Runtime,
    plan: ScrubPlan,
    pacer: Mutex<Pacer>,
    state: Mutex<State>,
    wake: Condvar,
    /// Held by the thread that scrubs.
    pub working: Mutex<()>,
    /// Held by a thread that starts or stops the scrub, until that is recorded.
    pub changing: Mutex<()>,
}

impl Scrubber {
    /// `stopped_micros`: when a user stopped it in an earlier mount; 0: it is not stopped.
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

    /// The fields known to the controls.
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

    /// Ends a stop.
    pub fn release(&self) {
        self.state.lock().stopped_micros = 0;
    }

    /// Requests a pass over the metadata and, if `deep`, over the data.
    pub fn request(&self, deep: bool) {
        let mut state = self.state.lock();
        state.requested = Some(deep | state.requested.unwrap_or(false));
        state.ends = false;
        self.wake.notify_all();
    }

    /// Ends the current pass after the piece that is being read.
    pub fn stop(&self, now_micros: u64) {
        let mut state = self.state.lock();
        state.requested = None;
        (state.ends, state.stopped_micros) = (true, now_micros);
        self.wake.notify_all();
    }

    /// Wakes the thread: there is damage to record.
    pub fn wake(&self) {
        self.wake.notify_all();
    }

    /// After a failure, puts the next pass off for an hour, unless a user requests one before.
    pub fn failed(&self) {
        self.state.lock().not_before = self.runtime.now() + AFTER_FAILURE;
    }

    pub fn shutdown(&self) {
        self.state.lock().shutdown = true;
        self.wake.notify_all();
    }

    /// Waits until a pass is due or a read has found a damaged copy. Whether it includes the data; `None` at the
    /// shutdown.
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
                // An earlier stop was for the pass before this one.
                state.ends = false;
                // Set before `requested` is seen as cleared, so that a user who asked sees one of both until the pass
                // ends.
                state.status.running = true;
                return Some(asked.unwrap_or(deep));
            }
            self.wake.wait_for(&mut state, LOOK.0);
        }
    }

    /// Whether databases may read both copies of their files again: at most every ten minutes, should that fail.
    pub fn may_heal_again(&self) -> bool {
        let now = self.runtime.now();
        let allowed = &mut self.state.lock().heal_allowed;
        let is_due = now >= *allowed + DAMAGED;
        if is_due {
            *allowed = now;
        }
        is_due
    }

    /// Whether there are damaged copies that have started no pass yet, and the last such pass is long enough ago.
    fn is_damaged(&self, state: &mut State, copies: u32) -> bool {
        let (seen, at) = &mut state.damaged_copies;
        let now = self.runtime.now();
        // A copy that was rewritten may be damaged again.
        *seen = copies.min(*seen);
        let is_new = copies > *seen && at.is_none_or(|at| now >= at + DAMAGED);
        if is_new {
            (*seen, *at) = (copies, Some(now));
        }
        is_new
    }

    /// Waits until `bytes` may be read; false if the scrub has to end.
    pub fn next(&self, bytes: u64, requests: impl Fn() -> Requests) -> bool {
        self.next_until(|state| state.shutdown || state.ends, bytes, requests)
    }

    /// Like [`Self::next`], for copies of rows to summaries, which are no pass: a user who stops the scrub does not stop
    /// them.
    pub fn next_copy(&self, bytes: u64, requests: impl Fn() -> Requests) -> bool {
        self.next_until(|state| state.shutdown, bytes, requests)
    }

    fn next_until(
        &self,
        ends: impl Fn(&State) -> bool,
        bytes: u64,
        requests: impl Fn() -> Requests,
    ) -> bool {
        loop {
            let now = self.runtime.now();
            let next = {
                let mut pacer = self.pacer.lock();
                let next = pacer.next(now, &requests());
                if next <= now {
                    // Paces count bytes read and written.
                    pacer.spend(bytes.saturating_mul(2), now);
                }
                next
            };
            let mut state = self.state.lock();
            if ends(&state) {
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

    /// Rows that a crash has left in no summary are copied without a pass.
    #[test]
    fn a_stop_ends_a_pass_and_no_copies_of_rows() {
        let scrubber = Scrubber::new(ScrubPlan::NEVER, 0, Runtime::seeded(0));
        scrubber.stop(1);
        assert!(!scrubber.next(0, Requests::default));
        assert!(scrubber.next_copy(0, Requests::default));
        scrubber.shutdown();
        assert!(!scrubber.next_copy(0, Requests::default));
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
        // Interrupted by a kill, and stopped by a user, in a pass that was due.
        assert_eq!(due(&begun(60, 99), 0, 99), (true, true));
        assert_eq!(due(&begun(60, 99), 99, 99), (false, false));
        assert_eq!(due(&begun(60, 99), 99, 100), (true, false));
        assert_eq!(due(&begun(60, 128), 99, 128), (false, false));
        assert_eq!(due(&begun(60, 128), 99, 129), (true, true));
        // A pass that was not due, but requested.
        assert_eq!(due(&begun(90, 99), 0, 99), (true, true));
        assert_eq!(due(&begun(90, 119), 99, 120), (true, false));
        // Stopped by a clock that was ahead.
        assert_eq!(due(&begun(90, 119), 9_999, 100), (false, false));
        assert_eq!(due(&begun(90, 119), 9_999, 120), (true, true));
        let never = ScrubPlan::NEVER;
        assert_eq!(never.is_due(&begun(0, 0), 0, 999 * day), (false, false));
    }
}
