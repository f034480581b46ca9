//! The state that all handles of a mounted store share.
//!
//! Locks, in the order in which they are taken: `collection_changes` → object stripes → `mutators` →
//! `shared_blobs`, which a commit takes once it reads a blob that several maps show.
//! Commits hold `mutators` shared from reading extents to the end of the write; the cleaner's commit
//! holds it exclusively, so that it never moves an extent that a commit is about to drop.
//!
//! Readers take none of these locks, because they are held during I/O, which may take for ever. Instead, they
//! are in `gate` from looking a place up to the end of the read. A zone is reset only when no row names a place in
//! it and the readers that may have looked one up before have left.

use crate::answers::answers;
use crate::blob_reader::ReadError;
use crate::cleaner::Cleaner;
use crate::data_cache::DataCache;
use crate::error::LEAST_FOR_DELETES;
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
use crate::retired::{Retired, is_worn_out_now};
use crate::scrubber::Scrubber;
use crate::stream::{finish, judge};
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
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use zone::{ZoneError, ZoneId};
use zone_alloc::{Owner, ReadGate, ZonePool};

/// Failed writes and resets of a zone after which it is out of use until the next mount.
const MAX_FAILURES: u32 = 3;

/// How long a reset waits for reads under way in its zone: a disk may try for long to read a bad sector, and where no other
/// zone can be cleaned, giving up leaves no space.
const READ_AT_MOST: Duration = Duration::from_secs(30);

pub(crate) struct Inner {
    pub device: Arc<dyn ZonedDevice>,
    /// Commands that the drive has not answered yet.
    pub under_way: Arc<UnderWay>,
    pub pool: Arc<ZonePool>,
    pub fs: BlueFs,
    pub kv: RwLock<Option<Kv>>,
    pub freelist: Arc<Freelist>,
    pub uncommitted: Arc<Uncommitted>,
    pub data: Streams,
    pub moved: Streams,
    pub summaries: Summaries,
    pub uncopied: Mutex<Uncopied>,
    pub lifetimes: Lifetimes,
    /// Locked only to clone or replace the [`Arc`].
    pub collections: RwLock<Arc<BTreeMap<String, CollectionRecord>>>,
    /// Held exclusively by a commit that changes collections, shared by all others.
    pub collection_changes: RwLock<()>,
    pub stripes: Stripes,
    pub mutators: RwLock<()>,
    pub gate: Arc<ReadGate>,
    /// A reset may have met a reader: the next one that ends wakes the cleaner.
    pub reset_waits: AtomicBool,
    pub data_cache: DataCache,
    pub open_maps: OpenMaps,
    pub shared_blobs: Mutex<()>,
    pub unsynced: Unsynced,
    pub numbers: Numbers,
    /// Changes only while `collection_changes` is held exclusively.
    pub next_collection: AtomicU32,
    pub cleaner: Arc<Cleaner>,
    pub scrubber: Arc<Scrubber>,
    /// Readers of moments.
    pub readers: Readers,
    pub requests: UserRequests,
    pub runtime: Runtime,
    /// Number of a recent batch that was acknowledged.
    pub acknowledged: AtomicU64,
    /// How often bytes on the drive gained or lost an object that shows them.
    pub shows: AtomicU64,
    pub reservation: Mutex<Reservation>,
    pub retired: Retired,
    pub unreset: Mutex<Unreset>,
    pub met: Met,
    pub host_space: HostSpace,
    /// Estimated bytes of removed rows that RocksDB may not have compacted away yet.
    pub garbage: AtomicU64,
    /// Bytes that removals have written to the database since the last wait for it; `settling` is held by that waiter.
    pub taken: AtomicU64,
    pub settling: Mutex<()>,
    /// Held while the file of damaged metadata is read and written anew.
    pub damage_file: Mutex<()>,
    /// Reads that failed once and succeeded when repeated; `slow_commands`: commands that took long.
    pub reads_repeated: AtomicU64,
    pub slow_commands: Arc<AtomicU64>,
    pub read_only: bool,
    /// Why the unmount could not close the database or the file system. Held during an unmount.
    pub not_closed: Mutex<Option<String>>,
    /// Why the store takes no writes any more; set once.
    pub failure: OnceLock<String>,
    /// The host's disk was full or read-only then.
    pub stopped_by_host: AtomicBool,
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

    /// Stops all writes until the next mount after a commit has failed half-way; reads go on. Returns the error for the
    /// caller.
    pub fn stop_writing(&self, error: Error) -> Error {
        let reason = error.to_string();
        if self.failure.set(reason.clone()).is_ok() {
            let free = self.device.host_free_bytes();
            let is_full = free.is_some_and(|free| free < LEAST_FOR_DELETES);
            let by_host = is_full || error.is_read_only();
            self.stopped_by_host.store(by_host, Ordering::Relaxed);
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

    /// An empty [`Hold`], for the data that a writer is going to place.
    pub fn hold(&self) -> Hold {
        Hold::new(self.freelist.clone(), self.uncommitted.clone())
    }

    /// [`Error::WrittenLost`] if `zone` cannot be read: data that was just written there must not be committed.
    pub fn check_readable(&self, zone: ZoneId) -> Result<()> {
        if self.freelist.is_unreadable(zone) {
            return Err(Error::WrittenLost { zone });
        }
        Ok(())
    }

    /// Reads with `read` and, if that fails, once more: a drive may succeed at the second try. `of` names what is read.
    pub fn read_twice<T>(
        &self,
        of: impl fmt::Display,
        mut read: impl FnMut() -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let failed = match read() {
            Err(failed) if !matches!(failed.drive(), Some(ZoneError::PowerLost { .. })) => failed,
            done => return done,
        };
        let Ok(done) = read() else {
            return Err(failed);
        };
        tracing::warn!(%of, zone = %failed.at.zone, %failed, "read at the second try");
        self.reads_repeated.fetch_add(1, Ordering::Relaxed);
        Ok(done)
    }

    /// An error of reading rows: those that the drive does not read, though it reads other places, are damaged.
    pub fn of_rows(&self, error: Error) -> Error {
        match error {
            Error::Kv(kv::Error::Io { message }) if answers(&*self.device) => {
                Error::Kv(kv::Error::Corruption { message })
            }
            error => error,
        }
    }

    /// What `read` reads of rows. It reads again if that fails: a drive may fail a read for a moment.
    pub fn rows_read<T>(&self, read: impl Fn() -> Result<T>) -> Result<T> {
        let read = read().or_else(|_| read());
        read.map_err(|error| self.of_rows(error))
    }

    /// Sets `zone` aside after a read in it failed: what can be read stays in place, and cleaning does not try the zone
    /// again and again. A stream that has it open leaves it before its next write, or when the cleaner comes by: a reader
    /// must not wait for the stream's lock. False if the error says nothing about the zone, as while the drive answers nothing.
    pub fn set_aside_unreadable(&self, zone: ZoneId, error: &Error) -> bool {
        let of_zone = match error {
            Error::Drive(error) => is_of_zone(error),
            Error::Unreadable { .. } => answers(&*self.device),
            Error::ChecksumMismatch { .. }
            | Error::BytesLost { .. }
            | Error::CorruptMetadata { .. }
            | Error::Kv(kv::Error::Corruption { .. } | kv::Error::NotFound { .. }) => true,
            _ => false,
        };
        if !of_zone {
            return false;
        }
        let (why, what) = (SetAside::Unreadable, error.to_string());
        let is_new = match error {
            // Beside bytes in a zone that is offline, those of another zone may be under the same checksum.
            Error::Unreadable {
                at,
                source: ZoneError::Offline { .. },
                ..
            } if at.zone == zone => self.freelist.set_aside_for_good(zone, why, what),
            _ => self.freelist.set_aside(zone, why, what),
        };
        if is_new {
            tracing::error!(%error, %zone, "a zone with data that cannot be read is set aside");
            self.cleaner.nudge();
        }
        true
    }

    /// Resets zones whose earlier resets failed, one after the other until one fails again, if the retry is due:
    /// `at_most` bounds how long it is put off. True if any zone was freed.
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
            // A zone that the drive reports as read-only or offline is out of use for good.
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

    /// Resets a zone that holds nothing live, and gives it back to the pool. False if a moment or a reader still needs
    /// the zone. Everything that was live in it must be durable elsewhere.
    pub fn reset_zone(&self, zone: ZoneId) -> Result<bool> {
        // A moment that begins after this check holds only zones that have live data then, so not this one. A zone that a
        // reader stays in costs no write each time; who leaves it looks at the flag behind that.
        self.reset_waits.store(true, Ordering::SeqCst);
        let is_kept = self.gate.stayed_in();
        if self.freelist.is_held(zone) || self.freelist.is_written(zone) || is_kept(zone) {
            return Ok(false);
        }
        // Synced only if rows of a summary were copied or commits without a flush have emptied the zone. Otherwise the
        // batch may be lost: the next mount then finds a zone without live bytes, and any later use of the zone follows
        // this batch in the log.
        // Of rows that the database cannot read, the zone may have the only copies.
        let kept = self.keep_summaries_of(zone);
        let has_kept = kept.map_err(|error| self.of_rows(error))?;
        let mut batch = Batch::default();
        batch.delete(&key::freelist(zone));
        batch.delete(&key::summaries(zone));
        let damage = self.damage_rows(Some(zone));
        let damage = damage.map_err(|error| self.of_rows(error))?;
        for (key, _) in &damage {
            batch.delete(key);
        }
        let damage: Vec<_> = damage.into_iter().filter_map(|(_, found)| found).collect();
        let is_retired = is_worn_out_now(&*self.device, &damage);
        // A scrub that drops damaged summaries from the row must not write it again after this batch.
        let writing = self.summaries.writing.lock();
        let kv = self.kv()?;
        if has_kept {
            // Rows of the zone's summaries for which there was no place wait only in memory.
            batch.put(key::SUPER_SUMMARIES, &self.summaries.copied().encode());
        }
        let write = |batch: &Batch| {
            self.when_possible(&kv, batch, || {
                if has_kept || self.unsynced.any() {
                    return self
                        .unsynced
                        .write(&kv, batch, Durability::Synced)
                        .map(drop);
                }
                Ok(kv.write(batch, Durability::Buffered)?)
            })
        };
        if is_retired {
            self.retired.add(zone, &mut batch, write)?;
        } else {
            write(&batch)?;
        }
        if has_kept {
            self.summaries.says_not_all();
        }
        drop((kv, writing));
        self.pool.claim_next(zone, None);
        if self.pool.owner(zone) != Some(Owner::Store) {
            // The drive had lost the zone's data, and BlueFS has taken the empty zone.
            self.freelist.forget(zone);
            return Ok(true);
        }
        if is_retired {
            tracing::warn!(%zone, "a zone that cannot be read is empty, and out of use from now on");
            self.freelist.forget(zone);
            finish(&*self.device, &self.freelist, zone);
            self.pool.retire(zone);
            return Ok(true);
        }
        if !self.gate.wait_at_most(zone, READ_AT_MOST, &self.runtime) {
            // A reader has an object open whose old bytes lie in this zone, or the drive does not answer it: the cleaner
            // tries again later.
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
