//! The freelist in memory: for every zone of the store what is written, live and still on its way
//! to a commit. 33 bytes a zone with the order of victims; the durable twin are the `Z` records.
//!
//! Invariants: `live <= written`; a zone with pins is being written to and left alone; one with
//! uncommitted bytes holds what a commit may still point to, and is not reset before that has been
//! moved, committed or given up; `live_total + in_flight` never exceeds what the drive can hold. A zone that is
//! set aside is not cleaned, and nothing of it is available, until what is live in it has gone.

mod table;

use crate::holds::Holds;
use crate::zone_failures::SetAside;
use object::Delta;
use runtime::sync::Mutex;
use std::collections::BTreeMap;
pub(crate) use table::Totals;
use table::{Row, Table, Use};
use zone::ZoneId;
use zone_alloc::Candidate;

/// A zone with live data that is left as it is, and what the drive said when that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ZoneSetAside {
    pub zone: ZoneId,
    pub why: SetAside,
    pub error: String,
    pub live: u64,
}

pub(crate) struct Freelist {
    table: Mutex<Table>,
}

impl Freelist {
    /// For a drive of `zones` zones of which a sequential one holds `capacity` bytes.
    pub fn new(zones: u32, capacity: u64) -> Self {
        Self {
            table: Mutex::new(Table::new(zones, capacity)),
        }
    }

    /// Enters a zone found at mount; it is sealed.
    pub fn adopt(&self, zone: ZoneId, written: u64, live: u64) {
        let mut table = self.table.lock();
        let fills = table.fills;
        table.change(zone, |zone| {
            zone.row = Row::ABSENT.filled_at(fills);
            (zone.row.written, zone.row.live) = (written, live);
            zone.now = Use::default();
        });
    }

    /// A stream begins (or, after a mount, goes on) to append to `zone`.
    pub fn open(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        let fills = table.fills;
        table.change(zone, |zone| {
            zone.now.open = true;
            if !zone.row.is_ours() {
                zone.row = zone.row.filled_at(fills);
            }
        });
    }

    /// A write of `bytes` to the open `zone` begins; it is pinned until [`Self::unpin`].
    pub fn pin(&self, zone: ZoneId, bytes: u64) {
        self.table.lock().change(zone, |zone| {
            zone.row.written += bytes;
            zone.now.pins += 1;
        });
    }

    /// A write to `zone` has ended: what it wrote is known as uncommitted, or it failed.
    pub fn unpin(&self, zone: ZoneId) {
        self.table.lock().change(zone, |zone| {
            debug_assert!(zone.now.pins > 0);
            zone.now.pins = zone.now.pins.saturating_sub(1);
        });
    }

    /// `bytes` of what is written to `zone` are a segment summary.
    pub fn add_summary(&self, zone: ZoneId, bytes: u64) {
        self.table.lock().change(zone, |zone| {
            zone.row.summaries = zone.row.summaries.saturating_add(bytes as u32);
        });
    }

    /// Bytes of segment summaries in all zones: no object can have their place.
    pub fn summary_bytes(&self) -> u64 {
        self.table.lock().totals.summaries
    }

    /// Bytes of segment summaries in a zone.
    pub fn summary_bytes_in(&self, zone: ZoneId) -> u64 {
        self.table.lock().zone(zone).row.summaries.into()
    }

    /// `bytes` have been written to `zone`, and nothing points to them yet.
    pub fn add_uncommitted(&self, zone: ZoneId, bytes: u64) {
        let mut table = self.table.lock();
        table.change(zone, |zone| zone.now.uncommitted += bytes);
    }

    /// So many of them have been committed, moved or given up.
    pub fn drop_uncommitted(&self, zone: ZoneId, bytes: u64) {
        self.table.lock().change(zone, |zone| {
            debug_assert!(zone.now.uncommitted >= bytes);
            zone.now.uncommitted = zone.now.uncommitted.saturating_sub(bytes);
        });
    }

    /// Nothing more is appended to `zone`.
    pub fn seal(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        table.fills += 1;
        let fills = table.fills;
        table.change(zone, |zone| {
            zone.now.open = false;
            zone.row = zone.row.filled_at(fills);
        });
    }

    /// Leaves the zone as it is, if it is ours; true if it was not set aside for that before.
    pub fn set_aside(&self, zone: ZoneId, why: SetAside, error: String) -> bool {
        let mut table = self.table.lock();
        if !table.is_ours(zone) {
            return false;
        }
        table.change_failures(zone, |failures| failures.set_aside(zone, why, error))
    }

    /// The same of a zone of which the drive says that it is offline or can only be read: it is out of use once
    /// nothing is wanted of it.
    pub fn set_aside_for_good(&self, zone: ZoneId, why: SetAside, error: String) -> bool {
        let is_new = self.set_aside(zone, why, error);
        let mut table = self.table.lock();
        table.change_failures(zone, |failures| failures.is_for_good(zone));
        is_new
    }

    /// Zones that take nothing any more and in which nothing is wanted, lowest first.
    pub fn out_of_use(&self) -> Vec<ZoneId> {
        self.table.lock().out_of_use()
    }

    /// Forgets what has failed: the next who needs a zone tries again.
    pub fn try_all_again(&self) {
        self.table.lock().forget_failures();
    }

    /// Zones that are set aside because something in them could not be read are so no more.
    pub fn try_unreadable_again(&self) {
        let mut table = self.table.lock();
        let zones = table.failures().all_set_aside();
        let zones = zones.filter(|(_, why, _)| *why == SetAside::Unreadable);
        let zones: Vec<ZoneId> = zones.map(|(zone, ..)| zone).collect();
        for zone in zones {
            table.change_failures(zone, |failures| failures.forget(zone));
        }
    }

    /// Whether what is in the zone can perhaps not be read.
    pub fn is_unreadable(&self, zone: ZoneId) -> bool {
        self.table.lock().failures().why(zone) == Some(SetAside::Unreadable)
    }

    /// Whether the zone is left as it is.
    pub fn is_set_aside(&self, zone: ZoneId) -> bool {
        self.table.lock().failures().why(zone).is_some()
    }

    /// The zones with live data that are left as they are.
    pub fn all_set_aside(&self) -> Vec<ZoneSetAside> {
        let table = self.table.lock();
        let zones = table.failures().all_set_aside();
        let zones = zones.map(|(zone, why, error)| ZoneSetAside {
            zone,
            why,
            error: error.to_owned(),
            live: table.zone(zone).row.live,
        });
        zones.filter(|zone| zone.live > 0).collect()
    }

    /// A zone that can only be read, and whose data could be moved, or one that is set aside with nothing in it.
    pub fn to_drain(&self) -> Option<Candidate> {
        self.table.lock().to_drain()
    }

    /// How many writes and resets have failed since the mount.
    pub fn failed_commands(&self) -> u64 {
        self.table.lock().failures().all_counted()
    }

    /// A write or a reset has failed; answers how often that was so since the mount.
    pub fn failed(&self, zone: ZoneId) -> u32 {
        let mut table = self.table.lock();
        table.change_failures(zone, |failures| failures.count(zone))
    }

    /// How often a write or a reset has failed.
    pub fn failures(&self, zone: ZoneId) -> u32 {
        self.table.lock().failures().counted(zone)
    }

    /// The zone has been reset or is lost; it is not ours any more.
    pub fn forget(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        table.change_failures(zone, |failures| failures.forget(zone));
        table.change(zone, |zone| {
            zone.row = Row::ABSENT;
            zone.now = Use::default();
        });
    }

    /// Live bytes in zones.
    pub fn live(&self) -> u64 {
        self.table.lock().totals.live
    }

    /// Live and reserved bytes in zones, and what nobody can have: summaries, and zones that are set aside.
    pub fn wanted(&self) -> u64 {
        let totals = self.totals();
        totals.live + totals.in_flight + totals.summaries + totals.given_up()
    }

    /// Reserves `bytes` to a writer if no more than `capacity` bytes would then be live.
    pub fn reserve(&self, bytes: u64, capacity: u64) -> bool {
        let totals = &mut self.table.lock().totals;
        let fits = totals.fits(bytes, capacity);
        if fits {
            totals.in_flight += bytes;
        }
        fits
    }

    /// Whether `bytes` more would fit at present.
    pub fn fits(&self, bytes: u64, capacity: u64) -> bool {
        self.table.lock().totals.fits(bytes, capacity)
    }

    /// Takes a reservation back.
    pub fn unreserve(&self, bytes: u64) {
        let totals = &mut self.table.lock().totals;
        totals.in_flight = totals.in_flight.saturating_sub(bytes);
    }

    /// Carries out what a durable commit says; `inline` is by how much the bytes in the metadata
    /// grow.
    pub fn apply(&self, deltas: &BTreeMap<ZoneId, Delta>, inline: i64) {
        let mut table = self.table.lock();
        table.totals.inline = table.totals.inline.saturating_add_signed(inline);
        for (zone, delta) in deltas {
            table.change(*zone, |zone| {
                let live = &mut zone.row.live;
                *live = live.saturating_add_signed(delta.written - delta.dead);
            });
        }
    }

    /// What is live in any zone now is not reset until the moment ends; answers its number.
    pub fn begin_moment(&self) -> u64 {
        let mut table = self.table.lock();
        let zones = table.ours().filter(|(_, row)| row.live > 0);
        let zones = zones.map(|(zone, _)| zone).collect();
        table.change_holds(|holds| holds.begin(zones))
    }

    /// Nobody reads at the moment any more.
    pub fn end_moment(&self, number: u64) {
        let mut table = self.table.lock();
        table.change_holds(|holds| holds.end(number));
    }

    /// Whether the moment was not given up.
    pub fn moment_lasts(&self, number: u64) -> bool {
        self.table.lock().holds().lasts(number)
    }

    /// Gives all moments up; false if there is none.
    pub fn give_up_moments(&self) -> bool {
        let mut table = self.table.lock();
        let any = !table.holds().is_empty();
        if any {
            table.change_holds(Holds::give_up);
        }
        any
    }

    /// Whether a reset would take what somebody reads as it was at a moment.
    pub fn is_held(&self, zone: ZoneId) -> bool {
        self.table.lock().holds().has(zone)
    }

    /// Whether zones could be cleaned that are held for a moment.
    pub fn is_held_back(&self) -> bool {
        self.table.lock().is_held_back()
    }

    /// Zones of which one is worth cleaning if any is; in each, something is wanted.
    pub fn candidates(&self) -> Vec<Candidate> {
        self.table.lock().shortlist()
    }

    /// Zones in which nothing is wanted, and to which nothing is being written.
    pub fn dead_zones(&self) -> Vec<Candidate> {
        self.table.lock().dead()
    }

    /// Zones filled since the mount: the clock of [`Candidate::filled_at`].
    pub fn fills(&self) -> u64 {
        u64::from(self.table.lock().fills)
    }

    /// The store's zones, with bytes written to and live in each.
    pub fn ours(&self) -> Vec<(ZoneId, u64, u64)> {
        let table = self.table.lock();
        let ours = table.ours();
        ours.map(|(zone, row)| (zone, row.written, row.live))
            .collect()
    }

    /// Bytes written to and live in a zone.
    pub fn zone(&self, zone: ZoneId) -> (u64, u64) {
        let row = self.table.lock().zone(zone).row;
        (row.written, row.live)
    }

    /// Bytes of a zone that have to be elsewhere before it is reset.
    pub fn wanted_in(&self, zone: ZoneId) -> u64 {
        self.table.lock().zone(zone).wanted()
    }

    pub fn totals(&self) -> Totals {
        self.table.lock().totals
    }

    /// The sums as they are kept, and by a look at all zones.
    pub fn audit(&self) -> (Totals, Totals) {
        let table = self.table.lock();
        (table.totals, table.audit())
    }
}

#[cfg(test)]
mod tests;
