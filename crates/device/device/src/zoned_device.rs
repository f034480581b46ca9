//! The one trait through which everything above speaks to a zoned drive.
//!
//! Calls block until the drive has answered; a volatile write cache means that an answered write
//! is durable only after [`ZonedDevice::flush`]. Every method may be called from many threads at
//! once; writes into one zone are put in order by the caller, appends by the drive.

use crate::Keeps;
use crate::file::HostMemory;
use zone::{ByteOffset, Geometry, ZoneDescriptor, ZoneId, ZoneResult};

/// A host-managed (or host-aware) zoned drive.
///
/// All offsets and lengths are multiples of [`Geometry::block_size`]. A sequential zone keeps,
/// after a power cut, a prefix of what was written to it; its write pointer tells how much.
pub trait ZonedDevice: Send + Sync {
    /// Shape and limits; they never change.
    fn geometry(&self) -> &Geometry;

    /// What the drive says of at most `count` zones from `first` on.
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>>;

    /// Fills `buffer` from `at`. Blocks at or above a write pointer read as zeros. Reads may not
    /// cross the end of a sequential zone's `zone_size`.
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()>;

    /// Does reads as [`Self::read`] does one, at once if the drive can. After an error, nothing is
    /// known of any of the buffers.
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        reads
            .iter_mut()
            .try_for_each(|(at, buffer)| self.read(*at, buffer))
    }

    /// Writes `data` at `at`, which in a sequential-write-required zone must be the write pointer.
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()>;

    /// Writes `data` at the write pointer of `zone` and answers where that was (ZNS zone append).
    /// Not for conventional zones; at most [`Geometry::max_append_bytes`].
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset>;

    /// Opens `zone` explicitly.
    fn open(&self, zone: ZoneId) -> ZoneResult<()>;

    /// Closes an open `zone`.
    fn close(&self, zone: ZoneId) -> ZoneResult<()>;

    /// Makes `zone` full without writing the rest.
    fn finish(&self, zone: ZoneId) -> ZoneResult<()>;

    /// Makes `zone` empty; what was in it is gone.
    fn reset(&self, zone: ZoneId) -> ZoneResult<()>;

    /// Makes everything that was answered before this call durable.
    fn flush(&self) -> ZoneResult<()>;

    /// Bytes that the host's file system still has for a drive that takes its space there as it is
    /// written; `None` where the drive has its space for itself.
    fn host_free_bytes(&self) -> Option<u64>;

    /// What is there of writes that were answered, and that no flush has covered, whatever happened before.
    fn keeps(&self) -> Keeps;

    /// Where bytes that are not on the drive yet outlive the process: beside a drive in a file.
    fn host_memory(&self) -> Option<&HostMemory>;

    /// What the drive says of one zone.
    fn report_zone(&self, zone: ZoneId) -> ZoneResult<ZoneDescriptor> {
        let mut one = self.report(zone, 1)?;
        one.pop().ok_or(zone::ZoneError::OutOfRange {
            command: zone::ZoneCommand::Report,
            at: self.geometry().start(zone),
            length: 0,
        })
    }
}

impl<D: ZonedDevice + ?Sized> ZonedDevice for std::sync::Arc<D> {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        (**self).report(first, count)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        (**self).read(at, buffer)
    }
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        (**self).read_many(reads)
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        (**self).write(at, data)
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        (**self).append(zone, data)
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        (**self).open(zone)
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        (**self).close(zone)
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        (**self).finish(zone)
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        (**self).reset(zone)
    }
    fn flush(&self) -> ZoneResult<()> {
        (**self).flush()
    }
    fn host_free_bytes(&self) -> Option<u64> {
        (**self).host_free_bytes()
    }
    fn keeps(&self) -> Keeps {
        (**self).keeps()
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        (**self).host_memory()
    }
}
