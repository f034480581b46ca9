//! Retries zones whose resets have failed although the drive reports them as writable.
//!
//! The cause may pass: a cable, a path, a busy drive. Meanwhile such a zone is not used, and remains the file system's
//! in the journal: so the next mount resets it before it needs zones, without having to know the zones of other owners.
//! (If it were given away, it could be reset only after the replay of the store's database, whose log may need it.)
//!
//! Zones are retried one at a time, because a drive may take long to fail; if one reset succeeds, the next may too.

use crate::Result;
use crate::format::operation::JournalOperation;
use crate::ready::Unreset;
use crate::shared::Shared;
use crate::state::State;
use std::time::Duration;
use zone::ZoneId;
use zone_alloc::Owner;

impl Shared {
    /// Whether a zone whose reset failed is worth a retry: it is writable, not worn out, and has its twin. `broken` is
    /// the answer of [`Self::broken_of`].
    pub fn may_be_reset_later(&self, zone: ZoneId, broken: &[ZoneId]) -> bool {
        // A zone without an owner at the mount is in no pair.
        let is_whole = self.copies == 1 || self.device.twin(zone).is_some();
        is_whole && !self.is_worn_out(zone) && broken.is_empty()
    }

    /// Keeps a zone whose reset failed for a retry; the file system owns the zone, or had its journal in it.
    pub fn reset_later(&self, state: &mut State, unreset: &Unreset) -> Result<()> {
        let zone = unreset.zone;
        state.zones.was_not_reset(zone, unreset.active)?;
        let twin = self.device.twin(zone);
        if !state.names.owned.contains(&zone) {
            if let Some(twin) = twin {
                state.record(JournalOperation::Twin { zone, twin });
            }
            state.operate(JournalOperation::Take { zone });
        }
        // So that the zones kept for the file system do not include it.
        let pair = [zone].into_iter().chain(twin);
        pair.for_each(|zone| self.pool.retire(zone));
        state.retries.begin(self.runtime.now());
        self.wake.call();
        Ok(())
    }

    /// Time until the next retry of a reset or a finish is due; `None` if no zone waits for one.
    pub fn until_next_retry(&self) -> Option<Duration> {
        let reset = self.state.lock().retries.due_at();
        let due_at = reset.into_iter().chain(self.device.unfinished().due_at());
        due_at
            .min()
            .map(|due_at| due_at.saturating_sub(self.runtime.now()))
    }

    /// Retries resets if one is due: once the retry interval, or `at_most` if that is shorter, has passed since the
    /// last failure. Goes on until a reset fails or none is left; true if any zone is empty now.
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
            let Some((zone, active)) = state.zones.begin_reset_again(last) else {
                state.retries.end();
                return Ok(any);
            };
            state.last_retried = Some(zone);
            drop(state);
            let began = self.runtime.now();
            // The frame that takes the zone comes first, and one flush covers frame and reset before the zone is
            // written to.
            let outcome = self.write_frames().and_then(|()| Ok(self.reset(&[zone])?));
            let mut state = self.state.lock();
            self.recycled.notify_all();
            let resets = match outcome {
                Ok(resets) => resets,
                Err(error) => {
                    // Without a wake-up: the caller may be the thread that it would wake.
                    state.zones.was_not_reset(zone, active)?;
                    state.retries.failed_again(began, self.runtime.now());
                    return Err(error);
                }
            };
            let is_empty = !resets.empty.is_empty();
            if is_empty {
                tracing::info!(%zone, "a zone whose reset had failed has been reset");
                let pair = [zone].into_iter().chain(self.device.twin(zone));
                for zone in pair {
                    // The pool has it out of use, so no other owner has taken it.
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

#[cfg(test)]
mod tests {
    use crate::{BlueFs, Error, FormatOptions, MountOptions, Role};
    use device::MemoryDrive;
    use device::faults::{Fault, Faults, Plan};
    use runtime::{Runtime, SimulatedClock};
    use std::io::ErrorKind;
    use std::sync::Arc;
    use std::time::Duration;
    use zone::{Geometry, ZoneCommand, ZoneKind};

    /// The cleaner's thread calls again as soon as a retry is due.
    #[test]
    fn without_space_in_the_journal_a_retry_is_put_off() {
        let geometry = Geometry {
            block_size: 512,
            zone_size: 32 << 10,
            zone_capacity: 24 << 10,
            zone_count: 30,
            conventional_zones: 0,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        };
        let drive = Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()));
        let options = FormatOptions {
            uuid: [3; 16],
            role: Role::Alone,
            copies: 1,
            force: false,
        };
        BlueFs::format(&*drive, &options).unwrap();
        let clock = Arc::<SimulatedClock>::default();
        let options = MountOptions {
            runtime: Runtime::seeded(1).with_clock(clock.clone()),
            ..MountOptions::default()
        };
        let fs = BlueFs::mount_alone(drive.clone(), options).unwrap();
        let fault = Fault::Io(ErrorKind::Other);
        drive.add(Plan::from(ZoneCommand::Reset, 1, fault));
        let names = ["a", "b"].map(|name| format!("/{}", name.repeat(3000)));
        fs.create(&names[0]).unwrap();
        let mut renames = 0;
        let error = loop {
            let (from, to) = (&names[renames % 2], &names[(renames + 1) % 2]);
            fs.rename(from, to).unwrap();
            renames += 1;
            if let Err(error) = fs.sync_metadata() {
                break error;
            }
        };
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        clock.advance(Duration::from_secs(1000));
        let tried = (0..50).filter(|_| fs.shared.reset_again(Duration::MAX).is_err());
        assert_eq!(tried.count(), 1);
    }
}
