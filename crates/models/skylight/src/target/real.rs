//! A target in real time. Threads make the blocking calls, so that a request that never ends can be detected.

pub use super::limits::Limits;

use super::clock::Clock;
use super::limits::{Halt, Watch};
use super::medium::Medium;
use super::size::{Stamp, Stamps};
use super::{Answer, Target, TargetError, Told, name, size};
use block_device::host::{HostDevice, noise};
use block_device::{BlockDevice, DeviceError, Done, Payload};
use drive_model::{BLOCK_BYTES, Failure, Lba, Refusal, Request, Span, Time};
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Limit on the time of a request; a longer one counts as stuck. The system itself gives a command half a minute, and
/// the longest cleaning in the main document takes less.
pub const WATCHDOG: Span = Span::from_nanos(60_000_000_000);
/// Interval between two checks of the limits.
const LOOK: Span = Span::from_nanos(250_000_000);

/// A device or file as a target, in the time of a clock.
pub struct Real {
    device: HostDevice,
    halt: Halt,
    watch: Watch,
    /// Time of the next call of the watch.
    word: Time,
    /// Number of requests so far, and token of the next one.
    count: u64,
    /// The system's message on the last refused write.
    refusal: Option<String>,
}

/// The result of a successful request.
struct Brought {
    answer: Answer,
    bytes: Vec<u8>,
}

impl Real {
    /// A target that uses `clock`.
    pub fn new(medium: Arc<dyn Medium>, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self {
            halt: Halt::new(limits, clock.now()),
            word: clock.now(),
            device: HostDevice::new(medium, clock),
            watch: Box::new(|_, _| ()),
            count: 0,
            refusal: None,
        }
    }

    /// Calls `watch` several times a second.
    #[must_use]
    pub fn with_watch(self, watch: Watch) -> Self {
        Self { watch, ..self }
    }

    /// Why the examination has to end.
    fn stopped(&mut self) -> Option<TargetError> {
        self.halt.at(self.device.now())
    }

    fn tell(&mut self, left: Option<Span>) {
        let now = self.device.now();
        if now >= self.word {
            self.word = now + LOOK;
            (self.watch)(now, left);
        }
    }

    /// Runs jobs, `depth` at a time, and passes on their results until one failure ends everything or `watch` breaks;
    /// then waits for those under way.
    fn carry_out(
        &mut self,
        depth: usize,
        jobs: &mut dyn Iterator<Item = (Request, Payload)>,
        watch: &mut dyn FnMut(&Brought) -> ControlFlow<()>,
    ) -> Result<(), TargetError> {
        let mut under_way: BTreeMap<u64, Time> = BTreeMap::new();
        let mut more = true;
        let mut failed = None;
        loop {
            while more && under_way.len() < depth {
                failed = failed.or_else(|| self.stopped());
                let next = failed.is_none().then(|| jobs.next()).flatten();
                let Some((request, payload)) = next else {
                    more = false;
                    break;
                };
                under_way.insert(self.count, self.device.now());
                self.device.submit(self.count, request, payload);
                self.count += 1;
            }
            // Tokens grow, so the first request has waited longest.
            let Some((_, oldest)) = under_way.first_key_value() else {
                break;
            };
            let oldest = *oldest;
            self.tell(None);
            let Some(done) = self.device.complete(Some(LOOK)) else {
                if self.device.now().since(oldest) >= WATCHDOG {
                    let seconds = WATCHDOG.seconds() as u64;
                    let stuck = TargetError::Stuck { seconds };
                    self.halt.end(&stuck);
                    return Err(stuck);
                }
                continue;
            };
            if under_way.remove(&done.token).is_none() {
                continue;
            }
            match self.judge(done) {
                Ok(brought) => more &= watch(&brought).is_continue(),
                Err(error) => {
                    failed.get_or_insert(error);
                    more = false;
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Judges a completion: an answer, which may be a refused write, or an error that ends the examination.
    fn judge(&mut self, done: Done) -> Result<Brought, TargetError> {
        let latency = done.latency();
        let Done {
            request, at, bytes, ..
        } = done;
        let result = match done.result {
            Ok(()) => Ok(()),
            Err(DeviceError::Drive(failure)) => Err(failure),
            Err(DeviceError::NotAsked(_)) => Err(Failure::Unsupported),
            Err(DeviceError::Short { done }) => {
                return Err(TargetError::Short {
                    what: name(request.operation),
                    at: request.lba.0 * BLOCK_BYTES,
                    done,
                    asked: request.bytes(),
                });
            }
            Err(DeviceError::Host(error)) if is_gone(&error) || !self.device.medium().exists() => {
                let gone = TargetError::Gone {
                    what: self.device.medium().name(),
                    reason: error.to_string(),
                };
                self.halt.end(&gone);
                return Err(gone);
            }
            // The system has one error code for a write out of order and for a broken medium.
            Err(DeviceError::Host(error))
                if request.operation.is_write() && error.raw_os_error() == Some(EIO) =>
            {
                self.refusal = Some(error.to_string());
                Err(Failure::Refused(Refusal::NotAtWritePointer))
            }
            Err(DeviceError::Host(error)) => return Err(failure(&request, &error)),
        };
        let answer = Answer {
            request,
            latency,
            at,
            result,
        };
        Ok(Brought { answer, bytes })
    }
}

impl Stamps for Real {
    fn stamp(&mut self, lba: Lba, stamp: Stamp) -> Result<(), TargetError> {
        let mut bytes = noise(lba.0, BLOCK_BYTES as usize);
        bytes[..stamp.len()].copy_from_slice(&stamp);
        let job = (Request::write(lba, 1), Payload::write(bytes));
        let mut refused = None;
        self.carry_out(1, &mut [job].into_iter(), &mut |brought| {
            refused = brought.answer.result.err();
            ControlFlow::Continue(())
        })?;
        refused.map_or(Ok(()), |_| Err(TargetError::refused(self, lba)))
    }

    fn read_stamp(&mut self, lba: Lba) -> Result<Stamp, TargetError> {
        let mut found = Stamp::default();
        let request = Request::read(lba, 1);
        let job = (request, Payload::read(&request));
        self.carry_out(1, &mut [job].into_iter(), &mut |brought| {
            found = brought.bytes.first_chunk().copied().unwrap_or_default();
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

const EIO: i32 = rustix::io::Errno::IO.raw_os_error();

/// Whether the system reports that the device does not exist any more.
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
        self.device.blocks()
    }

    fn now(&self) -> Time {
        self.device.now()
    }

    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError> {
        let mut jobs = requests.map(|request| (request, Payload::None));
        let result = self.carry_out(depth, &mut jobs, &mut |brought| watch(&brought.answer));
        // After a failure, no further result is reliable.
        if let Err(error) = &result {
            self.halt.end(error);
        }
        result
    }

    fn pause(&mut self, span: Span) {
        let end = self.device.now() + span;
        loop {
            let left = end.since(self.device.now());
            if left == Span::ZERO || self.stopped().is_some() {
                break;
            }
            self.tell(Some(left));
            self.device.idle(left.min(LOOK));
        }
    }

    fn set_volatile_cache(&mut self, on: bool) -> bool {
        let switched = self.device.medium().set_volatile_cache(on);
        // If the cache cannot be switched off, writes have to complete on the medium.
        self.device.set_write_through(!on && !switched);
        switched
    }

    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.device.medium().set_look_ahead(on)
    }

    /// Never erases a drive of the host: drives differ in what a secure erase does, and in whether they survive it.
    fn erase(&mut self) -> bool {
        false
    }

    fn told(&self) -> Told {
        self.device.medium().told()
    }

    fn refusal(&self) -> Option<String> {
        self.refusal.clone()
    }

    fn check_size(&mut self, write: bool) -> Result<(), TargetError> {
        size::check(self, write)
    }
}
