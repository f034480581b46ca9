//! What stands between host and flash: commands, the way of the data, the write buffer.

use super::buffer::WriteBuffer;
use super::server::{Class, Server};
use crate::request::{BLOCK_BYTES, Request, RequestKind};
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// How long commands take, as a profile gives it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerShape {
    /// Microseconds of a read besides flash and data.
    pub read_us: f64,
    /// Microseconds of a write besides its data.
    pub write_us: f64,
    /// Microseconds of a zone append besides its data.
    pub append_us: f64,
    /// Microseconds of any other command, besides what it does.
    pub other_us: f64,
    /// Of those, how many the next command waits for, if this one is a zone append.
    pub append_alone_us: f64,
    /// The same of any other command.
    pub alone_us: f64,
    /// Bytes a second that are taken into the write buffer.
    pub write_bytes_per_second: u64,
    /// Bytes a second to the host.
    pub read_bytes_per_second: u64,
    /// Bytes of the write buffer, which survives a power cut.
    pub buffer_bytes: u64,
}

/// See the head of this file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Controller {
    shape: ControllerShape,
    commands: Server,
    inwards: Server,
    outwards: Server,
    pub(super) buffer: WriteBuffer,
}

impl Controller {
    pub(super) fn new(shape: ControllerShape) -> Self {
        let buffer = WriteBuffer::new(shape.buffer_bytes / BLOCK_BYTES);
        Self {
            shape,
            commands: Server::default(),
            inwards: Server::default(),
            outwards: Server::default(),
            buffer,
        }
    }

    /// When a request that comes at `now` is understood.
    pub(super) fn command(&mut self, now: Time, operation: RequestKind) -> Time {
        let shape = &self.shape;
        let (all, alone) = match operation {
            RequestKind::Read => (shape.read_us, shape.alone_us),
            RequestKind::Write | RequestKind::WriteThrough => (shape.write_us, shape.alone_us),
            RequestKind::Append => (shape.append_us, shape.append_alone_us),
            _ => (shape.other_us, shape.alone_us),
        };
        let alone = Span::from_micros(alone);
        let end = self.commands.serve(Class::Normal, now, alone, Span::ZERO);
        end + (Span::from_micros(all) - alone)
    }

    /// When a write's data is in the controller.
    pub(super) fn bring(&mut self, now: Time, request: &Request) -> Time {
        let takes = Span::transfer(request.bytes(), self.shape.write_bytes_per_second);
        self.inwards.serve(Class::Normal, now, takes, Span::ZERO)
    }

    /// When a read's data is with the host.
    pub(super) fn answer(&mut self, now: Time, request: &Request) -> Time {
        let takes = Span::transfer(request.bytes(), self.shape.read_bytes_per_second);
        self.outwards.serve(Class::Normal, now, takes, Span::ZERO)
    }
}
