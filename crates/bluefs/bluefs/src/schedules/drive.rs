//! A drive that lets other threads run in the middle of each command.

use crate::{BlueFs, FormatOptions, Role};
use device::{Keeps, PowerCut, ZonedDevice};
use runtime::schedules::pause;
use std::sync::Arc;
use zone::{ByteOffset, Geometry, ZoneDescriptor, ZoneError, ZoneId, ZoneKind, ZoneResult};

/// Zones of eight blocks, of which six can be written, so that writers change zones often.
fn geometry(zone_count: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 512,
        zone_size: 16 << 10,
        zone_capacity: 12 << 10,
        zone_count,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

/// A drive with a pause before and after each command, at which other threads may run.
pub(super) struct Interleaved<D> {
    pub inner: D,
}

/// A drive with an empty file system.
pub(super) fn formatted(zone_count: u32, max_active_zones: u32) -> Arc<Interleaved<PowerCut>> {
    let inner = PowerCut::new(geometry(zone_count, max_active_zones)).unwrap();
    let drive = Arc::new(Interleaved { inner });
    let options = FormatOptions {
        uuid: [3; 16],
        role: Role::Alone,
        copies: 1,
        force: false,
    };
    BlueFs::format(&*drive, &options).unwrap();
    drive
}

impl<D: ZonedDevice> Interleaved<D> {
    fn around<T>(&self, command: impl FnOnce(&D) -> T) -> T {
        pause();
        let answer = command(&self.inner);
        pause();
        answer
    }
}

impl<D: ZonedDevice> ZonedDevice for Interleaved<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        self.around(|d| d.report(first, count))
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.around(|d| d.read(at, buffer))
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let done = self.around(|d| d.write(at, data));
        // Every zone that the file system hands out must be writable. (It would continue in another zone.)
        if let Err(error) = &done {
            assert!(matches!(error, ZoneError::PowerLost { .. }), "{error}");
        }
        done
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.around(|d| d.append(zone, data))
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.around(|d| d.open(zone))
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.around(|d| d.close(zone))
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.around(|d| d.finish(zone))
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.around(|d| d.reset(zone))
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.inner.host_free_bytes()
    }
    fn keeps(&self) -> Keeps {
        self.inner.keeps()
    }
    fn host_memory(&self) -> Option<&device::file::HostMemory> {
        self.inner.host_memory()
    }
    fn flush(&self) -> ZoneResult<()> {
        self.around(|d| d.flush())
    }
}
