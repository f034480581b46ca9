//! The mounted store as its users see it: mounting, commits, reads, space, health and checks. All handles share the
//! state in `Inner`, where the order of locks is.

use crate::TRACE;
use crate::extent_reader::ObjectReader;
use crate::extent_writer::{ObjectWriter, Shape};
use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::fsck::FsckReport;
use crate::info::{Caches, CollectionInfo, ObjectInfo, Statfs, ZoneUse};
use crate::inner::Inner;
use crate::mount::Threads;
use crate::open_maps::Opened;
use crate::options::{MkfsOptions, MountOptions, WriteHints};
use crate::revision::{put_revised, revised};
use crate::rows::{onode_key, read_onode};
use crate::summary_writer::Why;
use crate::{
    Error, GivenUp, Health, HealthLook, Made, Pending, RepairReport, RepairStep, Result,
    Transaction, Waiting, mkfs, mount, opened, repair,
};
use bluefs::BlueFs;
use device::ZonedDevice;
use kv::{Batch, Durability};
use runtime::sync::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::ZoneKind;

/// A mounted store. Cheap to clone; every method may be called from many threads, and may block.
///
/// Dropping it without [`Store::unmount`] is like a crash: what was acknowledged is there at the
/// next mount. The last handle waits for the background threads to end.
#[derive(Clone)]
pub struct Store {
    // Dropped before what the threads use: a thread that ran on while the process ends would meet a database that is
    // being closed.
    threads: Arc<Mutex<Threads>>,
    pub(crate) inner: Arc<Inner>,
}

impl Store {
    /// Makes an empty store on `device`.
    pub fn mkfs(device: Arc<dyn ZonedDevice>, options: &MkfsOptions) -> Result<Made> {
        mkfs::mkfs(device, options)
    }

    /// Mounts the store on `device`, after a clean stop or a crash.
    pub fn mount(device: Arc<dyn ZonedDevice>, options: MountOptions) -> Result<Self> {
        let (inner, threads) = mount::mount(device, &options)?;
        Ok(Self {
            threads: Arc::new(Mutex::new(threads)),
            inner,
        })
    }

    /// Mounts a store whose database is open already.
    pub(crate) fn mount_opened(opened: opened::Opened, options: &MountOptions) -> Result<Self> {
        let (inner, threads) = mount::mount_opened(opened, options)?;
        Ok(Self {
            threads: Arc::new(Mutex::new(threads)),
            inner,
        })
    }

    /// Runs `work` on the store and unmounts it, whether `work` failed or not.
    ///
    /// # Errors
    /// The error of `work`, else that of the unmount.
    pub fn used_for<T, E: From<Error>>(
        self,
        work: impl FnOnce(&Self) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let (done, stopped) = (work(&self), self.unmount());
        let done = done?;
        Ok(stopped.map(|()| done)?)
    }

    /// Stops cleanly. Other handles of the store answer [`Error::ReadOnly`] from then on.
    ///
    /// # Errors
    /// If what was committed could not be made durable, the store stays open and another call tries again; it closes
    /// the store once nothing can be written any more ([`Self::failure`]). If the database or the file system below could
    /// not be closed, later calls answer that error as [`Error::NotClosed`].
    pub fn unmount(&self) -> Result<()> {
        let mut not_closed = self.inner.not_closed.lock();
        self.inner.give_up_moments("the store is unmounted");
        drop(std::mem::take(&mut *self.threads.lock()));
        let writes = self.inner.check_writable().is_ok();
        if writes {
            self.inner.write_down_met();
            if let Err(error) = self.inner.settle_summaries() {
                tracing::warn!(%error, "the next mount looks at more rows than it has to");
            }
            // The next mount does not know that they are, and would go on writing into them.
            self.inner.leave_set_aside();
        }
        let Some(kv) = self.inner.kv.write().take() else {
            return match &*not_closed {
                Some(reason) => Err(Error::NotClosed {
                    reason: reason.clone(),
                }),
                None => Ok(()),
            };
        };
        if writes && let Err(error) = self.inner.unsynced.synced_by(|| Ok(kv.flush()?)) {
            // The database is open still: another call tries again.
            *self.inner.kv.write() = Some(kv);
            return Err(match error {
                // If it would fail for ever, the next call closes the database.
                Error::Kv(error) => self.inner.in_background(error),
                error => error,
            });
        }
        let closed = kv.close().map_err(Error::from);
        let ended = closed.and_then(|()| Ok(self.inner.fs.unmount()?));
        // What stopped the writes is the cause, also of this.
        let ended = ended.map_err(|error| match self.failure() {
            Some(reason) => Error::Failed { reason },
            None => error,
        });
        ended.inspect_err(|error| *not_closed = Some(error.to_string()))
    }

    /// The store's identity.
    pub fn uuid(&self) -> [u8; 16] {
        self.inner.uuid
    }

    /// 24 bytes, which change when a repair, an import or a restore has changed objects. They also differ after a salvage
    /// in place, and on each drive that objects are copied to. What a program derives from its objects and keeps is right
    /// as long as the revision that it keeps with that is this one.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn revision(&self) -> Result<Vec<u8>> {
        let kv = self.inner.kv()?;
        // A salvage in place keeps the store's identity, and gives the file system another.
        let made_as = self.inner.fs.info().uuid;
        Ok([&made_as[..], &revised(&kv)?.to_le_bytes()].concat())
    }

    /// Changes the revision, durably. To be called before objects are changed on behalf of a person, as an import does.
    ///
    /// # Errors
    /// The store takes no writes.
    pub fn revise(&self) -> Result<()> {
        self.inner.check_writable()?;
        let mut batch = Batch::default();
        let now = self.inner.runtime.unix_micros();
        let kv = self.inner.kv()?;
        put_revised(&kv, now, &mut batch)?;
        drop(kv);
        self.inner.write_rows(&batch, Durability::Synced)
    }

    /// The file system under the metadata.
    pub fn bluefs(&self) -> &BlueFs {
        &self.inner.fs
    }

    /// All collections in order of their names.
    pub fn collections(&self) -> Result<Vec<CollectionInfo>> {
        drop(self.inner.kv()?);
        Ok(self
            .inner
            .collections()
            .iter()
            .map(|(name, record)| info(name, record))
            .collect())
    }

    /// Number of a family to which no collection by hash belongs yet.
    pub fn unused_family(&self) -> Result<u32> {
        let known = self.collections()?.into_iter();
        let families: BTreeSet<u32> = known.filter_map(|c| Some(c.hashed?.family)).collect();
        let next = families.last().map_or(Some(1), |last| last.checked_add(1));
        let gap = || (1..u32::MAX).find(|family| !families.contains(family));
        Ok(next.or_else(gap).unwrap_or(0))
    }

    /// One collection.
    pub fn collection(&self, name: &str) -> Result<Option<CollectionInfo>> {
        drop(self.inner.kv()?);
        Ok(self
            .inner
            .collections()
            .get(name)
            .map(|record| info(name, record)))
    }

    /// A writer for the data of an object. `expected` is its size in bytes, if known: one that cannot fit is refused at
    /// once.
    pub fn writer(&self, expected: Option<u64>) -> Result<ObjectWriter> {
        self.writer_with(expected, WriteHints::default())
    }

    /// Like [`Self::writer`], with hints about the data. Data that may be compressed is refused when it does not fit,
    /// not in advance.
    pub fn writer_with(&self, expected: Option<u64>, hints: WriteHints) -> Result<ObjectWriter> {
        self.inner.check_writable()?;
        self.inner.admit_metadata(0)?;
        let shape = Shape::new(&self.inner.data_options, hints);
        if let Some(size) = expected
            && !self.inner.is_inline(size)
            && !shape.compresses()
        {
            self.inner.check_fits(size)?;
        }
        Ok(ObjectWriter::new(self.inner.clone(), expected, shape))
    }

    /// Data of zero bytes, for an object that takes the place of others in its transaction. Works on a full drive, too.
    pub fn nothing(&self) -> Result<crate::Written> {
        self.inner.check_writable()?;
        ObjectWriter::new(
            self.inner.clone(),
            Some(0),
            Shape::new(&self.inner.data_options, WriteHints::default()),
        )
        .finish()
    }

    /// Whether an object of `size` bytes would fit, told without I/O to the drive. If not,
    /// [`Self::writer`] may still make room for it.
    pub fn has_room(&self, size: u64) -> bool {
        self.inner.has_room(size)
    }

    /// Carries out a transaction. When this returns `Ok`, it is durable.
    pub fn commit(&self, transaction: Transaction) -> Result<()> {
        self.carry_out(transaction, Durability::Synced).map(drop)
    }

    /// Removes those of the objects that exist: in one transaction, or in several if one would be more than a full
    /// drive takes at once. After an error, the first of them may be removed.
    pub fn remove_all(&self, collection: &str, names: &[impl AsRef<[u8]>]) -> Result<()> {
        let mut transaction = Transaction::new();
        for name in names {
            transaction.remove_if_present(collection, name);
        }
        match self.commit(transaction) {
            Err(Error::TransactionTooLarge { .. }) if names.len() > 1 => {
                let (first, rest) = names.split_at(names.len() / 2);
                self.remove_all(collection, first)?;
                self.remove_all(collection, rest)
            }
            done => done,
        }
    }

    /// As [`Self::remove_all`]; if one of the objects is damaged so that it cannot be removed, in smaller transactions, so
    /// that it keeps no other. Returns the error of each of these.
    ///
    /// # Errors
    /// Some of the objects may be removed.
    pub fn remove_around_damage(
        &self,
        collection: &str,
        names: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Error>> {
        match self.remove_all(collection, names) {
            Ok(()) => Ok(Vec::new()),
            Err(error) if !error.is_damage() => Err(error),
            Err(error) if names.len() < 2 => Ok(vec![error]),
            Err(_) => {
                let (first, rest) = names.split_at(names.len() / 2);
                let mut damaged = self.remove_around_damage(collection, first)?;
                damaged.extend(self.remove_around_damage(collection, rest)?);
                Ok(damaged)
            }
        }
    }

    /// Carries out a transaction. When this returns `Ok`, all readers see its effects; the [`Pending`] tells when it is
    /// durable. A power cut or a kill of the program loses only the latest transactions that are not durable, never one
    /// that a surviving transaction followed.
    pub fn commit_readable(&self, transaction: Transaction) -> Result<Pending> {
        let number = self.carry_out(transaction, Durability::Buffered)?;
        let store = self.inner.clone();
        Ok(Pending { store, number })
    }

    fn carry_out(&self, transaction: Transaction, durability: Durability) -> Result<Option<u64>> {
        let _request = self.inner.requests.begin();
        let _span = tracing::debug_span!(target: TRACE, "commit").entered();
        let number = self.inner.commit(transaction, durability)?;
        self.inner
            .write_summaries(self.inner.data.of(0), Why::Enough);
        Ok(number)
    }

    /// Size, time and attributes of an object.
    pub fn stat(&self, collection: &str, object: impl AsRef<[u8]>) -> Result<Option<ObjectInfo>> {
        let _request = self.inner.requests.begin();
        let object = object.as_ref();
        let key = self.onode_key(collection, object)?;
        let kv = self.inner.kv()?;
        let onode = self.inner.rows_read(|| read_onode(&*kv, &key))?;
        Ok(onode.map(|onode| object_info(object, onode)))
    }

    /// Opens an object for reading.
    pub fn open(&self, collection: &str, object: impl AsRef<[u8]>) -> Result<ObjectReader> {
        let object = object.as_ref();
        let key = self.onode_key(collection, object)?;
        let _request = self.inner.requests.begin();
        loop {
            let drops = self.inner.open_maps.drops();
            let reading = self.inner.gate.enter();
            let kv = self.inner.kv()?;
            let onode = self.inner.rows_read(|| read_onode(&*kv, &key))?;
            let onode = onode.ok_or_else(|| Error::no_object(collection, object))?;
            let (onode, info) = opened_info(object, onode);
            let label = format!("{collection}/{}", info.name);
            let maps = onode.segments.clone();
            let store = self.inner.clone();
            let (mut reader, opened) = ObjectReader::new(store, label, onode, info, drops);
            let stays = match opened {
                Opened::ForSure => true,
                Opened::PerhapsGone => {
                    read_onode(&*kv, &key)?.is_some_and(|now| now.segments == maps)
                }
                Opened::AboutToGo => reader.keep_extents(&*kv, reading)?,
            };
            // Otherwise a commit took the object's maps meanwhile: read the onode again.
            if stays {
                return Ok(reader);
            }
        }
    }

    /// How the space is used.
    pub fn statfs(&self) -> Statfs {
        let inner = &self.inner;
        // SSTs also grow within the zones that BlueFS has already; a mount would count that.
        inner.reservation.lock().look_again();
        let data_capacity = inner.data_capacity();
        let (counts, totals) = (inner.pool.counts(), inner.freelist.totals());
        // Lower where the metadata had to take more than its share, so that deletes go on.
        let data_capacity = data_capacity.max(totals.live + totals.in_flight);
        let geometry = inner.pool.geometry();
        let zones = |count: u32| u64::from(count) * geometry.zone_capacity;
        let conventional = |count: u32| u64::from(count) * geometry.conventional_capacity();
        let sequential = zones(geometry.sequential_count());
        let metadata = zones(counts.bluefs_sequential.min(inner.reservation.lock().zones));
        let available_bytes = data_capacity - (totals.live + totals.in_flight);
        let dead_bytes = totals.dead().min(available_bytes);
        // Conventional zones hold metadata only: without them, data has no less space.
        let (mut unusable, mut unusable_of_data) = (0, 0);
        for zone in inner.out_of_use() {
            unusable += geometry.capacity(zone);
            if geometry.kind(zone) != ZoneKind::Conventional {
                unusable_of_data += geometry.capacity(zone);
            }
        }
        let host_free_bytes = inner.device.host_free_bytes();
        // Cleaning gives the space of dead data on the host's disk back.
        let on_host = host_free_bytes.map_or(u64::MAX, |free| {
            free.saturating_sub(inner.kept_on_host()) + dead_bytes.saturating_sub(totals.tails)
        });
        Statfs {
            drive_bytes: geometry.capacity_bytes(),
            capacity_bytes: data_capacity + totals.inline,
            live_bytes: totals.live + totals.inline,
            inline_bytes: totals.inline,
            pinned_bytes: totals.in_flight,
            dead_bytes,
            free_bytes: available_bytes.saturating_sub(dead_bytes),
            available_bytes: available_bytes.min(on_host),
            host_free_bytes,
            host_kept_bytes: if host_free_bytes.is_some() {
                inner.kept_on_host()
            } else {
                0
            },
            metadata_bytes: metadata + conventional(counts.bluefs_conventional) + totals.summaries,
            reserve_bytes: sequential.saturating_sub(
                data_capacity + metadata + totals.summaries + unusable_of_data + totals.set_aside,
            ),
            conventional_free_bytes: conventional(counts.free_conventional),
            unusable_bytes: unusable,
            set_aside_bytes: totals.set_aside,
            unwritten_tail_bytes: totals.tails,
            zones: geometry.zone_count,
            conventional_parts: geometry.conventional_parts,
            free_zones: counts.free_conventional + counts.free_sequential,
            free_zones_for_data: inner.pool.free_for_data(),
            store_zones: counts.store,
            metadata_zones: counts.bluefs_conventional + counts.bluefs_sequential,
        }
    }

    /// Commands that the drive has not answered for ten seconds or more. Never blocks.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.inner.waiting()
    }

    /// Why the store takes no writes any more, if that is so.
    pub fn failure(&self) -> Option<String> {
        self.inner.failure.get().cloned()
    }

    /// Whether the host's disk under the drive's file was full or read-only when the store stopped taking writes.
    pub fn was_stopped_by_host(&self) -> bool {
        self.inner.stopped_by_host.load(Ordering::Relaxed)
    }

    /// Statistics of the caches of metadata and of data since the mount.
    pub fn caches(&self) -> Result<Caches> {
        Ok(Caches {
            metadata: self.inner.kv()?.cache(),
            data: self.inner.data_cache.statistics(),
        })
    }

    /// Losses and risks that are known, and the commands that the store waits for.
    pub fn health(&self) -> Result<Health> {
        self.inner.health()
    }

    /// Like [`Self::health`], for callers that ask again and again and pass the last answer in. All of it is current,
    /// except the names and numbers of objects: they are searched again when damage comes or goes, and otherwise only
    /// as often as the search takes little of the time.
    pub fn health_after(&self, before: Option<&HealthLook>) -> Result<HealthLook> {
        self.inner.health_after(before)
    }

    /// The zones with object data, in order. Data that no commit has named yet counts as written, not as live.
    pub fn zones(&self) -> Vec<ZoneUse> {
        let ours = self.inner.freelist.ours().into_iter();
        ours.map(|(zone, written_bytes, live_bytes)| ZoneUse {
            zone,
            written_bytes,
            live_bytes,
        })
        .collect()
    }

    /// Flushes the metadata's memtable, so that the next mount has no log to replay. Durability does not depend on it.
    pub fn flush(&self) -> Result<()> {
        self.inner.check_writable()?;
        Ok(self.inner.kv()?.flush()?)
    }

    /// Acknowledged metadata that is missing because of damage; only a mount that accepts damage has any.
    pub fn damage(&self) -> Result<Vec<bluefs::Error>> {
        Ok(self.inner.fs.missing()?)
    }

    /// Checks all records against each other and against the zones; `deep` also reads all data and verifies its
    /// checksums, and calls `progress` with the bytes done and the bytes in all.
    pub fn fsck(&self, deep: bool, progress: &mut dyn FnMut(u64, u64)) -> Result<FsckReport> {
        self.inner.fsck(deep, progress)
    }

    /// Repairs what [`Self::fsck`] counts, on a drive that is not mounted. `agree` receives what will be given up, by
    /// name, before anything is changed; if it returns false, nothing is. `progress` receives what the repair is at, and
    /// how many rows or bytes it has done of that. Damaged bytes of objects and a damaged database are not repaired.
    ///
    /// # Errors
    /// Rows cannot be read or written, or the mount is refused. What has been changed until then stays, and another repair
    /// goes on.
    pub fn repair(
        device: Arc<dyn ZonedDevice>,
        options: &MountOptions,
        agree: &mut dyn FnMut(&[GivenUp]) -> bool,
        progress: &mut dyn FnMut(RepairStep, u64),
    ) -> Result<RepairReport> {
        repair::repair(device, options, agree, progress)
    }

    pub(crate) fn kind(&self, collection: &str) -> Result<Kind> {
        let collections = self.inner.collections();
        let record = collections.get(collection);
        record
            .map(|record| record.kind)
            .ok_or_else(|| Error::no_collection(collection))
    }

    pub(crate) fn onode_key(&self, collection: &str, object: &[u8]) -> Result<Vec<u8>> {
        onode_key(&self.kind(collection)?, collection, object)
    }
}

pub(crate) fn info(name: &str, record: &crate::format::record::CollectionRecord) -> CollectionInfo {
    CollectionInfo {
        name: name.to_owned(),
        hashed: match record.kind {
            Kind::ByHash(hashed) => Some(hashed),
            Kind::ByName(_) => None,
        },
        created_micros: record.created_micros,
        attributes: record.attributes.clone(),
    }
}

pub(crate) fn object_info(name: &[u8], onode: Onode) -> ObjectInfo {
    opened_info(name, onode).1
}

/// What a reader keeps of an onode, with its attributes in the information alone.
pub(crate) fn opened_info(name: &[u8], mut onode: Onode) -> (Onode, ObjectInfo) {
    let info = ObjectInfo {
        name: name.into(),
        size: onode.size(),
        modified_micros: onode.modified_micros,
        attributes: std::mem::take(&mut onode.attributes),
    };
    (onode, info)
}
