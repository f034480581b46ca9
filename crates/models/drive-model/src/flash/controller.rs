//! The controller between host and flash: command overhead, data transfers, and the parameters of the write buffer.

use super::buffer::WriteBuffer;
use super::server::{Class, Server};
use crate::request::{BLOCK_BYTES, Request, RequestKind};
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Parameters of the controller, as in a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerShape {
    /// Microseconds of a read in addition to flash and transfer.
    pub read_us: f64,
    /// Microseconds of a write in addition to its transfer.
    pub write_us: f64,
    /// Microseconds of a zone append in addition to its transfer.
    pub append_us: f64,
    /// Microseconds of any other command in addition to its own work.
    pub other_us: f64,
    /// Of the microseconds of a zone append, those that the next command waits for.
    pub append_alone_us: f64,
    /// Of the microseconds of any other command, those that the next command waits for.
    pub alone_us: f64,
    /// Bytes a second into the write buffer.
    pub write_bytes_per_second: u64,
    /// Bytes a second to the host.
    pub read_bytes_per_second: u64,
    /// Bytes of the write buffer, which survives a power cut.
    pub buffer_bytes: u64,
}

/// The controller: processor time and both directions of the link.
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

    /// Time at which a request that arrives at `now` has been decoded.
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

    /// Time at which a write's data is in the controller.
    pub(super) fn bring(&mut self, now: Time, request: &Request) -> Time {
        let takes = Span::transfer(request.bytes(), self.shape.write_bytes_per_second);
        self.inwards.serve(Class::Normal, now, takes, Span::ZERO)
    }

    /// Time at which a read's data is with the host.
    pub(super) fn answer(&mut self, now: Time, request: &Request) -> Time {
        let takes = Span::transfer(request.bytes(), self.shape.read_bytes_per_second);
        self.outwards.serve(Class::Normal, now, takes, Span::ZERO)
    }
}
