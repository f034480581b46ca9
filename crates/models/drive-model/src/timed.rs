//! A zoned device with data and with a model's time: for everything that speaks to
//! [`ZonedDevice`]s.
//!
//! The data is kept by another drive of the same geometry, in memory or in a file. A command is run
//! there and given to the model, and its answer is held back until the model has answered. The clock
//! comes from outside and never goes back; it may be one that nobody waits for ([`runtime::SimulatedClock`]).
//! Both keep the same zone table, for no command reaches one without the other: both are told under one
//! lock.

use crate::model::Model;
use crate::request::{BLOCK_BYTES, Lba, Request, RequestKind};
use crate::time::Time;
use device::{Keeps, MemoryDrive, ZonedDevice};
use runtime::Clock;
use runtime::sync::{Mutex, MutexGuard};
use std::time::Duration;
use thiserror::Error;
use zone::{ByteOffset, Geometry, GeometryError, ZoneDescriptor, ZoneId, ZoneResult};

/// Why a model and a drive do not go together.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TimedError {
    /// The model has no zones.
    #[error("the model has no zones")]
    NoZones,
    /// The drive with the data is of another geometry, or one that cannot be.
    #[error("the drive with the data is not of the model's geometry")]
    OtherGeometry,
    /// Something is written on the drive with the data, or open; the model is of a new one.
    #[error("zone {zone} of the drive with the data is not as new")]
    NotNew {
        /// The first such zone.
        zone: ZoneId,
    },
    /// No drive has the model's geometry.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

/// See the head of this file.
#[derive(Debug)]
pub struct Timed<D, C> {
    data: D,
    clock: C,
    model: Mutex<Box<dyn Model>>,
}

impl<C: Clock> Timed<MemoryDrive, C> {
    /// The model's drive, with data in memory.
    ///
    /// # Errors
    /// The model has no zones.
    pub fn in_memory(model: Box<dyn Model>, clock: C) -> Result<Self, TimedError> {
        let zones = model.zones().ok_or(TimedError::NoZones)?;
        let data = MemoryDrive::new(zones.geometry().clone())?;
        Self::new(data, model, clock)
    }
}

impl<D: ZonedDevice, C: Clock> Timed<D, C> {
    /// The model's drive, with data on a new drive of the same geometry.
    ///
    /// # Errors
    /// They do not go together.
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

    /// The drive with the data. A zone that is broken there is not so in the model.
    pub const fn data(&self) -> &D {
        &self.data
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Looks at the model.
    pub fn with_model<T>(&self, look: impl FnOnce(&dyn Model) -> T) -> T {
        look(&**self.model.lock())
    }

    /// Runs a command on the data and, if that goes well, on the model; then waits for the model.
    fn run<T>(&self, request: Request, command: impl FnOnce(&D) -> ZoneResult<T>) -> ZoneResult<T> {
        let model = self.model.lock();
        let done = command(&self.data)?;
        self.wait(model, &[request]);
        Ok(done)
    }

    /// Gives requests to the model that come at once, and waits for it. It allows what the drive with
    /// the data did, for their tables are the same.
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

/// What a drive allows is never as long as 16 TiB.
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

    /// All reads come at once.
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
