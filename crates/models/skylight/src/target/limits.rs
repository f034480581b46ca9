//! The limits of an examination, and the callback for its progress.

use super::TargetError;
use drive_model::{Span, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// When to end the examination.
#[derive(Clone, Default, Debug)]
pub struct Limits {
    /// Limit on the target's time.
    pub budget: Option<Span>,
    /// Set when the user wants to stop.
    pub interrupted: Arc<AtomicBool>,
}

/// Called from time to time with the target's time and, in a pause, with the rest of the pause.
pub type Watch = Box<dyn FnMut(Time, Option<Span>)>;

/// Whether the examination has to end. Once it does, that does not change.
#[derive(Debug)]
pub(super) struct Halt {
    until: Option<Time>,
    interrupted: Arc<AtomicBool>,
    over: Option<TargetError>,
}

impl Halt {
    /// Counts the budget from `now` on.
    pub fn new(limits: Limits, now: Time) -> Self {
        Self {
            until: limits.budget.map(|budget| now + budget),
            interrupted: limits.interrupted,
            over: None,
        }
    }

    /// Why the examination has to end at `now`; `None` if it need not.
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

    /// The part of `span` that is within the budget.
    pub fn within(&self, now: Time, span: Span) -> Span {
        self.until.map_or(span, |until| span.min(until.since(now)))
    }

    /// Ends the examination; the first reason stays.
    pub fn end(&mut self, why: &TargetError) {
        self.over.get_or_insert_with(|| why.clone());
    }
}
