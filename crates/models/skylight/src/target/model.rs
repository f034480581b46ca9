//! A model as a target, in virtual time.

use super::limits::{Halt, Limits, Watch};
use super::{Answer, Target, TargetError};
use block_device::{BlockDevice, NoData, Simulated};
use drive_model::{Completion, Profile, ProfileError, Request, Span, Time};
use std::ops::ControlFlow;

/// Number of requests between two calls of the watch.
const WORD: u64 = 4_096;

/// A model as a target, in virtual time.
pub struct Model {
    make: Box<dyn Fn() -> Result<Box<dyn drive_model::Model>, ProfileError>>,
    drive: Simulated<NoData>,
    /// Time that passed before the last erase.
    before: Span,
    caches: (bool, bool),
    halt: Halt,
    watch: Watch,
    /// Number of requests so far.
    count: u64,
}

impl Model {
    /// A model of a profile, in its factory state.
    ///
    /// # Errors
    /// The profile is invalid.
    pub fn new(profile: Profile, seed: u64) -> Result<Self, ProfileError> {
        Self::of(move || Ok(Box::new(profile.drive(seed)?)))
    }

    /// A model of a built-in profile of any kind.
    ///
    /// # Errors
    /// There is no profile of the name.
    pub fn named(name: &str, seed: u64) -> Result<Self, ProfileError> {
        let name = name.to_owned();
        Self::of(move || drive_model::profile::model(&name, seed))
    }

    /// A model that `make` can create again, for an erase.
    ///
    /// # Errors
    /// `make` failed.
    pub fn of(
        make: impl Fn() -> Result<Box<dyn drive_model::Model>, ProfileError> + 'static,
    ) -> Result<Self, ProfileError> {
        Ok(Self {
            drive: Simulated::new(make()?, NoData),
            make: Box::new(make),
            before: Span::ZERO,
            caches: (true, true),
            halt: Halt::new(Limits::default(), Time::START),
            watch: Box::new(|_, _| ()),
            count: 0,
        })
    }

    /// Applies limits, counted from now on.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        let halt = Halt::new(limits, Target::now(&self));
        Self { halt, ..self }
    }

    /// Calls `watch` every few thousand requests and in pauses.
    #[must_use]
    pub fn with_watch(self, watch: Watch) -> Self {
        Self { watch, ..self }
    }
}

impl Target for Model {
    fn blocks(&self) -> u64 {
        self.drive.blocks()
    }

    fn now(&self) -> Time {
        self.drive.now() + self.before
    }

    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError> {
        let Self {
            drive,
            halt,
            watch: word,
            count,
            before,
            ..
        } = self;
        let mut over = None;
        let mut next = |now| {
            over = over.take().or_else(|| halt.at(now + *before));
            let request = if over.is_none() {
                requests.next()?
            } else {
                return None;
            };
            *count += 1;
            if count.is_multiple_of(WORD) {
                word(now + *before, None);
            }
            Some(request)
        };
        let mut seen = |now, request, done: &Completion| {
            watch(&Answer {
                request,
                latency: done.latency(),
                at: now + *before,
                result: done.result,
            })
        };
        drive.keep_under_way(depth, &mut next, &mut seen);
        over.map_or(Ok(()), Err)
    }

    fn pause(&mut self, span: Span) {
        let now = Target::now(self);
        if self.halt.at(now).is_some() {
            return;
        }
        let span = self.halt.within(now, span);
        (self.watch)(now, Some(span));
        self.drive.idle(span);
    }

    fn set_volatile_cache(&mut self, on: bool) -> bool {
        self.caches.0 = on;
        self.drive.model().set_volatile_cache(on)
    }

    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.caches.1 = on;
        self.drive.model().set_look_ahead(on)
    }

    fn can_erase(&self) -> bool {
        true
    }

    fn erase(&mut self) -> bool {
        let Ok(drive) = (self.make)() else {
            return false;
        };
        self.before += self.drive.now().since(Time::START);
        self.drive = Simulated::new(drive, NoData);
        self.drive.model().set_volatile_cache(self.caches.0);
        self.drive.model().set_look_ahead(self.caches.1);
        true
    }

    fn power_cut(&mut self) -> bool {
        self.drive.power_cut();
        true
    }
}
