//! Zones between the pool and the files: taken and not yet used, freed and not yet reset, given up
//! and not yet given back. What each waits for is durable before it goes on.

use crate::format::journal::Operation;
use crate::shared::{Shared, State};
use crate::{Error, Result};
use device::ZonedDevice;
use std::sync::atomic::Ordering;
use zone::{ZoneError, ZoneId};
use zone_alloc::Purpose;

/// Empty zones that are kept at hand. Data leaves some of them to the journal and to moving.
const AT_HAND: usize = 4;

/// An empty zone that is ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    pub zone: ZoneId,
    /// The flush after which it may be written to, known once its taking is in a frame: by then
    /// that frame and the zone's last reset are durable.
    pub ready: Option<u64>,
}

/// A zone without live data, not reset yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freed {
    pub zone: ZoneId,
    /// It still holds an active resource of the drive.
    pub active: bool,
}

/// What became of zones that were to be reset.
#[derive(Default, Debug)]
pub(crate) struct Outcome {
    empty: Vec<ZoneId>,
    broken: Vec<ZoneId>,
}

impl Shared {
    /// The position of a prepared zone that may be written to.
    pub fn ready(&self, state: &State) -> Option<usize> {
        let finished = self.flusher.finished();
        let mut ready = state
            .prepared
            .iter()
            .enumerate()
            .filter(|(_, p)| p.ready.is_some_and(|flush| flush <= finished));
        let first = ready.clone().find(|(_, p)| self.is_sequential(p.zone));
        first.or_else(|| ready.next()).map(|(index, _)| index)
    }

    /// Zones that are empty: ours, and those that we could have.
    pub fn available(&self, state: &State) -> u32 {
        let counts = self.pool.counts();
        state.prepared.len() as u32 + counts.free_sequential + counts.free_conventional
    }

    /// Takes zones, so that the next frame says so and later writers need not wait for it.
    pub fn top_up(&self, state: &mut State) {
        while state.prepared.len() < AT_HAND {
            let Some(zone) = self.pool.take(Purpose::FileSystemSequential) else {
                return;
            };
            state.operate(Operation::Take { zone });
            state.prepared.push(Prepared { zone, ready: None });
        }
    }

    /// A zone for the journal to go on in: a conventional one, for it holds no active resource, or
    /// one that is known to be ours.
    pub fn journal_zone(&self, prepared: &mut Vec<Prepared>) -> Result<ZoneId> {
        if self.pool.counts().free_conventional > 0
            && let Some(zone) = self.pool.take(Purpose::FileSystem)
        {
            return Ok(zone);
        }
        let finished = self.flusher.finished();
        let ready = |p: &Prepared| p.ready.is_some_and(|flush| flush <= finished);
        if let Some(index) = prepared.iter().position(ready) {
            return Ok(prepared.swap_remove(index).zone);
        }
        // A power cut may leave this one written and nobody's; what is in it is then nothing.
        let free_zones = prepared.len() as u32;
        let zone = self.pool.take(Purpose::FileSystem);
        zone.ok_or(Error::NoSpace { free_zones })
    }

    /// Resets one of our zones unless it is empty.
    pub fn empty(&self, zone: ZoneId) -> Result<()> {
        if self.is_sequential(zone) {
            let report = self.device.report_zone(zone)?;
            if !report.write_pointer_valid() || report.write_pointer > 0 {
                self.counters.resets.fetch_add(1, Ordering::Relaxed);
                self.device.reset(zone)?;
            }
        }
        Ok(())
    }

    /// Resets zones in which nobody finds a place any more.
    pub fn reset(&self, zones: &[ZoneId]) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        if zones.is_empty() {
            return Ok(outcome);
        }
        for zone in zones {
            // No reader stays.
            let _ = self.gate.wait_for_readers(*zone);
            match self.empty(*zone) {
                Ok(()) => outcome.empty.push(*zone),
                Err(error @ Error::Drive(ZoneError::PowerLost { .. })) => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, %zone, "a zone cannot be reset; it is out of use");
                    outcome.broken.push(*zone);
                }
            }
        }
        Ok(outcome)
    }

    /// Keeps zones that were reset, or gives them back to the pool.
    pub fn recycle(&self, state: &mut State, outcome: Outcome) {
        let next_flush = Some(self.flusher.next());
        for zone in outcome.broken {
            if state.names.owned.contains(&zone) {
                state.operate(Operation::Give { zone });
            }
            self.pool.retire(zone);
        }
        for zone in outcome.empty {
            if zone == state.superblock.spare_zone {
                continue;
            }
            if state.names.owned.contains(&zone) {
                let ready = next_flush;
                state.prepared.push(Prepared { zone, ready });
            } else {
                self.pool.give_back(zone);
            }
        }
        while state.prepared.len() > AT_HAND {
            let sequential = |p: &Prepared| self.is_sequential(p.zone);
            let index = state.prepared.iter().position(|p| !sequential(p));
            let zone = state.prepared.swap_remove(index.unwrap_or(0)).zone;
            state.operate(Operation::Give { zone });
            state.giving.push((None, zone));
        }
    }
}
