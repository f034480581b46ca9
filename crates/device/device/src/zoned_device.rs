//! The only interface of the upper layers to a zoned drive.
//!
//! Calls block until the drive has answered. Drives may have a volatile write cache, so an answered write is
//! durable only after [`ZonedDevice::flush`]. Every method may be called from many threads at once; the caller
//! orders writes into one zone, the drive orders appends.

use crate::Keeps;
use crate::file::HostMemory;
use zone::{ByteOffset, Geometry, ZoneDescriptor, ZoneId, ZoneResult};

/// A host-managed (or host-aware) zoned drive.
///
/// All offsets and lengths are multiples of [`Geometry::block_size`]. After a power cut, a sequential zone
/// keeps a prefix of the data written to it, and its write pointer is the end of that prefix.
pub trait ZonedDevice: Send + Sync {
    /// Geometry and limits, which never change.
    fn geometry(&self) -> &Geometry;

    /// Reports at most `count` zones from `first` on.
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>>;

    /// Fills `buffer` from `at`. Blocks at or above a write pointer read as zeros. Reads may not
    /// cross the end of a sequential zone's `zone_size`.
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()>;

    /// Executes several reads, each as [`Self::read`] does, in parallel if the drive can. After an error, the
    /// content of all buffers is undefined.
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        reads
            .iter_mut()
            .try_for_each(|(at, buffer)| self.read(*at, buffer))
    }

    /// Writes `data` at `at`, which in a sequential-write-required zone must be the write pointer.
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()>;

    /// Writes `data` at the write pointer of `zone` and returns its address (ZNS zone append). Not for
    /// conventional zones; at most [`Geometry::max_append_bytes`].
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset>;

    /// Opens `zone` explicitly.
    fn open(&self, zone: ZoneId) -> ZoneResult<()>;

    /// Closes an open `zone`.
    fn close(&self, zone: ZoneId) -> ZoneResult<()>;

    /// Makes `zone` full without writing the rest.
    fn finish(&self, zone: ZoneId) -> ZoneResult<()>;

    /// Resets `zone`: it is empty, and its data is lost.
    fn reset(&self, zone: ZoneId) -> ZoneResult<()>;

    /// Makes all writes durable that were answered before this call.
    fn flush(&self) -> ZoneResult<()>;

    /// Free bytes of the host's file system, for a drive that allocates its space there as it is written;
    /// `None` for a drive with its own space.
    fn host_free_bytes(&self) -> Option<u64>;

    /// Which answered but unflushed writes survive, whatever stopped the drive last.
    fn keeps(&self) -> Keeps;

    /// Storage beside the drive whose bytes survive the process but not the host: for a drive in a file; else
    /// `None`.
    fn host_memory(&self) -> Option<&HostMemory>;

    /// Reports one zone.
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
