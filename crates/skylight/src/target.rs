//! What is looked into: a model in virtual time here, a device in real time elsewhere.

use drive_model::{Failure, Profile, ProfileError, Request, Span, Time};
use std::collections::HashMap;
use std::ops::ControlFlow;
use thiserror::Error;

/// A request and how it went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What was asked.
    pub request: Request,
    /// How long it took.
    pub latency: Span,
    /// When it was done.
    pub at: Time,
    /// Whether it was done.
    pub result: Result<(), Failure>,
}

/// Why nothing more can be found out.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TargetError {
    /// The device does not answer any more.
    #[error("{what} does not answer: {reason}")]
    Gone {
        /// Which.
        what: String,
        /// What the system says.
        reason: String,
    },
    /// A request has taken too long.
    #[error("a request has been under way for {seconds} s: the device is stuck")]
    Stuck {
        /// How long.
        seconds: u64,
    },
}

/// A drive under test. All times are its own: virtual for a model.
pub trait Target {
    /// Blocks of 4 KiB.
    fn blocks(&self) -> u64;

    /// Its clock.
    fn now(&self) -> Time;

    /// Sends requests, `depth` of them under way at a time, and shows each answer as it comes;
    /// no more are sent once `watch` breaks.
    ///
    /// # Errors
    /// The target does not answer.
    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError>;

    /// Leaves it alone for a while.
    fn pause(&mut self, span: Span);

    /// Switches its volatile write cache; whether that was possible.
    fn set_volatile_cache(&mut self, on: bool) -> bool;

    /// Switches its reading ahead; whether that was possible.
    fn set_look_ahead(&mut self, on: bool) -> bool;

    /// Puts it back to how it left the factory (secure erase); whether that was possible.
    fn erase(&mut self) -> bool;

    /// Cuts its power in the middle of what it does and puts it on again; whether that was possible.
    fn power_cut(&mut self) -> bool {
        false
    }
}

/// Sends requests and gathers the answers in the order in which they came.
///
/// # Errors
/// The target does not answer.
pub fn gather(
    target: &mut dyn Target,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Result<Vec<Answer>, TargetError> {
    let mut answers = Vec::new();
    target.run(depth, &mut requests.into_iter(), &mut |answer| {
        answers.push(*answer);
        ControlFlow::Continue(())
    })?;
    Ok(answers)
}

/// Empties the persistent cache: at once where that is possible, else by leaving the drive alone for
/// an hour.
pub fn clean(target: &mut dyn Target) {
    if !target.erase() {
        target.pause(Span::from_seconds(3600.0));
    }
}

/// Latencies in milliseconds.
pub fn millis(answers: &[Answer]) -> Vec<f64> {
    answers
        .iter()
        .map(|answer| answer.latency.millis())
        .collect()
}

/// A model, in virtual time.
pub struct Model {
    make: Box<dyn Fn() -> Result<Box<dyn drive_model::Model>, ProfileError>>,
    drive: Box<dyn drive_model::Model>,
    now: Time,
    /// Time that went by before the last erasure.
    before: Span,
    caches: (bool, bool),
}

impl Model {
    /// A model of a profile, as it comes from the factory.
    ///
    /// # Errors
    /// The profile is none.
    pub fn new(profile: Profile, seed: u64) -> Result<Self, ProfileError> {
        Self::of(move || Ok(Box::new(profile.drive(seed)?)))
    }

    /// A model of a built-in profile of any kind.
    ///
    /// # Errors
    /// There is none of the name.
    pub fn named(name: &str, seed: u64) -> Result<Self, ProfileError> {
        let name = name.to_owned();
        Self::of(move || drive_model::profile::model(&name, seed))
    }

    fn of(
        make: impl Fn() -> Result<Box<dyn drive_model::Model>, ProfileError> + 'static,
    ) -> Result<Self, ProfileError> {
        Ok(Self {
            drive: make()?,
            make: Box::new(make),
            now: Time::START,
            before: Span::ZERO,
            caches: (true, true),
        })
    }
}

impl Target for Model {
    fn blocks(&self) -> u64 {
        self.drive.blocks()
    }

    fn now(&self) -> Time {
        self.now + self.before
    }

    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError> {
        let mut under_way = HashMap::new();
        let mut next = |drive: &mut dyn drive_model::Model, under_way: &mut HashMap<_, _>, now| {
            if let Some(request) = requests.next() {
                under_way.insert(drive.enqueue(request, now), request);
            }
        };
        for _ in 0..depth {
            next(&mut *self.drive, &mut under_way, self.now);
        }
        let mut going = true;
        while let Some(done) = self.drive.next_completion() {
            self.now = self.now.max(done.at);
            if let Some(request) = under_way.remove(&done.tag) {
                let answer = Answer {
                    request,
                    latency: done.latency(),
                    at: self.now + self.before,
                    result: done.result,
                };
                going &= watch(&answer).is_continue();
            }
            if going {
                next(&mut *self.drive, &mut under_way, done.at);
            }
        }
        Ok(())
    }

    fn pause(&mut self, span: Span) {
        self.now += span;
        self.drive.idle_until(self.now);
    }

    fn set_volatile_cache(&mut self, on: bool) -> bool {
        self.caches.0 = on;
        self.drive.set_volatile_cache(on)
    }

    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.caches.1 = on;
        self.drive.set_look_ahead(on)
    }

    fn erase(&mut self) -> bool {
        let Ok(drive) = (self.make)() else {
            return false;
        };
        self.drive = drive;
        self.before += self.now.since(Time::START);
        self.now = Time::START;
        self.drive.set_volatile_cache(self.caches.0);
        self.drive.set_look_ahead(self.caches.1);
        true
    }

    fn power_cut(&mut self) -> bool {
        self.drive.power_cut(self.now);
        true
    }
}
