//! What all handles of a mounted store share, and who may have space.
//!
//! Locks, in the order in which they are taken: collections → object stripes → `mutators` →
//! `reclaim`. Commits hold `mutators` shared from reading extents to the end of the write; the
//! cleaner's commit holds it alone, so that it never moves an extent that a commit is about to
//! drop. Readers hold `reclaim` shared from looking a place up to the end of the read; a zone is
//! reset under it alone, so that no place goes stale under a read.

use crate::cleaner::Cleaner;
use crate::format::key;
use crate::format::record::CollectionRecord;
use crate::freelist::Freelist;
use crate::open_maps::OpenMaps;
use crate::stream::Stream;
use crate::{Error, Result};
use bluefs::BlueFs;
use device::ZonedDevice;
use kv::{Batch, Durability, Kv};
use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use zone::ZoneId;
use zone_alloc::ZonePool;

/// Free zones that the cleaner alone may use: one that it fills and one to change to.
pub(crate) const CLEANER_RESERVE_ZONES: u32 = 2;
/// Map numbers are set aside in runs of so many, so that a commit need not write the counter.
const MAP_RUN: u64 = 1 << 16;
const STRIPES: usize = 1024;

pub(crate) struct Inner {
    pub device: Arc<dyn ZonedDevice>,
    pub pool: Arc<ZonePool>,
    pub fs: BlueFs,
    pub kv: RwLock<Option<Kv>>,
    pub freelist: Arc<Freelist>,
    pub data: Stream,
    pub moved: Stream,
    pub collections: RwLock<BTreeMap<String, CollectionRecord>>,
    pub stripes: Stripes,
    pub mutators: RwLock<()>,
    pub reclaim: RwLock<()>,
    pub open_maps: OpenMaps,
    pub maps: MapNumbers,
    /// Changes only while `collections` is held alone.
    pub next_collection: AtomicU32,
    pub cleaner: Arc<Cleaner>,
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Number of the next batch, and of one that has been acknowledged.
    pub next_batch: AtomicU64,
    pub acknowledged: AtomicU64,
    pub read_only: bool,
    pub failed: AtomicBool,
    pub uuid: [u8; 16],
}

/// Locks on objects, by hash of the name.
pub(crate) struct Stripes {
    hasher: RandomState,
    locks: Vec<RwLock<()>>,
}

impl Stripes {
    pub fn new() -> Self {
        let locks = (0..STRIPES).map(|_| RwLock::new(())).collect();
        Self {
            hasher: RandomState::new(),
            locks,
        }
    }

    pub fn index(&self, collection: &str, object: &str) -> usize {
        self.hasher.hash_one((collection, object)) as usize % STRIPES
    }

    pub fn lock(&self, index: usize) -> &RwLock<()> {
        &self.locks[index]
    }
}

/// The numbers of maps; never used twice.
pub(crate) struct MapNumbers {
    /// The next one, and the end of the run that is set aside on disk.
    state: Mutex<(u64, u64)>,
}

impl MapNumbers {
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
            let end = number + MAP_RUN;
            let mut batch = Batch::default();
            batch.put(key::SUPER_NEXT_MAP, &end.to_le_bytes());
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
        let guard = self.kv.read_recursive();
        RwLockReadGuard::try_map(guard, Option::as_ref).map_err(|_| Error::ReadOnly)
    }

    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        if self.failed.load(Ordering::Acquire) {
            return Err(Error::Failed);
        }
        Ok(())
    }

    /// Zones that are always left for BlueFS to grow into: compaction writes before it deletes.
    pub fn metadata_headroom(zone_count: u32) -> u32 {
        (zone_count / 32).clamp(6, 64)
    }

    /// Lets the reserves follow what BlueFS has. It is promised twice the headroom from the
    /// start, so that capacity shrinks only when metadata outgrows that.
    pub fn update_reserves(&self) {
        let headroom = Self::metadata_headroom(self.pool.geometry().zone_count);
        let bluefs = self.pool.counts().bluefs_sequential;
        let promised = (2 * headroom).max(bluefs + headroom);
        self.pool.set_reserves(promised, CLEANER_RESERVE_ZONES);
    }

    /// Bytes of object data that the drive can hold, whatever is dead now.
    pub fn data_capacity(&self) -> u64 {
        self.update_reserves();
        u64::from(self.pool.data_zones()) * self.pool.geometry().zone_capacity
    }

    /// Promises `bytes` of data space to a writer.
    pub fn admit_data(&self, bytes: u64) -> Result<()> {
        if self.freelist.reserve(bytes, self.data_capacity()) {
            return Ok(());
        }
        // Objects may be waiting to be given back.
        self.purge_doomed()?;
        let capacity = self.data_capacity();
        if self.freelist.reserve(bytes, capacity) {
            return Ok(());
        }
        Err(Error::NoSpace {
            live: self.freelist.totals().live,
            capacity,
            wanted: bytes,
        })
    }

    /// Refuses new objects while the metadata could not grow; deletes are always let through.
    pub fn admit_metadata(&self, bytes: u64) -> Result<()> {
        let needed = Self::metadata_headroom(self.pool.geometry().zone_count) / 2 + 1;
        let enough = || {
            let c = self.pool.counts();
            c.free_sequential + c.free_conventional >= needed
        };
        while !enough() {
            if !self.clean_one_zone()? {
                let (live, capacity) = (self.freelist.totals().live, self.data_capacity());
                return Err(Error::NoSpace {
                    live,
                    capacity,
                    wanted: bytes,
                });
            }
        }
        Ok(())
    }

    /// Frees a zone for `stream`, by cleaning if need be.
    pub fn make_room(&self, stream: &Stream, wanted: u64) -> Result<()> {
        let no_space = || Error::NoSpace {
            live: self.freelist.totals().live,
            capacity: self.data_capacity(),
            wanted,
        };
        if std::ptr::eq(stream, &raw const self.moved) {
            return Err(no_space());
        }
        loop {
            self.update_reserves();
            if self.pool.free_for_data() > 0 {
                return Ok(());
            }
            if self.clean_one_zone()? || self.pool.free_for_data() > 0 {
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

    /// Resets a zone that holds nothing live, and gives it back. Everything that was live in it
    /// must be durable elsewhere.
    pub fn reset_zone(&self, zone: ZoneId) -> Result<()> {
        // Not synced: if it is lost, the next mount finds a zone without live bytes. Any later
        // use of the zone comes behind it in the log.
        let mut batch = Batch::default();
        batch.delete(&key::freelist(zone));
        self.kv()?.write(&batch, Durability::Buffered)?;
        let _alone = self.reclaim.write();
        self.freelist.forget(zone);
        match self.device.reset(zone) {
            Ok(()) => self.pool.give_back(zone),
            Err(error) if error.is_host_full() => return Err(error.into()),
            Err(error @ zone::ZoneError::PowerLost { .. }) => return Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, %zone, "a zone cannot be reset; it is out of use from now on");
                self.pool.retire(zone);
            }
        }
        Ok(())
    }
}
