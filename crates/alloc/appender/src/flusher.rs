//! Groups the flushes of concurrent callers: one flush of the drive serves all callers that wait for it.
//!
//! A caller is served by any flush that *began* after its call, so while one runs, all later callers wait for
//! the next one together. After a flush has failed, no further one is issued and every call that needs one
//! returns that error: it is unknown which data the drive has lost, and a later success would not show it.

use runtime::sync::{Condvar, Mutex, MutexGuard};
use zone::{ZoneError, ZoneResult};

#[derive(Default, Debug)]
struct State {
    started: u64,
    /// The number of the last flush that succeeded.
    finished: u64,
    running: bool,
    failed: Option<ZoneError>,
}

/// Issues flushes for concurrent callers and numbers them from 1.
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

    /// The number of the last flush that succeeded; 0 if none has.
    pub fn finished(&self) -> u64 {
        self.state.lock().finished
    }

    /// [`Self::next`] and [`Self::finished`], read at one moment.
    pub fn window(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.started + 1, state.finished)
    }

    /// Makes everything durable that was written before the call; `flush` issues one flush to the drive.
    ///
    /// # Errors
    /// The drive's error, also that of an earlier flush that failed.
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
