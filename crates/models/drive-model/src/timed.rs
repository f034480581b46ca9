//! A [`ZonedDevice`] that stores data and takes the time of a model.
//!
//! Another drive of the same geometry, in memory or in a file, has the data. A command runs there and on the model,
//! and returns when the model has completed it. The clock comes from outside and never goes back; it may be one that
//! does not really wait ([`runtime::SimulatedClock`]). Both keep the same zone table, because every command reaches
//! both under one lock.

use crate::model::Model;
use crate::request::{BLOCK_BYTES, Lba, Request, RequestKind};
use crate::time::Time;
use device::{Keeps, MemoryDrive, ZonedDevice};
use runtime::Clock;
use runtime::sync::{Mutex, MutexGuard};
use std::time::Duration;
use thiserror::Error;
use zone::{ByteOffset, Geometry, GeometryError, ZoneDescriptor, ZoneId, ZoneResult};

/// Why a model and a drive for its data do not fit together.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TimedError {
    /// The model has no zones.
    #[error("the model has no zones")]
    NoZones,
    /// The drive for the data has another geometry, or an invalid one.
    #[error("the drive with the data is not of the model's geometry")]
    OtherGeometry,
    /// A zone of the drive for the data is written or open; the model begins with a new drive.
    #[error("zone {zone} of the drive with the data is not as new")]
    NotNew {
        /// The first such zone.
        zone: ZoneId,
    },
    /// The model's geometry is invalid for a drive in memory.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

/// A drive for data with the time of a model.
#[derive(Debug)]
pub struct Timed<D, C> {
    data: D,
    clock: C,
    model: Mutex<Box<dyn Model>>,
}

impl<C: Clock> Timed<MemoryDrive, C> {
    /// A device with the model's time, and its data in memory.
    ///
    /// # Errors
    /// [`TimedError::NoZones`], [`TimedError::Geometry`].
    pub fn in_memory(model: Box<dyn Model>, clock: C) -> Result<Self, TimedError> {
        let zones = model.zones().ok_or(TimedError::NoZones)?;
        let data = MemoryDrive::new(zones.geometry().clone())?;
        Self::new(data, model, clock)
    }
}

impl<D: ZonedDevice, C: Clock> Timed<D, C> {
    /// A device with the model's time, and its data on `data`: a new drive of the same geometry.
    ///
    /// # Errors
    /// [`TimedError`].
    pub fn new(data: D, model: Box<dyn Model>, clock: C) -> Result<Self, TimedError> {
        let zones = model.zones().ok_or(TimedError::NoZones)?;
        let geometry = zones.geometry();
        if geometry != data.geometry() {
            return Err(TimedError::OtherGeometry);
        }
        let ours = zones.report(ZoneId(0), geometry.zone_count);
        let theirs = data.report(ZoneId(0), geometry.zone_count);
        let theirs = theirs.map_err(|_| TimedError::OtherGeometry)?;
        if let Some((zone, _)) = ours.iter().zip(&theirs).find(|(a, b)| a != b) {
            return Err(TimedError::NotNew { zone: zone.id });
        }
        Ok(Self {
            data,
            clock,
            model: Mutex::new(model),
        })
    }

    /// The drive with the data. A zone that fails there does not fail in the model.
    pub const fn data(&self) -> &D {
        &self.data
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Calls `look` with the model.
    pub fn with_model<T>(&self, look: impl FnOnce(&dyn Model) -> T) -> T {
        look(&**self.model.lock())
    }

    /// Runs a command on the data and, if it succeeds, on the model; then waits for the completion.
    fn run<T>(&self, request: Request, command: impl FnOnce(&D) -> ZoneResult<T>) -> ZoneResult<T> {
        let model = self.model.lock();
        let done = command(&self.data)?;
        self.wait(model, &[request]);
        Ok(done)
    }

    /// Submits concurrent requests to the model, and waits for all of them. The model accepts whatever the drive with
    /// the data accepted, as their zone tables are the same.
    fn wait(&self, mut model: MutexGuard<'_, Box<dyn Model>>, requests: &[Request]) {
        let now = u64::try_from(self.clock.now().as_nanos()).unwrap_or(u64::MAX);
        let now = Time::from_nanos(now);
        let mut end = now;
        for request in requests {
            model.enqueue(*request, now);
        }
        while let Some(completion) = model.next_completion() {
            debug_assert_eq!(completion.result, Ok(()), "{requests:?}");
            end = end.max(completion.at);
        }
        drop(model);
        self.clock.wait_until(Duration::from_nanos(end.nanos()));
    }

    fn on_zone(
        &self,
        operation: RequestKind,
        zone: ZoneId,
        command: impl FnOnce(&D) -> ZoneResult<()>,
    ) -> ZoneResult<()> {
        let start = self.geometry().start(zone);
        self.run(Request::on_zone(operation, lba(start)), command)
    }
}

const fn lba(at: ByteOffset) -> Lba {
    Lba(at.0 / BLOCK_BYTES)
}

/// Saturates: no accepted command is as long as 16 TiB.
fn blocks(bytes: usize) -> u32 {
    u32::try_from(bytes as u64 / BLOCK_BYTES).unwrap_or(u32::MAX)
}

impl<D: ZonedDevice, C: Clock> ZonedDevice for Timed<D, C> {
    fn geometry(&self) -> &Geometry {
        self.data.geometry()
    }

    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        self.data.report(first, count)
    }

    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let request = Request::read(lba(at), blocks(buffer.len()));
        self.run(request, |data| data.read(at, buffer))
    }

    /// All reads are concurrent on the model.
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        let requests: Vec<Request> = reads
            .iter()
            .map(|(at, buffer)| Request::read(lba(*at), blocks(buffer.len())))
            .collect();
        let model = self.model.lock();
        self.data.read_many(reads)?;
        self.wait(model, &requests);
        Ok(())
    }

    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let request = Request::write(lba(at), blocks(data.len()));
        self.run(request, |drive| drive.write(at, data))
    }

    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let start = self.geometry().start(zone);
        let request = Request::append(lba(start), blocks(data.len()));
        self.run(request, |drive| drive.append(zone, data))
    }

    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.on_zone(RequestKind::OpenZone, zone, |drive| drive.open(zone))
    }

    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.on_zone(RequestKind::CloseZone, zone, |drive| drive.close(zone))
    }

    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.on_zone(RequestKind::FinishZone, zone, |drive| drive.finish(zone))
    }

    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.on_zone(RequestKind::ResetZone, zone, |drive| drive.reset(zone))
    }

    fn host_free_bytes(&self) -> Option<u64> {
        self.data.host_free_bytes()
    }

    fn keeps(&self) -> Keeps {
        self.data.keeps()
    }
    fn host_memory(&self) -> Option<&device::file::HostMemory> {
        self.data.host_memory()
    }
    fn flush(&self) -> ZoneResult<()> {
        self.run(Request::flush(), D::flush)
    }
}
