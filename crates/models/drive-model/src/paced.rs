//! A model at the pace of the clock on the wall, for many requests at once.
//!
//! Virtual time is the wall's, times a factor. What a request meets is decided as time goes by: the
//! model is never asked what it would do later, for something may come until then. Whoever waits for
//! answers moves it on; each answer is handed out when its time has come, and late by what the machine
//! takes to wake up.

use crate::model::Model;
use crate::request::{Completion, Request, Tag};
use crate::time::{Span, Time};
use runtime::sync::{Condvar, Mutex, MutexGuard};
use runtime::{HashMap, Runtime};
use std::collections::VecDeque;
use std::time::Duration;

/// How many requests of one lane may be under way; more wait outside of the drive.
pub const LANE_DEPTH: usize = 1024;

/// Who asks, so that everybody gets their own answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaneId(u64);

/// An answer that is due.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due<T> {
    /// What came with the request.
    pub with: T,
    /// How it ended; nothing for what the drive was not asked.
    pub completion: Option<Completion>,
}

/// See the head of this file. A `T` comes with each request and goes with its answer.
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
    /// How far the model has been told that time went.
    now: Time,
    under_way: HashMap<Tag, (LaneId, T)>,
    lanes: HashMap<LaneId, Lane<T>>,
    next_lane: u64,
    stopped: bool,
}

#[derive(Debug)]
struct Lane<T> {
    due: VecDeque<Due<T>>,
    /// Requests that were taken and whose answers were not.
    open: usize,
    closed: bool,
}

impl<T> Paced<T> {
    /// Goes on with a model that has come to `start`, so many times as fast as the clock of `runtime`.
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

    /// What the drive's clock shows.
    pub fn now(&self) -> Time {
        let nanos = (self.runtime.now() - self.begun).as_nanos() as f64 * self.speed_up;
        self.start + Span::from_nanos(nanos as u64)
    }

    /// When the drive's clock shows that; nothing if nobody will see the day.
    fn on_the_wall(&self, time: Time) -> Option<Duration> {
        let nanos = time.since(self.start).nanos() as f64 / self.speed_up;
        let after = Duration::from_nanos(nanos as u64 + 1);
        self.begun.checked_add(after)
    }

    /// How long after `due` it is, on the wall.
    pub fn late(&self, due: Time) -> Duration {
        let due = self.on_the_wall(due);
        due.map_or(Duration::ZERO, |due| self.runtime.now().saturating_sub(due))
    }

    /// Another one who asks.
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

    /// Adds to a lane as soon as there is room in it; nothing happens in one that is not there any
    /// more.
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

    /// Asks the drive for something that came at `came`.
    pub fn submit(&self, lane: LaneId, with: T, request: Request, came: Time) {
        if let Some(mut state) = self.open(lane) {
            // It has heard of later times already: that of another lane's request, for instance.
            let now = came.max(state.now);
            state.now = now;
            let tag = state.model.enqueue(request, now);
            state.under_way.insert(tag, (lane, with));
            self.changed.notify_all();
        }
    }

    /// Answers without asking the drive.
    pub fn answer(&self, lane: LaneId, with: T) {
        if let Some(mut state) = self.open(lane) {
            state.hand_out(lane, with, None);
            self.changed.notify_all();
        }
    }

    /// Nothing more comes in a lane.
    pub fn close(&self, id: LaneId) {
        let mut state = self.state.lock();
        match state.lanes.get_mut(&id) {
            Some(lane) if lane.open > 0 => lane.closed = true,
            // There may be nobody who waits for its end.
            _ => drop(state.lanes.remove(&id)),
        }
        self.changed.notify_all();
    }

    /// Waits for the next answer that is due in a lane. Nothing once it is closed and all are given
    /// out, or after a stop.
    pub fn wait(&self, id: LaneId) -> Option<Due<T>> {
        self.wait_until(id, None)
    }

    /// Does what [`wait`](Self::wait) does, and gives up at `until`.
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

    /// Lets the drive's time pass.
    pub fn sleep(&self, span: Span) {
        let nanos = span.nanos() as f64 / self.speed_up;
        runtime::thread::sleep(Duration::from_nanos(nanos as u64));
    }

    /// Looks at the model.
    pub fn with_model<R>(&self, look: impl FnOnce(&dyn Model) -> R) -> R {
        look(&*self.state.lock().model)
    }

    /// Nobody waits any more.
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// The model at rest, after what it has been asked for, and when that is.
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
    /// Lets time pass; whether something has become due.
    fn work_until(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        let mut any = false;
        while let Some(completion) = self.model.completion_by(self.now) {
            // None if it was asked for before the model was saved.
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
