//! The cleaner: which zone is cleaned when, and the thread that does it (main document § 5.7.1).
//!
//! `zone_alloc` chooses the zone and the pace; `moving.rs` does the work on a zone. A writer that needs a zone cleans
//! at full speed, and makes the background thread do so too; otherwise the thread yields between any two pieces of I/O,
//! and waits there as its pace demands.

use crate::Result;
use crate::cleaner::{Asked, Cleaner, CleanerChange};
use crate::cleaner_status::{CleanerStatus, Reason, ZoneInHand};
use crate::cleaning_job::{CleaningJob, CleaningStep};
use crate::inner::Inner;
use crate::moving::{CleanError, Emptied};
use crate::pieces::Pieces;
use appender::IN_NEED;
use runtime::thread::JoinHandle;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use zone::ZoneId;
use zone_alloc::{Candidate, Pressure, ZoneView};

/// The thread that cleans in the background. Dropping this stops it after the current batch and waits for it.
pub(crate) struct CleaningThread {
    cleaner: Arc<Cleaner>,
    thread: Option<JoinHandle<()>>,
}

impl CleaningThread {
    pub fn start(store: &Arc<Inner>) -> std::io::Result<Self> {
        let (cleaner, mine) = (store.cleaner.clone(), store.clone());
        let thread = store.runtime.spawn("cleaner", move || {
            let is_unfinished = || {
                !mine.unreset.lock().is_empty()
                    || !mine.freelist.to_drain().is_empty()
                    || !mine.freelist.unfinished().is_empty()
            };
            while mine.cleaner.wait_for_work(is_unfinished) {
                let waits = &mut |moment| mine.cleaner.wait_until(moment);
                if let Err(error) = mine.tend(waits) {
                    tracing::error!(%error, "cleaning stopped");
                    mine.cleaner.failed();
                }
            }
        })?;
        let thread = Some(thread);
        Ok(Self { cleaner, thread })
    }
}

impl Drop for CleaningThread {
    fn drop(&mut self) {
        self.cleaner.shutdown();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the cleaner's thread had panicked");
        }
    }
}

/// How a round of cleaning ended.
#[derive(PartialEq, Eq)]
enum Round {
    /// The zone that was freed; `None` if no zone is needed any more.
    Cleaned(Option<ZoneId>),
    /// No zone was worth cleaning.
    Nothing,
    /// Stopped before the victim was empty.
    Left,
}

impl Inner {
    /// One round of background work; false if there was nothing to do. `waits` is called between any two pieces of I/O
    /// with the moment until which the pace makes the cleaner wait, and may return earlier.
    pub(crate) fn tend(&self, waits: &mut dyn FnMut(Duration)) -> Result<bool> {
        // First, so that a round that fails before it cleans has been asked for, too, and does not begin again at once.
        let asked = self.cleaner.asked();
        let purged = self.purge_doomed(|| !self.cleaner.has_ended())?;
        if !self.read_only {
            self.reset_again(Duration::MAX)?;
            self.finish_again(Duration::MAX);
            self.fs.finish_again(Duration::MAX);
        }
        self.update_reserves();
        let (pressure, why) = match asked {
            Asked {
                requested: true, ..
            } => (Some(Pressure::Any), Reason::Asked),
            Asked {
                automatic: false, ..
            } => (None, Reason::Asked),
            _ if self.host_is_low() => (Some(Pressure::Any), Reason::Host),
            _ => match self.pressure() {
                Some(Pressure::Urgent) => (Some(Pressure::Urgent), Reason::Urgent),
                // No writer waits: only within the hours, and not during another drive's turn.
                pressure => (pressure.filter(|_| asked.in_hours), Reason::Ahead),
            },
        };
        let is_held = asked.held && why == Reason::Ahead;
        if pressure.is_none() {
            self.cleaner.waits_for_turn(false);
        }
        // Choosing a victim takes time, and a single commit kills little.
        let enough = self.pool.geometry().zone_capacity / 8;
        let waited = asked.waits_for_turn && !is_held;
        // Zones that new objects fill are told by a nudge alone.
        let is_told = purged || waited || asked.nudged;
        let due = |p: &Pressure| *p >= Pressure::Urgent || is_told || asked.died >= enough;
        let mut pieces = Pieces::paced(self, waits);
        let Some(pressure) = pressure.filter(due) else {
            return Ok(self.drain(&mut pieces)?.is_some());
        };
        if is_held {
            return self.hold_back(asked, pressure, &mut pieces);
        }
        let round = self.clean_zone_if(|| true, (pressure, why), &mut pieces);
        if asked.requested {
            self.cleaner.credit_start(pieces.did);
        }
        let round = round?;
        match round {
            Round::Cleaned(_) => self.cleaner.cleaned(),
            Round::Nothing => {
                self.cleaner.found_nothing(asked);
                return Ok(self.drain(&mut pieces)?.is_some());
            }
            Round::Left => {}
        }
        Ok(matches!(round, Round::Cleaned(_)))
    }

    /// Finishes zones that could not be finished when they were left, if a retry is due, the pause being `at_most` as long
    /// as in [`appender::Unfinished::is_due`]. The caller does not hold the turn.
    pub(crate) fn finish_again(&self, at_most: Duration) {
        let unfinished = self.freelist.unfinished();
        let is_due = || unfinished.is_due(self.runtime.now(), at_most);
        if let Some(_turn) = self.cleaner.turn(is_due) {
            self.finish_in_turn(at_most);
        }
    }

    /// Like [`Self::finish_again`], for the holder of the turn: only that one resets zones, so none of these becomes another
    /// owner's meanwhile.
    pub(crate) fn finish_in_turn(&self, at_most: Duration) {
        let unfinished = self.freelist.unfinished();
        unfinished.try_again(&self.runtime, at_most, |zone| {
            let found = self.device.report_zone(zone);
            if found.is_ok_and(|found| !found.condition.is_active()) {
                return Some(true);
            }
            if self.freelist.is_written(zone) {
                // Its stream is just leaving it.
                return None;
            }
            let finished = self.device.finish(zone);
            if let Err(error) = &finished {
                tracing::debug!(%error, %zone, "a zone cannot be finished yet");
            }
            Some(finished.is_ok())
        });
    }

    /// A round during another drive's turn: resets zones without live data, which moves nothing, and records for the
    /// cluster whether a zone is worth cleaning. False if nothing was reset.
    fn hold_back(&self, asked: Asked, pressure: Pressure, pieces: &mut Pieces<'_>) -> Result<bool> {
        self.check_writable()?;
        if let Some(_turn) = self.cleaner.turn(|| true)
            && self.reset_dead_zones(pieces)?.is_some()
        {
            self.cleaner.cleaned();
            return Ok(true);
        }
        let in_vain = self.cleaning_is_vain();
        let waits = !in_vain && self.victim(pressure).is_some();
        // So that not every commit starts another scan meanwhile.
        self.cleaner.found_nothing(asked);
        self.cleaner.waits_for_turn(waits);
        Ok(self.drain(pieces)?.is_some())
    }

    /// Stops writing to zones that are set aside.
    pub(crate) fn leave_set_aside(&self) {
        for zone in self.freelist.open_set_aside() {
            self.data.leave(zone);
            self.moved.leave(zone);
        }
    }

    /// Moves the data out of a read-only zone before that becomes unreadable, as long as this leaves room for users'
    /// data, or resets a zone that is set aside and empty. `None` if there is neither.
    fn drain(&self, pieces: &mut Pieces<'_>) -> Result<Option<ZoneId>> {
        if self.check_writable().is_err() {
            return Ok(None);
        }
        self.leave_set_aside();
        // An empty zone that cannot be given up is one to drain again.
        let mut tried = BTreeSet::new();
        loop {
            let next = || {
                let zones = self.freelist.to_drain().into_iter();
                let mut zones = zones.filter(|zone| {
                    !tried.contains(&zone.zone) && (zone.live == 0 || self.has_room(zone.live))
                });
                zones.next()
            };
            // Anew for each zone, so that a writer that needs none any more goes on.
            let Some(_turn) = self.cleaner.turn(|| next().is_some()) else {
                return Ok(None);
            };
            // Chosen only now: while this thread waited for its turn, the zone may have been reset and be written again.
            let Some(zone) = next() else {
                return Ok(None);
            };
            tried.insert(zone.zone);
            self.cleaner.begin(zone.zone, zone.live, Reason::ReadOnly);
            match self.clean_zone(zone, pieces) {
                // The reset is refused, and the empty zone is out of use.
                Ok(Emptied::AndReset) => {
                    self.cleaner.cleaned();
                    return Ok(Some(zone.zone));
                }
                // A reader may have it for long.
                Ok(Emptied::NotReset) => {}
                Ok(Emptied::Left) => return Ok(None),
                Err(CleanError::Unreadable(error)) => {
                    self.set_aside_unreadable(zone.zone, &error);
                    if !self.freelist.is_unreadable(zone.zone) {
                        return Err(error);
                    }
                }
                Err(CleanError::Other(error)) => return Err(error),
            }
        }
    }

    /// Whether the host's disk under a drive file is nearly full: dead bytes take space there, too.
    fn host_is_low(&self) -> bool {
        !self.host_has(0, self.kept_on_host())
    }

    fn pressure(&self) -> Option<Pressure> {
        let (free, all) = (self.pool.free_for_data(), self.pool.data_zones());
        let zone_bytes = self.pool.geometry().zone_capacity;
        let written = self.lifetimes.written_bytes();
        self.cleaner.pressure(free, all, zone_bytes, written)
    }

    /// Whether a writer will soon wait for a zone: fewer are free than the min watermark.
    pub(crate) fn is_urgent(&self) -> bool {
        self.pressure() >= Some(Pressure::Urgent)
    }

    /// Applies new settings to the cleaner.
    pub(crate) fn hold_cleaner_to(&self, change: CleanerChange) {
        self.requests.set_slow_above(self.cleaner.change(change));
    }

    /// The cleaner's status, with the numbers that only the freelist and the pool know.
    pub(crate) fn cleaner_status(&self) -> CleanerStatus {
        let totals = self.freelist.totals();
        let status = self.cleaner.status();
        // The reason may have become more urgent since the zone was begun.
        let why = |zone: ZoneInHand| match zone.why {
            Reason::Asked | Reason::Ahead if self.host_is_low() => Reason::Host,
            Reason::Asked | Reason::Ahead if self.is_urgent() => Reason::Urgent,
            why => why,
        };
        let in_hand = status.in_hand.map(|zone| ZoneInHand {
            why: why(zone),
            ..zone
        });
        let (free_now, data_zones) = (self.pool.free_for_data(), self.pool.data_zones());
        let full = totals.live.div_ceil(self.pool.geometry().zone_capacity);
        let status = CleanerStatus {
            in_hand,
            free_now,
            spare_zones: free_now.saturating_sub(status.free_zones.of(data_zones).0),
            is_urgent: self.is_urgent(),
            data_zones,
            most_free: data_zones.saturating_sub(u32::try_from(full).unwrap_or(u32::MAX)),
            bytes_written: self.lifetimes.written_bytes(),
            dirty_zones: totals.dirty_zones,
            set_aside_zones: self.freelist.all_set_aside().len() as u32,
            dirty_live_bytes: totals.dirty_live,
            ..status
        };
        status.estimated()
    }

    /// Cleans the zone that the policy chooses, or waits for another thread to do so while `is_needed`; false if none
    /// is worth cleaning.
    pub(crate) fn clean_one_zone(&self, is_needed: impl Fn() -> bool) -> Result<bool> {
        if self.reset_again(IN_NEED)? {
            return Ok(true);
        }
        let mut pieces = Pieces::at_full_speed(self, None);
        loop {
            let why = (Pressure::Any, Reason::Needed);
            let round = self.clean_zone_if(&is_needed, why, &mut pieces);
            let is_done = match &round {
                Ok(round) => matches!(round, Round::Cleaned(_)),
                Err(error) => !error.is_no_space(),
            };
            // A writer that needs a zone takes precedence over readers at a moment.
            if is_done
                || !self.freelist.is_held_back()
                || !self.give_up_moments("zones are needed for what is written")
            {
                return Ok(matches!(round?, Round::Cleaned(_)));
            }
        }
    }

    /// Cleans a zone for a user's request.
    pub(crate) fn clean_step(&self, job: CleaningJob) -> Result<CleaningStep> {
        let mut pieces = Pieces::at_full_speed(self, Some(job));
        let goes_on = || !self.cleaner.has_stopped(job);
        let why = (Pressure::Any, Reason::Asked);
        let round = self.clean_zone_if(goes_on, why, &mut pieces)?;
        Ok(CleaningStep {
            zone: match round {
                Round::Cleaned(zone) => zone,
                // Without a server, nobody else does.
                Round::Nothing => self.drain(&mut pieces)?,
                Round::Left => None,
            },
            did: pieces.did,
            stopped: pieces.are_over(),
        })
    }

    fn clean_zone_if(
        &self,
        is_needed: impl Fn() -> bool,
        (pressure, why): (Pressure, Reason),
        pieces: &mut Pieces<'_>,
    ) -> Result<Round> {
        self.check_writable()?;
        self.purge_in_need(&is_needed)?;
        let Some(_turn) = self.cleaner.turn(is_needed) else {
            return Ok(Round::Cleaned(None));
        };
        if let Some(zone) = self.reset_dead_zones(pieces)? {
            return Ok(Round::Cleaned(Some(zone)));
        }
        if self.cleaning_is_vain() {
            return Ok(Round::Nothing);
        }
        loop {
            let Some(victim) = self.victim(pressure) else {
                return Ok(Round::Nothing);
            };
            self.cleaner.begin(victim.zone, victim.live, why);
            match self.clean_zone(victim, pieces) {
                Ok(Emptied::AndReset) => {
                    pieces.cleaned(victim.written - victim.live);
                    return Ok(Round::Cleaned(Some(victim.zone)));
                }
                Ok(Emptied::NotReset) => {}
                Ok(Emptied::Left) => return Ok(Round::Left),
                Err(CleanError::Unreadable(error)) => {
                    self.set_aside_unreadable(victim.zone, &error);
                    if !self.freelist.is_set_aside(victim.zone) {
                        return Err(error);
                    }
                }
                Err(CleanError::Other(error)) => return Err(error),
            }
        }
    }

    /// Whether cleaning has stopped gaining space.
    fn cleaning_is_vain(&self) -> bool {
        if self.freelist.given_up() {
            self.cleaner.gains_anew();
        }
        self.cleaner.is_in_vain(self.freelist.totals().dead())
    }

    /// The zone to clean next.
    fn victim(&self, pressure: Pressure) -> Option<Candidate> {
        let now = self.freelist.fills();
        let choose_under = |pressure, zones: &[Candidate]| {
            let view = ZoneView { zones, now };
            self.cleaner.policy().choose(view, pressure)
        };
        let choose = |zones: &[Candidate]| choose_under(pressure, zones);
        let short = self.freelist.candidates();
        // Half of the host's space that is kept for deletes may hold moved data; the rest is for their log.
        let (free, kept) = match self.device.host_free_bytes() {
            Some(free) => (free, self.kept_on_host()),
            None => (u64::MAX, 0),
        };
        // What moves out of a zone that a reader stays in takes space, and the zone is not reset.
        let is_kept = self.gate.stayed_in();
        let fits =
            |zone: &Candidate| !is_kept(zone.zone) && free >= (kept / 2).saturating_add(zone.live);
        if free >= kept && short.iter().all(fits) {
            return choose(&short);
        }
        // The short list has the oldest zone of each share of dead bytes. Where that zone does not fit, or is dead only in
        // its unwritten tail, others of the same share are better.
        let mut all = self.freelist.candidates_on_host();
        all.retain(|(zone, _)| fits(zone));
        let (all, on_host): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        // Not for a few dead bytes: a zone may be what is needed, which a tail gives.
        let at_most = pressure.min(Pressure::Urgent);
        let gains = Some(on_host).filter(|_| free < kept);
        let best = gains.and_then(|zones| choose_under(at_most, &zones));
        let same = |best: Candidate| all.iter().find(|zone| zone.zone == best.zone).copied();
        best.and_then(same).or_else(|| choose(&all))
    }

    /// Resets zones without live or uncommitted bytes, only one of them for a job; returns the last.
    fn reset_dead_zones(&self, pieces: &mut Pieces<'_>) -> Result<Option<ZoneId>> {
        let mut last = None;
        for zone in self.freelist.dead_zones() {
            match self.reset_zone(zone.zone).map_err(CleanError::from) {
                Ok(true) => {
                    pieces.cleaned(zone.written);
                    last = Some(zone.zone);
                    if pieces.job.is_some() {
                        break;
                    }
                }
                Ok(false) => {}
                Err(CleanError::Unreadable(error)) => {
                    self.set_aside_unreadable(zone.zone, &error);
                }
                Err(CleanError::Other(error)) => return Err(error),
            }
        }
        Ok(last)
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
