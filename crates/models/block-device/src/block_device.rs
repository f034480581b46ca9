//! The trait of block devices, with its requests and completions.

use drive_model::{BLOCK_BYTES, Failure, Lba, Request, Span, Time};
use std::io;
use std::ops::Range;
use thiserror::Error;

/// The bytes of a request. They begin `skip` bytes into its first block and end in its last; a device of the
/// host takes writes of whole blocks only.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Payload {
    /// No data: a write writes unspecified bytes, and the bytes of a read are dropped.
    #[default]
    None,
    /// Data to be written.
    Write {
        /// Bytes of the first block before the data.
        skip: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Data to be read.
    Read {
        /// Bytes of the first block before the data.
        skip: u32,
        /// Number of bytes.
        length: u32,
    },
}

impl Payload {
    /// Reads all bytes of a request.
    pub const fn read(request: &Request) -> Self {
        let length = request.bytes() as u32;
        Self::Read { skip: 0, length }
    }

    /// Number of bytes that a request transfers.
    pub const fn length(&self, request: &Request) -> u64 {
        match self {
            Self::None => request.bytes(),
            Self::Write { bytes, .. } => bytes.len() as u64,
            Self::Read { length, .. } => *length as u64,
        }
    }

    /// Writes whole blocks.
    pub const fn write(bytes: Vec<u8>) -> Self {
        Self::Write { skip: 0, bytes }
    }
}

/// Why a request failed.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// The drive refused the request.
    #[error(transparent)]
    Drive(#[from] Failure),
    /// The host's system reported an error.
    #[error(transparent)]
    Host(#[from] io::Error),
    /// The request was refused without asking the device.
    #[error("{0}")]
    NotAsked(io::ErrorKind),
    /// Only a part of the request was done.
    #[error("{done} bytes were done")]
    Short {
        /// Number of bytes that were done.
        done: u64,
    },
}

/// A completion.
#[derive(Debug)]
pub struct Done {
    /// The caller's name of the request.
    pub token: u64,
    /// The request.
    pub request: Request,
    /// Number of bytes that it asks for.
    pub length: u64,
    /// Time of arrival.
    pub submitted: Time,
    /// Time of completion.
    pub at: Time,
    /// Success, or why the request failed.
    pub result: Result<(), DeviceError>,
    /// The bytes of a read with a [`Payload`]; empty if it failed.
    pub bytes: Vec<u8>,
}

impl Done {
    /// Time from arrival to completion.
    pub const fn latency(&self) -> Span {
        self.at.since(self.submitted)
    }
}

/// A device of blocks of [`BLOCK_BYTES`], with a clock of its own. Many requests may be under way.
pub trait BlockDevice {
    /// Number of blocks.
    fn blocks(&self) -> u64;

    /// The device's clock, which never goes back.
    fn now(&self) -> Time;

    /// Submits a request, which the caller names `token`. The order of concurrent requests for the same block is up
    /// to the device.
    fn submit(&mut self, token: u64, request: Request, payload: Payload);

    /// Waits for a completion, at most for `patience` if it is given. `None` if there is none by then, or if no
    /// request is under way.
    fn complete(&mut self, patience: Option<Span>) -> Option<Done>;

    /// Lets a span of time pass without requests.
    fn idle(&mut self, span: Span);

    /// The blocks that writing these may damage (Caveat-Scriptor): they lie after these, and on the device.
    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let end = lba.0 + blocks;
        end..end
    }

    /// The first of these blocks that cannot be read because a write to another block has damaged it, or, on drives
    /// that do not distinguish this, because it was never written. The answer comes from the device's bitmap, without
    /// a request.
    fn first_damaged(&self, _lba: Lba, _blocks: u64) -> Option<Lba> {
        None
    }
}

/// Reads blocks and waits for the completion; no other request may be under way.
///
/// # Errors
/// [`DeviceError`].
pub fn read(device: &mut dyn BlockDevice, lba: Lba, blocks: u32) -> Result<Vec<u8>, DeviceError> {
    let request = Request::read(lba, blocks);
    alone(device, request, Payload::read(&request))
}

/// Writes whole blocks and waits for the completion; no other request may be under way.
///
/// # Errors
/// [`DeviceError`].
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
