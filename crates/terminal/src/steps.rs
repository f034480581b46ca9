//! The steps of something that takes a drive's time, shown while it goes on.

use crate::{Progress, length};
use std::cell::RefCell;
use std::rc::Rc;

/// Shows what is being done: the step, how much of the drive's time is over, and how long it is left alone. Nothing is
/// shown before the first.
#[derive(Clone, Default)]
pub struct Steps(Rc<RefCell<Shown>>);

#[derive(Default)]
struct Shown {
    progress: Option<Progress>,
    step: String,
    now: f64,
}

impl Steps {
    /// The next step begins.
    pub fn next(&self, what: &str) {
        let mut shown = self.0.borrow_mut();
        what.clone_into(&mut shown.step);
        shown.progress.get_or_insert_with(|| Progress::words(""));
        shown.show(None);
    }

    /// So many seconds of the drive's time are over, and for so many it is left alone.
    pub fn at(&self, seconds: f64, alone: Option<f64>) {
        let mut shown = self.0.borrow_mut();
        shown.now = seconds;
        shown.show(alone);
    }

    /// Nothing is shown any more.
    pub fn end(&self) {
        self.0.borrow_mut().progress = None;
    }
}

impl Shown {
    fn show(&self, alone: Option<f64>) {
        let Some(progress) = &self.progress else {
            return;
        };
        let (step, now) = (&self.step, length(self.now));
        let alone = alone.filter(|seconds| *seconds >= 1.0);
        let alone = alone.map(|seconds| format!(", leaving it alone for {}", length(seconds)));
        let alone = alone.unwrap_or_default();
        progress.message(format!("{step} · {now} of the drive's time{alone}"));
    }
}
