//! Flushes shared by whoever needs one at the same time.
//!
//! A caller is content with any flush that *began* after it came here; so while one runs, all
//! later callers wait for the next one together. A flush that failed is the last: what the drive
//! has lost by then nobody knows, and a later success would say nothing of it.

use runtime::sync::{Condvar, Mutex, MutexGuard};
use zone::{ZoneError, ZoneResult};

#[derive(Default, Debug)]
struct State {
    started: u64,
    /// The last one that succeeded.
    finished: u64,
    running: bool,
    failed: Option<ZoneError>,
}

/// See the head of this file. Flushes are numbered from 1.
#[derive(Default, Debug)]
pub struct Flusher {
    state: Mutex<State>,
    done: Condvar,
}

impl Flusher {
    /// The number of the first flush that would begin after this call.
    pub fn next(&self) -> u64 {
        self.state.lock().started + 1
    }

    /// The last flush that was done.
    pub fn finished(&self) -> u64 {
        self.state.lock().finished
    }

    /// Both of these: the next and the last.
    pub fn window(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.started + 1, state.finished)
    }

    /// Makes everything durable that was written before the call; `flush` is how the drive does it.
    ///
    /// # Errors
    /// The drive's; that of a flush that failed before, too.
    pub fn flush(&self, flush: impl Fn() -> ZoneResult<()>) -> ZoneResult<()> {
        let state = self.state.lock();
        let wanted = state.started + 1;
        self.wait(state, wanted, flush)
    }

    /// Makes everything durable that was written before the flush `wanted`, which a call of [`Self::next`] answered.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn reach(&self, wanted: u64, flush: impl Fn() -> ZoneResult<()>) -> ZoneResult<()> {
        self.wait(self.state.lock(), wanted, flush)
    }

    fn wait(
        &self,
        mut state: MutexGuard<'_, State>,
        wanted: u64,
        flush: impl Fn() -> ZoneResult<()>,
    ) -> ZoneResult<()> {
        while state.finished < wanted {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.running {
                self.done.wait(&mut state);
                continue;
            }
            state.running = true;
            state.started += 1;
            let number = state.started;
            let result = MutexGuard::unlocked(&mut state, &flush);
            state.running = false;
            self.done.notify_all();
            if let Err(error) = result {
                state.failed = Some(error);
                continue;
            }
            state.finished = state.finished.max(number);
        }
        Ok(())
    }
}
