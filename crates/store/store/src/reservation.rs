//! How many zones are reserved for BlueFS: it follows from what is live in it.

use device::divided::divided;
use zone::Geometry;
use zone_alloc::PoolCounts;

/// Of so many bytes of the drive one is expected to be metadata: objects of 128 KiB with rows of 256 bytes.
/// The capacity stays as it is until there is more.
const DATA_PER_METADATA: u64 = 512;

/// What is reserved for BlueFS. It follows from what is stored now and from nothing before, so that a mount
/// declares what was declared before it.
#[derive(Default)]
pub(crate) struct Reservation {
    /// Sequential zones, more than there are left of them where data came first.
    pub zones: u32,
    /// Zones that its tables fill, or are expected to; how many it had when that was last worked out, and bytes
    /// in its tables.
    tables: u32,
    seen: Option<(u32, u32, u64)>,
    stored: u64,
}

impl Reservation {
    /// The headroom of a small drive.
    pub const LEAST_HEADROOM: u32 = 8;

    /// Zones that are always left for BlueFS to grow into: compaction writes before it deletes. The largest
    /// compactions follow from them, and more than enough would gain nothing.
    pub fn headroom(geometry: &Geometry, copies: u32) -> u32 {
        const ENOUGH_BYTES: u64 = 2 << 30;
        let enough = ENOUGH_BYTES.div_ceil(geometry.least_capacity()).min(64) as u32;
        let share = match geometry.conventional_parts {
            1 => geometry.zone_count / 32,
            _ => geometry.conventional_count() / (4 * copies),
        };
        share.min(enough).max(Self::LEAST_HEADROOM)
    }

    /// Into how many zones each conventional zone is divided: as few as there have to be for all of BlueFS to
    /// find a place in them at first, so that it leaves sequential zones to data.
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

    /// Zones of metadata when the drive is full.
    fn expected(geometry: &Geometry) -> u32 {
        Self::dense(geometry, geometry.capacity_bytes() / DATA_PER_METADATA)
    }

    fn dense(geometry: &Geometry, bytes: u64) -> u32 {
        let zones = bytes.div_ceil(geometry.least_capacity() / 16 * 15);
        u32::try_from(zones).unwrap_or(u32::MAX)
    }

    /// Works out what BlueFS needs, if zones or `garbage` bytes of it have changed since that was done.
    /// `stored` answers the bytes of the database's tables, garbage among them. Answers by how much they
    /// have become less.
    pub fn look(
        &mut self,
        counts: &PoolCounts,
        geometry: &Geometry,
        garbage: u64,
        stored: impl FnOnce() -> u64,
    ) -> u64 {
        // Garbage counts by the zone, or every removal would have all files looked at.
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
        // Not what BlueFS has: zones that are mostly dead are given back when they are needed. Not logs and
        // what a compaction writes, which come and go: the headroom is for them. Nor what is removed: a put
        // that needs the space has it compacted.
        let dense = Self::dense(geometry, self.stored.saturating_sub(garbage));
        // One more than expected, so that what is declared of a small drive can be stored with long names too.
        let expected = Self::expected(geometry) + 1;
        self.tables = dense.max(expected);
        before.saturating_sub(self.stored)
    }

    /// Bytes that removals take beside the tables of a database with levels: what removes a row has its key, and goes down to it level
    /// by level. The level above the last has a tenth of the last one's size. For tables that were expected the headroom is enough.
    pub fn for_removals(&self, geometry: &Geometry) -> u64 {
        let more = self.tables.saturating_sub(Self::expected(geometry) + 1);
        u64::from(more) * geometry.least_capacity() / 10
    }

    /// What BlueFS needs may be more or less without any zone having changed hands.
    pub fn look_again(&mut self) {
        self.seen = None;
    }

    /// Lets the reservation follow. Conventional zones are all BlueFS's and count first.
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
        // The journal, and what is written to at one time, share none. Tables may have the conventional ones.
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

    /// What was to lie in small parts of a conventional zone does not take as many large ones.
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
            // With tables in all conventional zones, what cannot share a zone has its own.
            for lost in 0..=3 {
                let alone = bluefs::zones_for(bluefs::LEAST_ZONES, copies);
                assert!(reserved(lost, 3 * parts) >= alone);
            }
        }
    }
}
