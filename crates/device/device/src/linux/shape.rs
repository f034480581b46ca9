//! Derives a [`Geometry`] from the zones that a real drive reports.
//!
//! Supported: conventional zones only at the start, all zones of one size and all sequential ones
//! of one capacity. A shorter zone at the end of the drive is left out.

use super::HostDriveError;
use super::ioctl::KernelZone;
use std::path::Path;
use zone::{Geometry, ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};

/// The block size and limits that a drive reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub block_size: u32,
    pub zone_size: u64,
    pub max_open_zones: u32,
    pub max_active_zones: u32,
    pub max_append_bytes: u32,
}

/// The geometry of a drive with these limits and zones; `zones` are all zones in order.
pub(crate) fn geometry(
    path: &Path,
    limits: Limits,
    zones: &[KernelZone],
) -> Result<Geometry, HostDriveError> {
    let wrong = |what, zone: usize, expected, found| HostDriveError::Shape {
        path: path.into(),
        what,
        zone: zone as u32,
        expected,
        found,
    };
    let whole = match zones.split_last() {
        Some((last, others)) if last.length < limits.zone_size => others,
        _ => zones,
    };
    let conventional = whole
        .iter()
        .take_while(|zone| kind(zone.kind) == Some(ZoneKind::Conventional))
        .count();
    let first = whole.get(conventional);
    let mut start = 0;
    for (index, zone) in whole.iter().enumerate() {
        if zone.length != limits.zone_size || zone.start != start {
            let what = "zones of different sizes";
            return Err(wrong(what, index, limits.zone_size, zone.length));
        }
        // Beyond the last address there is no zone: nothing begins there.
        start = start.saturating_add(zone.length);
        let Some(first) = first.filter(|_| index >= conventional) else {
            continue;
        };
        if zone.kind != first.kind {
            let what = "zones of different kinds behind the conventional ones";
            return Err(wrong(what, index, first.kind.into(), zone.kind.into()));
        }
        if zone.capacity != first.capacity {
            let what = "zones of different capacities";
            return Err(wrong(what, index, first.capacity, zone.capacity));
        }
    }
    let sequential_kind = match first {
        None => ZoneKind::SequentialWriteRequired,
        Some(first) => kind(first.kind).ok_or_else(|| {
            wrong(
                "zones of an unknown kind",
                conventional,
                2,
                first.kind.into(),
            )
        })?,
    };
    let open_fits = limits.max_active_zones == 0
        || (1..=limits.max_active_zones).contains(&limits.max_open_zones);
    let geometry = Geometry {
        block_size: limits.block_size,
        zone_size: limits.zone_size,
        zone_capacity: first.map_or(limits.zone_size, |first| first.capacity),
        zone_count: whole.len() as u32,
        conventional_zones: conventional as u32,
        conventional_parts: 1,
        sequential_kind,
        // An open zone is an active one, so the smaller limit binds.
        max_open_zones: if open_fits {
            limits.max_open_zones
        } else {
            limits.max_active_zones
        },
        max_active_zones: limits.max_active_zones,
        max_append_bytes: limits.max_append_bytes,
    };
    geometry
        .validate()
        .map_err(|source| HostDriveError::Geometry {
            path: path.into(),
            source,
        })?;
    Ok(geometry)
}

/// Converts the drive's report of a zone; the write pointer becomes relative to the zone.
pub(crate) fn descriptor(geometry: &Geometry, id: ZoneId, zone: &KernelZone) -> ZoneDescriptor {
    let condition = condition(zone.condition);
    let capacity = geometry.capacity(id);
    let write_pointer = match condition {
        ZoneCondition::ImplicitOpen | ZoneCondition::ExplicitOpen | ZoneCondition::Closed => {
            zone.write_pointer.saturating_sub(zone.start).min(capacity)
        }
        // Drives differ in the write pointer that they report for a full zone.
        ZoneCondition::Full => capacity,
        _ => 0,
    };
    ZoneDescriptor {
        id,
        kind: geometry.kind(id),
        condition,
        size: geometry.zone_size,
        capacity,
        write_pointer,
    }
}

/// Decodes a zone type of the standards; the kernel and NVMe use the same codes.
const fn kind(code: u8) -> Option<ZoneKind> {
    match code {
        1 => Some(ZoneKind::Conventional),
        2 => Some(ZoneKind::SequentialWriteRequired),
        3 => Some(ZoneKind::SequentialWritePreferred),
        _ => None,
    }
}

/// Decodes a zone condition of the standards. An unknown one counts as offline.
const fn condition(code: u8) -> ZoneCondition {
    match code {
        0x0 => ZoneCondition::NotWritePointer,
        0x1 => ZoneCondition::Empty,
        0x2 => ZoneCondition::ImplicitOpen,
        0x3 => ZoneCondition::ExplicitOpen,
        0x4 => ZoneCondition::Closed,
        0xd => ZoneCondition::ReadOnly,
        0xe => ZoneCondition::Full,
        _ => ZoneCondition::Offline,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const LIMITS: Limits = Limits {
        block_size: 4096,
        zone_size: 4 * MIB,
        max_open_zones: 8,
        max_active_zones: 10,
        max_append_bytes: 0,
    };

    fn zones(kinds: &[u8]) -> Vec<KernelZone> {
        let zone = |(index, kind): (usize, &u8)| KernelZone {
            start: index as u64 * 4 * MIB,
            length: 4 * MIB,
            capacity: if *kind == 1 { 4 * MIB } else { 3 * MIB },
            write_pointer: index as u64 * 4 * MIB,
            kind: *kind,
            condition: u8::from(*kind != 1),
        };
        kinds.iter().enumerate().map(zone).collect()
    }

    fn shape(zones: &[KernelZone], limits: Limits) -> Result<Geometry, HostDriveError> {
        geometry(Path::new("/dev/x"), limits, zones)
    }

    #[test]
    fn a_short_zone_at_the_end_is_left_out() {
        let mut all = zones(&[1, 1, 2, 2, 2]);
        all[4].length = MIB;
        let g = shape(&all, LIMITS).unwrap();
        assert_eq!((g.zone_count, g.conventional_zones), (4, 2));
        assert_eq!((g.zone_size, g.zone_capacity), (4 * MIB, 3 * MIB));
        assert_eq!((g.max_open_zones, g.max_active_zones), (8, 10));
    }

    #[test]
    fn shapes_that_are_not_supported_are_named() {
        let what = |zones: &[KernelZone]| match shape(zones, LIMITS) {
            Err(HostDriveError::Shape { what, zone, .. }) => (what, zone),
            other => panic!("{other:?}"),
        };
        let mixed = "zones of different kinds behind the conventional ones";
        assert_eq!(what(&zones(&[1, 2, 1, 2])), (mixed, 2));
        let mut other = zones(&[2, 2]);
        other[1].capacity = 2 * MIB;
        assert_eq!(what(&other), ("zones of different capacities", 1));
        other[0].length = 5 * MIB;
        assert_eq!(what(&other), ("zones of different sizes", 0));
        // The third one begins beyond the last address.
        let far = |start: u64| KernelZone {
            start,
            length: 1 << 63,
            ..zones(&[2])[0]
        };
        let limits = Limits {
            zone_size: 1 << 63,
            ..LIMITS
        };
        let far = shape(&[far(0), far(1 << 63), far(0)], limits);
        assert!(matches!(far, Err(HostDriveError::Shape { zone: 2, .. })));
        assert_eq!(what(&zones(&[9])), ("zones of an unknown kind", 0));
        assert!(shape(&[], LIMITS).is_err());
    }

    #[test]
    fn more_open_than_active_zones_are_impossible() {
        for (told, expected) in [(12, 10), (0, 10), (10, 10), (8, 8)] {
            let limits = Limits {
                max_open_zones: told,
                ..LIMITS
            };
            assert_eq!(
                shape(&zones(&[2]), limits).unwrap().max_open_zones,
                expected
            );
        }
        let unlimited = Limits {
            max_open_zones: 0,
            max_active_zones: 0,
            ..LIMITS
        };
        assert_eq!(shape(&zones(&[2]), unlimited).unwrap().max_open_zones, 0);
    }

    #[test]
    fn a_write_pointer_is_told_only_where_there_is_one() {
        let g = shape(&zones(&[1, 2, 2]), LIMITS).unwrap();
        let told = |condition, write_pointer| {
            let mut zone = zones(&[1, 2, 2])[1];
            (zone.condition, zone.write_pointer) = (condition, write_pointer);
            let told = descriptor(&g, ZoneId(1), &zone);
            (told.condition.short(), told.write_pointer)
        };
        assert_eq!(told(2, 5 * MIB), ("oi", MIB));
        // Full zones with write pointers after the zone, at its start, or meaningless.
        for pointer in [8 * MIB, 7 * MIB, 4 * MIB, u64::MAX] {
            assert_eq!(told(0xe, pointer), ("fu", 3 * MIB));
        }
        assert_eq!(told(0xd, u64::MAX), ("ro", 0));
        assert_eq!(told(4, u64::MAX), ("cl", 3 * MIB));
        assert_eq!(told(7, 0), ("ol", 0));
    }
}
