//! Helps a consumer with cleaning: finds the live extents, the order of their puts, and the gain of cleaning a
//! zone. Pure: the caller passes the extents and decides which are live.

use crate::placed::{LogicalAddress, Placed};
use std::collections::BTreeMap;
use zone::ZoneId;
use zone_alloc::Candidate;

/// The newest extent of each logical address, which is the live one for a consumer that overwrites by putting
/// again.
///
/// The extents may come in any order and from any number of zones that share a [`crate::Sequence`].
pub fn newest(extents: impl IntoIterator<Item = Placed>) -> BTreeMap<LogicalAddress, Placed> {
    let mut newest: BTreeMap<LogicalAddress, Placed> = BTreeMap::new();
    for extent in extents {
        let known = newest.entry(extent.address).or_insert(extent);
        if known.order < extent.order {
            *known = extent;
        }
    }
    newest
}

/// The live and dead extents of one zone.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ZoneCensus {
    /// Live extents in the order of their puts; a cleaner has to move them.
    pub live: Vec<Placed>,
    /// Bytes of the live extents on the drive, including padding and metadata.
    pub live_bytes: u64,
    /// Number of dead extents.
    pub dead: u64,
    /// Bytes of the dead extents on the drive.
    pub dead_bytes: u64,
    /// [`Placed::order`] of the zone's last put.
    pub last_order: u64,
}

/// The live and dead extents of all zones.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Census {
    /// By zone.
    pub zones: BTreeMap<ZoneId, ZoneCensus>,
}

impl Census {
    /// Sorts `extents`, which may be in any order, into live and dead ones by `is_live`.
    pub fn of(
        extents: impl IntoIterator<Item = Placed>,
        is_live: impl Fn(&Placed) -> bool,
    ) -> Self {
        let mut census = Self::default();
        for extent in extents {
            let zone = census.zones.entry(extent.at.zone).or_default();
            zone.last_order = zone.last_order.max(extent.order);
            if is_live(&extent) {
                zone.live_bytes += extent.stored;
                zone.live.push(extent);
            } else {
                zone.dead_bytes += extent.stored;
                zone.dead += 1;
            }
        }
        for zone in census.zones.values_mut() {
            zone.live.sort_by_key(|extent| extent.order);
        }
        census
    }

    /// The zones as candidates of a cleaning policy. `written` returns the bytes that a reset of a zone gives
    /// back. The clock is the order of puts.
    pub fn candidates(&self, written: impl Fn(ZoneId) -> u64) -> Vec<Candidate> {
        let each = self.zones.iter();
        each.map(|(zone, census)| Candidate {
            zone: *zone,
            live: census.live_bytes,
            written: written(*zone),
            filled_at: census.last_order,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::{ByteOffset, ZoneAddress};
    use zone_alloc::{CleaningPolicy, Greedy, Pressure, ZoneView};

    fn placed(address: u64, zone: u32, order: u64) -> Placed {
        Placed {
            address: LogicalAddress(address),
            lba: ByteOffset(order * 8192),
            at: ZoneAddress::new(ZoneId(zone), order * 8192),
            length: 4096,
            stored: 8192,
            order,
            number: order,
            checksum: 0,
        }
    }

    #[test]
    fn the_newest_of_an_address_is_live_and_the_emptiest_zone_is_cleaned() {
        // Zone 2 overwrites zone 1 except for address 3, and the extents come in reverse order.
        let history = [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (4, 2)];
        let history = history.into_iter().enumerate().rev();
        let extents: Vec<Placed> = history
            .map(|(order, (address, zone))| placed(address, zone, order as u64))
            .collect();
        let newest = newest(extents.iter().copied());
        assert_eq!(newest.len(), 4);
        assert_eq!(newest[&LogicalAddress(1)].order, 3);
        let census = Census::of(extents, |e| newest[&e.address].order == e.order);
        let first = &census.zones[&ZoneId(1)];
        assert_eq!((first.live.len(), first.dead), (1, 2));
        assert_eq!((first.live_bytes, first.dead_bytes), (8192, 16_384));
        let orders: Vec<u64> = census.zones[&ZoneId(2)]
            .live
            .iter()
            .map(|e| e.order)
            .collect();
        assert_eq!(orders, [3, 4, 5]);
        let zones = census.candidates(|_| 3 * 8192);
        let view = ZoneView {
            zones: &zones,
            now: 6,
        };
        let victim = Greedy.choose(view, Pressure::Any).map(|c| c.zone);
        assert_eq!(victim, Some(ZoneId(1)));
    }
}
