//! Noise that the models do not have: that of a host, of a controller, or of a drive that is busy internally or reads
//! bad places again. The platters turn on meanwhile.

use drive_model::{Completion, Lba, Model, ModelStatistics, Request, RequestKind, Span, Tag, Time};
use skylight::Random;
use std::collections::{BTreeMap, HashMap};

/// The cause of late answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noise {
    /// A bell curve around 1 ms, with a standard deviation of 0.2 ms.
    Bell,
    /// Mostly little and seldom much: exponential with a mean of 0.2 ms.
    Tail,
    /// Any time up to 15 ms, in one second of every twenty.
    Bursts,
    /// The drive is busy internally for 50 ms of every two seconds.
    Busy,
    /// One to four turns for reads in one place of fifty, always the same ones.
    BadPlaces,
    /// Half a second to a second, once in some minutes.
    Recalibration,
    /// All answers wait for half a second to two seconds, once in some minutes: a link that is reset.
    Stop,
}

/// Kinds of noise that take turns among random drives; [`Noise::Stop`] has a test of its own.
pub const ALL: [Noise; 6] = [
    Noise::Bell,
    Noise::Tail,
    Noise::Bursts,
    Noise::Busy,
    Noise::BadPlaces,
    Noise::Recalibration,
];

/// A drive whose answers are late by one kind of noise.
#[derive(Debug)]
pub struct Uneven {
    drive: Box<dyn Model>,
    noise: Noise,
    turn: Span,
    random: Random,
    requests: HashMap<Tag, Request>,
    late: BTreeMap<(Time, Tag), Completion>,
    /// The time of the next recalibration or stop.
    next: Time,
    /// The end of the last stop: no answer is earlier.
    stopped_until: Time,
}

impl Uneven {
    pub fn new(drive: Box<dyn Model>, noise: Noise, rpm: u32, seed: u64) -> Self {
        Self {
            drive,
            noise,
            turn: Span::from_millis(60e3 / f64::from(rpm)),
            random: Random::new(seed),
            requests: HashMap::new(),
            late: BTreeMap::new(),
            next: Time::START,
            stopped_until: Time::START,
        }
    }

    fn part(&mut self) -> f64 {
        (self.random.below(1 << 30) + 1) as f64 / f64::from(1 << 30)
    }

    /// Milliseconds by which the answer to a request is late.
    fn late(&mut self, at: Time, request: Request) -> f64 {
        let turn = self.turn.millis();
        match self.noise {
            Noise::Bell => {
                let around: f64 = (0..6).map(|_| self.part() - 0.5).sum();
                (1.0 + 0.28 * around).max(0.0)
            }
            Noise::Tail => -0.2 * self.part().ln(),
            Noise::Bursts if at.seconds() % 20.0 < 1.0 => 15.0 * self.part(),
            Noise::Busy => {
                let left = 50.0 - at.seconds() * 1e3 % 2_000.0;
                // The head has to wait whole turns for its blocks to come round again.
                if left > 0.0 {
                    (left / turn).ceil() * turn
                } else {
                    0.0
                }
            }
            Noise::BadPlaces if request.operation == RequestKind::Read => {
                let place = (request.lba.0 / 16).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
                if place.is_multiple_of(50) {
                    turn * (1 + place / 50 % 4) as f64
                } else {
                    0.0
                }
            }
            Noise::Recalibration if at >= self.next => {
                self.next = at + Span::from_seconds(60.0 + 240.0 * self.part());
                500.0 + 500.0 * self.part()
            }
            Noise::Stop if at >= self.next => {
                self.next = at + Span::from_seconds(60.0 + 240.0 * self.part());
                self.stopped_until = at + Span::from_millis(500.0 + 1_500.0 * self.part());
                0.0
            }
            _ => 0.0,
        }
    }

    /// The time of the answer to a request that the drive has done.
    fn answered(&mut self, done: Time, request: Request) -> Time {
        let at = done + Span::from_millis(self.late(done, request));
        at.max(self.stopped_until)
    }

    fn take(&mut self, done: Completion) {
        let request = self.requests.remove(&done.tag);
        let request = request.unwrap_or(Request::read(Lba(0), 1));
        let at = self.answered(done.at, request);
        self.late.insert((at, done.tag), Completion { at, ..done });
    }
}

impl Model for Uneven {
    fn blocks(&self) -> u64 {
        self.drive.blocks()
    }

    fn submit(&mut self, request: Request, now: Time) -> Completion {
        let done = self.drive.submit(request, now);
        let at = self.answered(done.at, request);
        Completion { at, ..done }
    }

    fn enqueue(&mut self, request: Request, now: Time) -> Tag {
        let tag = self.drive.enqueue(request, now);
        self.requests.insert(tag, request);
        tag
    }

    fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let first = self.late.first_key_value().map(|((at, _), _)| *at);
            match self.drive.next_moment() {
                Some(moment) if first.is_none_or(|first| moment < first) => {
                    if let Some(done) = self.drive.completion_by(moment) {
                        self.take(done);
                    }
                }
                _ => return self.late.pop_first().map(|(_, done)| done),
            }
        }
    }

    fn completion_by(&mut self, now: Time) -> Option<Completion> {
        while let Some(done) = self.drive.completion_by(now) {
            self.take(done);
        }
        let (at, _) = *self.late.first_key_value()?.0;
        (at <= now).then(|| self.late.pop_first().map(|(_, done)| done))?
    }

    fn next_moment(&self) -> Option<Time> {
        let first = self.late.first_key_value().map(|((at, _), _)| *at);
        first.into_iter().chain(self.drive.next_moment()).min()
    }

    fn idle_until(&mut self, now: Time) {
        self.drive.idle_until(now);
    }

    fn power_cut(&mut self, now: Time) -> Vec<Completion> {
        self.late.clear();
        self.requests.clear();
        self.drive.power_cut(now)
    }

    fn statistics(&self) -> ModelStatistics {
        self.drive.statistics()
    }

    fn set_volatile_cache(&mut self, on: bool) -> bool {
        self.drive.set_volatile_cache(on)
    }

    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.drive.set_look_ahead(on)
    }
}
