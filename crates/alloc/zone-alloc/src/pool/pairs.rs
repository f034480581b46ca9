//! Zones in pairs, for metadata in two copies: a failure of one zone of the drive leaves the other copy.

use super::{Owner, Purpose, State, Table, ZonePool};
use std::cmp::Reverse;
use zone::{Geometry, ZoneId, ZoneKind};

impl ZonePool {
    /// Takes two free zones of one kind for BlueFS: sequential ones as far from each other as free zones lie,
    /// conventional ones in different zones of the drive. `None` if there are none.
    pub fn take_pair(&self, purpose: Purpose) -> Option<[ZoneId; 2]> {
        let mut table = self.table.lock();
        let g = &self.geometry;
        let prefers = match purpose {
            Purpose::Journal => ZoneKind::Conventional,
            _ => table.prefers(),
        };
        let pair = match prefers {
            ZoneKind::Conventional => table
                .conventional_pair(g)
                .or_else(|| table.sequential_pair(g)),
            _ => table
                .sequential_pair(g)
                .or_else(|| table.conventional_pair(g)),
        }?;
        for zone in pair {
            table.set(g, zone, State::Owned(Owner::BlueFs));
        }
        Some(pair)
    }

    /// Number of times that [`Self::take_pair`] can succeed.
    pub fn free_pairs(&self) -> u32 {
        let table = self.table.lock();
        let free = table.counts.free_conventional;
        let most = table.free_parts.iter().copied().max().unwrap_or(0);
        table.counts.free_sequential / 2 + (free / 2).min(free - most)
    }
}

impl Table {
    fn is_free(&self, zone: ZoneId) -> bool {
        self.states[zone.index()] == State::Free
    }

    fn sequential_pair(&self, g: &Geometry) -> Option<[ZoneId; 2]> {
        let zones = (g.conventional_zones..g.drive_zones()).map(ZoneId);
        let mut free = zones.filter(|zone| self.is_free(*zone));
        Some([free.next()?, free.next_back()?])
    }

    /// Parts of the two conventional zones with the most free parts, so that the remaining ones can be paired
    /// too.
    fn conventional_pair(&self, g: &Geometry) -> Option<[ZoneId; 2]> {
        let mut most: Vec<_> = self
            .free_parts
            .iter()
            .zip(0..)
            .map(|(n, z)| (Reverse(*n), z))
            .collect();
        most.sort_unstable();
        let part =
            |(_, whole): &(_, u32)| g.parts_of(ZoneId(*whole)).find(|zone| self.is_free(*zone));
        match most.as_slice() {
            [one, other, ..] => Some([part(one)?, part(other)?]),
            _ => None,
        }
    }

    /// The number of free parts of the drive's zone that `zone` is a part of; `None` if it is not conventional.
    pub(super) fn free_parts(&mut self, g: &Geometry, zone: ZoneId) -> Option<&mut u32> {
        let (whole, _) = g.zone_of_drive(zone);
        self.free_parts.get_mut(whole.index())
    }
}
