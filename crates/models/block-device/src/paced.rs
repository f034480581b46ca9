//! A model with data at the pace of the clock on the wall, for many that ask at once, each in a [`Lane`].
//!
//! Data goes to its place as it comes. What a request reads comes from there before the model is asked, so that
//! it is there when the answer is due: no other request in flight at that time has to be seen by it.

use crate::block_device::{BlockDevice, DeviceError, Done, Payload};
use crate::data::{Data, carry_out, fetch};
use drive_model::{LaneId, Lba, Model, Paced, Request, RequestKind, Span, Time};
use runtime::Runtime;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that are held for answers that are not due yet, in all lanes; what is beyond is read when it is due,
/// and late by that.
const MOST_HELD: usize = 64 << 20;

/// See the head of this file.
pub struct PacedDevice<D> {
    drive: Paced<Pending>,
    blocks: u64,
    data: D,
    /// Bytes that were read for answers that are not due yet.
    held: AtomicUsize,
}

/// A request that the model has.
struct Pending {
    token: u64,
    request: Request,
    length: u64,
    payload: Payload,
    /// What became of its data, and what it read if that was read already.
    data: Result<Option<Vec<u8>>, DeviceError>,
}

impl<D: Data> PacedDevice<D> {
    /// Goes on with a model that has come to `start`, so many times as fast as the clock of `runtime`.
    pub fn new(
        model: Box<dyn Model>,
        start: Time,
        speed_up: f64,
        data: D,
        runtime: Runtime,
    ) -> Self {
        Self {
            blocks: model.blocks(),
            drive: Paced::new(model, start, speed_up, runtime),
            data,
            held: AtomicUsize::new(0),
        }
    }

    /// Another one who asks.
    pub fn lane(&self) -> Lane<'_, D> {
        Lane {
            device: self,
            id: self.drive.lane(),
        }
    }

    /// How long after `due` it is, on the wall.
    pub fn late(&self, due: Time) -> Duration {
        self.drive.late(due)
    }

    /// Nobody waits any more.
    pub fn stop(&self) {
        self.drive.stop();
    }

    /// The model at rest, after what it has been asked for, and when that is.
    pub fn finish(self) -> (Box<dyn Model>, Time) {
        self.drive.finish()
    }

    /// Does to the data what a request says: what it reads, if there is room to hold it.
    fn take(&self, request: &Request, payload: &Payload) -> Result<Option<Vec<u8>>, DeviceError> {
        let Payload::Read { length, .. } = payload else {
            carry_out(&self.data, request, payload)?;
            return Ok(Some(Vec::new()));
        };
        let length = *length as usize;
        if self.held.fetch_add(length, Ordering::Relaxed) + length > MOST_HELD {
            self.held.fetch_sub(length, Ordering::Relaxed);
            return Ok(None);
        }
        let read = fetch(&self.data, request, payload);
        if read.is_err() {
            self.held.fetch_sub(length, Ordering::Relaxed);
        }
        Ok(Some(read?))
    }
}

/// One who asks, with requests of its own under way. One thread may send them and another wait for them.
pub struct Lane<'a, D> {
    device: &'a PacedDevice<D>,
    id: LaneId,
}

impl<D: Data> Lane<'_, D> {
    /// Answers a request without asking the drive.
    pub fn refuse(&self, token: u64, why: ErrorKind) {
        let pending = Pending {
            token,
            request: Request::flush(),
            length: 0,
            payload: Payload::None,
            data: Err(DeviceError::NotAsked(why)),
        };
        self.device.drive.answer(self.id, pending);
    }

    /// Nothing more comes; who waits gets the answers that are due, and then nothing.
    pub fn close(&self) {
        self.device.drive.close(self.id);
    }
}

impl<D: Data> BlockDevice for &Lane<'_, D> {
    fn blocks(&self) -> u64 {
        self.device.blocks
    }

    fn now(&self) -> Time {
        self.device.drive.now()
    }

    /// May wait until some of those before it are answered.
    fn submit(&mut self, token: u64, request: Request, payload: Payload) {
        let came = self.now();
        let data = if request.end().0 > self.device.blocks {
            Ok(Some(Vec::new()))
        } else {
            self.device.take(&request, &payload)
        };
        let pending = Pending {
            token,
            request,
            length: payload.length(&request),
            // What was written is not held until the answer is due.
            payload: match payload {
                Payload::Write { .. } => Payload::None,
                other => other,
            },
            data,
        };
        let Lane { device, id } = self;
        device.drive.submit(*id, pending, request, came);
    }

    /// Nothing under way is no reason not to wait: another thread may send something.
    fn complete(&mut self, patience: Option<Span>) -> Option<Done> {
        let device = self.device;
        let until = patience.map(|patience| self.now() + patience);
        let due = device.drive.wait_until(self.id, until)?;
        let Pending {
            token,
            request,
            length,
            payload,
            data,
        } = due.with;
        if let Ok(Some(bytes)) = &data {
            device.held.fetch_sub(bytes.len(), Ordering::Relaxed);
        }
        let (submitted, at, drive) = match due.completion {
            Some(completion) => (completion.submitted, completion.at, completion.result),
            None => (self.now(), self.now(), Ok(())),
        };
        let read = drive.map_err(DeviceError::from).and(data);
        let read = read.and_then(|read| match read {
            Some(bytes) => Ok(bytes),
            None => Ok(fetch(&device.data, &request, &payload)?),
        });
        let durable = read.and_then(|bytes| {
            if is_durable(request.operation) {
                device.data.sync()?;
            }
            Ok(bytes)
        });
        let (result, bytes) = match durable {
            Ok(bytes) => (Ok(()), bytes),
            Err(error) => (Err(error), Vec::new()),
        };
        Some(Done {
            token,
            request,
            length,
            submitted,
            at,
            result,
            bytes,
        })
    }

    fn idle(&mut self, span: Span) {
        self.device.drive.sleep(span);
    }

    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let look = |model: &dyn Model| model.endangered(lba, blocks);
        self.device.drive.with_model(look)
    }

    fn first_damaged(&self, lba: Lba, blocks: u64) -> Option<Lba> {
        let look = |model: &dyn Model| model.first_damaged(lba, blocks);
        self.device.drive.with_model(look)
    }
}

/// Whether what was written has to be durable when a request is answered.
const fn is_durable(operation: RequestKind) -> bool {
    matches!(
        operation,
        RequestKind::Flush | RequestKind::WriteThrough | RequestKind::Trim
    )
}
