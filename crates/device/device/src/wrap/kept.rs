//! A drive with some write-protected zones.
//!
//! These zones appear as read-only: they can be read, and no command changes them.

use crate::file::HostMemory;
use crate::{Keeps, ZonedDevice};
use std::collections::BTreeSet;
use zone::{
    ByteOffset, Geometry, ZoneCommand, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId, ZoneResult,
};

/// A drive with write-protected zones.
#[derive(Debug)]
pub struct Kept<D> {
    inner: D,
    zones: BTreeSet<ZoneId>,
}

impl<D: ZonedDevice> Kept<D> {
    /// Protects `zones` of `inner`.
    pub const fn new(inner: D, zones: BTreeSet<ZoneId>) -> Self {
        Self { inner, zones }
    }

    fn check(&self, command: ZoneCommand, zone: ZoneId) -> ZoneResult<()> {
        match self.zones.contains(&zone) {
            true => Err(ZoneError::ReadOnly { command, zone }),
            false => Ok(()),
        }
    }
}

impl<D: ZonedDevice> ZonedDevice for Kept<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        let mut told = self.inner.report(first, count)?;
        for zone in &mut told {
            if self.zones.contains(&zone.id) && zone.condition != ZoneCondition::Offline {
                zone.condition = ZoneCondition::ReadOnly;
            }
        }
        Ok(told)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.inner.read(at, buffer)
    }
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        self.inner.read_many(reads)
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        if let Some(place) = self.geometry().address(at) {
            self.check(ZoneCommand::Write, place.zone)?;
        }
        self.inner.write(at, data)
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.check(ZoneCommand::Append, zone)?;
        self.inner.append(zone, data)
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.check(ZoneCommand::Open, zone)?;
        self.inner.open(zone)
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.check(ZoneCommand::Close, zone)?;
        self.inner.close(zone)
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.check(ZoneCommand::Finish, zone)?;
        self.inner.finish(zone)
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.check(ZoneCommand::Reset, zone)?;
        self.inner.reset(zone)
    }
    fn flush(&self) -> ZoneResult<()> {
        self.inner.flush()
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.inner.host_free_bytes()
    }
    fn keeps(&self) -> Keeps {
        self.inner.keeps()
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        self.inner.host_memory()
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{MemoryDrive, profile};

    #[test]
    fn nothing_changes_a_kept_zone() {
        let g = profile::by_name("test-small").unwrap();
        let g = g.geometry(16 << 20, None).unwrap();
        let zone = g.zones().last().unwrap();
        let (start, block) = (g.start(zone), g.block_size as usize);
        let drive = MemoryDrive::new(g.clone()).unwrap();
        drive.write(start, &vec![7; block]).unwrap();
        let before = drive.report_zone(zone).unwrap();
        let kept = Kept::new(drive, BTreeSet::from([zone]));
        assert_eq!(
            kept.report_zone(zone).unwrap().condition,
            ZoneCondition::ReadOnly
        );
        let next = ByteOffset(start.0 + block as u64);
        let refused = [
            kept.write(next, &vec![1; block]),
            kept.append(zone, &vec![1; block]).map(drop),
            kept.open(zone),
            kept.close(zone),
            kept.finish(zone),
            kept.reset(zone),
        ];
        assert!(
            refused
                .iter()
                .all(|r| matches!(r, Err(ZoneError::ReadOnly { .. })))
        );
        let mut bytes = vec![0; block];
        kept.read(start, &mut bytes).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7));
        assert_eq!(kept.inner.report_zone(zone).unwrap(), before);
        // All other zones can be changed.
        let other = ZoneId(zone.0 - 1);
        kept.write(g.start(other), &vec![1; block]).unwrap();
        kept.reset(other).unwrap();
    }
}
