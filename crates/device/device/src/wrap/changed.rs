//! A drive with a few commands replaced, for tests that need nothing else of it changed.

use crate::file::HostMemory;
use crate::{Keeps, ZonedDevice};
use zone::{ByteOffset, Geometry, ZoneDescriptor, ZoneId, ZoneResult};

/// The replaced commands of a drive. Commands without an implementation are passed on; several reads are
/// executed one after the other.
pub trait Change<D: ZonedDevice>: Send + Sync {
    /// Replaces a read.
    fn read(&self, drive: &D, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        drive.read(at, buffer)
    }
    /// Replaces a write.
    fn write(&self, drive: &D, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        drive.write(at, data)
    }
    /// Replaces an append.
    fn append(&self, drive: &D, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        drive.append(zone, data)
    }
    /// Replaces a finish.
    fn finish(&self, drive: &D, zone: ZoneId) -> ZoneResult<()> {
        drive.finish(zone)
    }
    /// Replaces a flush.
    fn flush(&self, drive: &D) -> ZoneResult<()> {
        drive.flush()
    }
    /// Replaces the guarantee for unflushed writes.
    fn keeps(&self, drive: &D) -> Keeps {
        drive.keeps()
    }
    /// Replaces the host's free space.
    fn host_free_bytes(&self, drive: &D) -> Option<u64> {
        drive.host_free_bytes()
    }
}

/// A drive with replaced commands.
pub struct Changed<D, C> {
    /// The drive below.
    pub drive: D,
    /// The replaced commands.
    pub change: C,
}

impl<D: ZonedDevice, C: Change<D>> ZonedDevice for Changed<D, C> {
    fn geometry(&self) -> &Geometry {
        self.drive.geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        self.drive.report(first, count)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.change.read(&self.drive, at, buffer)
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.change.write(&self.drive, at, data)
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.change.append(&self.drive, zone, data)
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.drive.open(zone)
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.drive.close(zone)
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.change.finish(&self.drive, zone)
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.drive.reset(zone)
    }
    fn flush(&self) -> ZoneResult<()> {
        self.change.flush(&self.drive)
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.change.host_free_bytes(&self.drive)
    }
    fn keeps(&self) -> Keeps {
        self.change.keeps(&self.drive)
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        self.drive.host_memory()
    }
}
