//! A zoned drive in memory: it enforces every rule of a real one and loses its content with the process.
//!
//! Only written ranges take memory. Commands in different zones run in parallel: the zone table is locked only
//! for a decision, a zone's bytes while they are copied. Lock order: a zone's bytes, then the table.

use crate::file::HostMemory;
use crate::rules::{PlannedWrite, ZoneTable};
use crate::sparse::SparseBytes;
use crate::{Keeps, ZonedDevice};
use runtime::sync::{Mutex, RwLock};
use std::sync::Arc;
use zone::{
    ByteOffset, Geometry, GeometryError, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneId,
    ZoneResult,
};

/// A drive in memory. Its flush does nothing.
#[derive(Debug)]
pub struct MemoryDrive {
    geometry: Geometry,
    table: Mutex<ZoneTable>,
    bytes: Vec<RwLock<Arc<SparseBytes>>>,
}

impl MemoryDrive {
    /// A new drive with all sequential zones empty.
    pub fn new(geometry: Geometry) -> Result<Self, GeometryError> {
        let table = ZoneTable::new(geometry)?;
        let nothing = Arc::new(SparseBytes::default());
        let bytes = vec![nothing; table.geometry().zone_count as usize];
        Ok(Self::from_parts(table, bytes))
    }

    /// A drive with this content; table and bytes must be of one geometry.
    pub(crate) fn from_parts(table: ZoneTable, bytes: Vec<Arc<SparseBytes>>) -> Self {
        assert_eq!(bytes.len(), table.geometry().zone_count as usize);
        let bytes = bytes.into_iter().map(RwLock::new).collect();
        Self {
            geometry: table.geometry().clone(),
            table: Mutex::new(table),
            bytes,
        }
    }

    /// Makes `zone` [`ZoneCondition::ReadOnly`] or, for good, [`ZoneCondition::Offline`].
    pub fn set_condition(&self, zone: ZoneId, condition: ZoneCondition) -> ZoneResult<()> {
        let _still = self.zone_bytes(zone).map(RwLock::write);
        let mut table = self.table.lock();
        if table.check_failure(zone, condition)? {
            table.fail(zone, condition);
        }
        Ok(())
    }

    /// Changes `length` written bytes in place, as decay of the medium does: no command runs, and no write
    /// pointer moves.
    ///
    /// # Panics
    /// If they are not all within the zone's capacity.
    pub fn decay(&self, at: ZoneAddress, length: usize, change: impl FnOnce(&mut [u8])) {
        assert!(at.offset + length as u64 <= self.geometry.capacity(at.zone));
        let mut bytes = self.bytes[at.zone.index()].write();
        let mut old = vec![0; length];
        bytes.read(at.offset, &mut old);
        change(&mut old);
        Arc::make_mut(&mut bytes).write(at.offset, &old);
    }

    /// Simulates a power cycle without loss: open zones are closed, or empty if nothing was written to them.
    pub fn power_cycle(&self) {
        let _quiet: Vec<_> = self.bytes.iter().map(RwLock::write).collect();
        self.table.lock().power_cycle();
    }

    /// A copy of the drive; the two share memory until either is written to.
    pub fn snapshot(&self) -> Self {
        let held: Vec<_> = self.bytes.iter().map(RwLock::read).collect();
        let table = self.table.lock().clone();
        Self::from_parts(table, held.iter().map(|bytes| Arc::clone(bytes)).collect())
    }

    /// Bytes of memory that written data takes.
    pub fn allocated_bytes(&self) -> u64 {
        self.bytes
            .iter()
            .map(|bytes| bytes.read().allocated_bytes())
            .sum()
    }

    fn put(&self, bytes: &mut Arc<SparseBytes>, planned: PlannedWrite, data: &[u8]) {
        Arc::make_mut(bytes).write(planned.at().offset, data);
        self.table.lock().commit_write(planned);
    }

    /// The bytes of a zone; `None` if the drive has no such zone.
    fn zone_bytes(&self, zone: ZoneId) -> Option<&RwLock<Arc<SparseBytes>>> {
        self.bytes.get(zone.index())
    }
}

impl ZonedDevice for MemoryDrive {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        Ok(self.table.lock().report(first, count))
    }

    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let length = buffer.len() as u64;
        // Held from the check on, so that no reset can take effect between check and copy.
        let first = self
            .geometry
            .address(at)
            .and_then(|at| self.zone_bytes(at.zone));
        let first = first.map(RwLock::read);
        let span = self.table.lock().check_read(at, length)?;
        let (written, rest) = buffer.split_at_mut(span.written as usize);
        rest.fill(0);
        let Some(first) = first else { return Ok(()) };
        // Only a read of conventional zones continues in further zones.
        let take = written
            .len()
            .min((self.geometry.zone_size - span.at.offset) as usize);
        let (here, mut others) = written.split_at_mut(take);
        first.read(span.at.offset, here);
        drop(first);
        let mut zone = span.at.zone.index() + 1;
        while !others.is_empty() {
            let take = others.len().min(self.geometry.zone_size as usize);
            let (part, further) = others.split_at_mut(take);
            self.bytes[zone].read().read(0, part);
            others = further;
            zone += 1;
        }
        Ok(())
    }

    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let place = self.geometry.address(at);
        let mut bytes = place
            .and_then(|at| self.zone_bytes(at.zone))
            .map(RwLock::write);
        let planned = self.table.lock().begin_write(at, data.len() as u64)?;
        if let Some(bytes) = &mut bytes {
            self.put(bytes, planned, data);
        }
        Ok(())
    }

    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let mut bytes = self.zone_bytes(zone).map(RwLock::write);
        let planned = self.table.lock().begin_append(zone, data.len() as u64)?;
        let ZoneAddress { offset, .. } = planned.at();
        if let Some(bytes) = &mut bytes {
            self.put(bytes, planned, data);
        }
        Ok(self.geometry.absolute(ZoneAddress::new(zone, offset)))
    }

    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        let _still = self.zone_bytes(zone).map(RwLock::write);
        self.table.lock().open(zone)
    }

    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        let _still = self.zone_bytes(zone).map(RwLock::write);
        self.table.lock().close(zone)
    }

    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        let _still = self.zone_bytes(zone).map(RwLock::write);
        let mut table = self.table.lock();
        if table.check_finish(zone)? {
            table.finish(zone);
        }
        Ok(())
    }

    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        let mut bytes = self.zone_bytes(zone).map(RwLock::write);
        let mut table = self.table.lock();
        if table.check_reset(zone)? {
            table.reset(zone);
        }
        drop(table);
        if let Some(bytes) = &mut bytes {
            **bytes = Arc::default();
        }
        Ok(())
    }

    fn host_free_bytes(&self) -> Option<u64> {
        None
    }
    fn keeps(&self) -> Keeps {
        Keeps::Prefixes
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        None
    }
    fn flush(&self) -> ZoneResult<()> {
        Ok(())
    }
}
