//! A drive of which a part cannot be read.

#![allow(unreachable_pub)]

use device::ZonedDevice;
use device::changed::Change;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use zone::{ByteOffset, ZoneCommand, ZoneError, ZoneResult};

/// Offsets of a drive that cannot be read.
pub struct Unreadable(pub Range<u64>);

impl<D: ZonedDevice> Change<D> for Unreadable {
    fn read(&self, drive: &D, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        if at.0 < self.0.end && self.0.start < at.0 + buffer.len() as u64 {
            return Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: Arc::new(io::Error::other("unreadable")),
            });
        }
        drive.read(at, buffer)
    }
}
