//! A drive whose conventional zones are used as several zones each ([`Geometry::conventional_parts`]).
//!
//! Addresses on the drive do not change; only numbers and sizes of conventional zones differ. Errors contain
//! the zone numbers of the drive below.

use crate::file::HostMemory;
use crate::{Keeps, ZonedDevice};
use zone::{ByteOffset, Geometry, GeometryError, ZoneDescriptor, ZoneId, ZoneResult};

/// A drive with divided conventional zones.
#[derive(Debug)]
pub struct Divided<D> {
    inner: D,
    geometry: Geometry,
}

impl<D: ZonedDevice> Divided<D> {
    /// Uses each conventional zone of `inner` as `parts` zones.
    pub fn new(inner: D, parts: u32) -> Result<Self, GeometryError> {
        let geometry = divided(inner.geometry(), parts)?;
        Ok(Self { inner, geometry })
    }

    fn zone(&self, zone: ZoneId) -> ZoneId {
        self.geometry.zone_of_drive(zone).0
    }
}

/// The geometry `whole` with each conventional zone used as `parts` zones.
pub fn divided(whole: &Geometry, parts: u32) -> Result<Geometry, GeometryError> {
    let more = whole.conventional_zones.checked_mul(parts.max(1) - 1);
    let zone_count = more.and_then(|more| whole.zone_count.checked_add(more));
    let geometry = Geometry {
        conventional_parts: parts,
        zone_count: zone_count.ok_or(GeometryError::Parts(parts))?,
        ..whole.clone()
    };
    geometry.validate()?;
    Ok(geometry)
}

impl<D: ZonedDevice> ZonedDevice for Divided<D> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        let g = &self.geometry;
        let end = first.0.saturating_add(count).min(g.zone_count);
        let of_drive = g.drive_zones().min(end).saturating_sub(first.0);
        let mut told = self.inner.report(first, of_drive)?;
        if end > g.drive_zones() {
            let whole = self.inner.report(ZoneId(0), g.conventional_zones)?;
            let parts = (first.0.max(g.drive_zones())..end).map(ZoneId);
            told.extend(parts.filter_map(|id| {
                let whole = whole.get(self.zone(id).index())?;
                Some(ZoneDescriptor { id, ..*whole })
            }));
        }
        for zone in told
            .iter_mut()
            .filter(|zone| g.kind(zone.id) != g.sequential_kind)
        {
            zone.size = g.conventional_capacity();
            zone.capacity = g.conventional_capacity();
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
        self.inner.write(at, data)
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.inner.append(self.zone(zone), data)
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.inner.open(self.zone(zone))
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.inner.close(self.zone(zone))
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.inner.finish(self.zone(zone))
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.inner.reset(self.zone(zone))
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
mod tests {
    use super::*;
    use crate::{MemoryDrive, profile};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use zone::{ZoneAddress, ZoneKind};

    fn whole() -> Geometry {
        let shape = profile::by_name("test-small").unwrap();
        let geometry = shape.geometry(16 << 20, None).unwrap();
        Geometry {
            conventional_zones: 3,
            ..geometry
        }
    }

    #[test]
    fn parts_cover_conventional_zones_and_sequential_ones_stay_as_they_are() {
        let drive = Divided::new(MemoryDrive::new(whole()).unwrap(), 4).unwrap();
        let g = drive.geometry().clone();
        assert_eq!(g.zone_count, whole().zone_count + 9);
        assert_eq!(g.capacity_bytes(), whole().capacity_bytes());
        assert_eq!(g.size_bytes(), whole().size_bytes());
        let told = drive.report(ZoneId(0), u32::MAX).unwrap();
        assert!(told.iter().map(|zone| zone.id).eq(g.zones()));
        let mut conventional = BTreeSet::new();
        for zone in &told {
            assert_eq!(
                (zone.kind, zone.capacity),
                (g.kind(zone.id), g.capacity(zone.id))
            );
            if zone.kind == ZoneKind::Conventional {
                assert_eq!(zone.capacity, g.zone_size / 4);
                conventional.insert(g.start(zone.id).0);
            } else {
                assert_eq!(g.start(zone.id), whole().start(zone.id));
            }
        }
        let starts = (0..12).map(|part| part * g.zone_size / 4);
        assert!(conventional.into_iter().eq(starts));
        for page in [1, 2, 5, 7] {
            let paged = (0..g.zone_count).step_by(page).flat_map(|first| {
                let page = drive.report(ZoneId(first), page as u32).unwrap();
                page.into_iter().map(|zone| zone.id)
            });
            assert!(paged.eq(g.zones()), "{page}");
        }
    }

    proptest! {
        #[test]
        fn each_place_has_one_address(parts in 0..4u32, block in 0..4096u64) {
            let g = divided(&whole(), 1 << parts).unwrap();
            let at = ByteOffset(block * 4096 % g.size_bytes());
            let address = g.address(at).unwrap();
            prop_assert!(address.zone.0 < g.zone_count);
            prop_assert!(address.offset < g.zone_size);
            prop_assert_eq!(g.absolute(address), at);
            prop_assert_eq!(g.kind(address.zone), whole().kind(whole().address(at).unwrap().zone));
            let start = ZoneAddress::new(address.zone, 0);
            prop_assert_eq!(g.address(g.absolute(start)), Some(start));
        }
    }
}
