//! What all handles of a mounted store share, and who may have space.
//!
//! Locks, in the order in which they are taken: `collection_changes` → object stripes → `mutators` →
//! `shared_blobs`, which a commit holds alone once it looks at a blob that several maps show.
//! Commits hold `mutators` shared from reading extents to the end of the write; the cleaner's commit
//! holds it alone, so that it never moves an extent that a commit is about to drop.
//!
//! Readers take none of these, for they are held while the drive works, which may take for ever. They
//! are in `gate` from looking a place up to the end of the read. A zone is reset when nothing in it
//! can be found any more and those who may have found something have left.

use crate::cleaner::Cleaner;
use crate::format::key;
use crate::format::record::CollectionRecord;
use crate::freelist::{Freelist, SetAside};
use crate::host_space::HostSpace;
use crate::open_maps::OpenMaps;
use crate::stream::{Stream, is_of_zone, judge};
use crate::written::{Hold, Uncommitted};
use crate::{Error, Result};
use bluefs::{BlueFs, ZonePurpose};
use device::ZonedDevice;
use device::watch::UnderWay;
use kv::{Batch, Durability, Kv};
use object::MAX_INLINE;
use runtime::sync::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard, read_recursive};
use runtime::{KeyedHash, Runtime};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use zone::ZoneId;
use zone_alloc::{PoolCounts, ReadGate, ZonePool, reserved_zones};

/// Free zones that the cleaner alone may use: one that it fills and one to change to.
pub(crate) const CLEANER_RESERVE_ZONES: u32 = 2;
/// What BlueFS has however little is in it: superblocks 4, journal and its successor 2, spare 1, ready
/// 4, and one each that log, manifest and SSTs are being written to.
pub(crate) const METADATA_FIXED_ZONES: u32 = 14;
/// Numbers of maps and blobs are set aside in runs of so many, so that a commit need not write the counter.
const NUMBER_RUN: u64 = 1 << 16;
const STRIPES: usize = 1024;
/// Zones of logs (the manifest's among them) that a full drive's memtable may hold on to.
const LOG_ZONES_WHEN_FULL: usize = 3;
/// How often in a row BlueFS may move live data without a zone becoming free.
const MAX_FUTILE_RECLAIMS: u32 = 16;
/// How often writes and resets of a zone may fail before it is out of use until the next mount.
const MAX_FAILURES: u32 = 3;
/// The most of the host's disk under a drive file that new data leaves for deletes: some memtables,
/// and what a compaction writes before it gives its input back.
const MAX_KEPT_ON_HOST: u64 = 256 << 20;
/// How long a refused put waits for RocksDB to give back what was removed before it.
const COMPACTION_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Inner {
    pub device: Arc<dyn ZonedDevice>,
    /// What the drive has not answered yet.
    pub under_way: Arc<UnderWay>,
    pub pool: Arc<ZonePool>,
    pub fs: BlueFs,
    pub kv: RwLock<Option<Kv>>,
    pub freelist: Arc<Freelist>,
    pub uncommitted: Arc<Uncommitted>,
    pub data: Stream,
    pub moved: Stream,
    /// Held for a look or to exchange it.
    pub collections: RwLock<Arc<BTreeMap<String, CollectionRecord>>>,
    /// Held alone by a commit that changes collections, shared by all others.
    pub collection_changes: RwLock<()>,
    pub stripes: Stripes,
    pub mutators: RwLock<()>,
    pub gate: Arc<ReadGate>,
    pub open_maps: OpenMaps,
    pub shared_blobs: Mutex<()>,
    pub numbers: Numbers,
    /// Changes only while `collection_changes` is held alone.
    pub next_collection: AtomicU32,
    pub cleaner: Arc<Cleaner>,
    pub runtime: Runtime,
    /// Number of the next batch, and of one that has been acknowledged.
    pub next_batch: AtomicU64,
    pub acknowledged: AtomicU64,
    pub reservation: Mutex<Reservation>,
    pub host_space: HostSpace,
    /// Bytes of rows that were removed and that RocksDB may not have compacted away yet.
    pub garbage: AtomicU64,
    pub read_only: bool,
    /// Why nothing can be written any more.
    pub failure: OnceLock<String>,
    pub uuid: [u8; 16],
}

/// What is reserved for BlueFS.
#[derive(Default)]
pub(crate) struct Reservation {
    pub zones: u32,
    /// Zones that it would do with, and how many it had when that was last worked out.
    owned: u32,
    seen: Option<(u32, u32, u64)>,
}

/// Locks of commits on objects, by hash of the name.
pub(crate) struct Stripes {
    /// Clients choose names.
    hash: KeyedHash,
    locks: Vec<Mutex<()>>,
}

impl Stripes {
    pub fn new(hash: KeyedHash) -> Self {
        let locks = (0..STRIPES).map(|_| Mutex::new(())).collect();
        Self { hash, locks }
    }

    pub fn index(&self, collection: &str, object: &str) -> usize {
        self.hash.hash_one((collection, object)) as usize % STRIPES
    }

    pub fn lock(&self, index: usize) -> &Mutex<()> {
        &self.locks[index]
    }
}

/// The numbers of maps and shared blobs; never used twice.
pub(crate) struct Numbers {
    /// The next one, and the end of the run that is set aside on disk.
    state: Mutex<(u64, u64)>,
}

impl Numbers {
    /// Starts behind everything that was ever set aside.
    pub fn new(next: u64) -> Self {
        Self {
            state: Mutex::new((next, next)),
        }
    }

    /// A new number. `kv` remembers the run; the record need not be synced, for it is ahead in
    /// the log of any batch that uses the numbers.
    pub fn take(&self, kv: &Kv) -> Result<u64> {
        let mut state = self.state.lock();
        let number = state.0;
        if number == state.1 {
            let end = number + NUMBER_RUN;
            let mut batch = Batch::default();
            batch.put(key::SUPER_NEXT_NUMBER, &end.to_le_bytes());
            kv.write(&batch, Durability::Buffered)?;
            state.1 = end;
        }
        state.0 += 1;
        Ok(number)
    }
}

impl Inner {
    /// The database, or an error after unmounting.
    pub fn kv(&self) -> Result<MappedRwLockReadGuard<'_, Kv>> {
        let guard = read_recursive(&self.kv);
        RwLockReadGuard::try_map(guard, Option::as_ref).map_err(|_| Error::ReadOnly)
    }

    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        match self.failure.get() {
            Some(reason) => Err(Error::Failed {
                reason: reason.clone(),
            }),
            None => Ok(()),
        }
    }

    /// A commit has failed half-way: what is there can be read, and nothing be written before the
    /// next mount. Answers the error for the caller.
    pub fn stop_writing(&self, error: Error) -> Error {
        let reason = error.to_string();
        if self.failure.set(reason.clone()).is_ok() {
            tracing::error!(%error, "nothing can be written any more; reads go on");
        }
        if error.is_no_space() {
            return error;
        }
        Error::Failed { reason }
    }

    pub fn collections(&self) -> Arc<BTreeMap<String, CollectionRecord>> {
        self.collections.read().clone()
    }

    /// Zones that are always left for BlueFS to grow into: compaction writes before it deletes.
    pub fn metadata_headroom(zone_count: u32) -> u32 {
        (zone_count / 32).clamp(8, 64)
    }

    /// Lets the reserves follow what BlueFS needs, but never into what is live.
    pub fn update_reserves(&self) {
        let geometry = self.pool.geometry();
        let headroom = Self::metadata_headroom(geometry.zone_count);
        let mut reservation = self.reservation.lock();
        let c = self.pool.counts();
        // Garbage counts by the zone, or every removal would have all files looked at.
        let garbage = self.garbage.load(Ordering::Relaxed);
        let zones_of_garbage = garbage / geometry.zone_capacity;
        let seen = Some((c.bluefs_sequential, c.bluefs_conventional, zones_of_garbage));
        if reservation.seen != seen {
            reservation.seen = seen;
            // Not what it has: zones that are mostly dead are given back when they are needed.
            // Nor what is removed: a put that needs the space has it compacted.
            let live = self.fs.usage().live_bytes.saturating_sub(garbage);
            let dense = live.div_ceil(geometry.zone_capacity / 16 * 15);
            let fixed = METADATA_FIXED_ZONES.saturating_sub(c.bluefs_conventional);
            reservation.owned = u32::try_from(dense)
                .unwrap_or(u32::MAX)
                .saturating_add(fixed);
        }
        let wanted = self.freelist.wanted().div_ceil(geometry.zone_capacity);
        let ceiling = Self::sequential_zones(&c)
            .saturating_sub(CLEANER_RESERVE_ZONES)
            .saturating_sub(u32::try_from(wanted).unwrap_or(u32::MAX));
        reservation.zones = reserved_zones(reservation.zones, reservation.owned, headroom, ceiling);
        self.pool
            .set_reserves(reservation.zones, CLEANER_RESERVE_ZONES);
    }

    fn sequential_zones(counts: &PoolCounts) -> u32 {
        counts.free_sequential + counts.store + counts.unclaimed + counts.bluefs_sequential
    }

    /// Bytes of object data that the drive can hold, whatever is dead now.
    pub fn data_capacity(&self) -> u64 {
        self.update_reserves();
        let kept_back = self.reservation.lock().zones + CLEANER_RESERVE_ZONES;
        let zones = Self::sequential_zones(&self.pool.counts()).saturating_sub(kept_back);
        let bytes = u64::from(zones) * self.pool.geometry().zone_capacity;
        bytes.saturating_sub(self.freelist.set_aside_bytes())
    }

    /// For what a writer is going to place.
    pub fn hold(&self) -> Hold {
        Hold::new(self.freelist.clone(), self.uncommitted.clone())
    }

    /// What has been written to a zone that cannot be read is not worth a commit.
    pub fn check_readable(&self, zone: ZoneId) -> Result<()> {
        if self.freelist.is_unreadable(zone) {
            return Err(Error::WrittenLost { zone });
        }
        Ok(())
    }

    /// Something in `zone` could not be read: it is left as it is from now on, for what can be read
    /// of it to stay where it is and for nobody to try again and again.
    pub fn set_aside_unreadable(&self, zone: ZoneId, error: &Error) {
        let of_zone = match error {
            Error::Drive(error) => is_of_zone(error),
            Error::ChecksumMismatch { .. } | Error::CorruptMetadata { .. } => true,
            _ => false,
        };
        if of_zone
            && self
                .freelist
                .set_aside(zone, SetAside::Unreadable, error.to_string())
        {
            tracing::error!(%error, %zone, "a zone with data that cannot be read is set aside");
            self.data.leave(zone);
            self.moved.leave(zone);
        }
    }

    /// Reserves `bytes` of data space to a writer.
    pub fn admit_data(&self, bytes: u64) -> Result<()> {
        self.admit_on_host(bytes)?;
        self.find_space(bytes, |capacity| self.freelist.reserve(bytes, capacity))
    }

    /// Bytes of the host's disk under the drive that new data leaves for deletes: their log records,
    /// the SSTs that these are compacted into, and what the cleaner moves before it gives back more.
    pub fn kept_on_host(&self) -> u64 {
        (self.pool.geometry().capacity_bytes() / 16).min(MAX_KEPT_ON_HOST)
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
            if !self.clean_one_zone()? {
                let free = self.device.host_free_bytes().unwrap_or(0);
                let wanted = bytes;
                return Err(Error::HostFull { wanted, free, kept });
            }
        }
        Ok(())
    }

    /// Makes what space there can be for `bytes`, until `fits` says of the capacity that it does.
    fn find_space(&self, bytes: u64, fits: impl Fn(u64) -> bool) -> Result<()> {
        if fits(self.data_capacity()) {
            return Ok(());
        }
        // Objects may be waiting to be given back, and what is left of others in the metadata.
        self.purge_doomed()?;
        loop {
            let capacity = self.data_capacity();
            if fits(capacity) {
                return Ok(());
            }
            if !self.settle_metadata()? {
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
        let padded = if size > MAX_INLINE {
            self.padded(size)
        } else {
            0
        };
        self.host_has(padded, self.kept_on_host())
            && self.free_zones() >= self.metadata_spare()
            && (padded == 0 || self.freelist.fits(padded, self.data_capacity()))
    }

    /// Whole blocks. More than any drive holds is more than this one holds, and can be added up.
    fn padded(&self, size: u64) -> u64 {
        self.pool.geometry().round_up(size.min(u64::MAX / 4))
    }

    /// Refuses new objects while the metadata could not grow; deletes are always let through.
    pub fn admit_metadata(&self) -> Result<()> {
        self.admit_on_host(0)?;
        let geometry = self.pool.geometry();
        let enough = || self.free_zones() >= self.metadata_spare();
        let mut futile = 0;
        while !enough() {
            if self.clean_one_zone()? {
                continue;
            }
            if self.reclaim_metadata(&mut futile)? {
                continue;
            }
            if self.settle_metadata()? {
                futile = 0;
                continue;
            }
            let counts = self.pool.counts();
            let zones = |sequential: u32, conventional: u32| {
                u64::from(sequential) * geometry.zone_capacity
                    + u64::from(conventional) * geometry.zone_size
            };
            return Err(Error::NoMetadataSpace {
                metadata: zones(counts.bluefs_sequential, counts.bluefs_conventional),
                free: zones(counts.free_sequential, counts.free_conventional),
            });
        }
        Ok(())
    }

    /// Rows that were removed fill SSTs until those are compacted: has that done. False if there
    /// were none, so that only the first to be refused after a removal waits.
    fn settle_metadata(&self) -> Result<bool> {
        let garbage = self.garbage.load(Ordering::Relaxed);
        if garbage == 0 {
            return Ok(false);
        }
        match self.kv()?.settle(COMPACTION_PATIENCE) {
            Ok(true) => {}
            Ok(false) | Err(kv::Error::NoSpace { .. } | kv::Error::Busy { .. }) => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.garbage.fetch_sub(garbage, Ordering::Relaxed);
        // What BlueFS needs now may be less without any zone having changed hands.
        self.reservation.lock().seen = None;
        Ok(true)
    }

    /// Where zones run low, has the memtable written out before its log takes many: a deletion of a
    /// hundred bytes that is synced by itself costs the log a block.
    pub fn keep_log_short(&self, kv: &Kv) -> Result<()> {
        if self.free_zones() >= self.metadata_spare() {
            return Ok(());
        }
        let log_zones = self
            .fs
            .zones()
            .into_iter()
            .filter(|(_, purpose)| *purpose == ZonePurpose::Log);
        if log_zones.count() > LOG_ZONES_WHEN_FULL {
            match kv.flush() {
                Ok(()) | Err(kv::Error::NoSpace { .. } | kv::Error::Busy { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Free zones below which no new objects are taken.
    fn metadata_spare(&self) -> u32 {
        Self::metadata_headroom(self.pool.geometry().zone_count) * 3 / 4
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

    /// Frees a zone for `stream`, by cleaning if need be.
    pub fn make_room(&self, stream: &Stream, wanted: u64) -> Result<()> {
        let no_space = || Error::NoSpace {
            live: self.freelist.totals().live,
            capacity: self.data_capacity(),
            wanted,
        };
        let mut futile = 0;
        if std::ptr::eq(stream, &raw const self.moved) {
            // Nothing is cleaned before BlueFS has given back a zone: where zones have gone out of use,
            // its reserve may be all that is free.
            let before = self.free_zones();
            while self.reclaim_metadata(&mut futile)? && self.free_zones() <= before {}
            return if self.free_zones() > before {
                Ok(())
            } else {
                Err(no_space())
            };
        }
        loop {
            self.update_reserves();
            if self.pool.free_for_data() > 0 {
                return Ok(());
            }
            let cleaned = match self.clean_one_zone() {
                // The cleaner has no zone to move to; there may be other room.
                Err(Error::NoSpace { .. }) => false,
                cleaned => cleaned?,
            };
            if cleaned || self.pool.free_for_data() > 0 {
                continue;
            }
            if self.reclaim_metadata(&mut futile)? {
                continue;
            }
            // All that is left is the rest of the zone that the cleaner fills. It goes to the
            // data; the cleaner still has its reserve.
            let _cleaner_waits = self.cleaner.pause();
            return if self.moved.hand_over(stream) {
                Ok(())
            } else {
                Err(no_space())
            };
        }
    }

    /// Resets a zone that holds nothing live, and gives it back; false if the drive or a reader would
    /// not have it this time. Everything that was live in it must be durable elsewhere.
    pub fn reset_zone(&self, zone: ZoneId) -> Result<bool> {
        // Not synced: if it is lost, the next mount finds a zone without live bytes. Any later
        // use of the zone comes behind it in the log.
        let mut batch = Batch::default();
        batch.delete(&key::freelist(zone));
        self.kv()?.write(&batch, Durability::Buffered)?;
        if !self.gate.wait_for_readers(zone) {
            // Somebody has an old object open that lies here: later.
            return Ok(false);
        }
        match self.device.reset(zone) {
            Ok(()) if self.freelist.failures(zone) < MAX_FAILURES => {
                self.freelist.forget(zone);
                self.pool.give_back(zone);
            }
            Ok(()) => {
                tracing::warn!(%zone, "a zone that has failed again and again is out of use");
                self.freelist.forget(zone);
                self.pool.retire(zone);
            }
            Err(error) if !is_of_zone(&error) => return Err(error.into()),
            Err(error) => {
                judge(&*self.device, &self.freelist, zone, &error);
                let for_good = self.freelist.is_set_aside(zone);
                if !for_good && self.freelist.failed(zone) < MAX_FAILURES {
                    tracing::warn!(%error, %zone, "a zone cannot be reset; it is tried again");
                    return Ok(false);
                }
                tracing::warn!(%error, %zone, "a zone cannot be reset; it is out of use from now on");
                self.freelist.forget(zone);
                self.pool.retire(zone);
            }
        }
        Ok(true)
    }
}
