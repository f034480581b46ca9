//! What all handles of a mounted store share.
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
use crate::data_cache::DataCache;
use crate::format::key;
use crate::format::record::CollectionRecord;
use crate::freelist::Freelist;
use crate::host_space::HostSpace;
use crate::lifetimes::Lifetimes;
use crate::logged::Uncopied;
use crate::met::Met;
use crate::moment_watch::Readers;
use crate::numbers::Numbers;
use crate::open_maps::OpenMaps;
use crate::options::DataOptions;
use crate::requests::UserRequests;
use crate::reservation::Reservation;
use crate::retired::{Retired, is_worn_out};
use crate::scrubber::Scrubber;
use crate::stream::judge;
use crate::streams::Streams;
use crate::stripes::Stripes;
use crate::summaries::Summaries;
use crate::unreset::Unreset;
use crate::unsynced::Unsynced;
use crate::written::{Hold, Uncommitted};
use crate::zone_failures::SetAside;
use crate::{Error, Result};
use appender::is_of_zone;
use bluefs::BlueFs;
use device::ZonedDevice;
use device::watch::UnderWay;
use kv::{Batch, Durability, Kv};
use runtime::Runtime;
use runtime::sync::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard, read_recursive};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use zone::{ZoneAddress, ZoneError, ZoneId};
use zone_alloc::{Owner, ReadGate, ZonePool};

/// How often writes and resets of a zone may fail before it is out of use until the next mount.
const MAX_FAILURES: u32 = 3;

pub(crate) struct Inner {
    pub device: Arc<dyn ZonedDevice>,
    /// What the drive has not answered yet.
    pub under_way: Arc<UnderWay>,
    pub pool: Arc<ZonePool>,
    pub fs: BlueFs,
    pub kv: RwLock<Option<Kv>>,
    pub freelist: Arc<Freelist>,
    pub uncommitted: Arc<Uncommitted>,
    pub data: Streams,
    pub moved: Streams,
    pub summaries: Summaries,
    pub uncopied: Mutex<Option<Uncopied>>,
    pub lifetimes: Lifetimes,
    /// Held for a look or to exchange it.
    pub collections: RwLock<Arc<BTreeMap<String, CollectionRecord>>>,
    /// Held alone by a commit that changes collections, shared by all others.
    pub collection_changes: RwLock<()>,
    pub stripes: Stripes,
    pub mutators: RwLock<()>,
    pub gate: Arc<ReadGate>,
    pub data_cache: DataCache,
    pub open_maps: OpenMaps,
    pub shared_blobs: Mutex<()>,
    pub unsynced: Unsynced,
    pub numbers: Numbers,
    /// Changes only while `collection_changes` is held alone.
    pub next_collection: AtomicU32,
    pub cleaner: Arc<Cleaner>,
    pub scrubber: Arc<Scrubber>,
    /// Of moments.
    pub readers: Readers,
    pub requests: UserRequests,
    pub runtime: Runtime,
    /// Number of a batch that has been acknowledged.
    pub acknowledged: AtomicU64,
    /// How often bytes that were there got or lost an object that shows them.
    pub shows: AtomicU64,
    pub reservation: Mutex<Reservation>,
    pub retired: Retired,
    pub unreset: Mutex<Unreset>,
    pub met: Met,
    pub host_space: HostSpace,
    /// Bytes of rows that were removed and that RocksDB may not have compacted away yet.
    pub garbage: AtomicU64,
    /// Bytes that removals have written to the database since it was last waited for; and who waits for it.
    pub taken: AtomicU64,
    pub settling: Mutex<()>,
    /// Reads that failed and worked when they were made again, and commands that took long.
    pub reads_repeated: AtomicU64,
    pub slow_commands: Arc<AtomicU64>,
    pub read_only: bool,
    /// Why nothing can be written any more.
    pub failure: OnceLock<String>,
    pub uuid: [u8; 16],
    pub data_options: DataOptions,
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
            Error::ChecksumMismatch { .. }
            | Error::Unreadable { .. }
            | Error::CorruptMetadata { .. } => true,
            _ => false,
        };
        if !of_zone {
            return;
        }
        let (why, what) = (SetAside::Unreadable, error.to_string());
        let is_new = match error {
            Error::Drive(ZoneError::Offline { .. }) => {
                self.freelist.set_aside_for_good(zone, why, what)
            }
            _ => self.freelist.set_aside(zone, why, what),
        };
        if is_new {
            tracing::error!(%error, %zone, "a zone with data that cannot be read is set aside");
            self.data.leave(zone);
            self.moved.leave(zone);
        }
    }

    /// Resets zones whose resets have failed, one after the other until one fails again, if the last failure was so long ago or as
    /// long as it is worth it; true if any is free now.
    pub fn reset_again(&self, at_most: Duration) -> Result<bool> {
        let mut any = false;
        loop {
            let now = self.runtime.now();
            let Some(zone) = self.unreset.lock().next(now, at_most) else {
                return Ok(any);
            };
            let Err(error) = self.device.reset(zone) else {
                tracing::info!(%zone, "a zone whose reset had failed has been reset");
                self.pool.give_back(zone);
                any = true;
                continue;
            };
            // One that takes nothing any more is out of use for good.
            if !matches!(
                error,
                ZoneError::ReadOnly { .. } | ZoneError::Offline { .. }
            ) {
                self.unreset.lock().add_again(zone, now, self.runtime.now());
            }
            match is_of_zone(&error) {
                true => return Ok(any),
                false => return Err(error.into()),
            }
        }
    }

    /// Whether a place can be read now. What could not be read while a connection was broken can be later.
    fn can_be_read(&self, at: ZoneAddress, length: u32) -> bool {
        let geometry = self.device.geometry();
        let begin = at.offset - at.offset % u64::from(geometry.block_size);
        // More than a checksum is of, should a damaged row say so, need not be looked at.
        let end = geometry.round_up(at.offset.saturating_add(length.min(1 << 20).into()));
        let at = geometry.absolute(ZoneAddress::new(at.zone, begin));
        let mut bytes = vec![0; end.saturating_sub(begin) as usize];
        self.device.read(at, &mut bytes).is_ok()
    }

    /// Resets a zone that holds nothing live, and gives it back; false if the drive, a reader or a
    /// moment would not have it this time. Everything that was live in it must be durable elsewhere.
    pub fn reset_zone(&self, zone: ZoneId) -> Result<bool> {
        // What is live in no zone when a moment begins is in none of those that it holds, so one that begins
        // behind this look does not need this zone.
        if self.freelist.is_held(zone) {
            return Ok(false);
        }
        // Synced only for the rows that are kept and for what a commit without a flush has emptied: if it is
        // lost, the next mount finds a zone without live bytes. Any later use of the zone comes behind it in
        // the log.
        let has_kept = self.keep_summaries_of(zone)?;
        let mut batch = Batch::default();
        batch.delete(&key::freelist(zone));
        batch.delete(&key::summaries(zone));
        let damage = self.damage_rows(Some(zone))?;
        for (key, _) in &damage {
            batch.delete(key);
        }
        let unreadable = damage
            .iter()
            .filter_map(|(_, found)| found.as_ref())
            .filter(|(at, damage)| !self.can_be_read(*at, damage.length));
        let is_retired = is_worn_out(unreadable.map(|(_, damage)| damage));
        let list = is_retired.then(|| self.retired.add(zone, &mut batch));
        let kv = self.kv()?;
        if has_kept || self.unsynced.any() {
            self.unsynced.write(&kv, &batch, Durability::Synced)?;
        } else {
            kv.write(&batch, Durability::Buffered)?;
        }
        drop((kv, list));
        self.pool.claim_next(zone, None);
        if self.pool.owner(zone) != Some(Owner::Store) {
            // The metadata has it, since it had gone back to empty.
            self.freelist.forget(zone);
            return Ok(true);
        }
        if is_retired {
            tracing::warn!(%zone, "a zone that cannot be read is empty, and out of use from now on");
            appender::finish(&*self.device, zone);
            self.freelist.forget(zone);
            self.pool.retire(zone);
            return Ok(true);
        }
        if !self.gate.wait_for_readers(zone) {
            // Somebody has an old object open that lies here: later.
            return Ok(false);
        }
        self.data_cache.zone_is_reset(zone);
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
                tracing::warn!(%error, %zone, for_good, "a zone cannot be reset");
                self.freelist.forget(zone);
                self.pool.retire(zone);
                if !for_good {
                    self.freelist.failed(zone);
                    self.unreset.lock().add(zone, self.runtime.now());
                }
            }
        }
        self.summaries.try_again();
        Ok(true)
    }
}
