//! A drive's time for what a guest asked of its drive.

use crate::experiment::{Run, Stopped};
use crate::guest_trace::Traced;
use drive_model::{DiskDrive, Request, RequestKind, Span, Tag, Time};

/// Writes and reads ahead that are under way at most: SATA's.
const DEPTH: usize = 31;
/// How long the drive may clean after a stage.
const MOST_CLEANING_HOURS: f64 = 24.0;

/// A drive as it comes, caches on, whose clock goes on from one stage to the next.
pub struct Player {
    drive: DiskDrive,
    now: Time,
    under_way: usize,
}

impl Player {
    /// The partition is at the beginning of the drive.
    pub fn new(mut drive: DiskDrive) -> Self {
        drive.set_volatile_cache(true);
        drive.set_look_ahead(true);
        Self {
            drive,
            now: Time::START,
            under_way: 0,
        }
    }

    /// Seconds until all of it was done. The guest takes no time between its requests: it sends the next one unless it
    /// waits, for a read, for all that is under way before a flush, or for one of those that are under way.
    ///
    /// # Errors
    /// The drive refused one, or somebody wants it to stop.
    pub fn play(&mut self, run: &Run<'_>, requests: &[Traced]) -> Result<f64, Stopped> {
        let begin = self.now;
        for (number, traced) in requests.iter().enumerate() {
            if number % 1024 == 0 && run.is_interrupted() {
                return Err(Stopped::Interrupted);
            }
            match traced.request.operation {
                RequestKind::Flush => {
                    self.wait_until_under_way(0)?;
                    self.send(Request::flush());
                    self.wait_until_under_way(0)?;
                }
                RequestKind::Read if !traced.ahead => {
                    let tag = self.send(traced.request);
                    while self.take()?.is_some_and(|done| done != tag) {}
                }
                _ => {
                    self.wait_until_under_way(DEPTH - 1)?;
                    self.send(traced.request);
                }
            }
        }
        self.wait_until_under_way(0)?;
        self.send(Request::flush());
        self.wait_until_under_way(0)?;
        Ok(self.now.since(begin).seconds())
    }

    /// Seconds that the drive cleans by itself if nothing comes.
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

    fn send(&mut self, request: Request) -> Tag {
        self.under_way += 1;
        self.drive.enqueue(request, self.now)
    }

    fn wait_until_under_way(&mut self, most: usize) -> Result<(), Stopped> {
        while self.under_way > most && self.take()?.is_some() {}
        Ok(())
    }

    /// The next answer.
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
