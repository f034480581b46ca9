//! Threads that make blocking calls to a medium, so that their caller need not block.

use super::clock::Clock;
use super::medium::Medium;
use crate::block_device::{DeviceError, Payload};
use drive_model::Random;
use drive_model::{BLOCK_BYTES, Request, RequestKind, Time};
use runtime::Runtime;
use runtime::sync::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A request under way.
#[derive(Debug)]
pub(super) struct Job {
    pub token: u64,
    pub request: Request,
    /// Whether a write completes only when it is on the medium.
    pub through: bool,
    pub payload: Payload,
}

/// A finished request.
#[derive(Debug)]
pub struct Done {
    job: Job,
    submitted: Time,
    at: Time,
    /// Number of bytes, or the error.
    result: io::Result<usize>,
    /// Bytes of a read.
    bytes: Vec<u8>,
}

impl Done {
    /// Converts the result to a completion.
    pub(super) fn answer(self) -> crate::block_device::Done {
        let Job {
            token,
            request,
            payload,
            ..
        } = self.job;
        let result = match self.result {
            Ok(bytes) if bytes as u64 == request.bytes() => Ok(()),
            Ok(bytes) => Err(DeviceError::Short { done: bytes as u64 }),
            Err(error) => Err(error.into()),
        };
        crate::block_device::Done {
            token,
            request,
            length: payload.length(&request),
            submitted: self.submitted,
            at: self.at,
            bytes: if result.is_ok() {
                self.bytes
            } else {
                Vec::new()
            },
            result,
        }
    }
}

/// Alignment of buffers for direct I/O: a page.
const ALIGNMENT: usize = 4096;

/// The pool of threads. They end when this is dropped, except those whose call never returns.
pub(super) struct Workers {
    clock: Arc<dyn Clock>,
    medium: Arc<dyn Medium>,
    jobs: Sender<Job>,
    queue: Arc<Mutex<Receiver<Job>>>,
    done: Sender<Done>,
    count: usize,
}

impl Workers {
    /// A pool without threads yet, and the channel of its results.
    pub fn new(clock: Arc<dyn Clock>, medium: Arc<dyn Medium>) -> (Self, Receiver<Done>) {
        let (jobs, queue) = channel();
        let (done, results) = channel();
        let workers = Self {
            clock,
            medium,
            jobs,
            queue: Arc::new(Mutex::new(queue)),
            done,
            count: 0,
        };
        (workers, results)
    }

    /// Hands a request to a thread; starts threads until there are `depth`.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn send(&mut self, job: Job, depth: usize) -> io::Result<()> {
        while self.count < depth {
            let seed = self.count as u64 + 1;
            let (clock, medium) = (self.clock.clone(), self.medium.clone());
            let (queue, done) = (self.queue.clone(), self.done.clone());
            let work = move || work(seed, &*clock, &*medium, &queue, &done);
            Runtime::system().spawn(&format!("block-device-{seed}"), work)?;
            self.count += 1;
        }
        // The pool holds the receiver too, so sending cannot fail.
        let _ = self.jobs.send(job);
        Ok(())
    }
}

fn work(
    seed: u64,
    clock: &dyn Clock,
    medium: &dyn Medium,
    queue: &Mutex<Receiver<Job>>,
    done: &Sender<Done>,
) {
    // Writes without data write what is in `noisy`, so no data of other requests goes there.
    let (mut noisy, mut other): (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    loop {
        let next = queue.lock().recv();
        let Ok(job) = next else { return };
        let length = job.request.bytes() as usize;
        let is_noise = job.request.operation.is_write() && job.payload == Payload::None;
        let bytes = if is_noise { &mut noisy } else { &mut other };
        if bytes.len() < length + ALIGNMENT {
            *bytes = noise(seed, length + ALIGNMENT);
        }
        let from = bytes.as_ptr().align_offset(ALIGNMENT);
        let buffer = &mut bytes[from..from + length];
        if let Payload::Write { bytes, .. } = &job.payload {
            buffer.copy_from_slice(bytes);
        }
        let submitted = clock.now();
        let result = carry_out(medium, &job, buffer);
        let at = clock.now();
        let mut read = Vec::new();
        if let Payload::Read { skip, length } = job.payload {
            let from = skip as usize;
            read = buffer[from..from + length as usize].to_vec();
        }
        let answer = Done {
            job,
            submitted,
            at,
            result,
            bytes: read,
        };
        if done.send(answer).is_err() {
            return;
        }
    }
}

fn carry_out(medium: &dyn Medium, job: &Job, buffer: &mut [u8]) -> io::Result<usize> {
    let at = job.request.lba.0 * BLOCK_BYTES;
    match job.request.operation {
        RequestKind::Read => medium.read(at, buffer),
        RequestKind::Write => medium.write(at, buffer, job.through),
        RequestKind::WriteThrough => medium.write(at, buffer, true),
        RequestKind::Flush => medium.flush().map(|()| 0),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Bytes that no drive can compress.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let words = (0..length.div_ceil(8)).flat_map(|_| random.below(u64::MAX).to_le_bytes());
    words.take(length).collect()
}
