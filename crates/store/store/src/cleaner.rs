//! The cleaner's controls and counts; the work is done in `cleaning.rs`.

use runtime::sync::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use zone_alloc::{CleaningPolicy, Pressure, Watermarks};

/// What the cleaner does and has done since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CleanerStatus {
    /// It is at work right now.
    pub running: bool,
    /// It starts by itself when free zones run low.
    pub automatic: bool,
    /// Somebody asked it to clean everything.
    pub requested: bool,
    /// Zones reset.
    pub zones_cleaned: u64,
    /// Live bytes moved to other zones.
    pub bytes_moved: u64,
    /// Bytes that can be written again.
    pub bytes_freed: u64,
    /// Zones with dead bytes.
    pub dirty_zones: u32,
    /// Zones without live bytes that the mount reset.
    pub mount_zones_reset: u32,
    /// Bytes that the mount gave back with them.
    pub mount_bytes_freed: u64,
}

#[derive(Default)]
struct State {
    running: bool,
    automatic: bool,
    requested: bool,
    shutdown: bool,
    /// Bytes that died since a look at all zones last found none worth cleaning.
    died: u64,
    /// Of these, bytes that the thread knows of.
    heard: u64,
    /// The last round has cleaned a zone.
    again: bool,
    doomed: bool,
    zones_cleaned: u64,
    bytes_moved: u64,
    bytes_freed: u64,
}

/// What a round of work is for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    /// Somebody asked for everything to be cleaned.
    pub requested: bool,
    pub automatic: bool,
    /// Bytes that died since a look at all zones last found none worth cleaning.
    pub died: u64,
}

/// The right to clean: one at a time has it.
pub(crate) struct Turn<'a>(&'a Cleaner);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock() = false;
        self.0.over.notify_all();
    }
}

/// The cleaner's controls.
pub(crate) struct Cleaner {
    policy: Arc<dyn CleaningPolicy>,
    free_zones: Watermarks,
    state: Mutex<State>,
    wake: Condvar,
    /// Somebody cleans.
    taken: Mutex<bool>,
    /// Nobody does any more.
    over: Condvar,
    /// Zones that the mount reset, and the bytes in them.
    at_mount: (u32, u64),
}

impl Cleaner {
    pub fn new(
        (policy, free_zones): (Arc<dyn CleaningPolicy>, Watermarks),
        automatic: bool,
        at_mount: (u32, u64),
    ) -> Self {
        let state = Mutex::new(State {
            automatic,
            ..State::default()
        });
        Self {
            policy,
            free_zones,
            state,
            wake: Condvar::new(),
            taken: Mutex::new(false),
            over: Condvar::new(),
            at_mount,
        }
    }

    pub fn status(&self, dirty_zones: u32) -> CleanerStatus {
        let s = self.state.lock();
        CleanerStatus {
            running: s.running,
            automatic: s.automatic,
            requested: s.requested,
            zones_cleaned: s.zones_cleaned,
            bytes_moved: s.bytes_moved,
            bytes_freed: s.bytes_freed,
            dirty_zones,
            mount_zones_reset: self.at_mount.0,
            mount_bytes_freed: self.at_mount.1,
        }
    }

    /// Asks for everything to be cleaned, and lets the cleaner start by itself again.
    pub fn start(&self) {
        let mut state = self.state.lock();
        state.requested = true;
        state.automatic = true;
        self.wake.notify_all();
    }

    /// Stops after the zone in hand; it does not start by itself until [`Self::start`].
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.requested = false;
        state.automatic = false;
    }

    /// Which zone to clean.
    pub fn policy(&self) -> &dyn CleaningPolicy {
        &*self.policy
    }

    /// What a zone has to gain to be cleaned while `free` zones are, of `all`; `None` if enough are.
    pub fn pressure(&self, free: u32, all: u32) -> Option<Pressure> {
        self.free_zones.pressure(free, all)
    }

    /// Waits until nobody else cleans; `None` once there is no need to any more. After each zone those
    /// who wait see whether it was enough, so nobody waits for a second one while a zone is free.
    pub fn turn(&self, is_needed: impl Fn() -> bool) -> Option<Turn<'_>> {
        let mut taken = self.taken.lock();
        while is_needed() {
            if !*taken {
                *taken = true;
                return Some(Turn(self));
            }
            self.over.wait(&mut taken);
        }
        None
    }

    pub fn shutdown(&self) {
        self.state.lock().shutdown = true;
        self.wake.notify_all();
    }

    /// A reader has gone: a doomed map may be free now.
    pub fn nudge(&self) {
        self.state.lock().doomed = true;
        self.wake.notify_all();
    }

    pub fn after_commit(&self, died: u64, doomed: bool) {
        if died > 0 || doomed {
            let mut state = self.state.lock();
            state.died += died;
            state.doomed |= doomed;
            self.wake.notify_all();
        }
    }

    /// Waits for something to do; false if there will be nothing any more.
    pub fn wait_for_work(&self) -> bool {
        let mut state = self.state.lock();
        state.running = false;
        while !(state.shutdown || state.requested || state.doomed || state.again)
            && state.died <= state.heard
        {
            self.wake.wait(&mut state);
        }
        state.doomed = false;
        state.again = false;
        state.running = !state.shutdown;
        state.running
    }

    pub fn asked(&self) -> Asked {
        let mut state = self.state.lock();
        state.heard = state.died;
        Asked {
            requested: state.requested,
            automatic: state.automatic,
            died: state.died,
        }
    }

    /// A round has cleaned a zone: there may be more to do.
    pub fn cleaned(&self) {
        self.state.lock().again = true;
    }

    /// No zone was worth cleaning, whatever was asked for.
    pub fn found_nothing(&self, asked: Asked) {
        let mut state = self.state.lock();
        state.requested &= !asked.requested;
        state.died -= asked.died;
        state.heard -= asked.died;
    }

    /// A round failed: waits until it is asked again, or more dies.
    pub fn failed(&self) {
        let mut state = self.state.lock();
        state.requested = false;
        (state.died, state.heard) = (0, 0);
    }

    /// Counts bytes that were moved out of a zone, and bytes that its reset freed.
    pub fn count(&self, moved: u64, freed: Option<u64>) {
        let mut state = self.state.lock();
        state.bytes_moved += moved;
        state.zones_cleaned += u64::from(freed.is_some());
        state.bytes_freed += freed.unwrap_or(0);
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
