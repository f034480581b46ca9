//! Retries zones that could not be finished when they were left: until then each holds an active resource of the drive.

use crate::ring::ring_zones;
use crate::shared::Shared;
use crate::{Error, Result};
use appender::IN_NEED;
use device::ZonedDevice;
use std::time::Duration;
use zone::ZoneId;
use zone_alloc::Owner;

impl Shared {
    /// Retries failed finishes if one is due: once the retry interval, or `at_most` if that is shorter, has passed since the
    /// last failure. Goes on until a finish fails or none is left; true if a zone needs no finish any more. The caller does
    /// not write the journal or superblocks.
    pub fn finish_again(&self, at_most: Duration) -> bool {
        if self.state.lock().check().is_err() {
            return false;
        }
        let unfinished = self.device.unfinished();
        unfinished.try_again(&self.runtime, at_most, |zone| Some(self.finish_left(zone)))
    }

    /// Whether a write of metadata that has `failed` may succeed now: the drive's limit refused it, and a zone is active no
    /// more. First come the zones of metadata that the caller has `left`, then others. The caller holds `journaling`.
    pub fn makes_room(&self, failed: &Error, left: &[ZoneId]) -> Result<bool> {
        let is_of_limit = matches!(failed, Error::Drive(error) if appender::is_of_limit(error));
        Ok(is_of_limit && (self.finish_again_behind(left) || self.leave_an_open_zone()?))
    }

    /// Like [`Self::finish_again`], but zones of metadata are those that the caller has `left`, and they are tried first,
    /// whatever the pause.
    fn finish_again_behind(&self, left: &[ZoneId]) -> bool {
        let unfinished = self.device.unfinished();
        let mut any = false;
        for zone in left.iter().filter(|zone| unfinished.contains(**zone)) {
            let was_active = self.is_active(*zone);
            if self.finish_or_look(*zone) {
                unfinished.remove(*zone);
                any |= was_active;
            }
        }
        any || unfinished.try_again(&self.runtime, IN_NEED, |zone| {
            let is_metadata = self.state.lock().zones.is_metadata(zone);
            (!is_metadata).then(|| self.finish_left(zone))
        })
    }

    /// Wakes the thread that retries if a zone could not be finished and no retry has failed: behind one that has, it wakes
    /// by itself.
    pub fn wake_for_unfinished(&self) {
        if self.device.unfinished().due_at() == Some(Duration::ZERO) {
            self.wake.call();
        }
    }

    /// Finishes a zone that could not be finished when it was left. True also if it needs no finish any more: its next step
    /// is a reset, it was reset, or it is broken.
    fn finish_left(&self, zone: ZoneId) -> bool {
        let is_metadata = self.state.lock().zones.is_metadata(zone);
        // Until the zone is looked at, no other journal begins, and no superblock is written to another zone.
        let journaling = is_metadata.then(|| self.journaling.lock());
        let state = self.state.lock();
        let g = self.device.geometry();
        let is_left = if is_metadata {
            let goes_on = zone == state.journal.zone() || state.rings.go_on_in(g, zone);
            state.zones.is_metadata(zone) && !goes_on
        } else {
            // Of one that is out of use, or the sound one of a former pair, nobody becomes the owner.
            let is_single =
                || self.device.twin(zone).is_none() && self.device.goes_by(zone) == zone;
            let is_sound = || is_single() && self.pool.owner(zone) == Some(Owner::BlueFs);
            let is_out_of_use = || is_sound() || self.pool.unusable().contains(&zone);
            state.zones.is_left(zone) || state.zones.is_foreign(zone) && is_out_of_use()
        };
        if !is_left {
            return true;
        }
        // A reset of the zone waits for its readers.
        let _reading = self.gate.enter_in([zone]);
        drop(state);
        // Resets in the rings do not. Syncs wait for the journal, and a drive may take long to fail.
        let _journaling = journaling.filter(|_| ring_zones(g).concat().contains(&zone));
        self.finish_or_look(zone)
    }

    /// Finishes a zone, or a pair. True if none of it is active then: it may be broken instead.
    fn finish_or_look(&self, zone: ZoneId) -> bool {
        let Err(error) = self.device.finish(zone) else {
            return true;
        };
        tracing::debug!(%error, %zone, "a zone cannot be finished yet");
        !self.is_active(zone)
    }

    /// Whether a zone, or one of a pair, is active; true also if the drive does not tell.
    fn is_active(&self, zone: ZoneId) -> bool {
        let mut copies = [zone].into_iter().chain(self.device.twin(zone));
        copies.any(|copy| {
            let told = self.drive.report_zone(copy).ok();
            told.is_none_or(|told| told.condition.is_active())
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::BlueFs;
    use crate::evacuate::tests::{append, mounted_on, zone_of};
    use crate::ring::ring_zones;
    use device::faults::{Fault, Faults, Plan};
    use device::{MemoryDrive, ZonedDevice};
    use std::io::ErrorKind;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;
    use zone::{ZoneCommand, ZoneCondition, ZoneId};
    use zone_alloc::Purpose;

    /// Another user of the drive takes all active zones that are left.
    fn take_active_zones(drive: &Faults<MemoryDrive>, fs: &BlueFs) -> Vec<ZoneId> {
        let start = |zone| drive.geometry().start(zone);
        let zones = std::iter::from_fn(|| fs.shared.pool.take(Purpose::Files));
        zones
            .take_while(|zone| drive.write(start(*zone), &[0; 512]).is_ok())
            .collect()
    }

    /// Changes names until they fill the journal.
    fn begin_journal(fs: &BlueFs) {
        let epoch = || fs.shared.state.lock().journal.epoch;
        let before = epoch();
        let mut kth = 10;
        while epoch() == before {
            assert!(kth < 99);
            fs.create(&format!("/{kth}{}", "a".repeat(3000))).unwrap();
            fs.sync_metadata().unwrap();
            kth += 1;
        }
    }

    /// Each would hold one of the drive's active zones until the next mount.
    #[test]
    fn zones_with_data_or_metadata_that_could_not_be_finished_are_finished_later() {
        for copies in [1, 2] {
            let (drive, fs) = mounted_on(0, 14, copies);
            let shared = &fs.shared;
            let fault = || Fault::Io(ErrorKind::Other);
            let mut file = fs.create("/1.sst").unwrap();
            append(&mut file).unwrap();
            let zone = zone_of(&fs, "/1.sst");
            drive.add(Plan::at(ZoneCommand::Finish, 1, fault()).in_zone(zone));
            assert!(shared.leave_an_open_zone().unwrap());
            let condition = |zone| drive.report_zone(zone).unwrap().condition;
            assert!(condition(zone).is_active());
            assert!(shared.finish_again(Duration::MAX));
            assert_eq!(condition(zone), ZoneCondition::Full);
            assert!(shared.device.unfinished().is_empty());
            // The journal needs a second zone.
            shared.wake.wait(Some(Duration::ZERO));
            drive.add(Plan::from(ZoneCommand::Finish, 1, fault()));
            for kth in 10..99 {
                fs.create(&format!("/{kth}{}", "a".repeat(3000))).unwrap();
                fs.sync_metadata().unwrap();
                if shared.state.lock().journal.zones.len() > 1 {
                    break;
                }
            }
            drive.clear();
            assert!(shared.wake.is_called());
            let first = fs.info().journal_zone;
            assert!(condition(first).is_active());
            // A drive may take long for it, and syncs write the journal meanwhile.
            let is_free = Arc::new(AtomicBool::new(false));
            let (its, seen) = (fs.shared.clone(), is_free.clone());
            let looks = move |_| seen.store(its.journaling.try_lock().is_some(), Ordering::Relaxed);
            let slow = Fault::Slow(Arc::new(looks));
            drive.add(Plan::at(ZoneCommand::Finish, 1, slow).in_zone(first));
            assert!(shared.finish_again(Duration::MAX));
            drive.clear();
            assert!(is_free.load(Ordering::Relaxed));
            assert_eq!(condition(first), ZoneCondition::Full);
            assert!(shared.device.unfinished().is_empty());
            append(&mut file).unwrap();
            drop(file);
            fs.unmount().unwrap();
        }
    }

    /// Otherwise, the file system would stop.
    #[test]
    fn a_journal_that_begins_gets_the_active_zone_of_what_could_not_be_finished() {
        for (copies, data_fails) in [(1, None), (1, Some(false)), (1, Some(true)), (2, None)] {
            let (drive, fs) = mounted_on(0, 14, copies);
            let shared = &fs.shared;
            let fault = || Fault::Io(ErrorKind::Other);
            let mut file = fs.create("/1.sst").unwrap();
            if let Some(for_good) = data_fails {
                append(&mut file).unwrap();
                let zone = zone_of(&fs, "/1.sst");
                let plan = match for_good {
                    true => Plan::from(ZoneCommand::Finish, 1, fault()),
                    false => Plan::at(ZoneCommand::Finish, 1, fault()),
                };
                drive.add(plan.in_zone(zone));
                assert!(shared.leave_an_open_zone().unwrap());
                if for_good {
                    assert!(!shared.finish_again(Duration::MAX));
                }
            }
            take_active_zones(&drive, &fs);
            // The journal's own zone is not finished either, or one of its two copies is not.
            drive.add(Plan::at(ZoneCommand::Finish, 1, fault()));
            begin_journal(&fs);
        }
    }

    /// Where active zones are few, each superblock needs one.
    #[test]
    fn a_superblock_gets_the_active_zone_of_what_could_not_be_finished() {
        for (seals, other_ring_fails) in [(false, false), (true, false), (true, true)] {
            let (drive, fs) = mounted_on(0, 6, 1);
            let shared = &fs.shared;
            let fails = Plan::at(ZoneCommand::Finish, 1, Fault::Io(ErrorKind::Other));
            if seals {
                append(&mut fs.create("/1.sst").unwrap()).unwrap();
                drive.add(fails.clone().in_zone(zone_of(&fs, "/1.sst")));
                assert!(shared.leave_an_open_zone().unwrap());
            }
            let others = take_active_zones(&drive, &fs);
            if other_ring_fails {
                // Once, in the zone that is next, while the limit refuses the first ring.
                let [_, zones] = ring_zones(drive.geometry());
                for zone in zones {
                    let once = Plan::at(ZoneCommand::Write, 1, Fault::Io(ErrorKind::Other));
                    drive.add(once.in_zone(zone));
                }
            }
            if seals {
                shared.seal().unwrap();
            } else {
                // The next journal gets this one, and the old journal keeps its own.
                drive.reset(others[0]).unwrap();
                drive.add(fails.in_zone(fs.info().journal_zone));
                begin_journal(&fs);
            }
            assert_eq!(drive.struck(), 1 + u64::from(other_ring_fails));
            assert!(shared.device.unfinished().is_empty());
        }
    }

    /// A number that is noted from before the zone became the twin of another says nothing of the pair.
    #[test]
    fn a_twin_with_an_open_file_is_not_finished() {
        let (drive, fs) = mounted_on(0, 14, 2);
        let mut file = fs.create("/1.sst").unwrap();
        append(&mut file).unwrap();
        let twin = fs.shared.device.twin(zone_of(&fs, "/1.sst")).unwrap();
        fs.shared.device.unfinished().add(twin);
        fs.shared.finish_again(Duration::MAX);
        assert!(fs.shared.device.unfinished().is_empty());
        assert!(drive.report_zone(twin).unwrap().condition.is_active());
        append(&mut file).unwrap();
    }

    #[test]
    fn a_journal_that_begins_gets_the_active_zone_of_an_old_superblock() {
        let (drive, fs) = mounted_on(0, 14, 1);
        let fault = || Fault::Io(ErrorKind::Other);
        let ring = ring_zones(drive.geometry())[0];
        let is_active = |zone| drive.report_zone(zone).unwrap().condition.is_active();
        let old = ring.into_iter().find(|zone| is_active(*zone)).unwrap();
        drive.add(Plan::at(ZoneCommand::Write, 1, fault()).in_zone(old));
        drive.add(Plan::at(ZoneCommand::Finish, 1, fault()).in_zone(old));
        fs.shared.seal().unwrap();
        assert!(is_active(old));
        take_active_zones(&drive, &fs);
        let journal = fs.info().journal_zone;
        drive.add(Plan::from(ZoneCommand::Finish, 1, fault()).in_zone(journal));
        begin_journal(&fs);
        assert!(!is_active(old));
    }

    #[test]
    fn a_pair_is_finished_although_one_copy_is_broken() {
        let (drive, fs) = mounted_on(0, 14, 2);
        let shared = &fs.shared;
        let mut file = fs.create("/1.sst").unwrap();
        append(&mut file).unwrap();
        let zone = zone_of(&fs, "/1.sst");
        let twin = shared.device.twin(zone).unwrap();
        drive.break_zone(zone, ZoneCondition::ReadOnly);
        let fails = Plan::from(ZoneCommand::Finish, 1, Fault::Io(ErrorKind::Other));
        drive.add(fails.in_zone(twin));
        assert!(shared.leave_an_open_zone().unwrap());
        assert!(!shared.finish_again_behind(&[zone]));
        let condition = || drive.report_zone(twin).unwrap().condition;
        assert!(condition().is_active());
        drive.clear();
        assert!(shared.finish_again_behind(&[zone]));
        assert_eq!(condition(), ZoneCondition::Full);
        assert!(shared.device.unfinished().is_empty());
    }

    #[test]
    fn both_zones_of_a_pair_that_no_journal_can_begin_in_are_finished() {
        for is_broken in [false, true] {
            let (drive, fs) = mounted_on(0, 14, 2);
            let shared = &fs.shared;
            let zone = shared.state.lock().superblock.spare_zone;
            let twin = shared.device.twin(zone).unwrap();
            let (fault, unfinished) = match is_broken {
                true => (Fault::Break(ZoneCondition::ReadOnly), zone),
                false => (Fault::Torn { bytes: 512 }, twin),
            };
            drive.add(Plan::at(ZoneCommand::Write, 1, fault).in_zone(twin));
            let fails = Plan::at(ZoneCommand::Finish, 1, Fault::Io(ErrorKind::Other));
            drive.add(fails.in_zone(unfinished));
            begin_journal(&fs);
            assert_eq!(drive.struck(), 2);
            let is_active = || drive.report_zone(unfinished).unwrap().condition.is_active();
            assert!(is_active());
            assert!(shared.finish_again(Duration::MAX));
            assert!(!is_active());
            assert!(shared.device.unfinished().is_empty());
        }
    }

    /// It would be lost for the next file: nothing fits into a full zone.
    #[test]
    fn a_zone_that_was_reset_meanwhile_is_not_finished() {
        let (drive, fs) = mounted_on(0, 14, 1);
        let shared = &fs.shared;
        let mut file = fs.create("/1.sst").unwrap();
        append(&mut file).unwrap();
        let zone = zone_of(&fs, "/1.sst");
        drive.add(Plan::at(ZoneCommand::Finish, 1, Fault::Io(ErrorKind::Other)).in_zone(zone));
        assert!(shared.leave_an_open_zone().unwrap());
        drop(file);
        fs.delete("/1.sst").unwrap();
        fs.sync_metadata().unwrap();
        let condition = || drive.report_zone(zone).unwrap().condition;
        assert_eq!(condition(), ZoneCondition::Empty);
        assert!(shared.device.unfinished().is_empty());
        // A failure that is noted too late.
        shared.device.unfinished().add(zone);
        assert!(shared.finish_again(Duration::MAX));
        assert_eq!(condition(), ZoneCondition::Empty);
    }
}
