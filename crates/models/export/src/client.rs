//! One client of an exported model. Its data goes to the file as it comes. What it reads comes from there
//! before the model is asked, so that it is there when the answer is due: no other request in flight at
//! that time has to be seen by it.

use crate::data::Data;
use crate::protocol::{self, Command, Errno};
use crate::server::{Answer, Session};
use drive_model::workload::Counters;
use drive_model::{BLOCK_BYTES, Due, Failure, LaneId, Lba, Paced, Request, RequestKind};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are held for answers that are not due yet, of all clients; what is beyond is read when it is
/// due, and late by that.
const MOST_HELD: usize = 64 << 20;

/// What all clients share.
pub(crate) struct Shared {
    /// The model.
    pub drive: Paced<Pending>,
    /// Its bytes.
    pub data: Data,
    /// What was answered.
    pub counters: Counters,
    /// Bytes that were read for answers that are not due yet.
    pub held: AtomicUsize,
}

/// A request that the model has.
pub(crate) struct Pending {
    request: protocol::Request,
    /// What became of its data, and what it read if that was read already.
    data: Result<Option<Vec<u8>>, Errno>,
}

/// See the head of this file.
pub(crate) struct Client<'a> {
    shared: &'a Shared,
    lane: LaneId,
}

impl<'a> Client<'a> {
    /// One more.
    pub fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            lane: shared.drive.lane(),
        }
    }

    /// What a request reads, if there is room to hold it until its answer is due.
    fn read(&self, request: &protocol::Request) -> Result<Option<Vec<u8>>, Errno> {
        let length = request.length as usize;
        let held = &self.shared.held;
        if held.fetch_add(length, Ordering::Relaxed) + length > MOST_HELD {
            held.fetch_sub(length, Ordering::Relaxed);
            return Ok(None);
        }
        let mut data = vec![0; length];
        let read = self.shared.data.read(request.offset, &mut data);
        if read.is_err() {
            held.fetch_sub(length, Ordering::Relaxed);
        }
        read.map(|()| Some(data))
    }

    /// What is left to do when the drive has answered.
    fn finish(&self, request: &protocol::Request, data: &mut Vec<u8>) -> Result<(), Errno> {
        if request.command != Command::Read {
            data.clear();
        }
        match request.command {
            Command::Read => {
                // What was in it is written over.
                data.resize(request.length as usize, 0);
                self.shared.data.read(request.offset, data)
            }
            Command::Flush => self.shared.data.sync(),
            Command::Write | Command::Trim if request.is_fua() => self.shared.data.sync(),
            _ => Ok(()),
        }
    }
}

impl Session for Client<'_> {
    fn take(&self, request: &protocol::Request, payload: &[u8]) {
        let came = self.shared.drive.now();
        let (offset, length) = (request.offset, u64::from(request.length));
        let data = match request.command {
            Command::Read => self.read(request),
            Command::Write => self.shared.data.write(offset, payload).map(|()| None),
            Command::Trim => self.shared.data.discard(offset, length).map(|()| None),
            _ => Ok(None),
        };
        let pending = Pending {
            request: *request,
            data,
        };
        self.shared
            .drive
            .submit(self.lane, pending, of_blocks(request), came);
    }

    fn refuse(&self, cookie: u64, errno: Errno) {
        let request = protocol::Request {
            command: Command::Disconnect,
            flags: 0,
            cookie,
            offset: 0,
            length: 0,
        };
        let pending = Pending {
            request,
            data: Err(errno),
        };
        self.shared.drive.answer(self.lane, pending);
    }

    fn answer(&self, data: &mut Vec<u8>) -> Option<Answer> {
        let Due { with, completion } = self.shared.drive.wait(self.lane)?;
        let request = with.request;
        if let Ok(Some(read)) = &with.data {
            self.shared.held.fetch_sub(read.len(), Ordering::Relaxed);
        }
        let drive = completion.map_or(Ok(()), |completion| completion.result.map_err(errno));
        let result = match (with.data, drive) {
            (Ok(Some(read)), Ok(())) => {
                *data = read;
                Ok(())
            }
            (Ok(None), Ok(())) => self.finish(&request, data),
            (Err(errno), _) | (_, Err(errno)) => Err(errno),
        };
        if let Some(completion) = completion {
            let late = self.shared.drive.late(completion.at);
            let latency = completion.latency();
            self.shared.counters.count(
                of_blocks(&request).operation,
                request.length,
                result.is_ok(),
                latency,
                Some(late),
            );
        }
        Some(Answer {
            cookie: request.cookie,
            result,
        })
    }

    fn end(&self) {
        self.shared.drive.close(self.lane);
    }
}

const fn errno(failure: Failure) -> Errno {
    match failure {
        Failure::OutOfRange => Errno::Invalid,
        Failure::Unsupported => Errno::Unsupported,
        Failure::Unreadable { .. } | Failure::PowerLost | Failure::Refused(_) => Errno::Io,
    }
}

/// The model's request: all blocks of which bytes are asked for, but for a trim all that it covers.
fn of_blocks(request: &protocol::Request) -> Request {
    let end = request.offset + u64::from(request.length);
    let (first, behind) = match request.command {
        Command::Trim => (request.offset.div_ceil(BLOCK_BYTES), end / BLOCK_BYTES),
        _ => (request.offset / BLOCK_BYTES, end.div_ceil(BLOCK_BYTES)),
    };
    let blocks = behind.saturating_sub(first) as u32;
    let operation = match request.command {
        Command::Read => RequestKind::Read,
        Command::Write if request.is_fua() => RequestKind::WriteThrough,
        Command::Write => RequestKind::Write,
        Command::Trim => RequestKind::Trim,
        _ => return Request::flush(),
    };
    Request {
        operation,
        lba: Lba(first),
        blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
