//! Replays the requests of a guest on a model of a drive, and measures the time.

use crate::experiment::{Run, Stopped};
use crate::guest_trace::Traced;
use drive_model::{DiskDrive, Request, RequestKind, Span, Tag, Time};

/// The most writes and reads ahead under way: SATA's queue depth.
const DEPTH: usize = 31;
/// The longest time that the drive may clean after a stage.
const MOST_CLEANING_HOURS: f64 = 24.0;

/// A drive with its default settings and its caches on, whose clock goes on from one stage to the next.
pub struct Player {
    drive: DiskDrive,
    has_zones: bool,
    now: Time,
    under_way: usize,
}

impl Player {
    /// A player for a drive, at the beginning of which the guest's partition is.
    pub fn new(mut drive: DiskDrive) -> Self {
        drive.set_volatile_cache(true);
        drive.set_look_ahead(true);
        let has_zones = drive_model::Model::zones(&drive).is_some();
        Self {
            drive,
            has_zones,
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
                    if self.has_zones {
                        self.alone(traced.request)?;
                    }
                }
                kind if kind == RequestKind::Read && !traced.ahead
                    || kind == RequestKind::Write && self.has_zones =>
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
        let before = self.drive.statistics().cleaning.nanos;
        let mut hours = 0.0;
        while self.drive.is_dirty() && hours < MOST_CLEANING_HOURS {
            self.now += Span::from_millis(600_000.0);
            hours += 1.0 / 6.0;
            self.drive.idle_until(self.now);
        }
        (self.drive.statistics().cleaning.nanos - before) as f64 / 1e9
    }

    fn alone(&mut self, request: Request) -> Result<(), Stopped> {
        self.wait_until_under_way(0)?;
        self.send(request);
        self.wait_until_under_way(0)
    }

    fn send(&mut self, request: Request) -> Tag {
        self.under_way += 1;
        self.drive.enqueue(request, self.now)
    }

    fn wait_until_under_way(&mut self, most: usize) -> Result<(), Stopped> {
        while self.under_way > most && self.take()?.is_some() {}
        Ok(())
    }

    /// Waits for the next completion; `None` if nothing is under way.
    fn take(&mut self) -> Result<Option<Tag>, Stopped> {
        let Some(done) = self.drive.next_completion() else {
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
