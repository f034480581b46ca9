//! How many zones are reserved for BlueFS: it follows from what is live in it.

use zone_alloc::{PoolCounts, reserved_zones};

/// What is reserved for BlueFS.
#[derive(Default)]
pub(crate) struct Reservation {
    pub zones: u32,
    /// Zones that it would do with, and how many it had when that was last worked out.
    owned: u32,
    seen: Option<(u32, u32, u64)>,
}

impl Reservation {
    /// The headroom of a small drive.
    pub const LEAST_HEADROOM: u32 = 8;

    /// Zones that are always left for BlueFS to grow into: compaction writes before it deletes.
    pub fn headroom(zone_count: u32) -> u32 {
        (zone_count / 32).clamp(Self::LEAST_HEADROOM, 64)
    }

    /// Works out what BlueFS needs, if zones or `garbage` bytes of it have changed since that was done.
    /// `live` answers its live bytes, garbage among them.
    pub fn look(
        &mut self,
        counts: &PoolCounts,
        zone_capacity: u64,
        garbage: u64,
        live: impl FnOnce() -> u64,
    ) {
        // Garbage counts by the zone, or every removal would have all files looked at.
        let zones_of_garbage = garbage / zone_capacity;
        let seen = Some((
            counts.bluefs_sequential,
            counts.bluefs_conventional,
            zones_of_garbage,
        ));
        if self.seen == seen {
            return;
        }
        self.seen = seen;
        // Not what it has: zones that are mostly dead are given back when they are needed.
        // Nor what is removed: a put that needs the space has it compacted.
        let dense = live()
            .saturating_sub(garbage)
            .div_ceil(zone_capacity / 16 * 15);
        let fixed = bluefs::LEAST_ZONES.saturating_sub(counts.bluefs_conventional);
        self.owned = u32::try_from(dense)
            .unwrap_or(u32::MAX)
            .saturating_add(fixed);
    }

    /// What BlueFS needs may be less without any zone having changed hands.
    pub fn look_again(&mut self) {
        self.seen = None;
    }

    /// Lets the reservation follow, up to `ceiling` zones.
    pub fn follow(&mut self, headroom: u32, ceiling: u32) {
        self.zones = reserved_zones(self.zones, self.owned, headroom, ceiling);
    }
}
