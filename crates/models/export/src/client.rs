//! One NBD client of an exported model: translates its requests to those of block devices, and their completions to
//! replies.

use crate::protocol::{self, Command, Errno};
use crate::server::{Answer, Session};
use block_device::{BlockDevice, DeviceError, Done, Lane, PacedDevice, Payload, SparseFile};
use drive_model::workload::Counters;
use drive_model::{BLOCK_BYTES, Failure, Lba, Request, RequestKind};
use std::io::ErrorKind;

/// State that all clients share.
pub(crate) struct Shared {
    /// The model with its data.
    pub drive: PacedDevice<SparseFile>,
    /// Counters of completed requests.
    pub counters: Counters,
}

/// One client of the model. The token of a request is its cookie.
pub(crate) struct Client<'a> {
    shared: &'a Shared,
    lane: Lane<'a, SparseFile>,
}

impl<'a> Client<'a> {
    /// Opens a lane for a client.
    pub fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            lane: shared.drive.lane(),
        }
    }
}

impl Session for Client<'_> {
    fn take(&self, request: &protocol::Request, payload: &[u8]) {
        let skip = (request.offset % BLOCK_BYTES) as u32;
        let length = request.length;
        let payload = match request.command {
            Command::Read => Payload::Read { skip, length },
            Command::Write => Payload::Write {
                skip,
                bytes: payload.to_vec(),
            },
            _ => Payload::None,
        };
        (&self.lane).submit(request.cookie, of_blocks(request), payload);
    }

    fn refuse(&self, cookie: u64, errno: Errno) {
        let why = match errno {
            Errno::Unsupported => ErrorKind::Unsupported,
            Errno::NoSpace => ErrorKind::StorageFull,
            _ => ErrorKind::InvalidInput,
        };
        self.lane.refuse(cookie, why);
    }

    fn answer(&self, data: &mut Vec<u8>) -> Option<Answer> {
        let done = (&self.lane).complete(None)?;
        if !matches!(done.result, Err(DeviceError::NotAsked(_))) {
            self.count(&done);
        }
        let result = done.result.map_err(|error| errno(&error));
        *data = done.bytes;
        Some(Answer {
            cookie: done.token,
            result,
        })
    }

    fn end(&self) {
        self.lane.close();
    }
}

impl Client<'_> {
    fn count(&self, done: &Done) {
        self.shared.counters.count(
            done.request.operation,
            done.length as u32,
            done.result.is_ok(),
            done.latency(),
            Some(self.shared.drive.late(done.at)),
        );
    }
}

fn errno(error: &DeviceError) -> Errno {
    let host = |kind| match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Errno::NoSpace
        }
        _ => Errno::Io,
    };
    match error {
        DeviceError::Drive(Failure::OutOfRange) => Errno::Invalid,
        DeviceError::Drive(Failure::Unsupported) => Errno::Unsupported,
        DeviceError::NotAsked(ErrorKind::Unsupported) => Errno::Unsupported,
        DeviceError::NotAsked(ErrorKind::InvalidInput) => Errno::Invalid,
        DeviceError::NotAsked(kind) => host(*kind),
        DeviceError::Host(error) => {
            tracing::warn!(%error, "the data of the drive");
            host(error.kind())
        }
        DeviceError::Drive(_) | DeviceError::Short { .. } => Errno::Io,
    }
}

/// The model's request: all blocks that the bytes touch; for a trim, only blocks that it covers wholly.
fn of_blocks(request: &protocol::Request) -> Request {
    let operation = match request.command {
        Command::Read => RequestKind::Read,
        Command::Write if request.is_fua() => RequestKind::WriteThrough,
        Command::Write => RequestKind::Write,
        Command::Trim => RequestKind::Trim,
        // Its offset and length have no meaning and are not checked.
        _ => return Request::flush(),
    };
    let end = request.offset + u64::from(request.length);
    let (first, behind) = match request.command {
        Command::Trim => (request.offset.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES),
        _ => (request.offset / BLOCK_BYTES, end.div_ceil(BLOCK_BYTES)),
    };
    let blocks = behind.saturating_sub(first) as u32;
    // A trim of no whole block is of the block that it begins in, which exists; the one after may not.
    let first = if blocks == 0 {
        request.offset / BLOCK_BYTES
    } else {
        first
    };
    Request {
        operation,
        lba: Lba(first),
        blocks,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use drive_model::{AnyProfile, Time};

    fn request(command: Command, flags: u16, offset: u64, length: u32) -> Request {
        of_blocks(&protocol::Request {
            command,
            flags,
            cookie: 0,
            offset,
            length,
        })
    }

    #[test]
    fn requests_are_of_the_blocks_that_hold_their_bytes() {
        let read = |offset, length| request(Command::Read, 0, offset, length);
        assert_eq!(read(0, 4096), Request::read(Lba(0), 1));
        assert_eq!(read(4095, 2), Request::read(Lba(0), 2));
        assert_eq!(read(8192, 1), Request::read(Lba(2), 1));
        assert_eq!(
            request(Command::Write, 0, 512, 512),
            Request::write(Lba(0), 1)
        );
        let through = request(Command::Write, 1, 4096, 8192);
        assert_eq!(
            (through.operation, through.lba, through.blocks),
            (RequestKind::WriteThrough, Lba(1), 2)
        );
        // Nothing that the host may still want is trimmed.
        let trim = |offset, length| request(Command::Trim, 0, offset, length);
        assert_eq!(trim(1, 12_287), Request::trim(Lba(1), 2));
        assert_eq!(trim(1, 100).blocks, 0);
        assert_eq!(trim(0, u32::MAX), Request::trim(Lba(0), (1 << 20) - 1));
        assert_eq!(request(Command::Flush, 0, 0, 0), Request::flush());
        // A flush may come with any offset and length.
        assert_eq!(request(Command::Flush, 0, u64::MAX, 1), Request::flush());
    }

    #[test]
    fn a_trim_within_the_last_block_is_no_error() {
        let mut model = AnyProfile::named("ssd-15gb").unwrap().model(1).unwrap();
        let bytes = model.blocks() * BLOCK_BYTES;
        for (offset, length) in [
            (bytes - 100, 100),
            (bytes - 100, 50),
            (bytes - 4_097, 4_097),
        ] {
            let trim = request(Command::Trim, 0, offset, length);
            let done = model.submit(trim, Time::START);
            assert_eq!(done.result, Ok(()), "{trim:?}");
        }
    }
}
