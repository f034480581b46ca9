//! Display of the steps of work that takes a drive's time.

use crate::{Progress, length};
use std::cell::RefCell;
use std::rc::Rc;

/// Shows the current step, how much of the drive's time has passed, and how long the drive is idle. Invisible before
/// the first step.
#[derive(Clone, Default)]
pub struct Steps(Rc<RefCell<Shown>>);

#[derive(Default)]
struct Shown {
    progress: Option<Progress>,
    step: String,
    now: f64,
}

impl Steps {
    /// Begins the next step.
    pub fn next(&self, what: &str) {
        let mut shown = self.0.borrow_mut();
        what.clone_into(&mut shown.step);
        shown.progress.get_or_insert_with(|| Progress::words(""));
        shown.show(None);
    }

    /// Sets the drive's time that has passed and, in a pause, the seconds that remain of it.
    pub fn at(&self, seconds: f64, alone: Option<f64>) {
        let mut shown = self.0.borrow_mut();
        shown.now = seconds;
        shown.show(alone);
    }

    /// Removes the display.
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
