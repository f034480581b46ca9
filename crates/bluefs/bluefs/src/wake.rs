//! How the cleaner's thread is called.

use runtime::sync::{Condvar, Mutex};

/// A call that is not lost if nobody listens yet.
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

    pub fn wait(&self) {
        let mut called = self.called.lock();
        while !*called {
            self.changed.wait(&mut called);
        }
        *called = false;
    }
}
