//! Who may have space: new data and new names are admitted, or room is made for them.

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

/// Zones of logs (the manifest's among them) that a full drive's memtable may hold on to.
const LOG_ZONES_WHEN_FULL: usize = 3;
/// Of the bytes in data zones, one in so many is kept for segment summaries, and they take no more.
const KEPT_FOR_SUMMARIES: u64 = 1024;
/// How often in a row BlueFS may move live data without a zone becoming free.
const MAX_FUTILE_RECLAIMS: u32 = 16;
/// The most of the host's disk under a drive file that new data leaves for deletes: some memtables,
/// and what a compaction writes before it gives its input back.
const MAX_KEPT_ON_HOST: u64 = 256 << 20;
/// The log of deletes may take one in so many of those bytes before the memtable is written out and waited for.
const KEPT_PARTS: u64 = 8;
/// Of each byte of a batch, the log, an SST and what a compaction writes before it gives its input back have one.
const WRITTEN_OF_METADATA: u64 = 3;
/// What the reserve for metadata covers in any case, in bytes of a batch.
pub(crate) const LARGE: u64 = 256 << 10;
/// How often a batch is written in all that the database does not take, and how often though that has not come on meanwhile.
const ATTEMPTS_TO_WRITE: u32 = 32;
const ATTEMPTS_IN_VAIN: u32 = 4;
/// How long a refused put waits for what was removed before it to be given back: by the purge, and by RocksDB.
const COMPACTION_PATIENCE: Duration = Duration::from_secs(10);

impl Inner {
    /// Lets the reserves follow what BlueFS needs. Zones are kept free for it, but never those of what is
    /// live; the capacity is without all of it, so that what is available can be put.
    pub fn update_reserves(&self) {
        let geometry = self.pool.geometry();
        let copies = self.fs.info().copies();
        let mut reservation = self.reservation.lock();
        let garbage = self.garbage.load(Ordering::Relaxed);
        let stored = || self.kv().map_or(0, |kv| kv.stored_bytes());
        let counts = self.pool.counts();
        let given_back = reservation.look(&counts, geometry, garbage, stored);
        // Never all of it: what is left may have to be looked for.
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

    /// Bytes of object data that the drive can hold, whatever is dead now.
    pub fn data_capacity(&self) -> u64 {
        let bytes = self.data_zone_bytes();
        let capacity = bytes - bytes / KEPT_FOR_SUMMARIES;
        // Whole blocks, for that is what objects take.
        capacity - capacity % u64::from(self.pool.geometry().block_size)
    }

    /// Whether there is a place for a segment summary of `bytes`, when `freed` bytes of them will soon be
    /// gone. What objects have been promised is none.
    pub fn has_place_for_summary(&self, bytes: u64, freed: u64) -> bool {
        let taken = self.freelist.summary_bytes().saturating_sub(freed);
        taken + bytes <= self.data_zone_bytes() / KEPT_FOR_SUMMARIES
    }

    fn data_zone_bytes(&self) -> u64 {
        self.update_reserves();
        let reserved = self.reservation.lock().zones;
        let zones = self.pool.shared_zones().saturating_sub(reserved);
        let bytes = u64::from(zones) * self.pool.geometry().zone_capacity;
        bytes.saturating_sub(self.freelist.totals().given_up())
    }

    /// Reserves `bytes` of data space to a writer.
    pub fn admit_data(&self, bytes: u64) -> Result<()> {
        self.admit_on_host(bytes)?;
        self.find_space(bytes, |capacity| self.freelist.reserve(bytes, capacity))
    }

    /// Bytes of the host's disk under the drive that new data leaves for deletes: their log records,
    /// what these are compacted into, and what the cleaner moves before it gives back more.
    pub fn kept_on_host(&self) -> u64 {
        let flush = self.kv().map_or(0, |kv| kv.flush_bytes());
        flush + (self.pool.geometry().capacity_bytes() / 16).min(MAX_KEPT_ON_HOST)
    }

    /// Whether `bytes` can be written and `kept` are still left on the host's disk.
    pub fn host_has(&self, bytes: u64, kept: u64) -> bool {
        self.host_space.has(&*self.device, bytes, kept)
    }

    /// Refuses `bytes` of new data while they would take what the host's disk has left for deletes,
    /// and gives back first what is dead. A full disk would fail the log's writes, and nothing
    /// could be deleted any more.
    fn admit_on_host(&self, bytes: u64) -> Result<()> {
        let kept = self.kept_on_host();
        while !self.host_has(bytes, kept) {
            if !self.clean_one_zone(|| !self.host_has(bytes, kept))? {
                let free = self.device.host_free_bytes().unwrap_or(0);
                return Err(Error::HostFull { free, kept });
            }
        }
        Ok(())
    }

    /// Gives back what was removed before, for somebody who waits: not for ever, the rest comes later.
    pub fn purge_in_need(&self, is_needed: impl Fn() -> bool) -> Result<()> {
        let until = self.runtime.now() + COMPACTION_PATIENCE;
        let goes_on = || is_needed() && !self.cleaner.has_ended() && self.runtime.now() < until;
        self.purge_doomed(goes_on).map(drop)
    }

    /// Makes what space there can be for `bytes`, until `fits` says of the capacity that it does.
    fn find_space(&self, bytes: u64, fits: impl Fn(u64) -> bool) -> Result<()> {
        if fits(self.data_capacity()) {
            return Ok(());
        }
        // Objects may be waiting to be given back, and what is left of others in the metadata.
        self.purge_in_need(|| !fits(self.data_capacity()))?;
        let mut has_waited = false;
        loop {
            let capacity = self.data_capacity();
            if fits(capacity) {
                return Ok(());
            }
            if !self.settle_metadata(&mut has_waited)? {
                let totals = self.freelist.totals();
                return Err(Error::NoSpace {
                    live: totals.live + totals.in_flight,
                    capacity,
                    wanted: bytes,
                });
            }
        }
    }

    /// Refuses an object of `size` bytes that would not fit now. Nothing is reserved for it: while it
    /// arrives, others take space and give it back.
    pub fn check_fits(&self, size: u64) -> Result<()> {
        let padded = self.padded(size);
        self.find_space(padded, |capacity| self.freelist.fits(padded, capacity))?;
        self.admit_on_host(padded)
    }

    /// Whether an object of `size` bytes fits as things are.
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

    /// Whether an object of `size` bytes goes to the metadata: one that leaves at least half a block empty. A
    /// compaction writes what is there once more, a data zone does not.
    pub fn is_inline(&self, size: u64) -> bool {
        size <= MAX_INLINE.min(u64::from(self.pool.geometry().block_size) / 2)
    }

    /// Whole blocks. More than any drive holds is more than this one holds, and can be added up.
    fn padded(&self, size: u64) -> u64 {
        self.pool.geometry().round_up(size.min(u64::MAX / 4))
    }

    /// Refuses new objects while the metadata could not grow, and what brings so many `bytes` of it while it could not by
    /// that; deletes are always let through.
    pub fn admit_metadata(&self, bytes: u64) -> Result<()> {
        self.admit_on_host(bytes.saturating_mul(WRITTEN_OF_METADATA))?;
        let (mut futile, mut has_waited) = (0, false);
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
            if self.clean_one_zone(|| lacks(spare))? {
                continue;
            }
            if self.reclaim_metadata(&mut futile)? {
                continue;
            }
            if self.settle_metadata(&mut has_waited)? {
                futile = 0;
                continue;
            }
            return Err(self.no_room_to_add(&*self.kv()?, bytes));
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

    /// Why so many bytes of metadata find no room: there is little, or they are too many at once.
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

    /// Writes a batch. A database with much to compact that finds no space for it takes no batches until it
    /// does: that is made and waited for, also for deletions. If it does not help, nothing was written.
    pub fn write_when_possible(
        &self,
        kv: &Kv,
        batch: &Batch,
        durability: Durability,
    ) -> Result<Option<u64>> {
        let mut in_vain = 0;
        for _ in 0..ATTEMPTS_TO_WRITE {
            match self.unsynced.write(kv, batch, durability) {
                Err(Error::Kv(kv::Error::Busy { message })) => {
                    tracing::warn!(message, "the metadata is full; making space");
                }
                done => return done,
            }
            self.give_up_moments_and_wait("the database has no space for a batch");
            self.reclaim_metadata(&mut 0)?;
            let before = kv.stored_bytes();
            let goes_on = match kv.settle(COMPACTION_PATIENCE) {
                Ok(is_settled) => !is_settled,
                Err(kv::Error::NoSpace { .. } | kv::Error::Busy { .. }) => false,
                Err(error) => return Err(self.in_background(error)),
            };
            // On a busy machine a compaction may take minutes.
            in_vain += u32::from(!goes_on && kv.stored_bytes() == before);
            if in_vain == ATTEMPTS_IN_VAIN {
                break;
            }
        }
        Err(self.no_metadata_space())
    }

    /// Rows that were removed fill SSTs until those are compacted: has that done, so that only the first to be
    /// refused after a removal waits. Otherwise waits for what is being compacted, unless the caller `has_waited`
    /// for that: while others write there is always more. False if there is neither.
    fn settle_metadata(&self, has_waited: &mut bool) -> Result<bool> {
        let garbage = self.garbage.load(Ordering::Relaxed);
        let kv = self.kv()?;
        if kv.kept_bytes() > 0 && self.give_up_moments_and_wait("metadata has no space to grow") {
            return Ok(true);
        }
        if garbage == 0 && (std::mem::replace(has_waited, true) || !kv.is_compacting()) {
            return Ok(false);
        }
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

    /// Where zones or the host's disk run low, has the memtable written out before its log takes much: a deletion of a
    /// hundred bytes that is synced by itself costs the log a block.
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

    /// Where zones run low, waits for the database before so many `bytes` more are written to remove rows: each time when as much
    /// has been written as a memtable takes, and for as much at once as finds no room.
    pub fn wait_for_compaction(&self, bytes: u64) -> Result<()> {
        let kv = self.kv()?;
        if !kv.has_levels() {
            return Ok(());
        }
        let most = write_buffer_bytes(self.pool.geometry(), self.fs.info().copies());
        let is_low = || self.free_zones() < self.spare_of_removals(&kv, 0);
        let is_large = || bytes > LARGE && !self.takes_removals(&kv, bytes);
        let is_due = || (self.taken.load(Ordering::Relaxed) >= most && is_low()) || is_large();
        if is_due() {
            // One waits for the database, and others for that one.
            let _alone = self.settling.lock();
            let make_zones = || -> Result<()> {
                let mut futile = 0;
                while is_due() && self.reclaim_metadata(&mut futile)? {}
                Ok(())
            };
            make_zones()?;
            if is_due() {
                self.settle_metadata(&mut false)?;
                self.taken.store(0, Ordering::Relaxed);
                make_zones()?;
            }
        }
        Ok(())
    }

    /// Whether a batch of so many bytes finds zones as things are.
    pub fn takes_metadata(&self, kv: &Kv, bytes: u64) -> bool {
        self.free_zones() >= self.metadata_spare(kv, bytes)
    }

    /// The same of one that removes rows, for which zones are kept: a third of them stay, to be compacted into.
    pub fn takes_removals(&self, kv: &Kv, bytes: u64) -> bool {
        let copies = self.fs.info().copies();
        let left = Reservation::headroom(self.pool.geometry(), copies) * copies / 4;
        self.free_zones()
            >= self
                .zones_for(bytes_to_write(kv, bytes))
                .saturating_add(left)
    }

    /// Free zones below which no new objects are taken, nor other `bytes` of metadata: the database may have to write before
    /// anything is given back.
    fn metadata_spare(&self, kv: &Kv, bytes: u64) -> u32 {
        let removals = for_removals(&self.reservation.lock(), kv, self.pool.geometry());
        self.headroom_beside(bytes_to_write(kv, bytes).saturating_add(removals))
    }

    /// Those below which the database is waited for while rows are removed.
    fn spare_of_removals(&self, kv: &Kv, bytes: u64) -> u32 {
        self.headroom_beside(bytes_to_write(kv, bytes))
    }

    /// Zones for so many bytes of each copy, and what compaction needs of the headroom.
    fn headroom_beside(&self, bytes: u64) -> u32 {
        let copies = self.fs.info().copies();
        let headroom = Reservation::headroom(self.pool.geometry(), copies);
        self.zones_for(bytes)
            .saturating_add(headroom * copies * 3 / 4)
    }

    /// Zones for so many bytes of each copy: as many of the free ones as it takes, conventional ones first.
    fn zones_for(&self, bytes: u64) -> u32 {
        let (geometry, counts) = (self.pool.geometry(), self.pool.counts());
        let copies = self.fs.info().copies();
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

    /// Lets BlueFS gather what is live in its zones; false if there is nothing to gain. A zone that
    /// is moved into others may free none, many do in the end: `futile` counts those in a row.
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

    /// The same for data, which is to have a sequential zone: first BlueFS leaves those that are not its own.
    fn reclaim_for_data(&self, futile: &mut u32) -> Result<bool> {
        let before = self.pool.free_for_data();
        while *futile < MAX_FUTILE_RECLAIMS && self.pool.bluefs_is_in_the_way() {
            match self.fs.leave_sequential_zone() {
                Ok(true) if self.pool.free_for_data() > before => return Ok(true),
                Ok(true) => *futile += 1,
                Ok(false) if self.fs.close_sequential_zones()? => {
                    // Logs are written to elsewhere from now on.
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

    /// What the database met in the background. If that has ended its writes, it has ended the store's, which so may be
    /// seen before anybody commits.
    fn in_background(&self, error: kv::Error) -> Error {
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

    /// Frees a zone for `stream`, by cleaning if need be; answers the stream to go on with, which is another
    /// of its kind if no zone can be freed.
    pub fn make_room<'a>(&'a self, stream: &'a Stream, wanted: u64) -> Result<&'a Stream> {
        let no_space = || self.no_space(wanted);
        let (mut futile, mut has_waited) = (0, false);
        if self.moved.has(stream) {
            if let Some(other) = self.moved.with_room() {
                return Ok(other);
            }
            // Nothing is cleaned before BlueFS has given back a zone: where zones have gone out of use,
            // its reserve may be all that is free.
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
            let cleaned = match self.clean_one_zone(|| self.pool.free_for_data() == 0) {
                // The cleaner has no zone to move to; there may be other room.
                Err(Error::NoSpace { .. }) => false,
                cleaned => cleaned?,
            };
            if cleaned || self.pool.free_for_data() > 0 {
                continue;
            }
            // What a compaction writes may be in the way; it goes on into other zones.
            if self.reclaim_for_data(&mut futile)? || self.settle_metadata(&mut has_waited)? {
                continue;
            }
            // All that is left is the rest of open zones. That of the cleaner's goes to the data; the
            // cleaner still has its reserve.
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

/// Bytes that the database writes for a batch of so many, and for what it has in memory.
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
