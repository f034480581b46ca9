//! Computes how many zones are reserved for BlueFS from the size of its live data. Pure.

use device::divided::divided;
use zone::Geometry;
use zone_alloc::PoolCounts;

/// Expected bytes of data for each byte of metadata: objects of 128 KiB with rows of 256 bytes. The capacity does not
/// shrink until the metadata exceeds its share.
const DATA_PER_METADATA: u64 = 512;

/// Zones reserved for BlueFS. The number depends only on what is stored now, so that a mount reports the same capacity
/// as the mount before it.
#[derive(Default)]
pub(crate) struct Reservation {
    /// Sequential zones; BlueFS may have fewer, where data took the space first.
    pub zones: u32,
    /// Zones that the database's SSTs fill or are expected to; the pool's counts and zones of garbage when that was
    /// computed; bytes in SSTs then.
    tables: u32,
    seen: Option<(u32, u32, u64)>,
    stored: u64,
}

impl Reservation {
    /// Least headroom in zones, as on a small drive.
    pub const LEAST_HEADROOM: u32 = 8;

    /// Zones that always stay free for BlueFS to grow into, because compaction writes before it deletes. They bound the
    /// largest compactions; beyond 2 GiB or 64 zones more would gain nothing.
    pub fn headroom(geometry: &Geometry, copies: u32) -> u32 {
        const ENOUGH_BYTES: u64 = 2 << 30;
        let enough = ENOUGH_BYTES.div_ceil(geometry.least_capacity()).min(64) as u32;
        let share = match geometry.conventional_parts {
            1 => geometry.zone_count / 32,
            _ => geometry.conventional_count() / (4 * copies),
        };
        share.min(enough).max(Self::LEAST_HEADROOM)
    }

    /// Parts into which each conventional zone is divided: as few as let all of BlueFS start in conventional zones, so
    /// that sequential zones are left to data.
    pub fn conventional_parts(whole: &Geometry, copies: u32) -> u32 {
        const SMALLEST: u64 = 4 << 20;
        let fits = |geometry: &Geometry| {
            let needed = Self::expected(geometry) + bluefs::LEAST_ZONES;
            let needed = needed.saturating_add(Self::headroom(geometry, copies));
            bluefs::zones_for(needed, copies) <= geometry.conventional_count()
        };
        if whole.conventional_parts > 1 {
            return whole.conventional_parts;
        }
        let parts = (0..16).filter_map(|log| divided(whole, 1 << log).ok());
        let mut parts = parts.take_while(|g| g.conventional_capacity() >= SMALLEST);
        parts.find(fits).map_or(1, |g| g.conventional_parts)
    }

    /// Sequential zones that an empty drive keeps for BlueFS.
    pub fn of_empty_drive(whole: &Geometry, copies: u32) -> u32 {
        let parts = Self::conventional_parts(whole, copies);
        let geometry = divided(whole, parts).unwrap_or_else(|_| whole.clone());
        let counts = PoolCounts {
            free_conventional: geometry.conventional_count(),
            ..PoolCounts::default()
        };
        let mut reservation = Self::default();
        reservation.look(&counts, &geometry, 0, || 0);
        reservation.follow(&geometry, copies, &counts, 0);
        reservation.zones
    }

    /// Zones of metadata expected on a full drive.
    fn expected(geometry: &Geometry) -> u32 {
        Self::dense(geometry, geometry.capacity_bytes() / DATA_PER_METADATA)
    }

    fn dense(geometry: &Geometry, bytes: u64) -> u32 {
        let zones = bytes.div_ceil(geometry.least_capacity() / 16 * 15);
        u32::try_from(zones).unwrap_or(u32::MAX)
    }

    /// Recomputes the zones that SSTs fill, if the pool's counts or the zones of `garbage` have changed since the last
    /// call. `stored` returns the bytes of all SSTs, garbage included. Returns by how many bytes these have shrunk.
    pub fn look(
        &mut self,
        counts: &PoolCounts,
        geometry: &Geometry,
        garbage: u64,
        stored: impl FnOnce() -> u64,
    ) -> u64 {
        // Garbage counts in whole zones: otherwise every removal would have all files measured.
        let zones_of_garbage = garbage / geometry.least_capacity();
        let seen = Some((
            counts.bluefs_sequential,
            counts.bluefs_conventional,
            zones_of_garbage,
        ));
        if self.seen == seen {
            return 0;
        }
        self.seen = seen;
        let before = std::mem::replace(&mut self.stored, stored());
        // The basis is the SSTs, not BlueFS's zones: mostly dead ones are given back when they are needed. Logs and the
        // output of compactions come and go, and are covered by the headroom. Removed rows do not count either: a put
        // that needs their space has them compacted.
        let dense = Self::dense(geometry, self.stored.saturating_sub(garbage));
        // One more than expected, so that a small drive's capacity can be stored with long names too.
        let expected = Self::expected(geometry) + 1;
        self.tables = dense.max(expected);
        before.saturating_sub(self.stored)
    }

    /// Bytes that removals take beside the SSTs of a database with levels: a tombstone holds its row's key and moves
    /// down level by level, and the level above the last has a tenth of the last one's size. For up to the expected
    /// number of zones, the headroom is enough.
    pub fn for_removals(&self, geometry: &Geometry) -> u64 {
        let more = self.tables.saturating_sub(Self::expected(geometry) + 1);
        u64::from(more) * geometry.least_capacity() / 10
    }

    /// Forces the next [`Self::look`] to recompute, for the needs of BlueFS may change without a change of the pool's
    /// counts.
    pub fn look_again(&mut self) {
        self.seen = None;
    }

    /// Computes [`Self::zones`]. Conventional zones all belong to BlueFS and count first.
    pub fn follow(&mut self, geometry: &Geometry, copies: u32, counts: &PoolCounts, removals: u64) {
        let headroom = Self::headroom(geometry, copies);
        let wanted = self
            .tables
            .saturating_add((removals / geometry.least_capacity()) as u32);
        let wanted = wanted.saturating_add(bluefs::LEAST_ZONES + headroom);
        let all = bluefs::zones_for(wanted, copies);
        let conventional = counts.bluefs_conventional + counts.free_conventional;
        let more = all.saturating_sub(conventional);
        if geometry.conventional_parts == 1 {
            self.zones = more.max(bluefs::SEQUENTIAL_ZONES);
            return;
        }
        // A sequential zone holds as much as several parts of conventional ones, and files share it.
        let shared = u64::from(more.saturating_sub(bluefs::SEQUENTIAL_ZONES));
        let by_bytes = (shared * geometry.least_capacity()).div_ceil(geometry.zone_capacity) as u32;
        // The journal and the files written at the same time share no zones. SSTs may have the conventional ones.
        let tables = self.tables.saturating_mul(copies);
        let alone = bluefs::zones_for(bluefs::LEAST_ZONES, copies) - bluefs::SEQUENTIAL_ZONES;
        let by_number = alone.saturating_sub(conventional.saturating_sub(tables));
        let beside_superblocks = by_bytes.max(by_number).next_multiple_of(copies);
        self.zones = bluefs::SEQUENTIAL_ZONES + beside_superblocks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::ZoneKind;

    fn drive(zone_mib: u64, zone_count: u32, conventional_zones: u32) -> Geometry {
        Geometry {
            block_size: 4096,
            zone_size: zone_mib << 20,
            zone_capacity: zone_mib << 20,
            zone_count,
            conventional_zones,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 128,
            max_active_zones: 0,
            max_append_bytes: 0,
        }
    }

    fn parts(zone_mib: u64, zone_count: u32, conventional_zones: u32) -> u32 {
        parts_for(1, zone_mib, zone_count, conventional_zones)
    }

    fn parts_for(copies: u32, zone_mib: u64, zone_count: u32, conventional_zones: u32) -> u32 {
        let geometry = drive(zone_mib, zone_count, conventional_zones);
        Reservation::conventional_parts(&geometry, copies)
    }

    #[test]
    fn conventional_zones_are_divided_where_they_are_few_and_large() {
        // 64 GiB, 256 GiB, 2 TiB and 14 TB with zones of 256 MiB, of which a hundredth is conventional.
        assert_eq!(parts(256, 256, 3), 16);
        assert_eq!(parts(256, 1024, 10), 4);
        assert_eq!(parts(256, 8192, 82), 1);
        assert_eq!(parts(256, 52_156, 524), 1);
        // In two copies, more and smaller ones.
        assert_eq!(parts_for(2, 256, 256, 3), 32);
        assert_eq!(parts_for(2, 256, 1024, 10), 8);
        assert_eq!(parts_for(2, 256, 8192, 82), 1);
        // None, none that would help, and small ones.
        assert_eq!(parts(1077, 904, 0), 1);
        assert_eq!(parts(256, 52_156, 1), 1);
        assert_eq!(parts(4, 256, 3), 1);
    }

    /// Metadata that was to lie in small parts of a conventional zone does not take as many whole sequential zones.
    #[test]
    fn a_lost_conventional_zone_costs_about_a_zone() {
        for copies in [1, 2] {
            let whole = drive(256, 256, 3);
            let parts = Reservation::conventional_parts(&whole, copies);
            let geometry = divided(&whole, parts).unwrap();
            let reserved = |lost: u32, tables: u32| {
                let counts = PoolCounts {
                    free_conventional: (3 - lost) * parts,
                    ..PoolCounts::default()
                };
                let bytes = u64::from(tables) * geometry.least_capacity() / 16 * 15;
                let mut reservation = Reservation::default();
                reservation.look(&counts, &geometry, 0, || bytes);
                reservation.follow(&geometry, copies, &counts, 0);
                reservation.zones
            };
            let whole = reserved(0, 0);
            assert_eq!(whole, bluefs::SEQUENTIAL_ZONES);
            assert!(reserved(1, 0) <= whole + copies, "{}", reserved(1, 0));
            // As long as there is no more than expected, nothing changes.
            let expected = Reservation::expected(&geometry);
            for lost in 0..3 {
                assert_eq!(reserved(lost, expected), reserved(lost, 0));
            }
            // With SSTs in all conventional zones, files that cannot share a zone have their own.
            for lost in 0..=3 {
                let alone = bluefs::zones_for(bluefs::LEAST_ZONES, copies);
                assert!(reserved(lost, 3 * parts) >= alone);
            }
        }
    }
}
