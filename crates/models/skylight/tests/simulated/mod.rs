//! A model behind blocking calls, with its clock: a device of the host in a time that tests control.
//!
//! It is deterministic with any number of threads: the clock stands still until every request that is under way has
//! reached the model, and then advances to the next completion.

use drive_model::{BLOCK_BYTES, Completion, Failure, Model, Request, RequestKind, Span, Tag, Time};
use rustix::io::Errno;
use skylight::Random;
use skylight::target::Told;
use skylight::target::clock::{Clock, Done};
use skylight::target::medium::Medium;
use skylight::target::real::{Limits, Real};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// How the drive misbehaves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Fault {
    #[default]
    None,
    /// Requests fail with this error from this request on.
    Error(u64, Errno),
    /// This request fails with this error, and no other.
    Once(u64, Errno),
    /// This request, and all after it, are never answered.
    Stuck(u64),
    /// Requests of more than a block are cut short from this request on.
    Short(u64),
    /// The drive ends at this byte, whatever size it reports.
    Ends(u64),
    /// The drive begins again at this byte.
    Wraps(u64),
    /// The drive keeps nothing from this byte on.
    Forgets(u64),
    /// The caches of the drive cannot be switched, and its volatile one is on.
    Stubborn,
}

/// A delay on top of the model's times.
#[derive(Clone, Default, Debug)]
pub enum Delay {
    #[default]
    None,
    /// A random time up to this many milliseconds.
    Noise(Random, f64),
    /// As much as a request lacks to take this many milliseconds.
    Throttle(f64),
}

#[derive(Debug)]
struct State {
    now: Time,
    model: Box<dyn Model>,
    arrived: BTreeMap<(u64, u64), (Request, Sender<Completion>)>,
    under_way: HashMap<Tag, Sender<Completion>>,
    /// The next completion, if the clock has not reached it.
    next: Option<Completion>,
    /// Requests that failed without reaching the model, and were not collected yet.
    failed: usize,
    /// Requests that are never answered.
    stuck: usize,
    count: u64,
    contents: HashMap<u64, [u8; 16]>,
    delay: Delay,
}

#[derive(Debug)]
pub struct Simulated {
    state: Mutex<State>,
    changed: Condvar,
    fault: Fault,
    blocks: u64,
    told: Told,
}

/// A drive with this fault and this delay.
pub fn with(model: Box<dyn Model>, fault: Fault, delay: Delay, told: Told) -> Arc<Simulated> {
    Arc::new(Simulated {
        blocks: model.blocks(),
        state: Mutex::new(State {
            now: Time::START,
            model,
            arrived: BTreeMap::new(),
            under_way: HashMap::new(),
            next: None,
            failed: 0,
            stuck: 0,
            count: 0,
            contents: HashMap::new(),
            delay,
        }),
        changed: Condvar::new(),
        fault,
        told,
    })
}

/// A target that runs on this drive and its clock as on a real device.
pub fn target(drive: &Arc<Simulated>, limits: Limits) -> Real {
    Real::new(drive.clone(), drive.clone(), limits)
}

/// The model of a built-in profile.
pub fn model(name: &str) -> Box<dyn Model> {
    drive_model::profile::model(name, 1).unwrap()
}

enum Way {
    Ask,
    Never,
    Fail(io::Result<usize>),
}

impl Simulated {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn way(&self, request: &Request, count: u64) -> Way {
        let bytes = request.bytes();
        let at = request.lba.0 * BLOCK_BYTES;
        match self.fault {
            Fault::Error(from, errno) if count >= from => Way::Fail(Err(errno.into())),
            Fault::Once(when, errno) if count == when => Way::Fail(Err(errno.into())),
            Fault::Stuck(from) if count >= from => Way::Never,
            Fault::Short(from) if count >= from && bytes > BLOCK_BYTES => {
                Way::Fail(Ok((bytes / 2) as usize))
            }
            Fault::Ends(end) if at + bytes > end => Way::Fail(match request.operation {
                RequestKind::Read => Ok(end.saturating_sub(at) as usize),
                _ => Err(Errno::NOSPC.into()),
            }),
            _ => Way::Ask,
        }
    }

    fn ask(&self, request: Request) -> io::Result<usize> {
        let mut state = self.lock();
        state.count += 1;
        let count = state.count;
        let (sender, receiver) = channel();
        match self.way(&request, count) {
            Way::Ask => {
                let key = (request.lba.0, count);
                state.arrived.insert(key, (request, sender));
            }
            Way::Never => state.stuck += 1,
            Way::Fail(result) => {
                state.failed += 1;
                self.changed.notify_all();
                return result;
            }
        }
        self.changed.notify_all();
        drop(state);
        match receiver.recv() {
            Ok(done) => match done.result {
                Ok(()) => Ok(request.bytes() as usize),
                Err(Failure::Unsupported) => Err(io::ErrorKind::Unsupported.into()),
                Err(_) => Err(Errno::IO.into()),
            },
            // The sender was dropped: this request is never answered.
            Err(_) => loop {
                std::thread::park();
            },
        }
    }

    /// Where the contents of the block at `at` are kept; `None` if they are not.
    fn place(&self, at: u64) -> Option<u64> {
        match self.fault {
            Fault::Wraps(size) => Some(at % size),
            Fault::Forgets(from) if at >= from => None,
            _ => Some(at),
        }
    }
}

impl Medium for Simulated {
    fn name(&self) -> String {
        "/dev/simulated".into()
    }

    fn bytes(&self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let blocks = (buffer.len() as u64 / BLOCK_BYTES) as u32;
        let done = self.ask(Request::read(drive_model::Lba(at / BLOCK_BYTES), blocks))?;
        if blocks == 1 {
            let found = self
                .place(at)
                .and_then(|at| self.lock().contents.get(&at).copied());
            buffer[..16].copy_from_slice(&found.unwrap_or_default());
        }
        Ok(done)
    }

    fn write(&self, at: u64, data: &[u8], through: bool) -> io::Result<usize> {
        let blocks = (data.len() as u64 / BLOCK_BYTES) as u32;
        let mut request = Request::write(drive_model::Lba(at / BLOCK_BYTES), blocks);
        if through {
            request.operation = RequestKind::WriteThrough;
        }
        let done = self.ask(request)?;
        if let (1, Some(place)) = (blocks, self.place(at)) {
            let stamp = data[..16].try_into().unwrap();
            self.lock().contents.insert(place, stamp);
        }
        Ok(done)
    }

    fn flush(&self) -> io::Result<()> {
        self.ask(Request::flush()).map(drop)
    }

    fn told(&self) -> Told {
        self.told
    }

    fn set_volatile_cache(&self, on: bool) -> bool {
        self.fault != Fault::Stubborn && self.lock().model.set_volatile_cache(on)
    }

    fn set_look_ahead(&self, on: bool) -> bool {
        self.fault != Fault::Stubborn && self.lock().model.set_look_ahead(on)
    }
}

impl Clock for Simulated {
    fn now(&self) -> Time {
        self.lock().now
    }

    fn sleep(&self, span: Span) {
        let mut state = self.lock();
        state.now += span;
        let now = state.now;
        state.model.idle_until(now);
    }

    fn receive(&self, done: &Receiver<Done>, under_way: usize, limit: Span) -> Option<Done> {
        let mut state = self.lock();
        while state.arrived.len() + state.under_way.len() + state.failed + state.stuck < under_way {
            state = self.changed.wait(state).unwrap();
        }
        if state.failed > 0 {
            state.failed -= 1;
            drop(state);
            return done.recv().ok();
        }
        let now = state.now;
        for (_, (request, sender)) in std::mem::take(&mut state.arrived) {
            let tag = state.model.enqueue(request, now);
            state.under_way.insert(tag, sender);
        }
        let next = match state.next.take() {
            Some(next) => Some(next),
            None => {
                let next = state.model.next_completion();
                next.map(|next| later(next, &mut state.delay))
            }
        };
        match next {
            Some(next) if next.at <= now + limit => {
                state.now = now.max(next.at);
                let sender = state.under_way.remove(&next.tag).unwrap();
                sender.send(next).unwrap();
                drop(state);
                done.recv().ok()
            }
            other => {
                state.next = other;
                state.now = now + limit;
                None
            }
        }
    }
}

fn later(done: Completion, delay: &mut Delay) -> Completion {
    let at = match delay {
        Delay::None => done.at,
        Delay::Noise(random, most) => {
            let part = random.below(1 << 20) as f64 / f64::from(1 << 20);
            done.at + Span::from_millis(part * *most)
        }
        Delay::Throttle(millis) => done.at.max(done.submitted + Span::from_millis(*millis)),
    };
    Completion { at, ..done }
}
