//! A model with data at wall-clock pace, for many concurrent clients, each in a [`Lane`].
//!
//! Writes are applied to the data on arrival. A read is done on the data before the model is asked, so that its bytes
//! are ready when the completion is due; it need not see other requests in flight at that time.

use crate::block_device::{BlockDevice, DeviceError, Done, Payload};
use crate::data::{Data, carry_out, fetch};
use appender::Flusher;
use drive_model::{LaneId, Lba, Model, Paced, Request, RequestKind, Span, Time};
use runtime::Runtime;
use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zone::{ByteOffset, ZoneCommand, ZoneError};

/// Limit on bytes held for completions that are not due yet, in all lanes. Beyond it, data is read when it is due,
/// which makes the completion late.
const MOST_HELD: usize = 64 << 20;

/// A model with data at wall-clock pace.
pub struct PacedDevice<D> {
    drive: Paced<Pending>,
    blocks: u64,
    data: D,
    /// Syncs of the data, which all lanes share: the host reports once that it has lost data, to one of them.
    syncs: Flusher,
    /// Number of bytes held for completions that are not due yet.
    held: AtomicUsize,
}

/// A request that the model has.
struct Pending {
    token: u64,
    request: Request,
    length: u64,
    payload: Payload,
    /// Result of the data access: the bytes of a read, if they are read already.
    data: Result<Option<Vec<u8>>, DeviceError>,
}

impl<D: Data> PacedDevice<D> {
    /// Continues with a model whose time is `start`, `speed_up` times as fast as the clock of `runtime`.
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
            syncs: Flusher::default(),
            held: AtomicUsize::new(0),
        }
    }

    /// Opens a lane for another client.
    pub fn lane(&self) -> Lane<'_, D> {
        Lane {
            device: self,
            id: self.drive.lane(),
        }
    }

    /// Wall-clock time since `due`.
    pub fn late(&self, due: Time) -> Duration {
        self.drive.late(due)
    }

    /// Stops the device: threads that wait return.
    pub fn stop(&self) {
        self.drive.stop();
    }

    /// Stops at rest: serves what was submitted; returns the model, and the time at which it is idle.
    pub fn finish(self) -> (Box<dyn Model>, Time) {
        self.drive.finish()
    }

    /// Makes the data durable. After a sync has failed, every later one fails.
    fn sync(&self) -> Result<(), DeviceError> {
        let synced = self.syncs.flush(|| {
            self.data.sync().map_err(|error| ZoneError::Io {
                command: ZoneCommand::Flush,
                at: ByteOffset(0),
                source: Arc::new(error),
            })
        });
        let failed = |error| match error {
            ZoneError::Io { source, .. } => Error::new(source.kind(), source),
            other => Error::other(other),
        };
        Ok(synced.map_err(failed)?)
    }

    /// Applies a request to the data; returns the bytes of a read, if there is room to hold them.
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

/// A client of the device, with its own requests under way. One thread may submit them while another waits.
pub struct Lane<'a, D> {
    device: &'a PacedDevice<D>,
    id: LaneId,
}

impl<D: Data> Lane<'_, D> {
    /// Completes a request without asking the drive.
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

    /// Closes the lane: a waiting thread gets the outstanding completions, and then `None`.
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

    /// May wait until some of the lane's earlier requests are completed.
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
            // Data of a write is applied already, so it need not be held until the completion is due.
            payload: match payload {
                Payload::Write { .. } => Payload::None,
                other => other,
            },
            data,
        };
        let Lane { device, id } = self;
        device.drive.submit(*id, pending, request, came);
    }

    /// Waits even if no request is under way, because another thread may submit one.
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
                device.sync()?;
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

/// Whether the data of a write has to be durable at its completion.
const fn is_durable(operation: RequestKind) -> bool {
    matches!(
        operation,
        RequestKind::Flush | RequestKind::WriteThrough | RequestKind::Trim
    )
}
