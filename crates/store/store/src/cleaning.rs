//! The cleaner: moves what is live out of a zone and resets the zone (main document § 5.7.1).
//!
//! The choice of the zone is `zone_alloc`'s; this is the executor and the thread that runs it.
//! What is uncommitted moves too, or one slow upload would keep every zone that it has touched: its
//! writer is told the new place, and no batch is needed.
//! Order: live data read and verified → written to the cleaner's own stream → one durable batch
//! that moves the blobs, a row each → only then is the zone reset. A blob that changed meanwhile is
//! looked at again; a zone with a blob that cannot be read or is damaged is set aside, for what is
//! there to stay and for the next one to be cleaned instead.

use crate::blob_reader::{ReadError, read_fragment};
use crate::cleaner::{Asked, Cleaner};
use crate::extent_writer::{Stored, append};
use crate::format::key;
use crate::format::record::decode_name;
use crate::inner::Inner;
use crate::rows::{corrupt, read_blob_row, read_extent_row};
use crate::staging::Staging;
use crate::written::Hold;
use crate::{Error, Result};
use kv::{Batch, Durability, Kv};
use object::{Blob, BlobName, Content, Extent};
use runtime::thread::JoinHandle;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneId};
use zone_alloc::{Candidate, Pressure, ZoneView};

/// Most live bytes that one of the cleaner's batches moves; it bounds memory and how long commits
/// wait for it.
const MOVE_AT_ONCE: u64 = 16 << 20;

/// The thread that cleans in the background. It ends when this is dropped, after the round in hand.
pub(crate) struct CleaningThread {
    cleaner: Arc<Cleaner>,
    thread: Option<JoinHandle<()>>,
}

impl CleaningThread {
    pub fn start(store: &Arc<Inner>) -> std::io::Result<Self> {
        let (cleaner, mine) = (store.cleaner.clone(), store.clone());
        let thread = store.runtime.spawn("cleaner", move || {
            while mine.cleaner.wait_for_work() {
                if let Err(error) = mine.tend() {
                    tracing::error!(%error, "cleaning stopped");
                    mine.cleaner.failed();
                }
            }
        })?;
        let thread = Some(thread);
        Ok(Self { cleaner, thread })
    }
}

impl Drop for CleaningThread {
    fn drop(&mut self) {
        self.cleaner.shutdown();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the cleaner's thread had panicked");
        }
    }
}

/// Why a zone could not be cleaned.
enum CleanError {
    /// Something in it: the zone is set aside and another one cleaned.
    Unreadable(Error),
    /// Something else, which would hit every other zone too.
    Other(Error),
}

impl From<Error> for CleanError {
    fn from(error: Error) -> Self {
        match error {
            // A row that names a place in the zone, or what is there.
            Error::CorruptMetadata { .. } => Self::Unreadable(error),
            _ => Self::Other(error),
        }
    }
}

/// A blob in the row that it was found in.
#[derive(Clone, PartialEq)]
enum Found {
    Own(u64, u64, Extent, Blob),
    Shared(object::BlobId, Blob),
}

impl Found {
    fn look_up(kv: &Kv, name: BlobName) -> Result<Option<Self>> {
        match name {
            BlobName::Own { map, end } => {
                let extent = read_extent_row(kv, map, end)?;
                Ok(extent.and_then(|extent| match &extent.content {
                    Content::Own { blob, .. } => {
                        let blob = blob.clone();
                        Some(Self::Own(map, end, extent, blob))
                    }
                    _ => None,
                }))
            }
            BlobName::Shared(id) => {
                let shared = read_blob_row(kv, id)?;
                Ok(shared.map(|shared| Self::Shared(id, shared.blob)))
            }
        }
    }

    fn blob(&self) -> &Blob {
        match self {
            Self::Own(.., blob) | Self::Shared(_, blob) => blob,
        }
    }
}

/// A blob with copies of its fragments in the zone that is cleaned, by their indexes.
struct Move {
    name: BlobName,
    found: Found,
    copies: Vec<(usize, Hold)>,
}

impl Inner {
    /// One round of background work; false if there was nothing to do.
    pub(crate) fn tend(&self) -> Result<bool> {
        let purged = self.purge_doomed()?;
        let asked = self.cleaner.asked();
        self.update_reserves();
        // What is dead also takes space on the host's disk under a drive file.
        let host_low = !self.host_has(0, self.kept_on_host());
        let pressure = match asked {
            Asked {
                requested: true, ..
            } => Some(Pressure::Any),
            Asked {
                automatic: true, ..
            } if host_low => Some(Pressure::Any),
            Asked {
                automatic: true, ..
            } => (self.cleaner).pressure(self.pool.free_for_data(), self.pool.data_zones()),
            Asked { .. } => None,
        };
        // A look at all zones takes time, and a commit kills little.
        let enough = self.pool.geometry().zone_capacity / 8;
        let due = |p: &Pressure| *p >= Pressure::Urgent || purged || asked.died >= enough;
        let Some(pressure) = pressure.filter(due) else {
            return Ok(false);
        };
        let cleaned = self.clean_zone_if(|| true, pressure)?;
        if cleaned {
            self.cleaner.cleaned();
        } else {
            self.cleaner.found_nothing(asked);
        }
        Ok(cleaned)
    }

    /// Cleans the zone that the policy chooses, or lets another do it while `is_needed`; false if there
    /// is none to choose.
    pub(crate) fn clean_one_zone(&self, is_needed: impl Fn() -> bool) -> Result<bool> {
        self.clean_zone_if(is_needed, Pressure::Any)
    }

    fn clean_zone_if(&self, is_needed: impl Fn() -> bool, pressure: Pressure) -> Result<bool> {
        self.check_writable()?;
        self.purge_doomed()?;
        let Some(_turn) = self.cleaner.turn(is_needed) else {
            return Ok(true);
        };
        if self.reset_dead_zones()? {
            return Ok(true);
        }
        loop {
            let now = self.freelist.fills();
            let zones = self.freelist.candidates();
            let view = ZoneView { zones: &zones, now };
            let victim = self.cleaner.policy().choose(view, pressure);
            // Half of what is kept for deletes is for moving; the rest stays for their log.
            let movable = |v: &Candidate| self.host_has(v.live, self.kept_on_host() / 2);
            let Some(victim) = victim.filter(movable) else {
                return Ok(false);
            };
            match self.clean_zone(victim) {
                Ok(true) => return Ok(true),
                // Emptied, and not reset this time.
                Ok(false) => {}
                Err(CleanError::Unreadable(error)) => {
                    self.set_aside_unreadable(victim.zone, &error);
                    if !self.freelist.is_set_aside(victim.zone) {
                        return Err(error);
                    }
                }
                Err(CleanError::Other(error)) => return Err(error),
            }
        }
    }

    fn reset_dead_zones(&self) -> Result<bool> {
        let mut any = false;
        for zone in self.freelist.dead_zones() {
            if self.reset_zone(zone.zone)? {
                any = true;
                self.cleaner.count(0, Some(zone.written));
            }
        }
        Ok(any)
    }

    /// Empties a zone and resets it; false if it could not be reset this time.
    fn clean_zone(&self, victim: Candidate) -> Result<bool, CleanError> {
        let mut stuck = 0;
        loop {
            let places = self.places(victim.zone)?;
            let all = places.len();
            let moved = if all > 0 {
                self.move_blobs(victim.zone, &places)?
            } else {
                self.move_uncommitted(victim.zone)?
            };
            let wanted = self.freelist.wanted_in(victim.zone);
            if all == 0 && wanted == 0 {
                break;
            }
            // A commit may have been faster once or twice, or be about to name what is there; for
            // ever means that the cleaning index does not fit the blobs.
            stuck = if moved == 0 { stuck + 1 } else { 0 };
            if stuck == 3 {
                let (key, what, found) = match places.first() {
                    Some((at, _)) => (key::cleaning(*at), "a place that no blob has", all),
                    None => (
                        key::freelist(victim.zone),
                        "live bytes without a place",
                        wanted as usize,
                    ),
                };
                return Err(CleanError::Unreadable(corrupt(&key, what, found)));
            }
        }
        let was_reset = self.reset_zone(victim.zone)?;
        let freed = was_reset.then_some(victim.written - victim.live);
        self.cleaner.count(victim.live, freed);
        Ok(was_reset)
    }

    /// The first places of `zone` in the cleaning index, about [`MOVE_AT_ONCE`] bytes of them.
    fn places(&self, zone: ZoneId) -> Result<Vec<(ZoneAddress, BlobName)>> {
        let mut places: Vec<(ZoneAddress, BlobName)> = Vec::new();
        self.each_place(zone, &mut |at, name| {
            let first = places.first().map_or(at.offset, |(first, _)| first.offset);
            let wanted = at.offset - first < MOVE_AT_ONCE;
            if wanted {
                places.push((at, name));
            }
            wanted
        })?;
        Ok(places)
    }

    /// The places of `zone` in the cleaning index, in order, until `see` answers false.
    pub(crate) fn each_place(
        &self,
        zone: ZoneId,
        see: &mut dyn FnMut(ZoneAddress, BlobName) -> bool,
    ) -> Result<()> {
        let lower = key::cleaning(ZoneAddress::new(zone, 0));
        let upper = key::cleaning(ZoneAddress::new(zone, u64::MAX));
        let kv = self.kv()?;
        for row in kv.scan(&lower, Some(&upper)) {
            let (key, value) = row?;
            let at = key::parse_cleaning(&key)
                .ok_or_else(|| corrupt(&key, "no cleaning key", key.len()))?;
            let name = decode_name(&value)
                .ok_or_else(|| corrupt(&key, "no name of a blob", value.len()))?;
            if !see(at, name) {
                break;
            }
        }
        Ok(())
    }

    /// Moves what blobs have at `places` in `zone`; answers how many blobs still were as they had been when
    /// it came to commit.
    fn move_blobs(
        &self,
        zone: ZoneId,
        places: &[(ZoneAddress, BlobName)],
    ) -> Result<usize, CleanError> {
        let names: BTreeSet<BlobName> = places.iter().map(|(_, name)| *name).collect();
        let mut moves = Vec::new();
        for name in names {
            let found = Found::look_up(&*self.kv()?, name)?;
            let Some(found) = found else { continue };
            let mut copies = Vec::new();
            for (index, fragment) in found.blob().fragments.iter().enumerate() {
                if fragment.at.is_some_and(|at| at.zone == zone) {
                    let bytes = read_fragment(&*self.device, found.blob(), index)
                        .map_err(|failed| self.unreadable(failed, name))?;
                    copies.push((index, self.moved_copy(zone, Stored::part(&bytes))?));
                }
            }
            if !copies.is_empty() {
                moves.push(Move {
                    name,
                    found,
                    copies,
                });
            }
        }
        let _alone = self.mutators.write();
        let kv = self.kv()?;
        let mut staging = Staging::new(self, &kv);
        let (mut holds, mut moved) = (Vec::new(), 0);
        for Move {
            name,
            found,
            copies,
        } in moves
        {
            if Found::look_up(&kv, name)?.as_ref() != Some(&found) {
                continue;
            }
            moved += 1;
            let mut fresh = Vec::new();
            let blob = found.blob().relocated(|index| {
                let (_, copy) = copies.iter().find(|(copied, _)| *copied == index)?;
                let fragments = staging.note(copy.take());
                fresh.extend_from_slice(&fragments);
                Some(fragments)
            });
            match &found {
                Found::Own(map, end, extent, _) => {
                    staging.rows.move_own(*map, *end, extent, blob, &fresh);
                }
                Found::Shared(id, _) => staging.rows.move_shared(*id, blob, &fresh)?,
            }
            holds.extend(copies.into_iter().map(|(_, copy)| copy));
        }
        self.write_batch(&kv, &staging, Batch::default(), holds, Durability::Synced)?;
        Ok(moved)
    }

    /// Moves what is in `zone` and not committed yet, about [`MOVE_AT_ONCE`] bytes of it; answers how
    /// many pieces that were.
    fn move_uncommitted(&self, zone: ZoneId) -> Result<usize, CleanError> {
        let mut copies = Vec::new();
        let mut bytes_moved = 0;
        for movable in self.uncommitted.in_zone(zone) {
            let bytes = read_fragment(&*self.device, &movable.run.blob(), 0)
                .map_err(|failed| self.unreadable(failed, "an upload under way"))?;
            bytes_moved += bytes.len() as u64;
            let copy = self.moved_copy(zone, Stored::again(&movable.run, &bytes))?;
            copies.push((movable, copy));
            if bytes_moved >= MOVE_AT_ONCE {
                break;
            }
        }
        // Also if there was nothing: a commit that has taken its pieces is through after this.
        let _alone = self.mutators.write();
        let moved = copies.len();
        let block_size = self.device.geometry().block_size;
        for (movable, copy) in copies {
            movable.move_to(copy, block_size);
        }
        Ok(moved)
    }

    /// Of bytes that `of` stands for, whose object's name would have to be searched for. They may lie in
    /// another zone than the one that is cleaned, beside bytes under the same checksum.
    fn unreadable(&self, failed: ReadError, of: impl fmt::Display) -> CleanError {
        let zone = failed.zone;
        let error = failed.of(&of.to_string(), 0);
        self.set_aside_unreadable(zone, &error);
        CleanError::Unreadable(error)
    }

    /// Bytes out of `zone` in one of the cleaner's own streams, and what keeps their zones.
    fn moved_copy(&self, zone: ZoneId, bytes: Stored<'_>) -> Result<Hold> {
        let history = self.lifetimes.of_zone(zone);
        let number = self.lifetimes.moved(history, self.freelist.live());
        let mut copy = self.hold();
        append(self, (self.moved.of(number), history), bytes, &mut copy)?;
        Ok(copy)
    }
}
