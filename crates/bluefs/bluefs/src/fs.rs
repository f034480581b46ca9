//! [`BlueFs`]: formatting, mounting, unmounting, cleaning and checking of a whole file system. Operations on paths are
//! in `paths.rs`.

use crate::check::CheckReport;
use crate::cleaner::Cleaner;
use crate::failing::DamagedFile;
use crate::format::superblock::{Role, Superblock};
use crate::handle::Handle;
use crate::info::{Usage, ZonePurpose};
use crate::loss::Loss;
use crate::mkfs::mkfs;
use crate::namespace::Namespace;
use crate::node::Node;
use crate::options::{FormatOptions, MountOptions};
use crate::read_later::Later;
use crate::reader::Reader;
use crate::repair::Scrubbed;
use crate::ring::ring_zones;
use crate::shared::Shared;
use crate::tenants::{RESERVED_ZONES, SUPERBLOCKS};
use crate::writer::Writer;
use crate::{Contents, Error, FsStatistics, Observation, Result, look, mount, observe};
use device::ZonedDevice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use zone::{Geometry, ZoneCommand, ZoneDescriptor, ZoneError, ZoneId};
use zone_alloc::ZonePool;

/// A mounted file system. Cheap to clone; all methods may be called from many threads.
///
/// Dropping it without [`BlueFs::unmount`] is like a crash: the next mount finds what was synced.
#[derive(Clone)]
pub struct BlueFs {
    pub(crate) shared: Arc<Shared>,
    pub(crate) later: Arc<Later<Reader>>,
    /// `None` unless [`MountOptions::cleaning`] is set. Its thread ends when the last clone is dropped.
    pub(crate) cleaner: Option<Arc<Cleaner>>,
}

impl BlueFs {
    /// Formats the drive with an empty file system.
    pub fn format(device: &dyn ZonedDevice, options: &FormatOptions) -> Result<()> {
        mkfs(device, options)
    }

    /// Inspects a drive of any content, formatted by BlueFS or not; nothing is changed.
    pub fn contents(device: &dyn ZonedDevice) -> Result<Contents> {
        look::look(device)
    }

    /// Returns the newest superblock, without mounting.
    pub fn probe(device: &dyn ZonedDevice) -> Result<Superblock> {
        Ok(look::find(device)?.1)
    }

    /// Inspects a file system without mounting it; another process may have it mounted. `report` is the drive's report
    /// of all zones, taken just before.
    pub fn observe(device: &dyn ZonedDevice, report: &[ZoneDescriptor]) -> Result<Observation> {
        observe::observe(device, report)
    }

    /// The four zones of the superblock rings on a drive of this geometry.
    pub fn superblock_zones(geometry: &Geometry) -> Vec<ZoneId> {
        ring_zones(geometry).concat()
    }

    /// Mounts the file system on `device` and claims its zones in `pool`.
    pub fn mount(
        device: Arc<dyn ZonedDevice>,
        pool: Arc<ZonePool>,
        options: MountOptions,
    ) -> Result<Self> {
        let later = Arc::new(Later::new(options.runtime.clone()));
        let mounted = mount::mount(device, pool, options)?;
        let fs = Self {
            shared: mounted.shared,
            later,
            cleaner: mounted.cleaner,
        };
        if mounted.has_recovered {
            // The recovered bytes must be durable before `clear` removes the notes beside the drive, their only other
            // copy.
            match fs.write_tails().and_then(|()| fs.shared.commit()) {
                Ok(()) => fs.shared.unsynced.clear(),
                Err(error) => tracing::warn!(%error, "what was not synced is not on the drive yet"),
            }
        }
        // A store that shares the drive calls `record_writes_kept` itself, after it has replayed its own log.
        if fs.info().role == Role::Alone {
            fs.record_writes_kept();
        }
        Ok(fs)
    }

    /// Notes beside the drive that this mount has dealt, durably, with everything torn that it found. If the process is
    /// then killed, the next mount may trust the drive's write pointers as long as the host runs
    /// ([`ZonedDevice::keeps`]).
    pub fn record_writes_kept(&self) {
        if !self.shared.read_only {
            self.shared.unsynced.record_writes_kept();
        }
    }

    /// Makes everything durable, including bytes that open writers still buffer, and stops; later calls fail. An error
    /// of one file does not keep the others from being made durable.
    pub fn unmount(&self) -> Result<()> {
        if self.shared.unmounted.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some(cleaner) = &self.cleaner {
            cleaner.stop();
        }
        let result = if let Err(error) = self.shared.end.check() {
            // After a failure not everything is durable, so no superblock may claim it.
            Err(error)
        } else if self.shared.read_only {
            Ok(())
        } else {
            // What is noted after the tails are written out would be removed with the other notes.
            self.shared.closing.store(true, Ordering::Release);
            let sealed = self.write_tails().and(self.shared.seal());
            sealed.inspect(|()| self.shared.unsynced.clear())
        };
        self.shared.end.unmounted();
        self.shared.unmounted.store(true, Ordering::Release);
        result
    }

    /// Writes out the tails of all files, also after one of them has failed, and returns the first error. Waits for
    /// writes in flight, which may have emptied a tail and not registered its bytes yet.
    fn write_tails(&self) -> Result<()> {
        // The tail first: where a write has emptied it, its writer is seen.
        let may_be_written = |node: &&Arc<Node>| {
            let has_tail = !node.body.read().tail.is_empty();
            has_tail || node.writers.load(Ordering::Acquire) > 0
        };
        let mut tails = self.writers(|names| {
            names
                .nodes
                .values()
                .filter(may_be_written)
                .cloned()
                .collect()
        });
        tails
            .iter_mut()
            .map(Writer::close_at_the_end)
            .fold(Ok(()), Result::and)
    }

    /// Flushes the drive, together with other threads that wait for a flush: the host reports a failed write of a drive file
    /// to one flush only, and all that depend on it have to hear of it.
    pub fn flush(&self) -> Result<()> {
        self.shared.flush()
    }

    /// Writes out the tails of logs that are at least `age_micros` old by the mount's clock, and the journal frames with
    /// all changes so far, of names too. None of that is durable, but it survives the process. The caller calls this
    /// from a thread of its own.
    pub fn write_out_logs(&self, age_micros: u64) -> Result<()> {
        // Not by the time of day, which may be set back.
        let (now, least) = (self.shared.runtime.now(), Duration::from_micros(age_micros));
        let is_due = |node: &&Arc<Node>| {
            let body = node.body.read();
            let is_old = |since: Duration| now.saturating_sub(since) >= least;
            let has_failed = node.log_failed.load(Ordering::Acquire);
            !body.tail.is_empty() && body.tail_since.is_none_or(is_old) && !has_failed
        };
        let mut logs = self.writers(|names| names.logs.values().filter(is_due).cloned().collect());
        let written = logs.iter_mut().map(|log| log.write_out(true));
        let result = written.fold(Ok(()), Result::and);
        result.and(self.shared.write_frames())
    }

    /// Opens a writer for each file that `choose` returns.
    fn writers(&self, choose: impl Fn(&Namespace) -> Vec<Arc<Node>>) -> Vec<Writer> {
        let handles: Vec<_> = {
            let state = self.shared.state.lock();
            let nodes = choose(&state.names).into_iter();
            nodes
                .map(|node| Handle::new(self.shared.clone(), node))
                .collect()
        };
        let writer = |handle: Handle| {
            let name = handle.node.opened_as.lock().clone();
            Writer::new(handle, name)
        };
        handles.into_iter().map(writer).collect()
    }

    /// The superblock that was written last.
    pub fn info(&self) -> Superblock {
        self.shared.state.lock().superblock
    }

    /// Copies of each byte: 1 or 2. Takes no lock.
    pub fn copies(&self) -> u32 {
        self.shared.copies
    }

    /// The drive that [`Self::mount`] was given.
    pub fn device(&self) -> &Arc<dyn ZonedDevice> {
        &self.shared.drive
    }

    /// The zones of the drive and their owners.
    pub fn pool(&self) -> &Arc<ZonePool> {
        &self.shared.pool
    }

    /// Makes all changes of names durable, like an fsync of a directory.
    pub fn sync_metadata(&self) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.commit_names()
    }

    /// Counters of bytes and operations since the mount.
    pub fn statistics(&self) -> FsStatistics {
        let shared = &self.shared;
        shared.counters.snapshot(shared.cache.statistics())
    }

    /// Capacity, live and free bytes, and counts of zones and files.
    pub fn usage(&self) -> Usage {
        let state = self.shared.state.lock();
        let g = self.shared.device.geometry();
        let counts = self.shared.pool.counts();
        let usable = counts.free_sequential + counts.bluefs_sequential;
        let conventional = counts.free_conventional + counts.bluefs_conventional;
        let all = u64::from(usable) * g.zone_capacity
            + u64::from(conventional) * g.conventional_capacity();
        let copies = self.shared.copies;
        let all = all / u64::from(copies);
        let held = state.journal.zones.len();
        // With two copies the unit is a pair of zones, but the superblocks' zones are never paired: four zones are two
        // units.
        let in_pairs = SUPERBLOCKS - SUPERBLOCKS / copies;
        let reserved = RESERVED_ZONES - in_pairs + self.shared.kept_for_snapshots(&state, held);
        let kept = u64::from(reserved) * g.zone_capacity.max(g.capacity(ZoneId(0)));
        let capacity_bytes = all.saturating_sub(kept);
        let live_bytes = self.shared.live_bytes(&state);
        Usage {
            capacity_bytes,
            zones: self.shared.owned(&state).len() as u32,
            data_zones: state.zones.data_zones(),
            live_bytes,
            free_bytes: capacity_bytes.saturating_sub(live_bytes),
            files: state.names.nodes.len() as u64,
            copies,
            damaged_copies: self.shared.device.damaged().len() as u32,
        }
    }

    /// All zones of the file system and what they are for.
    pub fn zones(&self) -> Vec<(ZoneId, ZonePurpose)> {
        self.shared.owned(&self.shared.state.lock())
    }

    /// Worn-out zones that scrubs have found, without those of superblocks: they accept writes, but reads of them fail,
    /// so nothing is written to them again. The next mount may use them unless it is told of them
    /// ([`Self::keep_out_of`]).
    pub fn worn_out(&self) -> Vec<ZoneId> {
        let rings = Self::superblock_zones(self.shared.device.geometry());
        let zones = self.shared.worn_out.all().into_iter();
        zones.filter(|zone| !rings.contains(zone)).collect()
    }

    /// Takes these zones out of use as soon as they hold nothing live.
    pub fn keep_out_of(&self, zones: impl IntoIterator<Item = ZoneId>) -> Result<()> {
        let zones = zones.into_iter();
        zones.for_each(|zone| self.shared.worn_out.add(zone));
        self.shared.give_worn_out()
    }

    /// One step of the cleaning that [`MountOptions::cleaning`] does in the background: moves the live data out of one
    /// zone if few zones are free, the move is worth its cost, and the allowance is not used up. False if there is
    /// nothing to do for now.
    pub fn clean_ahead(&self) -> Result<bool> {
        match &self.cleaner {
            Some(cleaner) => self.shared.clean_ahead(cleaner.budget(), &|| false),
            None => Ok(false),
        }
    }

    /// Whether a write-ahead log can grow by `bytes` now, without cleaning. A database whose log finds no space
    /// stops; so a caller asks first, and calls [`Self::reclaim`] instead of writing if the answer is no.
    pub fn takes_log(&self, bytes: u64) -> bool {
        self.shared.takes_log(bytes)
    }

    /// Gains space at once: resets freed zones, or moves the live data out of the zone that has the least. False if no
    /// more space can be gained.
    pub fn reclaim(&self) -> Result<bool> {
        self.shared.make_space()
    }

    /// Finishes zones that could not be finished when they were left, if a retry is due: once its pause, or `at_most` if that
    /// is shorter, has passed since the last failure. True if one of them holds no active resource of the drive any more.
    pub fn finish_again(&self, at_most: Duration) -> bool {
        self.shared.finish_again(at_most)
    }

    /// Moves the live data out of the emptiest sequential zone, however much it is: for a drive where conventional
    /// zones are free and a store needs sequential ones. False if there is nothing to move.
    pub fn leave_sequential_zone(&self) -> Result<bool> {
        self.shared.leave_sequential_zone()
    }

    /// Makes every writer that appends to a sequential zone continue in another one, so that the zone can be emptied.
    /// False if no sequential zone was being written.
    pub fn close_sequential_zones(&self) -> Result<bool> {
        self.shared.close_sequential_zones()
    }

    /// Damage that the mount found: data that was durable and is now wrong or missing. Only a read-only mount with
    /// [`MountOptions::accept_damage`] returns any.
    pub fn damage(&self) -> Vec<Error> {
        self.shared.state.lock().damage.clone()
    }

    /// What a mount for writing that accepts the damage would lose, file by file. Call it on a read-only mount that
    /// accepts the damage.
    pub fn losses(&self) -> Result<Vec<Loss>> {
        self.shared.losses()
    }

    /// The reasons why a database on this file system would be older than what was acknowledged: the [`Self::damage`],
    /// and logs with bytes in offline zones. RocksDB would take such a log for one that ends where reading fails.
    pub fn missing(&self) -> Result<Vec<Error>> {
        let lost = self.damaged_files()?.into_iter().filter(|file| file.is_log);
        let lost = lost.map(|file| Error::ZoneLost {
            path: file.path,
            zone: file.zone,
            source: ZoneError::Offline {
                command: ZoneCommand::Read,
                zone: file.zone,
            },
        });
        Ok(self.damage().into_iter().chain(lost).collect())
    }

    /// Files with bytes in zones that the drive now reports as offline. All other files can be read and written.
    pub fn damaged_files(&self) -> Result<Vec<DamagedFile>> {
        self.shared.damaged_files()
    }

    /// Reads both copies of every file. Where they differ, the correct copy is read from now on and, unless the mount
    /// is read-only, the damaged one is written again. Returns the number of places where damage was newly found; 0
    /// means that the call improved nothing.
    pub fn repair_copies(&self) -> Result<u32> {
        let scrubbed = self.scrub(&mut |_| true)?;
        Ok(scrubbed.map_or(0, |scrubbed| scrubbed.repaired))
    }

    /// Like [`Self::repair_copies`], also for a file system with one copy. Before each piece it calls `goes` with the
    /// bytes to be read of each copy; if `goes` returns false, the scrub ends with `None`.
    pub fn scrub(&self, goes: &mut dyn FnMut(u64) -> bool) -> Result<Option<Scrubbed>> {
        self.shared.scrub(goes)
    }

    /// Compares the metadata with the drive; `deep` also reads all data and verifies its checksums.
    pub fn check(&self, deep: bool) -> Result<CheckReport> {
        self.shared.check_all(deep)
    }
}
