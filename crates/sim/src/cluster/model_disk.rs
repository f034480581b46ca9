//! A drive that is a model (`drive-model`), and the requests that a back end makes for an object: pieces of data, a
//! record of its log, and flushes that all waiting jobs share.

use super::job::{Ended, Job, Owner, Work};
use drive_model::{BLOCK_BYTES, Lba, Model, Profile, ProfileError, Request, Span, Tag, Time};
use runtime::HashMap;
use std::collections::VecDeque;

/// The largest write and the largest read that the host makes, in bytes.
const WRITE_BYTES: u64 = 512 << 10;
const READ_BYTES: u64 = 1 << 20;
/// Most blocks of the log, which is written cyclically: 1 GiB. Conventional zones may have room for fewer.
const LOG_BLOCKS: u64 = (1 << 30) / BLOCK_BYTES;

/// How a back end makes objects durable. The writes of a database's compactions are left out in both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackEnd {
    /// Data and a record of the log, then one flush, as ZoneStore does.
    OneFlush,
    /// Data, a flush, a record of the log, a flush, as BlueStore does on a block device.
    TwoFlushes,
}

/// Where the bytes of the data lie on the model.
#[derive(Clone, Copy, Debug)]
enum Places {
    /// In zones of `blocks` blocks, of which each `each`th is used, from zone `first` on.
    Zones { first: u64, blocks: u64, each: u64 },
    /// From the first block on; the log lies in between, at block `middle`.
    Blocks { middle: u64 },
}

impl Places {
    fn lba(self, byte: u64) -> Lba {
        let block = byte / BLOCK_BYTES;
        Lba(match self {
            Self::Zones {
                first,
                blocks,
                each,
            } => (first + block / blocks * each) * blocks + block % blocks,
            Self::Blocks { middle } if block >= middle => block + LOG_BLOCKS,
            Self::Blocks { .. } => block,
        })
    }
}

/// What the completion of a request leads to.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A part of this job is done.
    Part(u64),
    /// The data of the jobs that are being committed is durable: their log is written next.
    DataFlushed,
    /// The jobs that are being committed are durable.
    Committed,
    /// No job waits for it.
    Logged,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    job: Job,
    came: Time,
    /// Requests of the job that have not completed.
    left: u32,
    /// For [`Work::Move`]: the data has been read, and is being written.
    is_read: bool,
}

/// A model of a drive with the jobs that are under way on it.
#[derive(Debug)]
pub struct ModelDisk {
    model: Box<dyn Model>,
    back_end: BackEnd,
    places: Places,
    /// The first block of the log, and number of its blocks.
    log: (u64, u64),
    logged: u64,
    steps: HashMap<Tag, Step>,
    open: HashMap<u64, Open>,
    taken: u64,
    /// Jobs that are written and wait for a commit; `committing` has those of the commit under way.
    group: Vec<u64>,
    committing: Vec<u64>,
    ended: VecDeque<Ended>,
    busy: Span,
    busy_since: Option<Time>,
    refused: u64,
}

impl ModelDisk {
    /// A drive of a profile that keeps `bytes` of data. On a drive with zones, these lie in `bytes` ÷ zone size of
    /// them: side by side from the first sequential zone on, or with `spread` all over the drive.
    ///
    /// # Errors
    /// The profile cannot be built.
    pub fn new(
        profile: &Profile,
        seed: u64,
        back_end: BackEnd,
        (bytes, spread): (u64, bool),
    ) -> Result<Self, ProfileError> {
        let model: Box<dyn Model> = match profile.zones {
            Some(_) => Box::new(profile.zoned(seed)?),
            None => Box::new(profile.drive(seed)?),
        };
        let (places, log) = match model.zones().map(|zones| zones.geometry()) {
            Some(geometry) => {
                let blocks = geometry.zone_size / BLOCK_BYTES;
                let first = u64::from(geometry.conventional_zones);
                let sequential = u64::from(geometry.zone_count) - first;
                let used = (bytes / geometry.zone_size).max(1);
                let each = if spread {
                    (sequential / used).max(1)
                } else {
                    1
                };
                let places = Places::Zones {
                    first,
                    blocks,
                    each,
                };
                (places, (0, LOG_BLOCKS.min(first * blocks)))
            }
            None => {
                let middle = bytes / BLOCK_BYTES / 2;
                (Places::Blocks { middle }, (middle, LOG_BLOCKS))
            }
        };
        Ok(Self {
            model,
            back_end,
            places,
            log,
            logged: 0,
            steps: HashMap::default(),
            open: HashMap::default(),
            taken: 0,
            group: Vec::new(),
            committing: Vec::new(),
            ended: VecDeque::new(),
            busy: Span::ZERO,
            busy_since: None,
            refused: 0,
        })
    }

    /// The model.
    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    /// Requests that the drive refused, which it never should.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Writes the beginning of a zone before the simulation starts, and flushes. Returns when that is done.
    pub fn prefill(&mut self, at: u64, bytes: u64, now: Time) -> Time {
        let request = Request::write(self.places.lba(at), (bytes / BLOCK_BYTES) as u32);
        let written = self.model.submit(request, now);
        self.refused += u64::from(written.result.is_err());
        self.model.submit(Request::flush(), written.at).at
    }

    /// Lets time pass.
    pub fn idle_until(&mut self, now: Time) {
        self.model.idle_until(now);
    }

    fn send(&mut self, request: Request, step: Step, now: Time) {
        let tag = self.model.enqueue(request, now);
        self.steps.insert(tag, step);
    }

    /// Sends the requests that read or write `bytes` at `at` for a job. Returns their number.
    fn transfer(&mut self, (at, bytes): (u64, u64), is_write: bool, number: u64, now: Time) -> u32 {
        let most = if is_write { WRITE_BYTES } else { READ_BYTES };
        let (mut done, mut sent) = (0, 0);
        while done < bytes {
            let here = most.min(bytes - done);
            let (lba, blocks) = (
                self.places.lba(at + done),
                here.div_ceil(BLOCK_BYTES) as u32,
            );
            let request = match is_write {
                true => Request::write(lba, blocks),
                false => Request::read(lba, blocks),
            };
            self.send(request, Step::Part(number), now);
            done += here;
            sent += 1;
        }
        sent
    }

    /// Takes a job at `now`.
    pub fn take(&mut self, job: Job, now: Time) {
        let number = self.taken;
        self.taken += 1;
        self.busy_since.get_or_insert(now);
        let left = match job.work {
            Work::Write => self.transfer((job.to, job.bytes), true, number, now),
            Work::Read | Work::Move => self.transfer((job.from, job.bytes), false, number, now),
        };
        let open = Open {
            job,
            came: now,
            left,
            is_read: false,
        };
        self.open.insert(number, open);
    }

    /// Resets the zone that begins at this byte of the data.
    pub fn reset(&mut self, at: u64, now: Time) {
        let lba = self.places.lba(at);
        let request = Request::on_zone(drive_model::RequestKind::ResetZone, lba);
        self.send(Request::flush(), Step::Logged, now);
        self.send(request, Step::Logged, now);
    }

    /// When the next job may end, if no other is taken.
    pub fn next_moment(&self) -> Option<Time> {
        let ended = self.ended.front().map(|ended| ended.at);
        ended.into_iter().chain(self.model.next_moment()).min()
    }

    /// Takes out a job that has ended by `now`.
    pub fn ended_by(&mut self, now: Time) -> Option<Ended> {
        while self.ended.is_empty() {
            let done = self.model.completion_by(now)?;
            self.refused += u64::from(done.result.is_err());
            let Some(step) = self.steps.remove(&done.tag) else {
                continue;
            };
            match step {
                Step::Part(number) => self.part_done(number, done.at, now),
                Step::DataFlushed => self.write_log(now),
                Step::Committed => {
                    for number in std::mem::take(&mut self.committing) {
                        self.end(number, done.at);
                    }
                    self.commit(now);
                }
                Step::Logged => {}
            }
        }
        self.ended.pop_front()
    }

    fn part_done(&mut self, number: u64, at: Time, now: Time) {
        let Some(open) = self.open.get_mut(&number) else {
            return;
        };
        open.left -= 1;
        if open.left > 0 {
            return;
        }
        let job = open.job;
        match job.work {
            Work::Move if !open.is_read => {
                open.is_read = true;
                let left = self.transfer((job.to, job.bytes), true, number, now);
                if let Some(open) = self.open.get_mut(&number) {
                    open.left = left;
                }
            }
            Work::Read | Work::Move => self.end(number, at),
            Work::Write => {
                self.group.push(number);
                self.commit(now);
            }
        }
    }

    fn end(&mut self, number: u64, at: Time) {
        let Some(open) = self.open.remove(&number) else {
            return;
        };
        self.ended.push_back(Ended {
            owner: open.job.owner,
            at,
            took: at.since(open.came),
        });
        if self.open.is_empty()
            && let Some(since) = self.busy_since.take()
        {
            self.busy += at.since(since);
        }
    }

    /// Begins to commit the jobs that are written, unless a commit is under way.
    fn commit(&mut self, now: Time) {
        if !self.committing.is_empty() || self.group.is_empty() {
            return;
        }
        std::mem::swap(&mut self.committing, &mut self.group);
        match self.back_end {
            BackEnd::OneFlush => self.write_log(now),
            BackEnd::TwoFlushes => self.send(Request::flush(), Step::DataFlushed, now),
        }
    }

    /// Writes a block of the log for each job that is being committed, and flushes.
    fn write_log(&mut self, now: Time) {
        let blocks = self.committing.len() as u64;
        let (first, all) = self.log;
        if self.logged + blocks > all {
            self.logged = 0;
        }
        let write = Request::write(Lba(first + self.logged), blocks as u32);
        self.logged += blocks;
        self.send(write, Step::Logged, now);
        self.send(Request::flush(), Step::Committed, now);
    }

    /// Time in which any job was under way, until `now`.
    pub fn busy(&self, now: Time) -> Span {
        let since = self.busy_since.map_or(Span::ZERO, |since| now.since(since));
        self.busy + since
    }

    /// Does one job with nothing else under way. Returns its end.
    pub fn alone(&mut self, job: Job, now: Time) -> Ended {
        self.take(job, now);
        let mut at = now;
        loop {
            if let Some(ended) = self.ended_by(at) {
                return ended;
            }
            match self.next_moment() {
                Some(next) => at = at.max(next),
                // Every job ends; this one has not begun.
                None => {
                    return Ended {
                        owner: Owner::Cleaner,
                        at,
                        took: Span::ZERO,
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With one conventional zone, nothing is logged behind it: there the drive refuses.
    #[test]
    fn the_log_begins_again_at_the_end_of_the_conventional_zones() {
        let mut profile = Profile::named("hm-smr-14tb").unwrap();
        if let Some(zones) = &mut profile.zones {
            zones.conventional_zones = 1;
        }
        let mut disk = ModelDisk::new(&profile, 1, BackEnd::OneFlush, (1 << 30, false)).unwrap();
        disk.logged = (256 << 20) / BLOCK_BYTES - 1;
        let mut now = Time::START;
        for to in [0, BLOCK_BYTES] {
            let job = Job {
                owner: Owner::Request(0),
                work: Work::Write,
                bytes: BLOCK_BYTES,
                from: 0,
                to,
            };
            now = disk.alone(job, now).at;
        }
        assert_eq!((disk.refused(), disk.logged), (0, 1));
    }
}
