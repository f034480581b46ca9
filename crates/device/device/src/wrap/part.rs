//! A sequence of consecutive zones of a drive, as a drive of its own.
//!
//! Addresses and zone numbers are relative to its first zone; errors contain those of the whole drive.

use crate::file::HostMemory;
use crate::linux::ranges;
use crate::{Keeps, ZonedDevice};
use zone::{ByteOffset, Geometry, GeometryError, ZoneCommand, ZoneDescriptor, ZoneId, ZoneResult};

/// A part of a drive. Its limits are those of the whole drive, so users of other parts can exhaust them.
#[derive(Debug)]
pub struct Part<D> {
    inner: D,
    first: u32,
    geometry: Geometry,
}

impl<D: ZonedDevice> Part<D> {
    /// The part with at most `count` zones of `inner`, from `first` on.
    pub fn new(inner: D, first: ZoneId, count: u32) -> Result<Self, GeometryError> {
        let whole = inner.geometry();
        let first = first.0.min(whole.zone_count);
        let zone_count = count.min(whole.zone_count - first);
        let conventional = whole.conventional_zones.saturating_sub(first);
        let geometry = Geometry {
            zone_count,
            conventional_zones: conventional.min(zone_count),
            ..whole.clone()
        };
        geometry.validate()?;
        Ok(Self {
            inner,
            first,
            geometry,
        })
    }

    /// A part with `sequential` zones and at most `conventional` ones before them, around the start of the
    /// drive's first sequential zone.
    pub fn around_first_sequential(
        inner: D,
        conventional: u32,
        sequential: u32,
    ) -> Result<Self, GeometryError> {
        let border = inner.geometry().conventional_zones;
        let conventional = conventional.min(border);
        let count = sequential.saturating_add(conventional);
        Self::new(inner, ZoneId(border - conventional), count)
    }

    fn place(&self, command: ZoneCommand, at: ByteOffset, length: usize) -> ZoneResult<ByteOffset> {
        ranges::locate(&self.geometry, command, at, length as u64)?;
        Ok(ByteOffset(at.0 + self.offset()))
    }

    fn zone(&self, command: ZoneCommand, zone: ZoneId) -> ZoneResult<ZoneId> {
        ranges::check_zone(&self.geometry, command, zone)?;
        Ok(ZoneId(zone.0 + self.first))
    }

    /// Offset of the part on the drive, in bytes.
    fn offset(&self) -> u64 {
        self.geometry.zone_size * u64::from(self.first)
    }
}

impl<D: ZonedDevice> ZonedDevice for Part<D> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        let count = count.min(self.geometry.zone_count.saturating_sub(first.0));
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut told = self.inner.report(ZoneId(first.0 + self.first), count)?;
        for zone in &mut told {
            zone.id.0 -= self.first;
        }
        Ok(told)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let at = self.place(ZoneCommand::Read, at, buffer.len())?;
        self.inner.read(at, buffer)
    }
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        let moved = reads.iter_mut().map(|(at, buffer)| {
            let at = self.place(ZoneCommand::Read, *at, buffer.len())?;
            Ok((at, &mut **buffer))
        });
        let mut moved: Vec<_> = moved.collect::<ZoneResult<_>>()?;
        self.inner.read_many(&mut moved)
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        let at = self.place(ZoneCommand::Write, at, data.len())?;
        self.inner.write(at, data)
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let zone = self.zone(ZoneCommand::Append, zone)?;
        let at = self.inner.append(zone, data)?;
        Ok(ByteOffset(at.0 - self.offset()))
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.inner.open(self.zone(ZoneCommand::Open, zone)?)
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.inner.close(self.zone(ZoneCommand::Close, zone)?)
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.inner.finish(self.zone(ZoneCommand::Finish, zone)?)
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.inner.reset(self.zone(ZoneCommand::Reset, zone)?)
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.inner.host_free_bytes()
    }
    fn keeps(&self) -> Keeps {
        self.inner.keeps()
    }
    /// `None`: the file beside a drive belongs to one file system, and parts may hold several.
    fn host_memory(&self) -> Option<&HostMemory> {
        None
    }
    fn flush(&self) -> ZoneResult<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDrive, profile};
    use std::sync::Arc;

    #[test]
    fn places_are_moved_and_nothing_outside_is_reached() {
        let g = profile::by_name("test-small")
            .unwrap()
            .geometry(16 << 20, None)
            .unwrap();
        let whole = Arc::new(MemoryDrive::new(g.clone()).unwrap());
        let part = Part::around_first_sequential(Arc::clone(&whole), 1, 3).unwrap();
        let (conventional, first) = (ZoneId(0), ZoneId(1));
        assert_eq!(part.geometry().zone_count, 4);
        assert_eq!(part.geometry().conventional_zones, 1);
        let border = ZoneId(g.conventional_zones);
        let start = part.geometry().start(first);
        part.write(part.geometry().start(conventional), &[1; 4096])
            .unwrap();
        part.write(start, &[2; 4096]).unwrap();
        let appended = part.append(first, &[3; 4096]).unwrap();
        assert_eq!(appended, ByteOffset(start.0 + 4096));
        let mut found = [0; 4096];
        for (at, byte) in [
            (g.start(border).0 - g.zone_size, 1),
            (g.start(border).0 + 4096, 3),
        ] {
            whole.read(ByteOffset(at), &mut found).unwrap();
            assert_eq!(found, [byte; 4096]);
        }
        let mut both = [[0; 4096]; 2];
        let [a, b] = &mut both;
        let mut reads = [(start, &mut a[..]), (appended, &mut b[..])];
        part.read_many(&mut reads).unwrap();
        assert_eq!(both, [[2; 4096], [3; 4096]]);
        part.open(ZoneId(2)).unwrap();
        part.close(ZoneId(2)).unwrap();
        part.finish(ZoneId(3)).unwrap();
        part.reset(first).unwrap();
        let mut told = part.report(ZoneId(0), u32::MAX).unwrap();
        for zone in &mut told {
            zone.id.0 += border.0 - 1;
        }
        assert_eq!(told, whole.report(ZoneId(border.0 - 1), 4).unwrap());
        assert!(told[1].condition.short() == "em" && told[3].condition.short() == "fu");
        // After the end of the part.
        let end = part.geometry().start(ZoneId(4));
        let refused = [
            part.write(end, &[1; 4096]),
            part.read(ByteOffset(end.0 - 4096), &mut [0; 8192]),
            part.read_many(&mut [(end, &mut found[..])]),
            part.append(ZoneId(4), &[1; 4096]).map(drop),
            part.reset(ZoneId(4)),
        ];
        for result in refused {
            assert_eq!(result.unwrap_err().kind(), "out of range");
        }
        assert_eq!(part.report(ZoneId(4), 1).unwrap(), []);
    }
}
