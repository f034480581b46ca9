//! A target in real time: its requests are carried out by threads that wait for them, so that one
//! that never ends can be told.

pub use super::limits::Limits;

use super::clock::Clock;
use super::limits::{Halt, Watch};
use super::medium::Medium;
use super::size::Stamps;
use super::workers::{Done, Job, Stamp, Workers};
use super::{Answer, Target, TargetError, Told, name, size};
use drive_model::{BLOCK_BYTES, Failure, Lba, Refusal, Request, RequestKind, Span, Time};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// A request that takes longer is taken for one that never ends. The system itself gives a command
/// half a minute, and the longest cleaning that the main document has seen takes less.
pub const WATCHDOG: Span = Span::from_nanos(60_000_000_000);
/// How long nobody looks whether the work is to stop.
const LOOK: Span = Span::from_nanos(250_000_000);

/// A device or file, in the time of a clock.
pub struct Real {
    clock: Arc<dyn Clock>,
    medium: Arc<dyn Medium>,
    workers: Workers,
    done: Receiver<Done>,
    halt: Halt,
    watch: Watch,
    /// When the watch is told again.
    word: Time,
    /// Requests so far: the name of the next.
    count: u64,
    /// Writes have to answer only when they are on the medium, for its cache cannot be switched off.
    through: bool,
    /// What the system said of the last write that was refused.
    refusal: Option<String>,
}

/// What a request brought, if it was done.
struct Brought {
    answer: Answer,
    stamp: Stamp,
}

impl Real {
    /// A target by a clock.
    pub fn new(medium: Arc<dyn Medium>, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        let (workers, done) = Workers::new(clock.clone(), medium.clone());
        Self {
            halt: Halt::new(limits, clock.now()),
            word: clock.now(),
            clock,
            medium,
            workers,
            done,
            watch: Box::new(|_, _| ()),
            count: 0,
            through: false,
            refusal: None,
        }
    }

    /// Tells `watch` several times a second how far it is.
    #[must_use]
    pub fn with_watch(self, watch: Watch) -> Self {
        Self { watch, ..self }
    }

    /// Why nothing may be asked any more.
    fn stopped(&mut self) -> Option<TargetError> {
        self.halt.at(self.clock.now())
    }

    fn tell(&mut self, left: Option<Span>) {
        let now = self.clock.now();
        if now >= self.word {
            self.word = now + LOOK;
            (self.watch)(now, left);
        }
    }

    /// Sends jobs, `depth` at a time, and shows what each has brought, until one fails in a way that
    /// ends everything or `watch` breaks; waits for those under way then.
    fn carry_out(
        &mut self,
        depth: usize,
        jobs: &mut dyn Iterator<Item = (Request, Option<Stamp>)>,
        watch: &mut dyn FnMut(&Brought) -> ControlFlow<()>,
    ) -> Result<(), TargetError> {
        let mut under_way: BTreeMap<u64, (Request, Time)> = BTreeMap::new();
        let mut more = true;
        let mut failed = None;
        loop {
            while more && under_way.len() < depth {
                failed = failed.or_else(|| self.stopped());
                let next = failed.is_none().then(|| jobs.next()).flatten();
                let Some((request, stamp)) = next else {
                    more = false;
                    break;
                };
                if !served(request.operation) {
                    let at = self.clock.now();
                    let answer = Answer {
                        request,
                        latency: Span::ZERO,
                        at,
                        result: Err(Failure::Unsupported),
                    };
                    let stamp = Stamp::default();
                    more &= watch(&Brought { answer, stamp }).is_continue();
                    continue;
                }
                let job = Job {
                    number: self.count,
                    request,
                    through: self.through,
                    stamp,
                };
                self.count += 1;
                under_way.insert(job.number, (request, self.clock.now()));
                if let Err(error) = self.workers.send(job, depth) {
                    under_way.remove(&job.number);
                    failed = Some(failure(&request, &error));
                }
            }
            // Numbers rise, so the first has waited longest.
            let Some((_, (_, oldest))) = under_way.first_key_value() else {
                break;
            };
            let oldest = *oldest;
            self.tell(None);
            let done = self.clock.receive(&self.done, under_way.len(), LOOK);
            let Some(done) = done else {
                if self.clock.now().since(oldest) >= WATCHDOG {
                    let seconds = WATCHDOG.seconds() as u64;
                    let stuck = TargetError::Stuck { seconds };
                    self.halt.end(&stuck);
                    return Err(stuck);
                }
                continue;
            };
            let Some((request, _)) = under_way.remove(&done.number) else {
                continue;
            };
            match self.judge(request, done) {
                Ok(brought) => more &= watch(&brought).is_continue(),
                Err(error) => {
                    failed.get_or_insert(error);
                    more = false;
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// What a request has come to: an answer, of which a refused write is one, or the end.
    fn judge(&mut self, request: Request, done: Done) -> Result<Brought, TargetError> {
        let refused = Failure::Refused(Refusal::NotAtWritePointer);
        let result = match done.result {
            Ok(bytes) if bytes as u64 == request.bytes() => Ok(()),
            Ok(bytes) => {
                return Err(TargetError::Short {
                    what: name(request.operation),
                    at: request.lba.0 * BLOCK_BYTES,
                    done: bytes as u64,
                    asked: request.bytes(),
                });
            }
            Err(error) if is_gone(&error) || !self.medium.exists() => {
                let gone = TargetError::Gone {
                    what: self.medium.name(),
                    reason: error.to_string(),
                };
                self.halt.end(&gone);
                return Err(gone);
            }
            // The system has the same word for a write out of order and for a broken medium.
            Err(error) if request.operation.is_write() && error.raw_os_error() == Some(EIO) => {
                self.refusal = Some(error.to_string());
                Err(refused)
            }
            Err(error) => return Err(failure(&request, &error)),
        };
        let answer = Answer {
            request,
            latency: done.at.since(done.submitted),
            at: done.at,
            result,
        };
        Ok(Brought {
            answer,
            stamp: done.stamp,
        })
    }
}

impl Stamps for Real {
    fn stamp(&mut self, lba: Lba, stamp: Stamp) -> Result<(), TargetError> {
        let job = (Request::write(lba, 1), Some(stamp));
        let mut refused = None;
        self.carry_out(1, &mut [job].into_iter(), &mut |brought| {
            refused = brought.answer.result.err();
            ControlFlow::Continue(())
        })?;
        refused.map_or(Ok(()), |_| Err(TargetError::refused(self, lba)))
    }

    fn read_stamp(&mut self, lba: Lba) -> Result<Stamp, TargetError> {
        let mut found = Stamp::default();
        let job = (Request::read(lba, 1), None);
        self.carry_out(1, &mut [job].into_iter(), &mut |brought| {
            found = brought.stamp;
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

/// What a block device can be asked by positioned reads and writes.
const fn served(operation: RequestKind) -> bool {
    matches!(
        operation,
        RequestKind::Read | RequestKind::Write | RequestKind::WriteThrough | RequestKind::Flush
    )
}

/// Whether the system says that there is no such device any more.
fn is_gone(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let gone = [
        Errno::NODEV,
        Errno::NXIO,
        Errno::NOMEDIUM,
        Errno::SHUTDOWN,
        Errno::NOTCONN,
        Errno::BADF,
    ];
    let code = error.raw_os_error();
    gone.iter().any(|errno| code == Some(errno.raw_os_error()))
}

fn failure(request: &Request, error: &io::Error) -> TargetError {
    TargetError::Failed {
        what: name(request.operation),
        at: request.lba.0 * BLOCK_BYTES,
        reason: error.to_string(),
    }
}

impl Target for Real {
    fn blocks(&self) -> u64 {
        self.medium.bytes() / BLOCK_BYTES
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError> {
        let mut jobs = requests.map(|request| (request, None));
        let result = self.carry_out(depth, &mut jobs, &mut |brought| watch(&brought.answer));
        // Nothing that comes after a failure is to be believed.
        if let Err(error) = &result {
            self.halt.end(error);
        }
        result
    }

    fn pause(&mut self, span: Span) {
        let end = self.clock.now() + span;
        loop {
            let left = end.since(self.clock.now());
            if left == Span::ZERO || self.stopped().is_some() {
                break;
            }
            self.tell(Some(left));
            self.clock.sleep(left.min(LOOK));
        }
    }

    fn set_volatile_cache(&mut self, on: bool) -> bool {
        let switched = self.medium.set_volatile_cache(on);
        self.through = !on && !switched;
        switched
    }

    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.medium.set_look_ahead(on)
    }

    /// A drive of the host is not erased: what a secure erase does, and whether it comes back from
    /// one, is up to each.
    fn erase(&mut self) -> bool {
        false
    }

    fn told(&self) -> Told {
        self.medium.told()
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }

    fn check_size(&mut self, write: bool) -> Result<(), TargetError> {
        size::check(self, write)
    }
}
