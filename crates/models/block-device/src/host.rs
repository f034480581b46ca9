//! A device or file of the host in real time. Threads carry out its requests, so that a request that never ends can
//! be detected; a clock does all the waiting.

pub mod clock;
pub mod medium;
mod workers;

use crate::block_device::{BlockDevice, DeviceError, Done, Payload};
use clock::Clock;
use drive_model::{BLOCK_BYTES, Failure, Request, RequestKind, Span, Time};
use medium::Medium;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use workers::{Job, Workers};

pub use workers::noise;

/// Interval of waiting for callers that give no limit.
const LOOK: Span = Span::from_nanos(250_000_000);

/// A device or file of the host.
pub struct HostDevice {
    clock: Arc<dyn Clock>,
    medium: Arc<dyn Medium>,
    workers: Workers,
    done: Receiver<clock::Done>,
    under_way: usize,
    /// Completions that needed no thread.
    ready: VecDeque<Done>,
    through: bool,
}

impl HostDevice {
    /// A device that waits by `clock`.
    pub fn new(medium: Arc<dyn Medium>, clock: Arc<dyn Clock>) -> Self {
        let (workers, done) = Workers::new(clock.clone(), medium.clone());
        Self {
            clock,
            medium,
            workers,
            done,
            under_way: 0,
            ready: VecDeque::new(),
            through: false,
        }
    }

    /// The device or file.
    pub fn medium(&self) -> &dyn Medium {
        &*self.medium
    }

    /// Makes later writes complete only when they are on the medium (`true`), or when the medium chooses.
    pub const fn set_write_through(&mut self, through: bool) {
        self.through = through;
    }

    /// Hands a request to a thread, if positioned reads and writes can do it.
    fn send(&mut self, token: u64, request: Request, payload: Payload) -> Result<(), DeviceError> {
        if !is_served(request.operation) {
            return Err(Failure::Unsupported.into());
        }
        if !fits(&request, &payload) {
            return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
        }
        let job = Job {
            token,
            request,
            through: self.through,
            payload,
        };
        self.workers.send(job, self.under_way + 1)?;
        self.under_way += 1;
        Ok(())
    }
}

/// Whether positioned reads, writes and flushes can do a request of this kind.
const fn is_served(operation: RequestKind) -> bool {
    matches!(
        operation,
        RequestKind::Read | RequestKind::Write | RequestKind::WriteThrough | RequestKind::Flush
    )
}

/// Whether a payload lies in the request's blocks, and covers all of them if it is written.
fn fits(request: &Request, payload: &Payload) -> bool {
    match payload {
        Payload::None => true,
        Payload::Write { skip, bytes } => {
            request.operation.is_write() && *skip == 0 && bytes.len() as u64 == request.bytes()
        }
        Payload::Read { skip, length } => {
            request.operation == RequestKind::Read
                && u64::from(*skip) + u64::from(*length) <= request.bytes()
        }
    }
}

impl BlockDevice for HostDevice {
    fn blocks(&self) -> u64 {
        self.medium.bytes() / BLOCK_BYTES
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn submit(&mut self, token: u64, request: Request, payload: Payload) {
        let length = payload.length(&request);
        if let Err(error) = self.send(token, request, payload) {
            let now = self.clock.now();
            self.ready.push_back(Done {
                token,
                request,
                length,
                submitted: now,
                at: now,
                result: Err(error),
                bytes: Vec::new(),
            });
        }
    }

    fn complete(&mut self, patience: Option<Span>) -> Option<Done> {
        if let Some(done) = self.ready.pop_front() {
            return Some(done);
        }
        let look = patience.unwrap_or(LOOK);
        while self.under_way > 0 {
            if let Some(done) = self.clock.receive(&self.done, self.under_way, look) {
                self.under_way -= 1;
                return Some(done.answer());
            }
            if patience.is_some() {
                return None;
            }
        }
        None
    }

    fn idle(&mut self, span: Span) {
        self.clock.sleep(span);
    }
}
