//! The freelist in memory: for every zone of the store what is written, live and still on its way
//! to a commit. 32 bytes a zone; the durable twin are the `Z` records.
//!
//! Invariants: `live <= written`; a zone with pins holds data that a commit may still point to and
//! is never reset; `live_total + in_flight` never exceeds what the drive can hold.

use parking_lot::Mutex;
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
    pins: u32,
    filled_at: u32,
    role: Role,
}

const _: () = assert!(size_of::<Row>() <= 32);

struct Rows {
    rows: Vec<Row>,
    live_total: u64,
    inline: u64,
    in_flight: u64,
    fills: u32,
}

impl Rows {
    fn fits(&self, bytes: u64, capacity: u64) -> bool {
        self.live_total + self.in_flight + bytes <= capacity
    }
}

/// How a commit changes the counters of a zone: bytes written and bytes dead.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Delta {
    pub written: i64,
    pub dead: i64,
}

/// Sums over all zones of the store, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Totals {
    pub live: u64,
    /// In the metadata; not among the others.
    pub inline: u64,
    pub written: u64,
    /// Written or promised to a writer, not yet committed.
    pub in_flight: u64,
    /// Capacity behind the end of sealed zones.
    pub tails: u64,
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
                live_total: 0,
                inline: 0,
                in_flight: 0,
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
            pins: 0,
            filled_at,
            role: Role::Sealed,
        };
    }

    /// A stream begins (or, after a mount, goes on) to append to `zone`.
    pub fn open(&self, zone: ZoneId) {
        self.rows.lock().rows[zone.index()].role = Role::Open;
    }

    /// `bytes` have a place in the open `zone`; they stay pinned until a commit or [`Self::unpin`].
    pub fn pin(&self, zone: ZoneId, bytes: u64) {
        let mut rows = self.rows.lock();
        let row = &mut rows.rows[zone.index()];
        row.written += bytes;
        row.pins += 1;
    }

    /// One pinned piece of `zone` has been committed or given up.
    pub fn unpin(&self, zone: ZoneId) {
        let mut rows = self.rows.lock();
        let row = &mut rows.rows[zone.index()];
        debug_assert!(row.pins > 0);
        row.pins = row.pins.saturating_sub(1);
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

    /// The zone has been reset or is lost; it is not ours any more.
    pub fn forget(&self, zone: ZoneId) {
        let mut rows = self.rows.lock();
        let row = std::mem::take(&mut rows.rows[zone.index()]);
        rows.live_total -= row.live;
    }

    /// Live and promised bytes in zones.
    pub fn wanted(&self) -> u64 {
        let rows = self.rows.lock();
        rows.live_total + rows.in_flight
    }

    /// Promises `bytes` to a writer if no more than `capacity` bytes would then be live.
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

    /// Takes a promise back.
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

    /// Zones that could be cleaned: sealed, and nothing in them on its way to a commit. The tail
    /// that was never written counts as dead, for cleaning gives it back.
    pub fn candidates(&self) -> Vec<Candidate> {
        let rows = self.rows.lock();
        let sealed = |(_, row): &(usize, &Row)| row.role == Role::Sealed && row.pins == 0;
        rows.rows
            .iter()
            .enumerate()
            .filter(sealed)
            .map(|(index, row)| Candidate {
                zone: ZoneId(index as u32),
                live: row.live,
                written: self.capacity.max(row.written),
                filled_at: u64::from(row.filled_at),
            })
            .collect()
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

    pub fn totals(&self) -> Totals {
        let rows = self.rows.lock();
        let mut totals = Totals {
            live: rows.live_total,
            inline: rows.inline,
            in_flight: rows.in_flight,
            ..Totals::default()
        };
        for row in &rows.rows {
            let rest = self.capacity.saturating_sub(row.written);
            match row.role {
                Role::NotOurs => continue,
                Role::Open => {}
                Role::Sealed => totals.tails += rest,
            }
            totals.written += row.written;
            totals.dirty_zones += u32::from(row.live < row.written);
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_zone_is_no_candidate() {
        let list = Freelist::new(4, 100);
        list.open(ZoneId(2));
        list.pin(ZoneId(2), 60);
        list.seal(ZoneId(2));
        assert!(list.candidates().is_empty());
        let delta = Delta {
            written: 60,
            dead: 20,
        };
        list.apply(&BTreeMap::from([(ZoneId(2), delta)]), 7);
        assert_eq!(list.totals().inline, 7);
        list.unpin(ZoneId(2));
        let candidates = list.candidates();
        assert_eq!((candidates[0].live, candidates[0].written), (40, 100));
        assert_eq!(list.totals().tails, 40);
    }

    #[test]
    fn promises_stop_at_capacity() {
        let list = Freelist::new(4, 100);
        assert!(list.reserve(70, 100));
        assert!(!list.reserve(31, 100));
        list.unreserve(70);
        list.adopt(ZoneId(1), 90, 80);
        assert!(list.reserve(20, 100));
        list.forget(ZoneId(1));
        assert!(list.reserve(80, 100));
    }
}
