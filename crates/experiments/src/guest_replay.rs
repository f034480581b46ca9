//! Replays the requests of a guest on a model of a drive, and measures the time.

use crate::experiment::{Run, Stopped};
use crate::guest_trace::Traced;
use drive_model::{DiskDrive, Model, Request, RequestKind, Span, Tag, Time, ZonedDisk};

/// The most writes and reads ahead under way: SATA's queue depth.
const DEPTH: usize = 31;
/// The longest time that the drive may clean after a stage.
const MOST_CLEANING_HOURS: f64 = 24.0;

/// The drive of a player.
enum Disk {
    Plain(Box<DiskDrive>),
    Zoned(Box<ZonedDisk>),
}

impl Disk {
    fn model(&mut self) -> &mut dyn Model {
        match self {
            Self::Plain(disk) => &mut **disk,
            Self::Zoned(disk) => &mut **disk,
        }
    }

    fn is_dirty(&self) -> bool {
        match self {
            Self::Plain(disk) => disk.is_dirty(),
            Self::Zoned(disk) => disk.drive().is_dirty(),
        }
    }

    const fn has_zones(&self) -> bool {
        matches!(self, Self::Zoned(_))
    }
}

/// A drive with its default settings and its caches on, whose clock goes on from one stage to the next.
pub struct Player {
    drive: Disk,
    now: Time,
    under_way: usize,
}

impl Player {
    /// A player for a drive without zones, at the beginning of which the guest's partition is.
    pub fn new(drive: DiskDrive) -> Self {
        Self::on(Disk::Plain(Box::new(drive)))
    }

    /// A player for a drive with zones, which the requests are for.
    pub fn with_zones(drive: ZonedDisk) -> Self {
        Self::on(Disk::Zoned(Box::new(drive)))
    }

    fn on(mut drive: Disk) -> Self {
        let model = drive.model();
        model.set_volatile_cache(true);
        model.set_look_ahead(true);
        Self {
            drive,
            now: Time::START,
            under_way: 0,
        }
    }

    /// Replays the requests and a flush. Returns the seconds until all are done.
    ///
    /// The guest takes no time between its requests. It waits only for a read, for all that is under way before a
    /// flush, and for room in the queue. On a drive with zones it also waits for each write, as their order counts;
    /// on one without, commands on zones are left out.
    ///
    /// # Errors
    /// The drive refused a request, or the run is interrupted.
    pub fn play(&mut self, run: &Run<'_>, requests: &[Traced]) -> Result<f64, Stopped> {
        let begin = self.now;
        for (number, traced) in requests.iter().enumerate() {
            if number % 1024 == 0 && run.is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            match traced.request.operation {
                RequestKind::Flush => self.alone(traced.request)?,
                RequestKind::ResetZone | RequestKind::FinishZone => {
                    if self.drive.has_zones() {
                        self.alone(traced.request)?;
                    }
                }
                kind if kind == RequestKind::Read && !traced.ahead
                    || kind == RequestKind::Write && self.drive.has_zones() =>
                {
                    let tag = self.send(traced.request);
                    while self.take()?.is_some_and(|done| done != tag) {}
                }
                _ => {
                    self.wait_until_under_way(DEPTH - 1)?;
                    self.send(traced.request);
                }
            }
        }
        self.alone(Request::flush())?;
        Ok(self.now.since(begin).seconds())
    }

    /// Lets the drive clean without requests. Returns the seconds that it cleaned.
    pub fn clean(&mut self) -> f64 {
        let before = self.drive.model().statistics().cleaning.nanos;
        let mut hours = 0.0;
        while self.drive.is_dirty() && hours < MOST_CLEANING_HOURS {
            self.now += Span::from_millis(600_000.0);
            hours += 1.0 / 6.0;
            self.drive.model().idle_until(self.now);
        }
        (self.drive.model().statistics().cleaning.nanos - before) as f64 / 1e9
    }

    fn alone(&mut self, request: Request) -> Result<(), Stopped> {
        self.wait_until_under_way(0)?;
        self.send(request);
        self.wait_until_under_way(0)
    }

    fn send(&mut self, request: Request) -> Tag {
        self.under_way += 1;
        self.drive.model().enqueue(request, self.now)
    }

    fn wait_until_under_way(&mut self, most: usize) -> Result<(), Stopped> {
        while self.under_way > most && self.take()?.is_some() {}
        Ok(())
    }

    /// Waits for the next completion; `None` if nothing is under way.
    fn take(&mut self) -> Result<Option<Tag>, Stopped> {
        let Some(done) = self.drive.model().next_completion() else {
            self.under_way = 0;
            return Ok(None);
        };
        self.under_way -= 1;
        self.now = self.now.max(done.at);
        match done.result {
            Ok(()) => Ok(Some(done.tag)),
            Err(reason) => Err(Stopped::refused(&Request::read(done.lba, 0), &reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::Scale;
    use drive_model::{Lba, Profile};

    /// A drive with zones is asked for resets and has one write at a time; for one without, resets are left out.
    #[test]
    fn zones_are_reset_and_written_in_order() {
        let run = Run {
            seed: 1,
            scale: Scale::SMALL,
            figures: false,
            interrupted: Default::default(),
            progress: &mut |_| (),
        };
        let profile = Profile::named("hm-smr-14tb").unwrap();
        let zone = Lba(1_000 << 16);
        let asked = [
            Request::write(zone, 4),
            Request::on_zone(RequestKind::ResetZone, zone),
            Request::write(zone, 4),
        ];
        let traced = asked.map(|request| Traced {
            request,
            content: None,
            ahead: false,
        });
        let mut zoned = Player::with_zones(profile.zoned(1).unwrap());
        zoned.play(&run, &traced).unwrap();
        let report = zoned.drive.model().zones().unwrap();
        assert_eq!(
            report.report(zone::ZoneId(1_000), 1)[0].write_pointer,
            4 * 4096
        );
        // Without the reset, the second write is at another place than the write pointer.
        let refused = zoned.play(&run, &[traced[0], traced[2]]);
        assert!(
            matches!(refused, Err(Stopped::Refused { .. })),
            "{refused:?}"
        );
        let mut plain = Player::new(profile.drive(1).unwrap());
        plain.play(&run, &traced).unwrap();
    }
}
