//! Admission of new data and metadata, and the ways in which space is made for them: cleaning data zones, purging
//! removed maps, compacting the database and gathering BlueFS's zones.
//!
//! Adding is refused while it could take the space that removals and compaction need: removals always go through, unless
//! the drive gives nothing back because its resets fail.

use crate::database::write_buffer_bytes;
use crate::inner::Inner;
use crate::reservation::Reservation;
use crate::stream::Stream;
use crate::{Error, Result};
use bluefs::ZonePurpose;
use device::ZonedDevice;
use kv::{Batch, Durability, Kv};
use object::MAX_INLINE;
use std::sync::atomic::Ordering;
use std::time::Duration;
use zone::Geometry;
use zone_alloc::Candidate;

/// Zones of logs, the manifest's among them, above which a full drive has its memtable flushed.
const LOG_ZONES_WHEN_FULL: usize = 3;
/// One in this many bytes of data zones is kept for segment summaries, which never take more.
pub(crate) const KEPT_FOR_SUMMARIES: u64 = 1024;
/// How often in a row BlueFS may move live data without a zone becoming free.
const MAX_FUTILE_RECLAIMS: u32 = 16;
/// Most bytes of the host's disk under a drive file that new data leaves for deletes: some memtables, and the output
/// that a compaction writes before it gives its input back.
const MAX_KEPT_ON_HOST: u64 = 256 << 20;
/// The log of deletes may take one in this many of those bytes before the memtable is flushed.
const KEPT_PARTS: u64 = 8;
/// Bytes written for each byte of a batch: once to the log, once to an SST, once by a compaction before its input goes.
const WRITTEN_OF_METADATA: u64 = 3;
/// Bytes of a batch that the reserve for metadata always covers.
pub(crate) const LARGE: u64 = 256 << 10;
/// How often a batch that the database does not take is tried in all, and how often while the database makes no
/// progress.
const ATTEMPTS_TO_WRITE: u32 = 32;
const ATTEMPTS_IN_VAIN: u32 = 4;
/// How long a refused put waits for the space of removed objects: once for its own purge, once for one by another thread, and
/// once for RocksDB.
const COMPACTION_PATIENCE: Duration = Duration::from_secs(10);

impl Inner {
    /// Recomputes the reservation for BlueFS from what it stores now. It never takes zones that live data needs. The
    /// capacity reported leaves all of it out, so that what is reported as available can be put.
    pub fn update_reserves(&self) {
        let geometry = self.pool.geometry();
        let copies = self.fs.copies();
        let mut reservation = self.reservation.lock();
        let garbage = self.garbage.load(Ordering::Relaxed);
        let stored = || self.kv().map_or(0, |kv| kv.stored_bytes());
        let counts = self.pool.counts();
        let given_back = reservation.look(&counts, geometry, garbage, stored);
        // Never all garbage: the rest, if any, may have to be compacted on demand.
        self.forget_garbage(given_back.min(garbage.saturating_sub(1)));
        let wanted = self.freelist.wanted().div_ceil(geometry.zone_capacity);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let ceiling = self.pool.shared_zones().saturating_sub(wanted);
        let removals = self
            .kv()
            .map_or(0, |kv| for_removals(&reservation, &kv, geometry));
        reservation.follow(geometry, copies, &counts, removals);
        self.pool.reserve(reservation.zones.min(ceiling));
    }

    /// Bytes of live object data that the drive can hold; how many bytes are dead now does not matter.
    pub fn data_capacity(&self) -> u64 {
        let bytes = self.data_zone_bytes();
        let capacity = bytes - bytes / KEPT_FOR_SUMMARIES;
        // Whole blocks, for that is what objects take.
        capacity - capacity % u64::from(self.pool.geometry().block_size)
    }

    /// Whether a segment summary of `bytes` has a place when `freed` bytes of summaries will soon be gone. Space that
    /// objects have reserved is not used for it.
    pub fn has_place_for_summary(&self, bytes: u64, freed: u64) -> bool {
        let taken = self.freelist.summary_bytes().saturating_sub(freed);
        taken + bytes <= self.data_zone_bytes() / KEPT_FOR_SUMMARIES
    }

    /// Whether an unmount writes a summary of `bytes` that is not full and describes `described` bytes of objects: it
    /// takes no more than its share, or there is plenty. Else a drive that is filled by one command for each object
    /// would have no space for the summaries of most of them.
    pub fn spares_summary(&self, bytes: u64, described: u64) -> bool {
        /// Objects of 64 KiB put over S3 take three quarters of what is kept.
        const PLENTY: u64 = 4;
        let kept = self.data_zone_bytes() / KEPT_FOR_SUMMARIES;
        described >= bytes * KEPT_FOR_SUMMARIES
            || self.freelist.summary_bytes() + bytes <= kept / PLENTY
    }

    fn data_zone_bytes(&self) -> u64 {
        self.update_reserves();
        let reserved = self.reservation.lock().zones;
        let zones = self.pool.shared_zones().saturating_sub(reserved);
        let bytes = u64::from(zones) * self.pool.geometry().zone_capacity;
        bytes.saturating_sub(self.freelist.totals().given_up())
    }

    /// Reserves `bytes` of data space for a writer, or fails with [`Error::NoSpace`] or [`Error::HostFull`].
    pub fn admit_data(&self, bytes: u64) -> Result<()> {
        self.admit_on_host(bytes)?;
        self.find_space(bytes, |capacity| self.freelist.reserve(bytes, capacity))
    }

    /// Bytes of the host's disk under the drive that new data leaves for deletes: for their log records, the output of
    /// compacting these, and the data that the cleaner moves before it frees more.
    pub fn kept_on_host(&self) -> u64 {
        let flush = self.kv().map_or(0, |kv| kv.flush_bytes());
        flush + (self.pool.geometry().capacity_bytes() / 16).min(MAX_KEPT_ON_HOST)
    }

    /// Whether the host's disk has room for `bytes` and for `kept` more.
    pub fn host_has(&self, bytes: u64, kept: u64) -> bool {
        self.host_space.has(&*self.device, bytes, kept)
    }

    /// Refuses `bytes` of new data while they would take the part of the host's disk that is left for deletes, after
    /// cleaning what is dead, if that is enough, and waiting for a purge under way. On a full disk the log's writes would
    /// fail, and nothing could be deleted any more.
    fn admit_on_host(&self, bytes: u64) -> Result<()> {
        let kept = self.kept_on_host();
        let until = self.runtime.now() + COMPACTION_PATIENCE;
        while !self.host_has(bytes, kept) {
            let purged = self.open_maps.steps();
            // In this order: what a reset gives back in between counts on either side.
            let dead = self.freelist.totals().dead_on_host();
            let free = self.device.host_free_bytes().unwrap_or(0);
            // How much the purge of removed objects makes dead is not known before, and a zone that is set aside does not
            // count among the dead bytes.
            let counts = |zone: &Candidate| !self.freelist.is_set_aside(zone.zone);
            let is_in_vain = free.saturating_add(dead) < bytes.saturating_add(kept)
                && !self.open_maps.has_doomed()
                && self.freelist.dead_zones().iter().all(counts);
            let is_full = is_in_vain || !self.clean_if_possible(|| !self.host_has(bytes, kept))?;
            if is_full && !self.open_maps.wait_for_step(purged, &self.runtime, until) {
                return Err(Error::HostFull { free, kept });
            }
        }
        Ok(())
    }

    /// Like [`Self::clean_one_zone`]; also false if the cleaner has no zone to move data to. Space may be found
    /// elsewhere.
    fn clean_if_possible(&self, is_needed: impl Fn() -> bool) -> Result<bool> {
        match self.clean_one_zone(is_needed) {
            Err(Error::NoSpace { .. }) => Ok(false),
            cleaned => cleaned,
        }
    }

    /// Purges removed objects for a caller that waits: for 10 seconds at most. The cleaner's thread purges the rest.
    pub fn purge_in_need(&self, is_needed: impl Fn() -> bool) -> Result<()> {
        let until = self.runtime.now() + COMPACTION_PATIENCE;
        let goes_on = || is_needed() && !self.cleaner.has_ended() && self.runtime.now() < until;
        let purged = self.purge_doomed(goes_on);
        if !matches!(purged, Ok(false)) && self.open_maps.has_doomed() {
            // Its last round may have been over while this thread had the map.
            self.cleaner.nudge();
        }
        purged.map(drop)
    }

    /// Makes room for `bytes`, until `fits` accepts the data capacity; [`Error::NoSpace`] if no more can be made.
    fn find_space(&self, bytes: u64, fits: impl Fn(u64) -> bool) -> Result<()> {
        if fits(self.data_capacity()) {
            return Ok(());
        }
        let is_needed = || !self.freelist.fits(bytes, self.data_capacity());
        let mut purged = self.open_maps.steps();
        // Removed objects may wait for the purge, and their rows for compaction.
        self.purge_in_need(is_needed)?;
        let until = self.runtime.now() + COMPACTION_PATIENCE;
        let mut settled = 0;
        loop {
            let capacity = self.data_capacity();
            if fits(capacity) {
                return Ok(());
            }
            if self.open_maps.wait_for_step(purged, &self.runtime, until) {
                // A thread that needs no more leaves the rest of its map.
                purged = self.open_maps.steps();
                self.purge_in_need(is_needed)?;
                continue;
            }
            if !self.settle_metadata(&mut settled)? {
                let totals = self.freelist.totals();
                return Err(Error::NoSpace {
                    live: totals.live + totals.in_flight,
                    capacity,
                    wanted: bytes,
                });
            }
        }
    }

    /// Refuses an object of `size` bytes that would not fit now. Nothing is reserved: while it arrives, other writers
    /// take space and give it back.
    pub fn check_fits(&self, size: u64) -> Result<()> {
        let padded = self.padded(size);
        self.find_space(padded, |capacity| self.freelist.fits(padded, capacity))?;
        self.admit_on_host(padded)
    }

    /// Whether an object of `size` bytes fits now, without making room for it.
    pub fn has_room(&self, size: u64) -> bool {
        let padded = if self.is_inline(size) {
            0
        } else {
            self.padded(size)
        };
        self.host_has(padded, self.kept_on_host())
            && self.kv().is_ok_and(|kv| self.takes_metadata(&kv, 0))
            && (padded == 0 || self.freelist.fits(padded, self.data_capacity()))
    }

    /// Whether an object of `size` bytes is stored in the metadata: one that would leave at least half a block empty.
    /// Data in the metadata is rewritten by compactions, data in a zone is not.
    pub fn is_inline(&self, size: u64) -> bool {
        size <= MAX_INLINE.min(u64::from(self.pool.geometry().block_size) / 2)
    }

    /// `size` in whole blocks. Sizes above any drive's are capped, so that sums of them do not overflow.
    fn padded(&self, size: u64) -> u64 {
        self.pool.geometry().round_up(size.min(u64::MAX / 4))
    }

    /// Refuses new objects while the metadata could not grow, and `bytes` of metadata while it could not grow by that
    /// much. Removals are always admitted.
    pub fn admit_metadata(&self, bytes: u64) -> Result<()> {
        self.admit_on_host(bytes.saturating_mul(WRITTEN_OF_METADATA))?;
        let (mut futile, mut settled) = (0, 0);
        let lacks = |spare: u32| self.free_zones() < spare;
        loop {
            let kv = self.kv()?;
            if kv.has_levels() {
                self.update_reserves();
            }
            let spare = self.metadata_spare(&kv, bytes);
            drop(kv);
            if !lacks(spare) {
                return Ok(());
            }
            if self.clean_if_possible(|| lacks(spare))? {
                continue;
            }
            if self.reclaim_metadata(&mut futile)? {
                continue;
            }
            if self.settle_metadata(&mut settled)? {
                futile = 0;
                continue;
            }
            let kv = self.kv()?;
            // A compaction may have ended since the look above, and have given its space back.
            if !lacks(self.metadata_spare(&kv, bytes)) {
                return Ok(());
            }
            return Err(self.no_room_to_add(&kv, bytes));
        }
    }

    fn no_metadata_space(&self) -> Error {
        let counts = self.pool.counts();
        let (sequential, conventional) = (counts.bluefs_sequential, counts.bluefs_conventional);
        Error::NoMetadataSpace {
            metadata: self.zones_bytes(sequential, conventional),
            free: self.free_zones_bytes(),
        }
    }

    /// The error for `bytes` of metadata that find no room: the drive is full, or they are too many at once.
    pub fn no_room_to_add(&self, kv: &Kv, bytes: u64) -> Error {
        let much = 4 * LARGE;
        if bytes > much && self.takes_metadata(kv, much) {
            self.transaction_too_large(bytes)
        } else {
            self.no_metadata_space()
        }
    }

    pub fn transaction_too_large(&self, bytes: u64) -> Error {
        let free = self.free_zones_bytes();
        Error::TransactionTooLarge { bytes, free }
    }

    fn free_zones_bytes(&self) -> u64 {
        let counts = self.pool.counts();
        self.zones_bytes(counts.free_sequential, counts.free_conventional)
    }

    fn zones_bytes(&self, sequential: u32, conventional: u32) -> u64 {
        let geometry = self.pool.geometry();
        u64::from(sequential) * geometry.zone_capacity
            + u64::from(conventional) * geometry.conventional_capacity()
    }

    /// Reserves numbers for a transaction, unless many are left.
    pub fn reserve_numbers(&self) -> Result<()> {
        // Held, so that a store that is unmounted meanwhile does not count as failed.
        let _open = self.kv()?;
        self.numbers.reserve(|batch| self.write_numbers(batch))
    }

    /// A new number for a map, an omap, a shared blob or a summary. The caller holds the database open.
    pub fn take_number(&self) -> Result<u64> {
        self.numbers.take(|batch| self.write_numbers(batch))
    }

    fn write_numbers(&self, batch: &Batch) -> Result<()> {
        match self.write_rows(batch, Durability::Buffered) {
            Err(error @ Error::NoMetadataSpace { .. }) => Err(error),
            written => written.map_err(|error| self.stop_writing(error)),
        }
    }

    /// Writes rows that belong to no commit, [`Self::when_possible`]: those of the scrub, of summaries, of losses that a
    /// mount finds and of zones that are worn out, and reserved numbers.
    ///
    /// # Errors
    /// [`Error::NoMetadataSpace`] if the database goes on refusing them; none of them is written then. Other errors of
    /// the database leave open whether they are.
    pub fn write_rows(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let kv = self.kv()?;
        self.when_possible(&kv, batch, || Ok(kv.write(batch, durability)?))
    }

    /// Writes a batch, [`Self::when_possible`].
    pub fn write_when_possible(
        &self,
        kv: &Kv,
        batch: &Batch,
        durability: Durability,
    ) -> Result<Option<u64>> {
        self.when_possible(kv, batch, || self.unsynced.write(kv, batch, durability))
    }

    /// Calls `write`, which writes `batch`. A database that has much to compact and no space for it takes no batches,
    /// deletions included: then space is made and waited for, and `write` is called again. If that does not help, nothing
    /// was written and the error says so.
    pub fn when_possible<T>(
        &self,
        kv: &Kv,
        batch: &Batch,
        write: impl Fn() -> Result<T>,
    ) -> Result<T> {
        let mut in_vain = 0;
        let bytes = batch.as_bytes().len() as u64;
        for _ in 0..ATTEMPTS_TO_WRITE {
            // A log without a zone would stop the database.
            let is_low = self.free_zones() < self.spare_of_removals(kv, bytes);
            let is_log_full = is_low && !self.fs.takes_log(bytes);
            if is_log_full {
                tracing::warn!("the log of the metadata is full; making space");
            } else {
                match write() {
                    Err(Error::Kv(kv::Error::Busy { message })) => {
                        tracing::warn!(message, "the metadata is full; making space");
                    }
                    done => return done,
                }
            }
            self.give_up_moments_and_wait("the database has no space for a batch");
            let mut futile = 0;
            while self.reclaim_metadata(&mut futile)? && is_log_full && !self.fs.takes_log(bytes) {}
            let before = kv.stored_bytes();
            let goes_on = match kv.settle(COMPACTION_PATIENCE) {
                Ok(is_settled) => !is_settled,
                Err(kv::Error::NoSpace { .. } | kv::Error::Busy { .. }) => false,
                Err(error) => return Err(self.in_background(error)),
            };
            // On a busy machine, one compaction may take minutes. One that waits for space goes on for ever.
            let goes_on = goes_on && !is_log_full;
            in_vain += u32::from(!goes_on && kv.stored_bytes() == before);
            if in_vain == ATTEMPTS_IN_VAIN {
                break;
            }
        }
        Err(self.no_metadata_space())
    }

    /// Has the database compact removed rows, which fill SSTs until then, so that only the first writer that is refused
    /// after a removal waits. Without any, waits for a running compaction, unless the caller has `settled` before:
    /// while others write there is always another. False if neither gained anything, or this caller has waited three times:
    /// while others remove there is always something to compact.
    fn settle_metadata(&self, settled: &mut u32) -> Result<bool> {
        const MOST: u32 = 3;
        let garbage = self.garbage.load(Ordering::Relaxed);
        let kv = self.kv()?;
        if kv.kept_bytes() > 0 && self.give_up_moments_and_wait("metadata has no space to grow") {
            return Ok(true);
        }
        let is_vain = garbage == 0 && (*settled > 0 || !kv.is_compacting());
        if *settled == MOST || is_vain {
            return Ok(false);
        }
        *settled += 1;
        match kv.settle(COMPACTION_PATIENCE) {
            Ok(true) => {}
            Ok(false) | Err(kv::Error::NoSpace { .. } | kv::Error::Busy { .. }) => {
                return Ok(false);
            }
            Err(error) => return Err(self.in_background(error)),
        }
        self.forget_garbage(garbage);
        self.reservation.lock().look_again();
        Ok(true)
    }

    fn forget_garbage(&self, bytes: u64) {
        let less = |garbage: u64| Some(garbage.saturating_sub(bytes));
        let _ = self
            .garbage
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// While zones or the host's disk run low, flushes the memtable before its log takes much: a deletion of a hundred
    /// bytes that is synced alone costs the log a whole block.
    pub fn keep_log_short(&self, kv: &Kv) -> Result<()> {
        let kept = self.kept_on_host();
        let part = kept / KEPT_PARTS;
        if !self.host_has(0, kept) && self.host_space.has_lost(&*self.device, part) {
            self.flush_if_possible(kv)?;
        }
        let (free, spare) = (self.free_zones(), self.metadata_spare(kv, 0));
        if free >= spare {
            return Ok(());
        }
        if free < spare / 2 {
            self.give_up_moments("few zones are left for the database");
        }
        let log_zones = self
            .fs
            .zones()
            .into_iter()
            .filter(|(_, purpose)| *purpose == ZonePurpose::Log);
        if log_zones.count() > LOG_ZONES_WHEN_FULL {
            self.flush_if_possible(kv)?;
        }
        Ok(())
    }

    /// While zones run low, waits for the database before `bytes` more are written to remove rows: each time that
    /// removals have written as much as a memtable, and at once for a batch that finds no room.
    pub fn wait_for_compaction(&self, bytes: u64) -> Result<()> {
        let kv = self.kv()?;
        if !kv.has_levels() {
            return Ok(());
        }
        let most = write_buffer_bytes(self.pool.geometry(), self.fs.copies());
        let is_low = || self.free_zones() < self.spare_of_removals(&kv, 0);
        let is_large = || bytes > LARGE && !self.takes_removals(&kv, bytes);
        let is_due = || (self.taken.load(Ordering::Relaxed) >= most && is_low()) || is_large();
        if is_due() {
            // One thread waits for the database, the others for that thread.
            let _alone = self.settling.lock();
            let make_zones = || -> Result<()> {
                let mut futile = 0;
                while is_due() && self.reclaim_metadata(&mut futile)? {}
                Ok(())
            };
            make_zones()?;
            if is_due() {
                let taken = self.taken.load(Ordering::Relaxed);
                self.settle_metadata(&mut 0)?;
                self.taken.fetch_sub(taken, Ordering::Relaxed);
                make_zones()?;
            }
        }
        Ok(())
    }

    /// Whether enough zones are free for a batch of `bytes` that adds rows.
    pub fn takes_metadata(&self, kv: &Kv, bytes: u64) -> bool {
        self.free_zones() >= self.metadata_spare(kv, bytes)
    }

    /// Whether enough zones are free for a batch of `bytes` that removes rows. Of the zones kept for removals, a third
    /// stays free for compaction.
    pub fn takes_removals(&self, kv: &Kv, bytes: u64) -> bool {
        let copies = self.fs.copies();
        let left = Reservation::headroom(self.pool.geometry(), copies) * copies / 4;
        self.free_zones()
            >= self
                .zones_for(bytes_to_write(kv, bytes))
                .saturating_add(left)
    }

    /// Free zones below which no new objects and no other `bytes` of metadata are admitted: the database may have to
    /// write that much before a removal gives anything back.
    fn metadata_spare(&self, kv: &Kv, bytes: u64) -> u32 {
        let removals = for_removals(&self.reservation.lock(), kv, self.pool.geometry());
        self.headroom_beside(bytes_to_write(kv, bytes).saturating_add(removals))
    }

    /// Free zones below which removals wait for the database.
    fn spare_of_removals(&self, kv: &Kv, bytes: u64) -> u32 {
        self.headroom_beside(bytes_to_write(kv, bytes))
    }

    /// Zones for `bytes` in each copy of the metadata, and three quarters of the headroom, for compaction.
    fn headroom_beside(&self, bytes: u64) -> u32 {
        let copies = self.fs.copies();
        let headroom = Reservation::headroom(self.pool.geometry(), copies);
        self.zones_for(bytes)
            .saturating_add(headroom * copies * 3 / 4)
    }

    /// Number of free zones that `bytes` in each copy of the metadata take, conventional ones first.
    fn zones_for(&self, bytes: u64) -> u32 {
        let (geometry, counts) = (self.pool.geometry(), self.pool.counts());
        let copies = self.fs.copies();
        let bytes = bytes.saturating_mul(u64::from(copies));
        let each = geometry.conventional_capacity();
        let conventional = bytes.div_ceil(each).min(counts.free_conventional.into());
        let rest = bytes.saturating_sub(conventional * each);
        let zones = conventional + rest.div_ceil(geometry.zone_capacity);
        u32::try_from(zones).unwrap_or(u32::MAX)
    }

    fn free_zones(&self) -> u32 {
        let counts = self.pool.counts();
        counts.free_sequential + counts.free_conventional
    }

    /// Lets BlueFS gather the live data of its zones; false if nothing more can be gained. Moving one zone may free
    /// none while moving many does: `futile` counts moves in a row that freed none, 16 at most.
    fn reclaim_metadata(&self, futile: &mut u32) -> Result<bool> {
        let before = self.free_zones();
        let more = match self.fs.reclaim() {
            Ok(more) => more && *futile < MAX_FUTILE_RECLAIMS,
            Err(bluefs::Error::NoSpace { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        *futile = if self.free_zones() > before {
            0
        } else {
            *futile + 1
        };
        Ok(more)
    }

    /// Like [`Self::reclaim_metadata`], for data, which needs a sequential zone: BlueFS first leaves those above its
    /// share.
    fn reclaim_for_data(&self, futile: &mut u32) -> Result<bool> {
        let before = self.pool.free_for_data();
        while *futile < MAX_FUTILE_RECLAIMS && self.pool.bluefs_is_in_the_way() {
            match self.fs.leave_sequential_zone() {
                Ok(true) if self.pool.free_for_data() > before => return Ok(true),
                Ok(true) => *futile += 1,
                Ok(false) if self.fs.close_sequential_zones()? => {
                    // New logs are opened in other zones from now on.
                    self.flush_if_possible(&*self.kv()?)?;
                    *futile += 1;
                }
                Ok(false) | Err(bluefs::Error::NoSpace { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.reclaim_metadata(futile)
    }

    fn flush_if_possible(&self, kv: &Kv) -> Result<()> {
        match kv.flush() {
            Ok(()) | Err(kv::Error::NoSpace { .. } | kv::Error::Busy { .. }) => Ok(()),
            Err(error) => Err(self.in_background(error)),
        }
    }

    /// Turns an error of the database's background work into the store's. If it ended the database's writes, it ends
    /// the store's too, so that it is reported before the next commit.
    pub(crate) fn in_background(&self, error: kv::Error) -> Error {
        match error {
            kv::Error::Stopped { .. } | kv::Error::Corruption { .. } => {
                self.stop_writing(error.into())
            }
            error => error.into(),
        }
    }

    pub fn no_space(&self, wanted: u64) -> Error {
        Error::NoSpace {
            live: self.freelist.totals().live,
            capacity: self.data_capacity(),
            wanted,
        }
    }

    /// Frees a zone for `stream`, by cleaning if need be. Returns the stream to append to: another of the same kind if
    /// no zone can be freed.
    pub fn make_room<'a>(&'a self, stream: &'a Stream, wanted: u64) -> Result<&'a Stream> {
        let no_space = || self.no_space(wanted);
        let (mut futile, mut settled) = (0, 0);
        if self.moved.has(stream) {
            if let Some(other) = self.moved.with_room() {
                return Ok(other);
            }
            // The cleaner itself needs a zone: only BlueFS can give one back. Where zones are out of use, its reserve
            // may be all that is free.
            let before = self.free_zones();
            while self.reclaim_metadata(&mut futile)? && self.free_zones() <= before {}
            return if self.free_zones() > before {
                Ok(stream)
            } else {
                Err(no_space())
            };
        }
        loop {
            self.update_reserves();
            if self.pool.free_for_data() > 0 {
                return Ok(stream);
            }
            let cleaned = self.clean_if_possible(|| self.pool.free_for_data() == 0)?;
            if cleaned || self.pool.free_for_data() > 0 {
                continue;
            }
            // Zones that a compaction writes to may be needed here; it goes on in other zones.
            if self.reclaim_for_data(&mut futile)? || self.settle_metadata(&mut settled)? {
                continue;
            }
            // Only the rest of open zones is left. The cleaner's open zone goes to the data; the cleaner still has its
            // reserve.
            if let Some(other) = self.data.with_room() {
                return Ok(other);
            }
            let _cleaner_waits = self.cleaner.turn(|| true);
            return if self.moved.hand_over(stream) {
                Ok(stream)
            } else {
                Err(no_space())
            };
        }
    }
}

/// Bytes that the database writes for a batch of `bytes` and for its memtable.
fn bytes_to_write(kv: &Kv, bytes: u64) -> u64 {
    let brought = bytes.saturating_mul(WRITTEN_OF_METADATA);
    kv.flush_bytes().saturating_add(brought)
}

fn for_removals(reservation: &Reservation, kv: &Kv, geometry: &Geometry) -> u64 {
    if kv.has_levels() {
        reservation.for_removals(geometry)
    } else {
        0
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
