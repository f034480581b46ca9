//! The rows of the freelist, and what is derived from them: sums over all zones, and the zones that could be cleaned.
//! Every change goes through [`Table::change`], [`Table::change_failures`] or [`Table::change_holds`], which update
//! both, so that only [`Table::audit`] has to sum over all zones.

use crate::holds::Holds;
use crate::zone_failures::{SetAside, ZoneFailures};
use std::collections::BTreeMap;
use zone::ZoneId;
use zone_alloc::{Ages, Candidate, Victims};

/// Sums over all zones of the store, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Totals {
    pub live: u64,
    /// Bytes of objects that lie in the metadata, and in no zone.
    pub inline: u64,
    /// Bytes of object data, live or dead; not summaries.
    pub written: u64,
    pub summaries: u64,
    /// Written, or reserved for a writer, not yet committed.
    pub in_flight: u64,
    /// Capacity above the write pointer of sealed zones.
    pub tails: u64,
    /// Capacity of zones that are set aside, less their live and uncommitted bytes.
    pub set_aside: u64,
    /// Capacity of zones that take no writes any more and hold nothing live or uncommitted.
    pub out_of_use: u64,
    pub dirty_zones: u32,
    /// Live and uncommitted bytes in dirty zones.
    pub dirty_live: u64,
}

impl Totals {
    /// Bytes that cleaning could give back: written or in unusable tails, and neither live nor in flight.
    pub fn dead(&self) -> u64 {
        (self.written + self.tails).saturating_sub(self.live + self.in_flight)
    }

    /// Most bytes of a host's disk under the drive that cleaning can give back: unwritten tails take none there, and what
    /// is in flight may not be written yet.
    pub fn dead_on_host(&self) -> u64 {
        (self.written + self.summaries).saturating_sub(self.live)
    }

    /// Bytes of zones that objects cannot fill: never again, or not before others are removed.
    pub const fn given_up(&self) -> u64 {
        self.set_aside + self.out_of_use
    }

    fn add(&mut self, part: &Self) {
        self.live += part.live;
        self.written += part.written;
        self.summaries += part.summaries;
        self.tails += part.tails;
        self.set_aside += part.set_aside;
        self.out_of_use += part.out_of_use;
        self.dirty_zones += part.dirty_zones;
        self.dirty_live += part.dirty_live;
    }

    fn subtract(&mut self, part: &Self) {
        self.live -= part.live;
        self.written -= part.written;
        self.summaries -= part.summaries;
        self.tails -= part.tails;
        self.set_aside -= part.set_aside;
        self.out_of_use -= part.out_of_use;
        self.dirty_zones -= part.dirty_zones;
        self.dirty_live -= part.dirty_live;
    }

    pub const fn fits(&self, bytes: u64, capacity: u64) -> bool {
        self.live + self.in_flight + bytes <= capacity
    }
}

/// Value of `filled_at` in the rows of zones that are not the store's.
const NOT_OURS: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub written: u64,
    pub live: u64,
    filled_at: u32,
    /// Bytes of segment summaries: written, and neither live nor dead.
    pub summaries: u32,
}

const _: () = assert!(size_of::<Row>() <= 24);

impl Row {
    pub const ABSENT: Self = Self {
        written: 0,
        live: 0,
        filled_at: NOT_OURS,
        summaries: 0,
    };

    /// The row of a zone that was sealed when `fills` zones had been filled.
    pub const fn filled_at(self, fills: u32) -> Self {
        Self {
            filled_at: fills,
            ..self
        }
    }

    /// Bytes that a zone of this capacity offers to objects after a reset, its live ones included.
    fn reset_gives_back(&self, capacity: u64) -> u64 {
        capacity.max(self.written) - u64::from(self.summaries)
    }

    pub const fn is_ours(&self) -> bool {
        self.filled_at != NOT_OURS
    }
}

/// Writers' use of a zone; few zones have any.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Use {
    /// Whether a stream appends to the zone.
    pub open: bool,
    /// Writes under way.
    pub pins: u16,
    /// Bytes written that are neither committed nor given up.
    pub uncommitted: u64,
}

/// All that the freelist knows of a zone.
#[derive(Clone, Copy)]
pub(super) struct Zone {
    pub row: Row,
    pub now: Use,
}

impl Zone {
    /// Bytes that have to be moved before the zone is reset.
    pub const fn wanted(&self) -> u64 {
        self.row.live + self.now.uncommitted
    }

    /// Bytes written for objects.
    const fn written_for_objects(&self) -> u64 {
        self.row.written.saturating_sub(self.row.summaries as u64)
    }
}

/// Rows by zone number.
struct Rows {
    capacity: u64,
    rows: Vec<Row>,
}

/// The rows with all that is derived from them; see the module documentation.
pub(super) struct Table {
    rows: Rows,
    in_use: BTreeMap<ZoneId, Use>,
    failures: ZoneFailures,
    holds: Holds,
    victims: Victims,
    pub totals: Totals,
    pub fills: u32,
}

impl Ages for Rows {
    fn age(&self, zone: ZoneId) -> (u64, u64) {
        let row = &self.rows[zone.index()];
        let dead = row.reset_gives_back(self.capacity).saturating_sub(row.live);
        (row.filled_at.into(), dead)
    }
}

impl Table {
    pub fn new(zones: u32, capacity: u64) -> Self {
        Self {
            rows: Rows {
                capacity,
                rows: vec![Row::ABSENT; zones as usize],
            },
            in_use: BTreeMap::new(),
            failures: ZoneFailures::default(),
            holds: Holds::default(),
            victims: Victims::new(zones),
            totals: Totals::default(),
            fills: 0,
        }
    }

    /// A zone; one that the drive does not have, but a damaged row names, is not the store's.
    pub fn zone(&self, zone: ZoneId) -> Zone {
        let row = self.rows.rows.get(zone.index());
        Zone {
            row: row.copied().unwrap_or(Row::ABSENT),
            now: self.in_use.get(&zone).copied().unwrap_or_default(),
        }
    }

    /// Whether the drive has such a zone, and it is the store's.
    pub fn is_ours(&self, zone: ZoneId) -> bool {
        self.rows.rows.get(zone.index()).is_some_and(Row::is_ours)
    }

    pub const fn failures(&self) -> &ZoneFailures {
        &self.failures
    }

    /// The store's zones.
    pub fn ours(&self) -> impl Iterator<Item = (ZoneId, &Row)> {
        let rows = (0..).map(ZoneId).zip(&self.rows.rows);
        rows.filter(|(_, row)| row.is_ours())
    }

    /// Applies `change` to a zone, if the drive has it, and updates sums and victims.
    pub fn change(&mut self, zone: ZoneId, change: impl FnOnce(&mut Zone)) {
        if zone.index() >= self.rows.rows.len() {
            return;
        }
        self.leave(zone);
        let mut changed = self.zone(zone);
        change(&mut changed);
        self.rows.rows[zone.index()] = changed.row;
        if changed.now == Use::default() {
            self.in_use.remove(&zone);
        } else {
            self.in_use.insert(zone, changed.now);
        }
        self.enter(zone);
    }

    /// Applies `change` to the failures of a zone and updates sums and victims.
    pub fn change_failures<T>(
        &mut self,
        zone: ZoneId,
        change: impl FnOnce(&mut ZoneFailures) -> T,
    ) -> T {
        self.leave(zone);
        let answer = change(&mut self.failures);
        self.enter(zone);
        answer
    }

    /// Forgets the failures of all zones.
    pub fn forget_failures(&mut self) {
        let zones = self.failures.all_set_aside();
        let zones: Vec<_> = zones.map(|(zone, ..)| zone).collect();
        zones.iter().for_each(|zone| self.leave(*zone));
        self.failures = ZoneFailures::default();
        zones.iter().for_each(|zone| self.enter(*zone));
    }

    pub const fn holds(&self) -> &Holds {
        &self.holds
    }

    /// Applies `change` to the zones that moments hold, and updates sums and victims of all zones.
    pub fn change_holds<T>(&mut self, change: impl FnOnce(&mut Holds) -> T) -> T {
        let zones: Vec<ZoneId> = self.ours().map(|(zone, _)| zone).collect();
        zones.iter().for_each(|zone| self.leave(*zone));
        let answer = change(&mut self.holds);
        zones.iter().for_each(|zone| self.enter(*zone));
        answer
    }

    /// Whether cleaning a zone that a moment holds would free space.
    pub fn is_held_back(&self) -> bool {
        let mut zones = self.holds.zones().filter_map(|zone| self.cleanable(zone));
        zones.any(|zone| zone.live < zone.written)
    }

    /// A zone's share of the sums.
    fn part(&self, id: ZoneId) -> Totals {
        let zone = self.zone(id);
        if !zone.row.is_ours() {
            return Totals::default();
        }
        let sums = Totals {
            live: zone.row.live,
            summaries: zone.row.summaries.into(),
            ..Totals::default()
        };
        if self.is_out_of_use(id) {
            return Totals {
                out_of_use: self.rows.capacity,
                ..Totals::default()
            };
        }
        if self.failures.why(id).is_some() {
            return Totals {
                written: zone.wanted(),
                set_aside: self.rows.capacity.saturating_sub(zone.wanted()),
                ..sums
            };
        }
        let tail = self.rows.capacity.saturating_sub(zone.row.written);
        let is_dirty = zone.wanted() < zone.written_for_objects();
        Totals {
            written: zone.written_for_objects(),
            tails: if zone.now.open { 0 } else { tail },
            dirty_zones: is_dirty.into(),
            dirty_live: if is_dirty { zone.wanted() } else { 0 },
            ..sums
        }
    }

    /// Whether the zone takes no writes any more and holds nothing live or uncommitted.
    fn is_out_of_use(&self, id: ZoneId) -> bool {
        let zone = self.zone(id);
        let is_empty = zone.wanted() == 0 && zone.now.pins == 0;
        zone.row.is_ours() && is_empty && self.failures.takes_nothing(id)
    }

    /// All zones that are out of use, lowest first.
    pub fn out_of_use(&self) -> Vec<ZoneId> {
        let zones = self.failures.all_set_aside().map(|(zone, ..)| zone);
        zones.filter(|zone| self.is_out_of_use(*zone)).collect()
    }

    /// The zone, if it can be cleaned: sealed and without writes under way. One that is set aside qualifies only when
    /// it holds nothing live or uncommitted, one that a moment holds never. Uncommitted bytes count as live, because
    /// they are moved; the tail that was never written counts as dead, because cleaning gives it back.
    pub fn candidate(&self, id: ZoneId) -> Option<Candidate> {
        self.cleanable(id).filter(|zone| !self.holds.has(zone.zone))
    }

    /// Like [`Self::candidate`], whether a moment holds the zone or not.
    fn cleanable(&self, id: ZoneId) -> Option<Candidate> {
        let set_aside = self.failures.why(id).is_some();
        self.movable(id).filter(|zone| zone.live == 0 || !set_aside)
    }

    /// Zones to drain: read-only with data that could be moved, then those that are set aside with nothing in them, which
    /// a reader may keep from being reset for long.
    pub fn to_drain(&self) -> Vec<Candidate> {
        let zones = self.failures.all_set_aside();
        let zones = zones.filter_map(|(zone, why, _)| Some((self.movable(zone)?, why)));
        let zones = zones.filter(|(zone, why)| match zone.live {
            0 => !self.holds.has(zone.zone),
            _ => *why == SetAside::ReadOnly,
        });
        let mut zones: Vec<_> = zones.map(|(zone, _)| zone).collect();
        zones.sort_by_key(|zone| zone.live == 0);
        zones
    }

    /// The zone, if it is sealed and without writes under way, whether set aside or not.
    fn movable(&self, id: ZoneId) -> Option<Candidate> {
        let zone = self.zone(id);
        let is_movable = zone.row.is_ours() && !zone.now.open && zone.now.pins == 0;
        is_movable.then(|| Candidate {
            zone: id,
            live: zone.wanted(),
            written: zone.row.reset_gives_back(self.rows.capacity),
            filled_at: zone.row.filled_at.into(),
        })
    }

    /// A short list of zones that contains one worth cleaning, if any is (`zone_alloc::Victims`).
    pub fn shortlist(&self) -> Vec<Candidate> {
        let zones = self.victims.shortlist();
        zones.filter_map(|zone| self.candidate(zone)).collect()
    }

    /// What [`super::Freelist::candidates_on_host`] returns.
    pub fn candidates_on_host(&self) -> Vec<(Candidate, Candidate)> {
        let zones = self.ours().filter_map(|(zone, _)| self.candidate(zone));
        let zones = zones.filter(|zone| zone.live > 0 && zone.live < zone.written);
        let on_host = |zone: Candidate| Candidate {
            written: self.zone(zone.zone).written_for_objects().max(zone.live),
            ..zone
        };
        zones.map(|zone| (zone, on_host(zone))).collect()
    }

    /// Zones without live or uncommitted bytes, in order: a reset is all they need.
    pub fn dead(&self) -> Vec<Candidate> {
        let mut zones: Vec<_> = self.victims.dead().collect();
        zones.sort_unstable();
        let zones = zones.into_iter();
        zones.filter_map(|zone| self.candidate(zone)).collect()
    }

    fn leave(&mut self, zone: ZoneId) {
        self.totals.subtract(&self.part(zone));
        if let Some(candidate) = self.candidate(zone) {
            self.victims.remove(&candidate, &self.rows);
        }
    }

    fn enter(&mut self, zone: ZoneId) {
        self.totals.add(&self.part(zone));
        if let Some(candidate) = self.candidate(zone) {
            self.victims.insert(&candidate, &self.rows);
        }
    }

    /// The sums, by a scan of all zones.
    pub fn audit(&self) -> Totals {
        let mut sums = Totals {
            inline: self.totals.inline,
            in_flight: self.totals.in_flight,
            ..Totals::default()
        };
        for (zone, _) in self.ours() {
            sums.add(&self.part(zone));
        }
        sums
    }
}
