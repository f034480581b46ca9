//! The freelist in memory: for every zone of the store, the bytes written, live, and not yet committed. It takes 33
//! bytes a zone, the order of victims included; its durable twin are the `Z` records.
//!
//! Invariants: `live <= written`; a zone with pins is being written to and not cleaned; one with uncommitted bytes
//! holds data that a commit may still point to, and is not reset before these are moved, committed or given up;
//! `live_total + in_flight` never exceeds what the drive can hold. A zone that is set aside is not cleaned, and none
//! of its space is available, until nothing in it is live.

mod table;

use crate::holds::Holds;
use crate::zone_failures::SetAside;
use appender::Unfinished;
use object::Delta;
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use table::Totals;
use table::{Row, Table, Use};
use zone::ZoneId;
use zone_alloc::Candidate;

/// A zone with live data that is not cleaned, and the error with which that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ZoneSetAside {
    pub zone: ZoneId,
    pub why: SetAside,
    pub error: String,
    pub live: u64,
}

pub(crate) struct Freelist {
    table: Mutex<Table>,
    /// Zones that could not be finished when streams left them, or when they went out of use.
    unfinished: Unfinished,
    /// A zone was opened or set aside, one that is was sealed, or one could not be finished, since [`Self::takes_news`] was
    /// last asked.
    has_news: AtomicBool,
    /// An upload was given up, so that bytes died without a commit.
    has_given_up: AtomicBool,
}

impl Freelist {
    /// An empty freelist for `zones` zones; a sequential one holds `capacity` bytes.
    pub fn new(zones: u32, capacity: u64) -> Self {
        Self {
            table: Mutex::new(Table::new(zones, capacity)),
            unfinished: Unfinished::default(),
            has_news: AtomicBool::new(false),
            has_given_up: AtomicBool::new(false),
        }
    }

    /// Enters a zone found at mount, as sealed.
    pub fn adopt(&self, zone: ZoneId, written: u64, live: u64) {
        let mut table = self.table.lock();
        let fills = table.fills;
        table.change(zone, |zone| {
            zone.row = Row::ABSENT.filled_at(fills);
            (zone.row.written, zone.row.live) = (written, live);
            zone.now = Use::default();
        });
    }

    /// Marks `zone` as appended to by a stream, newly or, after a mount, again.
    pub fn open(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        let fills = table.fills;
        let mut is_new = false;
        table.change(zone, |zone| {
            zone.now.open = true;
            if !zone.row.is_ours() {
                zone.row = zone.row.filled_at(fills);
                is_new = true;
            }
        });
        self.has_news.fetch_or(is_new, Ordering::Release);
    }

    /// Counts a write of `bytes` that begins in the open `zone`, which is pinned until [`Self::unpin`].
    pub fn pin(&self, zone: ZoneId, bytes: u64) {
        self.table.lock().change(zone, |zone| {
            zone.row.written += bytes;
            zone.now.pins += 1;
        });
    }

    /// Ends a write to `zone`: its bytes have been entered as uncommitted, or it failed.
    pub fn unpin(&self, zone: ZoneId) {
        self.table.lock().change(zone, |zone| {
            debug_assert!(zone.now.pins > 0);
            zone.now.pins = zone.now.pins.saturating_sub(1);
        });
    }

    /// Takes back a write of `bytes` at the end of the pinned `zone`, of which nothing was written: the zone is open
    /// again.
    pub fn take_back(&self, zone: ZoneId, bytes: u64) {
        self.table.lock().change(zone, |zone| {
            zone.row.written = zone.row.written.saturating_sub(bytes);
            zone.now.open = true;
        });
    }

    /// Counts `bytes` of those written to `zone` as a segment summary.
    pub fn add_summary(&self, zone: ZoneId, bytes: u64) {
        self.table.lock().change(zone, |zone| {
            zone.row.summaries = zone.row.summaries.saturating_add(bytes as u32);
        });
    }

    /// Bytes of segment summaries in all zones, which are not available to objects.
    pub fn summary_bytes(&self) -> u64 {
        self.table.lock().totals.summaries
    }

    /// Bytes of segment summaries in a zone.
    pub fn summary_bytes_in(&self, zone: ZoneId) -> u64 {
        self.table.lock().zone(zone).row.summaries.into()
    }

    /// Counts `bytes` that have been written to `zone` and that no committed row points to.
    #[cfg(test)]
    pub fn add_uncommitted(&self, zone: ZoneId, bytes: u64) {
        let mut table = self.table.lock();
        table.change(zone, |zone| zone.now.uncommitted += bytes);
    }

    /// Ends a write to `zone` as [`Self::unpin`] does, and counts its `bytes` as ones that no committed row points to.
    pub fn end_write(&self, zone: ZoneId, bytes: u64) {
        self.table.lock().change(zone, |zone| {
            debug_assert!(zone.now.pins > 0);
            zone.now.pins = zone.now.pins.saturating_sub(1);
            zone.now.uncommitted += bytes;
        });
    }

    /// Counts `bytes` of the uncommitted ones as committed, moved or given up.
    pub fn drop_uncommitted(&self, zone: ZoneId, bytes: u64) {
        self.table.lock().change(zone, |zone| {
            debug_assert!(zone.now.uncommitted >= bytes);
            zone.now.uncommitted = zone.now.uncommitted.saturating_sub(bytes);
        });
    }

    /// Ends appending to `zone`: it can be cleaned once no write to it is under way. If it is set aside, that is news
    /// again: the cleaner has perhaps looked at it while it was open.
    pub fn seal(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        let is_set_aside = table.failures().why(zone).is_some();
        self.has_news.fetch_or(is_set_aside, Ordering::Release);
        table.fills += 1;
        let fills = table.fills;
        table.change(zone, |zone| {
            zone.now.open = false;
            zone.row = zone.row.filled_at(fills);
        });
    }

    /// Sets the zone aside, if it is the store's; true if it was not set aside for that reason before.
    pub fn set_aside(&self, zone: ZoneId, why: SetAside, error: String) -> bool {
        let mut table = self.table.lock();
        if !table.is_ours(zone) {
            return false;
        }
        let is_new = table.change_failures(zone, |failures| failures.set_aside(zone, why, error));
        self.has_news.fetch_or(is_new, Ordering::Release);
        is_new
    }

    /// Whether a zone was opened or set aside, one that is was sealed, or one could not be finished, since the last call:
    /// the cleaner may have to empty or finish one.
    pub fn takes_news(&self) -> bool {
        self.has_news.load(Ordering::Relaxed) && self.has_news.swap(false, Ordering::Acquire)
    }

    /// Like [`Self::set_aside`], for a zone that the drive reports as offline or read-only: once nothing in it is live
    /// or uncommitted, it is out of use.
    pub fn set_aside_for_good(&self, zone: ZoneId, why: SetAside, error: String) -> bool {
        let is_new = self.set_aside(zone, why, error);
        let mut table = self.table.lock();
        table.change_failures(zone, |failures| failures.is_for_good(zone));
        is_new
    }

    /// Zones that take no writes any more and hold nothing live or uncommitted, lowest first.
    pub fn out_of_use(&self) -> Vec<ZoneId> {
        self.table.lock().out_of_use()
    }

    /// Forgets all failures and which zones are set aside, so that all are cleaned and written again.
    pub fn try_all_again(&self) {
        self.table.lock().forget_failures();
    }

    /// Readmits a zone that was set aside because something in it could not be read, unless it is for good.
    pub fn try_again(&self, zone: ZoneId) {
        let mut table = self.table.lock();
        let failures = table.failures();
        if failures.why(zone) == Some(SetAside::Unreadable) && !failures.takes_nothing(zone) {
            table.change_failures(zone, |failures| failures.forget(zone));
        }
    }

    /// Readmits zones that were set aside because something in them could not be read.
    pub fn try_unreadable_again(&self) {
        let mut table = self.table.lock();
        let zones = table.failures().all_set_aside();
        let zones = zones.filter(|(_, why, _)| *why == SetAside::Unreadable);
        let zones: Vec<ZoneId> = zones.map(|(zone, ..)| zone).collect();
        for zone in zones {
            table.change_failures(zone, |failures| failures.forget(zone));
        }
    }

    /// Whether the zone is set aside because something in it could not be read.
    pub fn is_unreadable(&self, zone: ZoneId) -> bool {
        self.table.lock().failures().why(zone) == Some(SetAside::Unreadable)
    }

    /// Whether the zone is set aside.
    pub fn is_set_aside(&self, zone: ZoneId) -> bool {
        self.table.lock().failures().why(zone).is_some()
    }

    /// The zones with live data that are set aside.
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

    /// The zones that are set aside and that a stream has open.
    pub fn open_set_aside(&self) -> Vec<ZoneId> {
        let table = self.table.lock();
        let zones = table.failures().all_set_aside().map(|(zone, ..)| zone);
        zones.filter(|zone| table.zone(*zone).now.open).collect()
    }

    /// Zones to drain: read-only with data that could be moved, then those that are set aside with nothing in them.
    pub fn to_drain(&self) -> Vec<Candidate> {
        self.table.lock().to_drain()
    }

    /// Failed writes and resets of all zones since the mount.
    pub fn failed_commands(&self) -> u64 {
        self.table.lock().failures().all_counted()
    }

    /// Counts a failed write or reset of `zone`; returns how many failed since the mount.
    pub fn failed(&self, zone: ZoneId) -> u32 {
        let mut table = self.table.lock();
        table.change_failures(zone, |failures| failures.count(zone))
    }

    /// Failed writes and resets of `zone` since the mount.
    pub fn failures(&self, zone: ZoneId) -> u32 {
        self.table.lock().failures().counted(zone)
    }

    /// Notes that a zone could not be finished. Called before the zone is sealed and unpinned: from then on it may be reset
    /// and be another owner's.
    pub fn add_unfinished(&self, zone: ZoneId) {
        self.unfinished.add(zone);
        self.has_news.store(true, Ordering::Release);
    }

    /// The zones that could not be finished and were not reset since.
    pub fn unfinished(&self) -> &Unfinished {
        &self.unfinished
    }

    /// Removes a zone that was reset or lost: it is no longer the store's.
    pub fn forget(&self, zone: ZoneId) {
        self.unfinished.remove(zone);
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

    /// Live and reserved bytes in zones, and those not available to objects: summaries, and zones set aside or out of
    /// use.
    pub fn wanted(&self) -> u64 {
        let totals = self.totals();
        totals.live + totals.in_flight + totals.summaries + totals.given_up()
    }

    /// Reserves `bytes` for a writer, unless live and reserved bytes would then exceed `capacity`.
    pub fn reserve(&self, bytes: u64, capacity: u64) -> bool {
        let totals = &mut self.table.lock().totals;
        let fits = totals.fits(bytes, capacity);
        if fits {
            totals.in_flight += bytes;
        }
        fits
    }

    /// Whether `bytes` more would fit into `capacity` now.
    pub fn fits(&self, bytes: u64, capacity: u64) -> bool {
        self.table.lock().totals.fits(bytes, capacity)
    }

    /// Gives a reservation of `bytes` back.
    pub fn unreserve(&self, bytes: u64) {
        let totals = &mut self.table.lock().totals;
        totals.in_flight = totals.in_flight.saturating_sub(bytes);
    }

    /// Notes that bytes in zones die with an upload.
    pub fn note_given_up(&self) {
        self.has_given_up.store(true, Ordering::Release);
    }

    /// Whether an upload was given up since the last call.
    pub fn given_up(&self) -> bool {
        self.has_given_up.swap(false, Ordering::Acquire)
    }

    /// Applies a durable commit: live bytes by zone, and `inline`, the growth of the objects' bytes in the metadata. Gives
    /// back `reserved` bytes of its writers, which would count twice otherwise.
    pub fn apply(&self, deltas: &BTreeMap<ZoneId, Delta>, inline: i64, reserved: u64) {
        let mut table = self.table.lock();
        table.totals.in_flight = table.totals.in_flight.saturating_sub(reserved);
        table.totals.inline = table.totals.inline.saturating_add_signed(inline);
        for (zone, delta) in deltas {
            table.change(*zone, |zone| {
                let live = &mut zone.row.live;
                *live = live.saturating_add_signed(delta.written - delta.dead);
            });
        }
    }

    /// Begins a moment: zones with live bytes now are not reset until it ends. Returns its number.
    pub fn begin_moment(&self) -> u64 {
        let mut table = self.table.lock();
        let zones = table.ours().filter(|(_, row)| row.live > 0);
        let zones = zones.map(|(zone, _)| zone).collect();
        table.change_holds(|holds| holds.begin(zones))
    }

    /// Ends a moment, whose readers are done.
    pub fn end_moment(&self, number: u64) {
        let mut table = self.table.lock();
        table.change_holds(|holds| holds.end(number));
    }

    /// Whether the moment has neither ended nor been given up.
    pub fn moment_lasts(&self, number: u64) -> bool {
        self.table.lock().holds().lasts(number)
    }

    /// Gives all moments up; false if there were none.
    pub fn give_up_moments(&self) -> bool {
        let mut table = self.table.lock();
        let any = !table.holds().is_empty();
        if any {
            table.change_holds(Holds::give_up);
        }
        any
    }

    /// Whether a moment holds the zone, so that it must not be reset.
    pub fn is_held(&self, zone: ZoneId) -> bool {
        self.table.lock().holds().has(zone)
    }

    /// Whether a stream appends to the zone, or a write to it is under way.
    pub fn is_written(&self, zone: ZoneId) -> bool {
        let now = self.table.lock().zone(zone).now;
        now.open || now.pins > 0
    }

    /// Whether cleaning zones that moments hold would free space.
    pub fn is_held_back(&self) -> bool {
        self.table.lock().is_held_back()
    }

    /// A short list of zones that contains one worth cleaning, if any is; each has live or uncommitted bytes.
    pub fn candidates(&self) -> Vec<Candidate> {
        self.table.lock().shortlist()
    }

    /// All zones with dead bytes and others, by a scan of all zones. Beside each, the same zone with the bytes that a
    /// reset gives back to the host's disk under a drive file, where a tail that was never written takes none.
    pub fn candidates_on_host(&self) -> Vec<(Candidate, Candidate)> {
        self.table.lock().candidates_on_host()
    }

    /// Sealed zones without live or uncommitted bytes and without writes under way.
    pub fn dead_zones(&self) -> Vec<Candidate> {
        self.table.lock().dead()
    }

    /// Zones filled since the mount: the unit of [`Candidate::filled_at`].
    pub fn fills(&self) -> u64 {
        u64::from(self.table.lock().fills)
    }

    /// The store's zones, with the bytes written and live in each.
    pub fn ours(&self) -> Vec<(ZoneId, u64, u64)> {
        let table = self.table.lock();
        let ours = table.ours();
        ours.map(|(zone, row)| (zone, row.written, row.live))
            .collect()
    }

    /// Bytes written and live in a zone.
    pub fn zone(&self, zone: ZoneId) -> (u64, u64) {
        let row = self.table.lock().zone(zone).row;
        (row.written, row.live)
    }

    /// Live and uncommitted bytes of a zone, which have to be moved before it is reset.
    pub fn wanted_in(&self, zone: ZoneId) -> u64 {
        self.table.lock().zone(zone).wanted()
    }

    pub fn totals(&self) -> Totals {
        self.table.lock().totals
    }

    /// The totals as kept, and as computed by a scan of all zones.
    pub fn audit(&self) -> (Totals, Totals) {
        let table = self.table.lock();
        (table.totals, table.audit())
    }
}

#[cfg(test)]
mod tests;
