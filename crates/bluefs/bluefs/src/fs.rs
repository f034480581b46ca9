//! The file system as its users see it: names in, handles out.

use crate::check::CheckReport;
use crate::cleaner::Cleaner;
use crate::failing::DamagedFile;
use crate::format::journal::{JournalOperation, Kind};
use crate::format::superblock::Superblock;
use crate::handle::Handle;
use crate::info::{FileExtent, Metadata, Usage, ZonePurpose};
use crate::loss::Loss;
use crate::namespace::{MAX_PATH, kind_of, normal, parent};
use crate::node::Node;
use crate::open_zones::Need;
use crate::options::{FormatOptions, MountOptions};
use crate::read_later::Later;
use crate::reader::Reader;
use crate::shared::Shared;
use crate::state::State;
use crate::writer::Writer;
use crate::{Contents, Error, FsStatistics, Observation, Result, look, mount, observe};
use device::ZonedDevice;
use runtime::sync::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneCommand, ZoneDescriptor, ZoneError, ZoneId};
use zone_alloc::ZonePool;

/// Zones that hold no file data for long: superblocks 4, journal and its successor 2, spare 1, and
/// those that compactions leave to others.
const RESERVED_ZONES: u32 = 4 + 2 + 1 + Need::Background.kept();

/// A mounted file system. Cheap to clone; all methods may be called from many threads.
///
/// Dropping it without [`BlueFs::unmount`] is like a crash: what was synced is there at the next
/// mount.
#[derive(Clone)]
pub struct BlueFs {
    pub(crate) shared: Arc<Shared>,
    later: Arc<Later<Reader>>,
    /// Ends with the last clone.
    pub(crate) cleaner: Option<Arc<Cleaner>>,
}

impl BlueFs {
    /// Makes an empty file system.
    pub fn format(device: &dyn ZonedDevice, options: &FormatOptions) -> Result<()> {
        mount::format(device, options)
    }

    /// What is on a drive, whoever wrote it; nothing is changed.
    pub fn contents(device: &dyn ZonedDevice) -> Result<Contents> {
        look::look(device)
    }

    /// Looks for a superblock without mounting.
    pub fn probe(device: &dyn ZonedDevice) -> Result<Superblock> {
        let (_, superblock) = look::find(device)?;
        mount::check_geometry(device.geometry(), &superblock)?;
        Ok(superblock)
    }

    /// Looks at a file system that somebody else may have mounted, without mounting it. `report` is
    /// what the drive said of all its zones just before.
    pub fn observe(device: &dyn ZonedDevice, report: &[ZoneDescriptor]) -> Result<Observation> {
        observe::observe(device, report)
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
        Ok(fs)
    }

    /// Makes everything durable, also what open writers still keep, and stops; later calls fail.
    pub fn unmount(&self) -> Result<()> {
        if self.shared.unmounted.load(Ordering::Acquire) {
            return Ok(());
        }
        if let Some(cleaner) = &self.cleaner {
            cleaner.stop();
        }
        let result = if self.shared.check_mounted().is_err() {
            // A failure came first; not everything is durable.
            Err(Error::Unmounted)
        } else if self.shared.read_only {
            Ok(())
        } else {
            let sealed = self.write_tails().and_then(|()| self.shared.seal());
            sealed.inspect(|()| self.shared.unsynced.clear())
        };
        self.shared.stop();
        self.shared.unmounted.store(true, Ordering::Release);
        result
    }

    fn write_tails(&self) -> Result<()> {
        let mut tails = self.files(|node| !node.body.read().tail.is_empty());
        tails.iter_mut().try_for_each(Writer::close)
    }

    /// Writes out what was appended to logs and is older than `age_micros` by the mount's clock, and has the
    /// journal name it. Not durable, but it survives the process. For a thread of the caller's.
    pub fn write_out_logs(&self, age_micros: u64) -> Result<()> {
        let now = self.shared.now();
        let is_old = |node: &Node| {
            let body = node.body.read();
            let age = now.saturating_sub(body.tail_since_micros);
            node.kind == Kind::Log && !body.tail.is_empty() && age >= age_micros
        };
        let mut logs = self.files(|node| is_old(node) && !node.log_failed.load(Ordering::Acquire));
        if logs.is_empty() {
            return Ok(());
        }
        let written = logs.iter_mut().map(|log| log.write_out(true));
        let result = written.fold(Ok(()), Result::and);
        result.and(self.shared.write_frames())
    }

    /// Writers of all files that `choose` takes.
    fn files(&self, choose: impl Fn(&Node) -> bool) -> Vec<Writer> {
        let chosen: Vec<_> = {
            let state = self.shared.state.lock();
            let nodes = state.names.nodes.values().filter(|node| choose(node));
            let open = |node: &Arc<Node>| {
                let name = node.opened_as.lock().clone();
                (Handle::new(self.shared.clone(), node.clone()), name)
            };
            nodes.map(open).collect()
        };
        let writers = chosen.into_iter();
        writers
            .map(|(handle, name)| Writer::new(handle, name))
            .collect()
    }

    /// The superblock as it was last written.
    pub fn info(&self) -> Superblock {
        self.shared.state.lock().superblock
    }

    /// The drive below.
    pub fn device(&self) -> &Arc<dyn ZonedDevice> {
        &self.shared.device
    }

    /// The zones of the drive and their owners.
    pub fn pool(&self) -> &Arc<ZonePool> {
        &self.shared.pool
    }

    /// Creates an empty file; one of that name is replaced.
    pub fn create(&self, path: &str) -> Result<Writer> {
        let path = normal(path)?;
        let mut state = self.growable()?;
        require_parent(&state, &path)?;
        if state.names.is_directory(&path) {
            return Err(Error::IsDirectory { path });
        }
        let inode = state.names.next_inode;
        let (kind, modified_micros) = (kind_of(&path), self.shared.now());
        state.operate(JournalOperation::Create {
            inode,
            kind,
            modified_micros,
            path: path.clone(),
        });
        let handle = self.handle(&state, &path)?;
        let named_in = &handle.node.named_in;
        named_in.store(state.next_batch, Ordering::Release);
        drop(state);
        Ok(Writer::new(handle, path))
    }

    /// Opens a file to append behind what it has; creates it if it is missing.
    pub fn reopen(&self, path: &str) -> Result<Writer> {
        let path = normal(path)?;
        let state = self.writable()?;
        match self.handle(&state, &path) {
            Ok(handle) => {
                drop(state);
                Ok(Writer::new(handle, path))
            }
            Err(Error::NotFound { .. }) => {
                drop(state);
                self.create(&path)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &str) -> Result<Reader> {
        let path = normal(path)?;
        let state = self.readable()?;
        let handle = self.handle(&state, &path)?;
        drop(state);
        Ok(Reader::new(handle, self.later.clone()))
    }

    /// Whether there is a file or directory of that name.
    pub fn exists(&self, path: &str) -> bool {
        let Ok(path) = normal(path) else { return false };
        let state = self.shared.state.lock();
        state.names.is_directory(&path) || state.names.names.contains_key(&path)
    }

    /// What is known of a file or directory.
    pub fn metadata(&self, path: &str) -> Result<Metadata> {
        let path = normal(path)?;
        let state = self.readable()?;
        if state.names.is_directory(&path) {
            return Ok(Metadata {
                size: 0,
                modified_micros: 0,
                is_directory: true,
                links: 1,
                inode: 0,
            });
        }
        let node = state.names.node(&path)?;
        let body = node.body.read();
        Ok(Metadata {
            size: body.size(),
            modified_micros: body.modified_micros,
            is_directory: false,
            links: node.links.load(Ordering::Acquire),
            inode: node.inode,
        })
    }

    /// Whether two paths lead to one file or directory; both must be there.
    pub fn is_same(&self, first: &str, second: &str) -> Result<bool> {
        let (a, b) = (self.metadata(first)?, self.metadata(second)?);
        Ok(match (a.is_directory, b.is_directory) {
            // Directories have no inodes, but only one path each.
            (true, true) => normal(first)? == normal(second)?,
            (false, false) => a.inode == b.inode,
            _ => false,
        })
    }

    /// Names of the files and directories in a directory, sorted.
    pub fn list(&self, directory: &str) -> Result<Vec<String>> {
        let path = normal(directory)?;
        self.readable()?.names.children(&path)
    }

    /// Creates a directory.
    pub fn create_directory(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let mut state = self.growable()?;
        if state.names.is_directory(&path) || state.names.names.contains_key(&path) {
            return Err(Error::Exists { path });
        }
        require_parent(&state, &path)?;
        state.operate(JournalOperation::MakeDirectory { path });
        Ok(())
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let mut state = self.writable()?;
        if !state.names.children(&path)?.is_empty() || path.is_empty() {
            return Err(Error::DirectoryNotEmpty { path });
        }
        state.operate(JournalOperation::RemoveDirectory { path });
        Ok(())
    }

    /// Removes a name; with its last name and handle a file's space is free.
    pub fn delete(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let mut state = self.writable()?;
        state.names.node(&path)?;
        state.operate(JournalOperation::Unlink { path });
        Ok(())
    }

    /// Renames a file (replacing one of the new name) or a directory (whose new name must be
    /// free). Atomic; durable after [`Self::sync_metadata`].
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (normal(from)?, normal(to)?);
        let mut state = if to.len() > from.len() {
            self.growable()?
        } else {
            self.writable()?
        };
        require_parent(&state, &to)?;
        if state.names.directories.contains(&from) {
            let taken = state.names.names.contains_key(&to) || !children_free(&state, &to);
            if taken || to.starts_with(&format!("{from}/")) {
                return Err(Error::Exists { path: to });
            }
            if to.len() + state.names.depth_below(&from) > MAX_PATH {
                return Err(Error::BadPath { path: to });
            }
        } else {
            state.names.node(&from)?;
            if state.names.is_directory(&to) {
                return Err(Error::IsDirectory { path: to });
            }
        }
        state.operate(JournalOperation::Rename { from, to });
        Ok(())
    }

    /// Gives a file another name, which must be free.
    pub fn link(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (normal(from)?, normal(to)?);
        let mut state = self.growable()?;
        let inode = state.names.node(&from)?.inode;
        require_parent(&state, &to)?;
        if state.names.is_directory(&to) || state.names.names.contains_key(&to) {
            return Err(Error::Exists { path: to });
        }
        state.operate(JournalOperation::Link { inode, path: to });
        Ok(())
    }

    /// Truncates a file to `size` bytes.
    pub fn truncate(&self, path: &str, size: u64) -> Result<()> {
        if !self.exists(path) {
            return Err(Error::NotFound {
                path: path.to_owned(),
            });
        }
        self.reopen(path)?.truncate(size)
    }

    /// Makes all changes of names durable (fsync of a directory).
    pub fn sync_metadata(&self) -> Result<()> {
        self.shared.check_writable()?;
        self.shared.commit_names()
    }

    /// Takes a lock by name, within this process.
    pub fn lock(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let mut state = self.readable()?;
        if state.locks.insert(path.clone()) {
            Ok(())
        } else {
            Err(Error::Locked { path })
        }
    }

    /// Gives a lock back.
    pub fn unlock(&self, path: &str) {
        if let Ok(path) = normal(path) {
            self.shared.state.lock().locks.remove(&path);
        }
    }

    /// Bytes and operations since the mount.
    pub fn statistics(&self) -> FsStatistics {
        let mut statistics = self.shared.counters.snapshot();
        statistics.cache_bytes = self.shared.cache.bytes();
        statistics
    }

    /// How the zones are used.
    pub fn usage(&self) -> Usage {
        let state = self.shared.state.lock();
        let g = self.shared.device.geometry();
        let counts = self.shared.pool.counts();
        let usable = counts.free_sequential + counts.bluefs_sequential;
        let conventional = counts.free_conventional + counts.bluefs_conventional;
        let all = u64::from(usable) * g.zone_capacity + u64::from(conventional) * g.zone_size;
        let held = state.journal.zones.len();
        let reserved = RESERVED_ZONES + self.shared.kept_for_snapshots(&state, held);
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
        }
    }

    /// Where the bytes of a file lie, in order; what is only buffered is not among them.
    pub fn extents(&self, path: &str) -> Result<Vec<FileExtent>> {
        let path = normal(path)?;
        let state = self.readable()?;
        let node = state.names.node(&path)?;
        let body = node.body.read();
        let extents = body.pieces.iter().map(|piece| FileExtent {
            file_offset: piece.file_offset,
            at: piece.at,
            length: piece.length,
        });
        Ok(extents.collect())
    }

    /// All zones of the file system and what they are for.
    pub fn zones(&self) -> Vec<(ZoneId, ZonePurpose)> {
        self.shared.owned(&self.shared.state.lock())
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

    /// Compares metadata with the drive; `deep` reads all data and compares its checksums.
    pub fn check(&self, deep: bool) -> Result<CheckReport> {
        self.shared.check_all(deep)
    }

    /// Also after a failed flush: what is there can still be read.
    fn readable(&self) -> Result<MutexGuard<'_, State>> {
        if self.shared.unmounted.load(Ordering::Acquire) {
            return Err(Error::Unmounted);
        }
        Ok(self.shared.state.lock())
    }

    fn writable(&self) -> Result<MutexGuard<'_, State>> {
        self.shared.check_writable()?;
        let state = self.readable()?;
        state.check()?;
        Ok(state)
    }

    /// The same, with room for another name.
    fn growable(&self) -> Result<MutexGuard<'_, State>> {
        drop(self.writable()?);
        self.shared.check_room_for_names()?;
        self.writable()
    }

    fn handle(&self, state: &State, path: &str) -> Result<Handle> {
        let node: Arc<Node> = state.names.node(path)?;
        path.clone_into(&mut node.opened_as.lock());
        Ok(Handle::new(self.shared.clone(), node))
    }
}

fn require_parent(state: &State, path: &str) -> Result<()> {
    let parent = parent(path);
    if state.names.is_directory(parent) {
        return Ok(());
    }
    let path = parent.to_owned();
    Err(if state.names.names.contains_key(parent) {
        Error::NotDirectory { path }
    } else {
        Error::NotFound { path }
    })
}

/// Whether a directory may take this name: there is none, or an empty one.
fn children_free(state: &State, path: &str) -> bool {
    state
        .names
        .children(path)
        .map_or(true, |children| children.is_empty() && !path.is_empty())
}
