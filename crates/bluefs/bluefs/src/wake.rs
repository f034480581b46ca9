//! Wakes the cleaner's thread.

use runtime::sync::{Condvar, Mutex};
use std::time::Duration;

/// A signal that is not lost if no thread waits for it yet.
#[derive(Default)]
pub(crate) struct Wake {
    called: Mutex<bool>,
    changed: Condvar,
}

impl Wake {
    pub fn call(&self) {
        *self.called.lock() = true;
        self.changed.notify_one();
    }

    /// Whether a call waits to be heard.
    #[cfg(test)]
    pub fn is_called(&self) -> bool {
        *self.called.lock()
    }

    /// Waits for a call, for at most the given time.
    pub fn wait(&self, at_most: Option<Duration>) {
        let mut called = self.called.lock();
        while !*called {
            match at_most {
                None => self.changed.wait(&mut called),
                Some(at_most) => {
                    self.changed.wait_for(&mut called, at_most);
                    break;
                }
            }
        }
        *called = false;
    }
}
