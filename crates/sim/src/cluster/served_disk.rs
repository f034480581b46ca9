//! A drive that does one job at a time in order of arrival, each for a time drawn from a distribution.

use super::job::{Ended, Job, Work};
use super::service::Service;
use super::translation::Translation;
use drive_model::{Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// How long each kind of job takes on a kind of drive; all jobs of a kind are of one size.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibrated {
    /// Times to read an object or fragment.
    pub read: Service,
    /// Times to write an object or fragment.
    pub write: Service,
    /// Times to move a piece.
    pub moved: Service,
    /// Delays of a translation layer on top of these times, on a drive that has one.
    pub translation: Option<Translation>,
}

/// A queue of jobs, and the one that is being done.
#[derive(Clone, Debug)]
pub struct ServedDisk {
    times: Arc<Calibrated>,
    translation: Option<Translation>,
    waiting: VecDeque<(Job, Time)>,
    /// The job that is being done, when it arrived, and when it will be done.
    serving: Option<(Job, Time, Time)>,
    free_at: Time,
    busy: Span,
    random: fastrand::Rng,
}

impl ServedDisk {
    /// A drive with nothing to do.
    pub fn new(times: Arc<Calibrated>, random: fastrand::Rng) -> Self {
        Self {
            translation: times.translation.clone(),
            times,
            waiting: VecDeque::new(),
            serving: None,
            free_at: Time::START,
            busy: Span::ZERO,
            random,
        }
    }

    /// Takes a job at `now`.
    pub fn take(&mut self, job: Job, now: Time) {
        self.waiting.push_back((job, now));
        if self.serving.is_none() {
            let mut begin = now.max(self.free_at);
            if let Some(translation) = &mut self.translation {
                begin = translation.idle(self.free_at, begin, &mut self.random);
            }
            self.begin(begin);
        }
    }

    fn begin(&mut self, at: Time) {
        let Some((job, came)) = self.waiting.pop_front() else {
            return;
        };
        let mut takes = match job.work {
            Work::Read => self.times.read.draw(&mut self.random),
            Work::Write => self.times.write.draw(&mut self.random),
            Work::Move => self.times.moved.draw(&mut self.random),
        };
        if job.work == Work::Write
            && let Some(translation) = &mut self.translation
        {
            takes += translation.write(job.bytes, &mut self.random);
        }
        self.busy += takes;
        self.free_at = at + takes;
        self.serving = Some((job, came, self.free_at));
    }

    /// When the job under way is done.
    pub fn next_moment(&self) -> Option<Time> {
        self.serving.map(|(.., done)| done)
    }

    /// Takes out a job that is done by `now`.
    pub fn ended_by(&mut self, now: Time) -> Option<Ended> {
        let (job, came, at) = self.serving.take_if(|(.., done)| *done <= now)?;
        self.begin(at);
        Some(Ended {
            owner: job.owner,
            at,
            took: at.since(came),
        })
    }

    /// Time in which it was busy; the job under way counts in full.
    pub const fn busy(&self) -> Span {
        self.busy
    }
}
