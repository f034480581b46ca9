//! The file system as its users see it, as a whole: mounted and unmounted, cleaned, checked. What is done
//! by path is in `paths.rs`.

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
use zone::{Geometry, ZoneCommand, ZoneDescriptor, ZoneError, ZoneId};
use zone_alloc::ZonePool;

/// A mounted file system. Cheap to clone; all methods may be called from many threads.
///
/// Dropping it without [`BlueFs::unmount`] is like a crash: what was synced is there at the next
/// mount.
#[derive(Clone)]
pub struct BlueFs {
    pub(crate) shared: Arc<Shared>,
    pub(crate) later: Arc<Later<Reader>>,
    /// Ends with the last clone.
    pub(crate) cleaner: Option<Arc<Cleaner>>,
}

impl BlueFs {
    /// Makes an empty file system.
    pub fn format(device: &dyn ZonedDevice, options: &FormatOptions) -> Result<()> {
        mkfs(device, options)
    }

    /// What is on a drive, whoever wrote it; nothing is changed.
    pub fn contents(device: &dyn ZonedDevice) -> Result<Contents> {
        look::look(device)
    }

    /// Looks for a superblock without mounting.
    pub fn probe(device: &dyn ZonedDevice) -> Result<Superblock> {
        Ok(look::find(device)?.1)
    }

    /// Looks at a file system that somebody else may have mounted, without mounting it. `report` is
    /// what the drive said of all its zones just before.
    pub fn observe(device: &dyn ZonedDevice, report: &[ZoneDescriptor]) -> Result<Observation> {
        observe::observe(device, report)
    }

    /// The zones that superblocks are in, of every drive of this geometry.
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
            // Durable before its only other copy goes.
            match fs.write_tails().and_then(|()| fs.shared.commit()) {
                Ok(()) => fs.shared.unsynced.clear(),
                Err(error) => tracing::warn!(%error, "what was not synced is not on the drive yet"),
            }
        }
        // Beside a store it is for the store to say, which has a log of its own to go through.
        if fs.info().role == Role::Alone {
            fs.vouch();
        }
        Ok(fs)
    }

    /// What was torn on the drive before this mount is dealt with, durably: if the process is killed, the next mount may take
    /// the drive's write pointers at their word as long as the host runs ([`ZonedDevice::keeps`]).
    pub fn vouch(&self) {
        if !self.shared.read_only {
            self.shared.unsynced.vouch();
        }
    }

    /// Makes everything durable, also what open writers still keep, and stops; later calls fail.
    pub fn unmount(&self) -> Result<()> {
        if self.shared.unmounted.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some(cleaner) = &self.cleaner {
            cleaner.stop();
        }
        let result = if let Err(error) = self.shared.end.check() {
            // Not everything is durable.
            Err(error)
        } else if self.shared.read_only {
            Ok(())
        } else {
            let sealed = self.write_tails().and_then(|()| self.shared.seal());
            sealed.inspect(|()| self.shared.unsynced.clear())
        };
        self.shared.end.unmounted();
        self.shared.unmounted.store(true, Ordering::Release);
        result
    }

    fn write_tails(&self) -> Result<()> {
        let has_tail = |node: &&Arc<Node>| !node.body.read().tail.is_empty();
        let mut tails =
            self.writers(|names| names.nodes.values().filter(has_tail).cloned().collect());
        tails.iter_mut().try_for_each(Writer::close)
    }

    /// Writes out what was appended to logs and is older than `age_micros` by the mount's clock, and has the
    /// journal name it. Not durable, but it survives the process. For a thread of the caller's.
    pub fn write_out_logs(&self, age_micros: u64) -> Result<()> {
        let now = self.shared.now();
        let is_due = |node: &&Arc<Node>| {
            let body = node.body.read();
            let age = now.saturating_sub(body.tail_since_micros);
            let has_failed = node.log_failed.load(Ordering::Acquire);
            !body.tail.is_empty() && age >= age_micros && !has_failed
        };
        let mut logs = self.writers(|names| names.logs.values().filter(is_due).cloned().collect());
        if logs.is_empty() {
            return Ok(());
        }
        let written = logs.iter_mut().map(|log| log.write_out(true));
        let result = written.fold(Ok(()), Result::and);
        result.and(self.shared.write_frames())
    }

    /// Writers of the files that `choose` takes.
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

    /// The superblock as it was last written.
    pub fn info(&self) -> Superblock {
        self.shared.state.lock().superblock
    }

    /// The drive below.
    pub fn device(&self) -> &Arc<dyn ZonedDevice> {
        &self.shared.drive
    }

    /// The zones of the drive and their owners.
    pub fn pool(&self) -> &Arc<ZonePool> {
        &self.shared.pool
    }

    /// Makes all changes of names durable (fsync of a directory).
    pub fn sync_metadata(&self) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.commit_names()
    }

    /// Bytes and operations since the mount.
    pub fn statistics(&self) -> FsStatistics {
        let shared = &self.shared;
        shared.counters.snapshot(shared.cache.statistics())
    }

    /// How the zones are used.
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
        // Superblocks have their own copies.
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

    /// Zones, but for those of superblocks, that take what is written and give nothing back, as scrubs have found: nothing is
    /// put there again. Without a mount that is told of them ([`Self::keep_out_of`]) the next may.
    pub fn worn_out(&self) -> Vec<ZoneId> {
        let rings = Self::superblock_zones(self.shared.device.geometry());
        let zones = self.shared.worn_out.all().into_iter();
        zones.filter(|zone| !rings.contains(zone)).collect()
    }

    /// Uses none of these zones again, once what it has in them is gone.
    pub fn keep_out_of(&self, zones: impl IntoIterator<Item = ZoneId>) -> Result<()> {
        let zones = zones.into_iter();
        zones.for_each(|zone| self.shared.worn_out.add(zone));
        self.shared.give_worn_out()
    }

    /// What [`MountOptions::cleaning`] does in the background, once: moves the live data out of one
    /// zone if few are free, it is worth it, and the allowance is not used up. False if there is
    /// nothing to do for now.
    pub fn clean_ahead(&self) -> Result<bool> {
        match &self.cleaner {
            Some(cleaner) => self.shared.clean_ahead(cleaner.budget(), &|| false),
            None => Ok(false),
        }
    }

    /// Gives one zone back at once: resets what is free, or moves the live data out of the zone that
    /// has least of it. False if nothing more can be gained.
    pub fn reclaim(&self) -> Result<bool> {
        self.shared.make_space()
    }

    /// Moves live data out of a sequential zone, however much it is: for a drive where conventional zones are
    /// free and somebody else needs sequential ones. False if there is nothing to move.
    pub fn leave_sequential_zone(&self) -> Result<bool> {
        self.shared.leave_sequential_zone()
    }

    /// Has everybody who appends to a sequential zone go on in another one, so that it can be left; false if
    /// nobody does.
    pub fn close_sequential_zones(&self) -> Result<bool> {
        self.shared.close_sequential_zones()
    }

    /// What was durable and is damaged or missing, as the mount found it; only a read-only mount that
    /// accepts damage goes on with any.
    pub fn damage(&self) -> Vec<Error> {
        self.shared.state.lock().damage.clone()
    }

    /// What a mount for writing that accepts the damage would lose, file by file. For a read-only mount
    /// that accepts it.
    pub fn losses(&self) -> Result<Vec<Loss>> {
        self.shared.losses()
    }

    /// Why a database on this file system would be older than what was acknowledged: the
    /// [`Self::damage`], and logs with bytes in zones that are offline. RocksDB takes a log that it
    /// cannot read for one that ends there.
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

    /// Files with bytes in zones that the drive has taken offline; the drive is asked. All others can
    /// be read and written.
    pub fn damaged_files(&self) -> Result<Vec<DamagedFile>> {
        self.shared.damaged_files()
    }

    /// Reads both copies of every file. Of those that differ the right one is read from now on, and, if the file system
    /// can be written to, what is damaged is written anew. Answers in how many places that was new;
    /// 0 means that nothing is better than before.
    pub fn repair_copies(&self) -> Result<u32> {
        let scrubbed = self.scrub(&mut |_| true)?;
        Ok(scrubbed.map_or(0, |scrubbed| scrubbed.repaired))
    }

    /// The same also of a file system with one copy. `goes` is asked in front of so many bytes of each copy, and ends it with
    /// false; the answer is `None` then.
    pub fn scrub(&self, goes: &mut dyn FnMut(u64) -> bool) -> Result<Option<Scrubbed>> {
        self.shared.scrub(goes)
    }

    /// Compares metadata with the drive; `deep` reads all data and compares its checksums.
    pub fn check(&self, deep: bool) -> Result<CheckReport> {
        self.shared.check_all(deep)
    }
}
