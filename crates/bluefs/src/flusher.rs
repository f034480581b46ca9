//! Flushes shared by whoever needs one at the same time.
//!
//! A caller is content with any flush that *began* after it came here; so while one runs, all
//! later callers wait for the next one together.

use device::ZonedDevice;
use parking_lot::{Condvar, Mutex};
use zone::ZoneResult;

#[derive(Default)]
struct State {
    started: u64,
    /// The last one that succeeded.
    finished: u64,
    running: bool,
}

#[derive(Default)]
pub(crate) struct Flusher {
    state: Mutex<State>,
    done: Condvar,
}

impl Flusher {
    /// Makes everything durable that was written before the call.
    pub fn flush(&self, device: &dyn ZonedDevice) -> ZoneResult<()> {
        let mut state = self.state.lock();
        let wanted = state.started + 1;
        while state.finished < wanted {
            if state.running {
                self.done.wait(&mut state);
                continue;
            }
            state.running = true;
            state.started += 1;
            let number = state.started;
            let result = parking_lot::MutexGuard::unlocked(&mut state, || device.flush());
            state.running = false;
            self.done.notify_all();
            result?;
            state.finished = state.finished.max(number);
        }
        Ok(())
    }
}
