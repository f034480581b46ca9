//! Runs a model at wall-clock pace, for many concurrent requests.
//!
//! Virtual time is wall-clock time times a factor. The model is never asked about the future, because another request
//! may arrive until then. A thread that waits for completions advances the model; each completion is handed out when
//! its time has come, or later by the time that the thread takes to wake up.

use crate::model::Model;
use crate::request::{Completion, Request, Tag};
use crate::time::{Span, Time};
use runtime::sync::{Condvar, Mutex, MutexGuard};
use runtime::{HashMap, Runtime};
use std::collections::VecDeque;
use std::time::Duration;

/// Most requests of a lane under way; further ones wait outside of the drive.
pub const LANE_DEPTH: usize = 1024;

/// Identifies a lane: a client of the drive, which receives only its own completions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaneId(u64);

/// A completion whose time has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due<T> {
    /// The value that came with the request.
    pub with: T,
    /// The completion; `None` if the drive was not asked.
    pub completion: Option<Completion>,
}

/// A model at wall-clock pace. A `T` comes with each request and is returned with its completion.
#[derive(Debug)]
pub struct Paced<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    runtime: Runtime,
    begun: Duration,
    start: Time,
    speed_up: f64,
}

#[derive(Debug)]
struct State<T> {
    model: Box<dyn Model>,
    /// Time up to which the model has advanced.
    now: Time,
    under_way: HashMap<Tag, (LaneId, T)>,
    lanes: HashMap<LaneId, Lane<T>>,
    next_lane: u64,
    stopped: bool,
}

#[derive(Debug)]
struct Lane<T> {
    due: VecDeque<Due<T>>,
    /// Number of requests that were submitted and not handed out.
    open: usize,
    closed: bool,
}

impl<T> Paced<T> {
    /// Continues with a model whose time is `start`, `speed_up` times as fast as the clock of `runtime`.
    pub fn new(model: Box<dyn Model>, start: Time, speed_up: f64, runtime: Runtime) -> Self {
        Self {
            state: Mutex::new(State {
                model,
                now: start,
                under_way: HashMap::default(),
                lanes: HashMap::default(),
                next_lane: 0,
                stopped: false,
            }),
            changed: Condvar::new(),
            begun: runtime.now(),
            runtime,
            start,
            speed_up,
        }
    }

    /// The present time of the drive's clock.
    pub fn now(&self) -> Time {
        let nanos = (self.runtime.now() - self.begun).as_nanos() as f64 * self.speed_up;
        self.start + Span::from_nanos(nanos as u64)
    }

    /// Wall-clock time at which the drive's clock shows `time`; `None` if that is beyond what the clock can hold.
    fn on_the_wall(&self, time: Time) -> Option<Duration> {
        let nanos = time.since(self.start).nanos() as f64 / self.speed_up;
        let after = Duration::from_nanos(nanos as u64 + 1);
        self.begun.checked_add(after)
    }

    /// Wall-clock time since `due`.
    pub fn late(&self, due: Time) -> Duration {
        let due = self.on_the_wall(due);
        due.map_or(Duration::ZERO, |due| self.runtime.now().saturating_sub(due))
    }

    /// Opens another lane.
    pub fn lane(&self) -> LaneId {
        let mut state = self.state.lock();
        let id = LaneId(state.next_lane);
        state.next_lane += 1;
        let lane = Lane {
            due: VecDeque::new(),
            open: 0,
            closed: false,
        };
        state.lanes.insert(id, lane);
        id
    }

    /// Waits until a lane has room for one more request, or the drive is stopped. `None` if the lane does not exist
    /// any more.
    fn open(&self, id: LaneId) -> Option<MutexGuard<'_, State<T>>> {
        let mut state = self.state.lock();
        loop {
            let stopped = state.stopped;
            match state.lanes.get_mut(&id) {
                Some(lane) if !stopped && lane.open >= LANE_DEPTH => {}
                Some(lane) => {
                    lane.open += 1;
                    return Some(state);
                }
                None => return None,
            }
            self.changed.wait(&mut state);
        }
    }

    /// Submits a request that arrived at `came`.
    pub fn submit(&self, lane: LaneId, with: T, request: Request, came: Time) {
        if let Some(mut state) = self.open(lane) {
            // The model may have advanced beyond `came` already, for a request of another lane for instance.
            let now = came.max(state.now);
            state.now = now;
            let tag = state.model.enqueue(request, now);
            state.under_way.insert(tag, (lane, with));
            self.changed.notify_all();
        }
    }

    /// Completes a request without asking the drive.
    pub fn answer(&self, lane: LaneId, with: T) {
        if let Some(mut state) = self.open(lane) {
            state.hand_out(lane, with, None);
            self.changed.notify_all();
        }
    }

    /// Closes a lane: no further requests are submitted in it.
    pub fn close(&self, id: LaneId) {
        let mut state = self.state.lock();
        match state.lanes.get_mut(&id) {
            Some(lane) if lane.open > 0 => lane.closed = true,
            // No thread may be waiting for the end of this lane.
            _ => drop(state.lanes.remove(&id)),
        }
        self.changed.notify_all();
    }

    /// Waits for the next completion in a lane. `None` once the lane is closed and everything is handed out, or after
    /// a stop.
    pub fn wait(&self, id: LaneId) -> Option<Due<T>> {
        self.wait_until(id, None)
    }

    /// As [`wait`](Self::wait), until `until` at most.
    pub fn wait_until(&self, id: LaneId, until: Option<Time>) -> Option<Due<T>> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            let now = self.now();
            if state.work_until(now) {
                self.changed.notify_all();
            }
            let lane = state.lanes.get_mut(&id)?;
            if let Some(due) = lane.due.pop_front() {
                lane.open -= 1;
                if lane.open + 1 == LANE_DEPTH {
                    self.changed.notify_all();
                }
                return Some(due);
            }
            if lane.closed && lane.open == 0 {
                state.lanes.remove(&id);
                return None;
            }
            if until.is_some_and(|until| now >= until) {
                return None;
            }
            let moments = [state.model.next_moment(), until].into_iter().flatten();
            match moments.min().map(|time| self.on_the_wall(time)) {
                Some(Some(moment)) => {
                    let left = moment.saturating_sub(self.runtime.now());
                    self.changed.wait_for(&mut state, left);
                }
                _ => self.changed.wait(&mut state),
            }
        }
    }

    /// Sleeps for a span of the drive's time.
    pub fn sleep(&self, span: Span) {
        let nanos = span.nanos() as f64 / self.speed_up;
        runtime::thread::sleep(Duration::from_nanos(nanos as u64));
    }

    /// Calls `look` with the model.
    pub fn with_model<R>(&self, look: impl FnOnce(&dyn Model) -> R) -> R {
        look(&*self.state.lock().model)
    }

    /// Stops the drive: threads that wait return.
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Stops at rest: serves what was submitted; returns the model, and the time at which it is idle.
    pub fn finish(self) -> (Box<dyn Model>, Time) {
        let now = self.now();
        let mut state = self.state.into_inner();
        state.work_until(now);
        while let Some(done) = state.model.next_completion() {
            state.now = state.now.max(done.at);
        }
        (state.model, state.now)
    }
}

impl<T> State<T> {
    /// Advances the model to `now`; `true` if that completed any request.
    fn work_until(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        let mut any = false;
        while let Some(completion) = self.model.completion_by(self.now) {
            // A request of an earlier process, saved with the model, has no lane.
            if let Some((lane, with)) = self.under_way.remove(&completion.tag) {
                self.hand_out(lane, with, Some(completion));
                any = true;
            }
        }
        any
    }

    fn hand_out(&mut self, lane: LaneId, with: T, completion: Option<Completion>) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            lane.due.push_back(Due { with, completion });
        }
    }
}
