//! The freelist in memory: for every zone of the store what is written, live and still on its way
//! to a commit. 32 bytes a zone; the durable twin are the `Z` records.
//!
//! Invariants: `live <= written`; a zone with pins is being written to and left alone; one with
//! uncommitted bytes holds what a commit may still point to, and is not reset before that has been
//! moved, committed or given up; `live_total + in_flight` never exceeds what the drive can hold. A zone that is
//! set aside is not cleaned, and nothing of it is available, until what is live in it has gone.

use crate::zone_failures::{SetAside, ZoneFailures};
use object::Delta;
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use zone::ZoneId;
use zone_alloc::Candidate;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Role {
    #[default]
    NotOurs,
    /// A stream appends to it.
    Open,
    /// Nothing is appended any more.
    Sealed,
}

#[derive(Clone, Copy, Default, Debug)]
struct Row {
    written: u64,
    live: u64,
    /// Placed, and neither committed nor given up yet.
    uncommitted: u64,
    /// Writes under way.
    pins: u16,
    filled_at: u32,
    /// Bytes of segment summaries: written, and neither live nor dead.
    summaries: u32,
    role: Role,
}

impl Row {
    /// Bytes that have to be elsewhere before the zone is reset.
    const fn wanted(&self) -> u64 {
        self.live + self.uncommitted
    }

    /// Bytes written for objects.
    const fn written_for_objects(&self) -> u64 {
        self.written.saturating_sub(self.summaries as u64)
    }
}

const _: () = assert!(size_of::<Row>() <= 40);

/// A zone with live data that is left as it is, and what the drive said when that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ZoneSetAside {
    pub zone: ZoneId,
    pub why: SetAside,
    pub error: String,
    pub live: u64,
}

struct Rows {
    rows: Vec<Row>,
    failures: ZoneFailures,
    live_total: u64,
    inline: u64,
    in_flight: u64,
    /// Bytes of segment summaries.
    summaries: u64,
    fills: u32,
}

impl Rows {
    fn fits(&self, bytes: u64, capacity: u64) -> bool {
        self.live_total + self.in_flight + bytes <= capacity
    }
}

/// Sums over all zones of the store, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    pub live: u64,
    /// In the metadata; not among the others.
    pub inline: u64,
    /// For objects.
    pub written: u64,
    pub summaries: u64,
    /// Written, or reserved for a writer, not yet committed.
    pub in_flight: u64,
    /// Capacity behind the end of sealed zones.
    pub tails: u64,
    /// Capacity of zones that are set aside, less what is live or uncommitted in them.
    pub set_aside: u64,
    pub dirty_zones: u32,
}

pub(crate) struct Freelist {
    capacity: u64,
    rows: Mutex<Rows>,
}

impl Freelist {
    /// For a drive of `zones` zones of which a sequential one holds `capacity` bytes.
    pub fn new(zones: u32, capacity: u64) -> Self {
        let rows = vec![Row::default(); zones as usize];
        Self {
            capacity,
            rows: Mutex::new(Rows {
                rows,
                failures: ZoneFailures::default(),
                live_total: 0,
                inline: 0,
                in_flight: 0,
                summaries: 0,
                fills: 0,
            }),
        }
    }

    /// Enters a zone found at mount; it is sealed.
    pub fn adopt(&self, zone: ZoneId, written: u64, live: u64) {
        let mut rows = self.rows.lock();
        rows.live_total += live;
        let filled_at = rows.fills;
        rows.rows[zone.index()] = Row {
            written,
            live,
            uncommitted: 0,
            pins: 0,
            filled_at,
            summaries: 0,
            role: Role::Sealed,
        };
    }

    /// A stream begins (or, after a mount, goes on) to append to `zone`.
    pub fn open(&self, zone: ZoneId) {
        self.rows.lock().rows[zone.index()].role = Role::Open;
    }

    /// A write of `bytes` to the open `zone` begins; it is pinned until [`Self::unpin`].
    pub fn pin(&self, zone: ZoneId, bytes: u64) {
        let mut rows = self.rows.lock();
        let row = &mut rows.rows[zone.index()];
        row.written += bytes;
        row.pins += 1;
    }

    /// A write to `zone` has ended: what it wrote is known as uncommitted, or it failed.
    pub fn unpin(&self, zone: ZoneId) {
        let mut rows = self.rows.lock();
        let row = &mut rows.rows[zone.index()];
        debug_assert!(row.pins > 0);
        row.pins = row.pins.saturating_sub(1);
    }

    /// `bytes` of what is written to `zone` are a segment summary.
    pub fn add_summary(&self, zone: ZoneId, bytes: u64) {
        let mut rows = self.rows.lock();
        rows.summaries += bytes;
        let row = &mut rows.rows[zone.index()];
        row.summaries = row.summaries.saturating_add(bytes as u32);
    }

    /// Bytes of segment summaries in all zones: no object can have their place.
    pub fn summary_bytes(&self) -> u64 {
        self.rows.lock().summaries
    }

    /// Bytes of segment summaries in a zone.
    pub fn summary_bytes_in(&self, zone: ZoneId) -> u64 {
        self.rows.lock().rows[zone.index()].summaries.into()
    }

    /// `bytes` have been written to `zone`, and nothing points to them yet.
    pub fn add_uncommitted(&self, zone: ZoneId, bytes: u64) {
        self.rows.lock().rows[zone.index()].uncommitted += bytes;
    }

    /// So many of them have been committed, moved or given up.
    pub fn drop_uncommitted(&self, zone: ZoneId, bytes: u64) {
        let mut rows = self.rows.lock();
        let row = &mut rows.rows[zone.index()];
        debug_assert!(row.uncommitted >= bytes);
        row.uncommitted = row.uncommitted.saturating_sub(bytes);
    }

    /// Nothing more is appended to `zone`.
    pub fn seal(&self, zone: ZoneId) {
        let mut rows = self.rows.lock();
        rows.fills += 1;
        let filled_at = rows.fills;
        let row = &mut rows.rows[zone.index()];
        row.role = Role::Sealed;
        row.filled_at = filled_at;
    }

    /// Leaves the zone as it is, if it is ours; true if it was not set aside for that before.
    pub fn set_aside(&self, zone: ZoneId, why: SetAside, error: String) -> bool {
        let mut rows = self.rows.lock();
        let row = rows.rows.get(zone.index());
        if row.is_none_or(|row| row.role == Role::NotOurs) {
            return false;
        }
        rows.failures.set_aside(zone, why, error)
    }

    /// Forgets what has failed: the next who needs a zone tries again.
    pub fn try_all_again(&self) {
        self.rows.lock().failures = ZoneFailures::default();
    }

    /// Whether what is in the zone can perhaps not be read.
    pub fn is_unreadable(&self, zone: ZoneId) -> bool {
        self.rows.lock().failures.why(zone) == Some(SetAside::Unreadable)
    }

    /// Whether the zone is left as it is.
    pub fn is_set_aside(&self, zone: ZoneId) -> bool {
        self.rows.lock().failures.why(zone).is_some()
    }

    /// The zones with live data that are left as they are.
    pub fn all_set_aside(&self) -> Vec<ZoneSetAside> {
        let rows = self.rows.lock();
        let zones = rows.failures.all_set_aside();
        let zones = zones.map(|(zone, why, error)| ZoneSetAside {
            zone,
            why,
            error: error.to_owned(),
            live: rows.rows[zone.index()].live,
        });
        zones.filter(|zone| zone.live > 0).collect()
    }

    /// A write or a reset has failed; answers how often that was so since the mount.
    pub fn failed(&self, zone: ZoneId) -> u32 {
        self.rows.lock().failures.count(zone)
    }

    /// How often a write or a reset has failed.
    pub fn failures(&self, zone: ZoneId) -> u32 {
        self.rows.lock().failures.counted(zone)
    }

    /// The zone has been reset or is lost; it is not ours any more.
    pub fn forget(&self, zone: ZoneId) {
        let mut rows = self.rows.lock();
        rows.failures.forget(zone);
        let row = std::mem::take(&mut rows.rows[zone.index()]);
        rows.live_total -= row.live;
        rows.summaries -= u64::from(row.summaries);
    }

    /// Live bytes in zones.
    pub fn live(&self) -> u64 {
        self.rows.lock().live_total
    }

    /// Live and reserved bytes in zones, and what nobody can have: summaries, and zones that are set aside.
    pub fn wanted(&self) -> u64 {
        let rows = self.rows.lock();
        rows.live_total + rows.in_flight + rows.summaries + self.bytes_set_aside(&rows)
    }

    /// Capacity of zones that are set aside, less what is live in them.
    pub fn set_aside_bytes(&self) -> u64 {
        self.bytes_set_aside(&self.rows.lock())
    }

    fn bytes_set_aside(&self, rows: &Rows) -> u64 {
        let zones = rows.failures.all_set_aside();
        zones
            .map(|(zone, ..)| {
                self.capacity
                    .saturating_sub(rows.rows[zone.index()].wanted())
            })
            .sum()
    }

    /// Reserves `bytes` to a writer if no more than `capacity` bytes would then be live.
    pub fn reserve(&self, bytes: u64, capacity: u64) -> bool {
        let mut rows = self.rows.lock();
        let fits = rows.fits(bytes, capacity);
        if fits {
            rows.in_flight += bytes;
        }
        fits
    }

    /// Whether `bytes` more would fit at present.
    pub fn fits(&self, bytes: u64, capacity: u64) -> bool {
        self.rows.lock().fits(bytes, capacity)
    }

    /// Takes a reservation back.
    pub fn unreserve(&self, bytes: u64) {
        let mut rows = self.rows.lock();
        rows.in_flight = rows.in_flight.saturating_sub(bytes);
    }

    /// Carries out what a durable commit says; `inline` is by how much the bytes in the metadata
    /// grow.
    pub fn apply(&self, deltas: &BTreeMap<ZoneId, Delta>, inline: i64) {
        let mut rows = self.rows.lock();
        rows.inline = rows.inline.saturating_add_signed(inline);
        for (zone, delta) in deltas {
            let live = delta.written - delta.dead;
            let row = &mut rows.rows[zone.index()];
            row.live = row.live.saturating_add_signed(live);
            rows.live_total = rows.live_total.saturating_add_signed(live);
        }
    }

    /// Zones that could be cleaned: sealed, and no write to them under way; those that are set aside
    /// only when nothing in them is wanted. What is uncommitted counts as live, for it is moved. The tail that was never written counts as
    /// dead, for cleaning gives it back.
    pub fn candidates(&self) -> Vec<Candidate> {
        let rows = self.rows.lock();
        let cleanable = |(index, row): &(usize, &Row)| {
            let set_aside = || rows.failures.why(ZoneId(*index as u32)).is_some();
            row.role == Role::Sealed && row.pins == 0 && (row.wanted() == 0 || !set_aside())
        };
        rows.rows
            .iter()
            .enumerate()
            .filter(cleanable)
            .map(|(index, row)| Candidate {
                zone: ZoneId(index as u32),
                live: row.wanted(),
                written: self.capacity.max(row.written) - u64::from(row.summaries),
                filled_at: u64::from(row.filled_at),
            })
            .collect()
    }

    /// Zones filled since the mount: the clock of [`Candidate::filled_at`].
    pub fn fills(&self) -> u64 {
        u64::from(self.rows.lock().fills)
    }

    /// The store's zones, with bytes written to and live in each.
    pub fn ours(&self) -> Vec<(ZoneId, u64, u64)> {
        let rows = self.rows.lock();
        let ours = rows.rows.iter().zip(0..);
        let ours = ours.filter(|(row, _)| row.role != Role::NotOurs);
        ours.map(|(row, zone)| (ZoneId(zone), row.written, row.live))
            .collect()
    }

    /// Bytes written to and live in a zone.
    pub fn zone(&self, zone: ZoneId) -> (u64, u64) {
        let rows = self.rows.lock();
        let row = rows.rows[zone.index()];
        (row.written, row.live)
    }

    /// Bytes of a zone that have to be elsewhere before it is reset.
    pub fn wanted_in(&self, zone: ZoneId) -> u64 {
        self.rows.lock().rows[zone.index()].wanted()
    }

    pub fn totals(&self) -> Totals {
        let rows = self.rows.lock();
        let mut totals = Totals {
            live: rows.live_total,
            inline: rows.inline,
            in_flight: rows.in_flight,
            summaries: rows.summaries,
            ..Totals::default()
        };
        for (row, zone) in rows.rows.iter().zip(0..) {
            let rest = self.capacity.saturating_sub(row.written);
            match row.role {
                Role::NotOurs => continue,
                _ if rows.failures.why(ZoneId(zone)).is_some() => {
                    totals.written += row.wanted();
                    totals.set_aside += self.capacity.saturating_sub(row.wanted());
                    continue;
                }
                Role::Open => {}
                Role::Sealed => totals.tails += rest,
            }
            totals.written += row.written_for_objects();
            totals.dirty_zones += u32::from(row.wanted() < row.written_for_objects());
        }
        totals
    }
}

#[cfg(test)]
mod tests;
