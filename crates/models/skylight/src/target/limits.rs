//! When to stop looking, and who is told meanwhile how far it is.

use super::TargetError;
use drive_model::{Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// When to stop.
#[derive(Clone, Default, Debug)]
pub struct Limits {
    /// It may be looked into for so much of its time.
    pub budget: Option<Span>,
    /// Set once somebody wants it to stop.
    pub interrupted: Arc<AtomicBool>,
}

/// Told now and then what the target's clock shows, and how much is left of a pause, if it is one.
pub type Watch = Box<dyn FnMut(Time, Option<Span>)>;

/// Whether anything may be asked any more. Once it may not, it stays so.
#[derive(Debug)]
pub(super) struct Halt {
    until: Option<Time>,
    interrupted: Arc<AtomicBool>,
    over: Option<TargetError>,
}

impl Halt {
    /// Counts from `now` on.
    pub fn new(limits: Limits, now: Time) -> Self {
        Self {
            until: limits.budget.map(|budget| now + budget),
            interrupted: limits.interrupted,
            over: None,
        }
    }

    /// Why nothing may be asked any more at `now`.
    pub fn at(&mut self, now: Time) -> Option<TargetError> {
        if self.over.is_none() {
            if self.interrupted.load(Ordering::Relaxed) {
                self.over = Some(TargetError::Interrupted);
            } else if self.until.is_some_and(|until| now >= until) {
                self.over = Some(TargetError::TimeOver);
            }
        }
        self.over.clone()
    }

    /// How much of `span` there is before the time is over.
    pub fn within(&self, now: Time, span: Span) -> Span {
        self.until.map_or(span, |until| span.min(until.since(now)))
    }

    /// Nothing may be asked any more; the first reason stays.
    pub fn end(&mut self, why: &TargetError) {
        self.over.get_or_insert_with(|| why.clone());
    }
}
