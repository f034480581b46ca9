//! The trait of block devices, and what goes in and out.

use drive_model::{BLOCK_BYTES, Failure, Lba, Request, Span, Time};
use std::io;
use std::ops::Range;
use thiserror::Error;

/// The bytes of a request. They begin `skip` bytes into its first block and end in its last; a device of the
/// host takes writes of whole blocks only.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Payload {
    /// None: a write writes what nobody asks for again, and nobody looks at what a read brings.
    #[default]
    None,
    /// They are written.
    Write {
        /// Bytes in front of them in the first block.
        skip: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// They are read.
    Read {
        /// Bytes in front of them in the first block.
        skip: u32,
        /// How many.
        length: u32,
    },
}

impl Payload {
    /// All bytes that a request reads.
    pub const fn read(request: &Request) -> Self {
        let length = request.bytes() as u32;
        Self::Read { skip: 0, length }
    }

    /// How many bytes a request asks for.
    pub const fn length(&self, request: &Request) -> u64 {
        match self {
            Self::None => request.bytes(),
            Self::Write { bytes, .. } => bytes.len() as u64,
            Self::Read { length, .. } => *length as u64,
        }
    }

    /// The bytes of whole blocks that are written.
    pub const fn write(bytes: Vec<u8>) -> Self {
        Self::Write { skip: 0, bytes }
    }
}

/// Why a request was not done.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The drive says no.
    #[error(transparent)]
    Drive(#[from] Failure),
    /// The host says no.
    #[error(transparent)]
    Host(#[from] io::Error),
    /// The device was not asked.
    #[error("{0}")]
    NotAsked(io::ErrorKind),
    /// Only a part was done.
    #[error("{done} bytes were done")]
    Short {
        /// How many bytes.
        done: u64,
    },
}

/// A request that was answered.
#[derive(Debug)]
pub struct Done {
    /// What the caller calls it.
    pub token: u64,
    /// What was asked.
    pub request: Request,
    /// How many bytes it asks for.
    pub length: u64,
    /// When it came.
    pub submitted: Time,
    /// When it was answered.
    pub at: Time,
    /// Whether it was done.
    pub result: Result<(), DeviceError>,
    /// What a read with a [`Payload`] brought; empty if it was not done.
    pub bytes: Vec<u8>,
}

impl Done {
    /// How long it took.
    pub const fn latency(&self) -> Span {
        self.at.since(self.submitted)
    }
}

/// A device of blocks of [`BLOCK_BYTES`], with a clock of its own. Many requests may be under way.
pub trait BlockDevice {
    /// Blocks.
    fn blocks(&self) -> u64;

    /// Its clock, which never goes back.
    fn now(&self) -> Time;

    /// Sends a request, which the caller calls `token`. Among requests under way that touch the same block,
    /// which comes first is up to the device.
    fn submit(&mut self, token: u64, request: Request, payload: Payload);

    /// Waits for a request to be answered, for `patience` at most if there is one. Nothing if none was by then, or
    /// if none is under way.
    fn complete(&mut self, patience: Option<Span>) -> Option<Done>;

    /// Asks for nothing for a while.
    fn idle(&mut self, span: Span);

    /// The blocks that writing these may damage (Caveat-Scriptor), which lie behind them and on the device.
    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let end = lba.0 + blocks;
        end..end
    }

    /// The first of these blocks that cannot be read because a write beside it has damaged it, or because
    /// it was never written where that is the same. The device is not asked: this is its bitmap.
    fn first_damaged(&self, _lba: Lba, _blocks: u64) -> Option<Lba> {
        None
    }
}

/// Reads blocks and waits for them; nothing else may be under way.
///
/// # Errors
/// They cannot be read.
pub fn read(device: &mut dyn BlockDevice, lba: Lba, blocks: u32) -> Result<Vec<u8>, DeviceError> {
    let request = Request::read(lba, blocks);
    alone(device, request, Payload::read(&request))
}

/// Writes whole blocks and waits for that; nothing else may be under way.
///
/// # Errors
/// They are not written.
pub fn write(device: &mut dyn BlockDevice, lba: Lba, bytes: Vec<u8>) -> Result<(), DeviceError> {
    let blocks = (bytes.len() as u64 / BLOCK_BYTES) as u32;
    alone(device, Request::write(lba, blocks), Payload::write(bytes)).map(drop)
}

fn alone(
    device: &mut dyn BlockDevice,
    request: Request,
    payload: Payload,
) -> Result<Vec<u8>, DeviceError> {
    device.submit(0, request, payload);
    let gone = || io::Error::from(io::ErrorKind::NotConnected);
    let done = device.complete(None).ok_or_else(gone)?;
    done.result.map(|()| done.bytes)
}
