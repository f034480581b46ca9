//! Zones whose resets have failed, though the drive says that they can be written.
//!
//! The cause may pass: a cable, a path, a drive that is busy with itself. Such a zone is nobody's to use meanwhile, and stays
//! the file system's in the journal: so a mount resets it before it needs zones, and does not have to know for that who else
//! has some. (Given away, it would be reset only behind the store's database, whose log may need it to be replayed.)
//!
//! They are tried one at a time, for a drive may take long to fail; one that is reset is a sign that the next may be too.

use crate::Result;
use crate::format::operation::JournalOperation;
use crate::shared::Shared;
use crate::state::State;
use std::time::Duration;
use zone::ZoneId;
use zone_alloc::Owner;

impl Shared {
    /// Whether a zone that could not be reset may be some other time.
    pub fn may_be_reset_later(&self, zone: ZoneId) -> bool {
        // What was nobody's at the mount is in no pair.
        let is_whole = self.copies == 1 || self.device.twin(zone).is_some();
        is_whole && !self.is_worn_out(zone) && self.device.broken_of(zone).is_empty()
    }

    /// A reset has failed of a zone that the file system has, or had its journal in.
    pub fn reset_later(&self, state: &mut State, zone: ZoneId) -> Result<()> {
        let told = self.device.report_zone(zone);
        let active = told.is_ok_and(|told| told.condition.is_active());
        state.zones.was_not_reset(zone, active)?;
        let twin = self.device.twin(zone);
        if !state.names.owned.contains(&zone) {
            if let Some(twin) = twin {
                state.record(JournalOperation::Twin { zone, twin });
            }
            state.operate(JournalOperation::Take { zone });
        }
        // So that what is kept for the file system does not count on it.
        let pair = [zone].into_iter().chain(twin);
        pair.for_each(|zone| self.pool.retire(zone));
        state.retries.begin(self.runtime.now());
        self.wake.call();
        Ok(())
    }

    /// How long it is until one is to be tried.
    pub fn until_reset_again(&self) -> Option<Duration> {
        let due_at = self.state.lock().retries.due_at();
        due_at.map(|due_at| due_at.saturating_sub(self.runtime.now()))
    }

    /// Tries to reset zones again, if the last failure was so long ago or as long as it is worth it; true if any is empty
    /// now.
    pub fn reset_again(&self, at_most: Duration) -> Result<bool> {
        let now = self.runtime.now();
        if !self.state.lock().retries.is_due(now, at_most) {
            return Ok(false);
        }
        let mut any = false;
        loop {
            let mut state = self.state.lock();
            state.check()?;
            let last = state.last_retried;
            let Some(zone) = state.zones.begin_reset_again(last) else {
                state.retries.end();
                return Ok(any);
            };
            state.last_retried = Some(zone);
            drop(state);
            let began = self.runtime.now();
            // The frame that takes it comes first, and one flush covers both before it is written to.
            let outcome = self.write_frames().and_then(|()| Ok(self.reset(&[zone])?));
            let mut state = self.state.lock();
            self.recycled.notify_all();
            let resets = match outcome {
                Ok(resets) => resets,
                Err(error) => {
                    self.reset_later(&mut state, zone)?;
                    return Err(error);
                }
            };
            let is_empty = !resets.empty.is_empty();
            if is_empty {
                tracing::info!(%zone, "a zone whose reset had failed has been reset");
                let pair = [zone].into_iter().chain(self.device.twin(zone));
                for zone in pair {
                    // It is out of use in the pool, so nobody else has it.
                    _ = self.pool.claim(zone, Owner::BlueFs);
                }
                any = true;
            } else {
                state.retries.failed_again(began, self.runtime.now());
            }
            self.recycle(&mut state, resets)?;
            if !is_empty {
                return Ok(any);
            }
        }
    }
}
