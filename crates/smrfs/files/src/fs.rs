//! The interface of a mounted file system: every operation takes the one lock, for reading if it changes nothing.

use crate::attributes::{SetAttributes, SetXattr};
use crate::check::{self, Findings};
use crate::core::{Core, Counts};
use crate::dirty::Dirty;
use crate::error::{Error, Result};
use crate::inode::{Attributes, Content, ROOT};
use crate::layout::{Layout, Shape};
use crate::log::{self, Log};
use crate::medium::Medium;
use crate::names::{NewInode, Rename};
use crate::options::{MkfsOptions, MountOptions};
use crate::placement::Free;
use crate::record::Record;
use crate::state::State;
use crate::tree;
use device::ZonedDevice;
use runtime::Runtime;
use runtime::sync::{Mutex, RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use zone::{ZoneError, ZoneResult};
use zone_alloc::Pressure;

/// An entry of a directory listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// The inode.
    pub ino: u64,
    /// Position after this entry, to continue the listing from.
    pub cookie: u64,
    /// `S_IF…` of the inode.
    pub kind: u32,
    /// Its name.
    pub name: Arc<[u8]>,
}

/// Space of a file system, and how it is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Space {
    /// Bytes of a block.
    pub block_size: u32,
    /// Most bytes that all files may have together.
    pub capacity_bytes: u64,
    /// Bytes of all files, including those in the buffer.
    pub used_bytes: u64,
    /// Bytes that are preallocated and not written yet.
    pub preallocated_bytes: u64,
    /// Bytes that can be written, now or after cleaning.
    pub available_bytes: u64,
    /// Bytes in bands that no file has any more, until the bands are cleaned.
    pub dead_bytes: u64,
    /// Free bytes that cannot be written as long as their neighbours are live: those within the isolation distance of
    /// live data.
    pub unusable_bytes: u64,
    /// Free space, by the kind of file system.
    #[serde(flatten)]
    pub free: Free,
    /// Inodes.
    pub inodes: u64,
    /// Bytes that a checkpoint of the metadata takes.
    pub metadata_bytes: u64,
    /// Most bytes of a checkpoint.
    pub metadata_capacity_bytes: u64,
    /// Bytes of the buffer that are not on the drive.
    pub buffered_bytes: u64,
    /// Bytes that users wrote since the mount.
    pub written_bytes: u64,
    /// Bytes that the cleaner moved since the mount.
    pub moved_bytes: u64,
    /// Bytes of data written to the drive since the mount.
    pub device_bytes: u64,
    /// Bands that were cleaned since the mount.
    pub cleaned_bands: u64,
}

/// Status of a mounted file system.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Status {
    /// Space of the file system.
    pub space: Space,
    /// Counters since the mount.
    pub counts: Counts,
    /// Label of the file system.
    pub label: String,
    /// UUID of the file system, in hexadecimal.
    pub uuid: String,
    /// Format version of the current copy of the metadata.
    pub version: u16,
    /// Whether the drive is a Caveat-Scriptor drive.
    pub is_caveat: bool,
    /// Whether each file lies in one place as a whole.
    pub is_whole: bool,
    /// Number of open inodes.
    pub open_inodes: u64,
    /// Why writing has stopped, if it has.
    pub stopped: Option<Box<str>>,
}

/// A mounted file system.
pub struct FileSystem {
    core: RwLock<Core>,
}

impl std::fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSystem").finish_non_exhaustive()
    }
}

/// Flushes the drive. Readers go on during the flush, and the next change waits for its end.
fn flush_beside_readers(
    core: RwLockWriteGuard<'_, Core>,
) -> (RwLockWriteGuard<'_, Core>, ZoneResult<()>) {
    let core = RwLockWriteGuard::downgrade_to_upgradable(core);
    let flushed = core.device.flush();
    (RwLockUpgradableReadGuard::upgrade(core), flushed)
}

fn random<const N: usize>(runtime: &Runtime) -> Result<[u8; N]> {
    runtime.bytes().map_err(|error| {
        Error::Drive(ZoneError::Io {
            command: zone::ZoneCommand::Report,
            at: zone::ByteOffset(0),
            source: Arc::new(error),
        })
    })
}

/// Whether a drive has a file system of smrfs, whole or damaged; or a Caveat-Scriptor drive, which may have one.
pub fn is_there(device: &dyn ZonedDevice) -> Result<bool> {
    if caveat::is_there(device)? {
        return Ok(true);
    }
    match Layout::of(device.geometry()) {
        Ok(layout) => log::is_there(device, &layout),
        Err(_) => Ok(false),
    }
}

/// Reads the parameters of the file system on a drive; an error if its metadata cannot be read.
pub fn shape(device: Arc<dyn ZonedDevice>) -> Result<Shape> {
    let medium = Medium::of(device)?;
    let layout = medium.layout().map_err(|_| Error::NotFormatted)?;
    let (found, ()) = Log::read(medium.device(), layout, 0, |_| (), |(), _| Ok(()))?;
    Ok(found.log.shape().clone())
}

fn shape_of(medium: &Medium, options: &MkfsOptions) -> Shape {
    Shape {
        block_size: options.block_size,
        is_whole: options.whole_files,
        is_caveat: medium.is_caveat(),
        is_cleaned: options.clean_when_full,
        uuid: [0; 16],
        label: options.label.clone(),
        created: 0,
    }
}

impl FileSystem {
    /// Makes a file system on a drive. All that was on the drive is lost.
    pub fn mkfs(
        device: Arc<dyn ZonedDevice>,
        runtime: &Runtime,
        options: &MkfsOptions,
    ) -> Result<Shape> {
        Self::mkfs_on(&Medium::of(device)?, runtime, options)
    }

    /// Checks that a file system can be made with these options.
    ///
    /// # Errors
    /// The option or the property of the drive that prevents it.
    pub fn check_mkfs(medium: &Medium, options: &MkfsOptions) -> Result<()> {
        medium.layout()?.check_active(medium.device().geometry())?;
        if options.label.len() > 255 {
            return Err(Error::Options("a label has at most 255 bytes".into()));
        }
        shape_of(medium, options).validate(medium.device().geometry())
    }

    /// Makes a file system on a medium. All that was there is lost.
    pub fn mkfs_on(medium: &Medium, runtime: &Runtime, options: &MkfsOptions) -> Result<Shape> {
        Self::check_mkfs(medium, options)?;
        let (device, layout) = (medium.device(), medium.layout()?);
        let shape = Shape {
            uuid: random(runtime)?,
            created: runtime.unix_micros(),
            ..shape_of(medium, options)
        };
        // The new generation has to be above any on the drive, so that no old slot counts.
        let [a, b, c, d] = random(runtime)?;
        // Frames of a file system whose heads were wiped are searched for after the end too, so the generation has a
        // random part.
        let number = u64::from(u32::from_le_bytes([a, b, c, d])) << 8;
        let highest = Log::highest(&*device, &layout).max(number);
        for zone in layout.first_zone..layout.first_zone + layout.zones {
            let zone = zone::ZoneId(zone);
            if device.report_zone(zone)?.write_pointer_valid() {
                appender::reset_if_written(&*device, zone)?;
            }
        }
        let nonce = u64::from_le_bytes(random(runtime)?);
        let mut state = State::new(medium.bounds(&layout, shape.block_size));
        let now = crate::inode::Time::from_micros(runtime.unix_micros());
        let root = Attributes {
            ino: ROOT,
            mode: libc::S_IFDIR | 0o755,
            uid: options.owner.0,
            gid: options.owner.1,
            rdev: 0,
            nlink: 2,
            size: 0,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
        };
        state.apply(&Record::Inode(root)).map_err(Error::metadata)?;
        let mut log = Log::new(Arc::clone(&device), layout, shape.clone(), nonce, highest);
        // Writes both slots, so that neither has anything of an older file system.
        log.checkpoint(state.version(), |each| state.records(each))?;
        log.checkpoint(state.version(), |each| state.records(each))?;
        Ok(shape)
    }

    /// Mounts the file system on a drive. A mount for writing removes what a crash left behind.
    pub fn mount(
        device: Arc<dyn ZonedDevice>,
        runtime: Runtime,
        options: MountOptions,
    ) -> Result<Self> {
        Self::mount_on(&Medium::of(device)?, runtime, options)
    }

    /// Mounts the file system on a medium. A mount for writing removes what a crash left behind.
    pub fn mount_on(medium: &Medium, runtime: Runtime, options: MountOptions) -> Result<Self> {
        // A drive on which no file system can be made has none.
        let layout = medium.layout().map_err(|_| Error::NotFormatted)?;
        let device = medium.device();
        let nonce = u64::from_le_bytes(random(&runtime)?);
        let start = |shape: &Shape| State::new(medium.bounds(&layout, shape.block_size));
        let read = Log::read(
            Arc::clone(&device),
            layout.clone(),
            nonce,
            start,
            State::apply,
        );
        let (found, mut state) = read?;
        let shape = found.log.shape();
        if shape.is_caveat != medium.is_caveat() {
            return Err(Error::Shape(
                "the file system was made on a drive of another kind".into(),
            ));
        }
        let block_size = shape.block_size;
        // The blocks that the journal's records freed were freed before this mount.
        drop(state.take_freed());
        if state
            .inode(ROOT)
            .is_none_or(|root| !root.attributes.is_directory())
        {
            return Err(Error::metadata("there is no root directory"));
        }
        let mut wrong = None;
        tree::contradictions(&state, |_, what| {
            wrong.get_or_insert(what);
        });
        if let Some(what) = wrong {
            return Err(Error::metadata(what));
        }
        let mut space = medium.placement(&layout, shape, &options)?;
        space.load(&state)?;
        let mut core = Core {
            device,
            runtime,
            state,
            pending: Vec::new(),
            pending_bytes: 0,
            pending_version: 1,
            dirty: Dirty::default(),
            space,
            log: found.log,
            opens: Mutex::default(),
            options,
            damage: found
                .unreadable
                .iter()
                .cloned()
                .chain(medium.damage())
                .collect(),
            stopped: None,
            block: block_size as usize,
            counts: Counts::default(),
            sealed: 0,
        };
        if let Some(what) = core.space.misplaced(&core.state) {
            // Block checksums tell which data is lost; all other data is as it was written.
            tracing::error!(what, "data is lost: `smrfs fsck --deep` says which");
        }
        if let Some(why) = &found.unreadable {
            tracing::warn!(why, "a part of the metadata cannot be read");
        }
        if !options.read_only {
            if let Some(why) = found.unreadable {
                return Err(Error::Unwritable(why.into()));
            }
            medium.mend()?;
            core.damage.clear();
            core.begin(found.is_torn).map_err(|error| match error {
                Error::Drive(error) if !error.is_host_full() => {
                    Error::Unwritable(error.to_string().into())
                }
                error => error,
            })?;
        }
        Ok(Self {
            core: RwLock::new(core),
        })
    }

    /// Attributes of an inode.
    pub fn attributes(&self, ino: u64) -> Result<Attributes> {
        Ok(self.core.read().inode(ino)?.attributes)
    }

    /// Size of an inode's data in units of 512 bytes, as `st_blocks`.
    pub fn sectors(&self, ino: u64) -> u64 {
        let core = self.core.read();
        let mapped = core
            .map(ino)
            .map_or(0, |map| map.blocks() + map.preallocated_size().blocks);
        let blocks = mapped + core.dirty.new_of(ino);
        blocks * (core.block as u64 / 512)
    }

    /// The attributes of the inode of a name in directory `dir`; "." and ".." are names too.
    pub fn lookup(&self, dir: u64, name: &[u8]) -> Result<Attributes> {
        let core = self.core.read();
        let ino = match (name, &core.inode(dir)?.content) {
            (b".", Content::Directory(_)) => dir,
            (b"..", Content::Directory(directory)) => directory.parent,
            _ => core.find(dir, name)?.ino,
        };
        Ok(core.inode(ino)?.attributes)
    }

    /// At most `most` entries of a directory after position `cookie`; 0 is the beginning. "." and ".." come first.
    pub fn list(&self, dir: u64, cookie: u64, most: usize) -> Result<Vec<Listed>> {
        let core = self.core.read();
        let Content::Directory(directory) = &core.inode(dir)?.content else {
            return Err(Error::NotDirectory);
        };
        let dots = [(1, dir, &b"."[..]), (2, directory.parent, b"..")];
        let dots = dots
            .into_iter()
            .filter(|(at, ..)| *at > cookie)
            .map(|(cookie, ino, name)| Listed {
                ino,
                cookie,
                kind: libc::S_IFDIR,
                name: name.into(),
            });
        let entries = directory.order.range(cookie + 1..);
        let entries = entries.filter_map(|(cookie, name)| {
            let entry = directory.entries.get(name)?;
            let kind = core.state.inode(entry.ino)?.attributes.kind();
            Some(Listed {
                ino: entry.ino,
                cookie: *cookie,
                kind,
                name: Arc::clone(name),
            })
        });
        Ok(dots.chain(entries).take(most).collect())
    }

    /// Creates an inode of any kind but a symbolic link.
    pub fn create(&self, dir: u64, name: &[u8], new: NewInode) -> Result<Attributes> {
        self.core.write().create(dir, name, new, None)
    }

    /// Creates a regular file and opens it.
    pub fn create_open(&self, dir: u64, name: &[u8], new: NewInode) -> Result<Attributes> {
        let mut core = self.core.write();
        let attributes = core.create(dir, name, new, None)?;
        core.open(attributes.ino)?;
        Ok(attributes)
    }

    /// Creates a symbolic link.
    pub fn symlink(
        &self,
        dir: u64,
        name: &[u8],
        target: &[u8],
        owner: (u32, u32),
    ) -> Result<Attributes> {
        let new = NewInode {
            mode: libc::S_IFLNK | 0o777,
            uid: owner.0,
            gid: owner.1,
            rdev: 0,
        };
        self.core.write().create(dir, name, new, Some(target))
    }

    /// The target of a symbolic link.
    pub fn read_link(&self, ino: u64) -> Result<Box<[u8]>> {
        match &self.core.read().inode(ino)?.content {
            Content::Link(target) => Ok(target.clone()),
            _ => Err(Error::Invalid("not a symbolic link")),
        }
    }

    /// Adds a name to an inode.
    pub fn link(&self, ino: u64, dir: u64, name: &[u8]) -> Result<Attributes> {
        self.core.write().link(ino, dir, name)
    }

    /// Removes a name of an inode that is not a directory. The inode is removed with its last name, or when it is
    /// closed after that.
    pub fn unlink(&self, dir: u64, name: &[u8]) -> Result<()> {
        self.core.write().unlink(dir, name)
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, dir: u64, name: &[u8]) -> Result<()> {
        self.core.write().rmdir(dir, name)
    }

    /// Replaces the name of an inode by another name.
    pub fn rename(&self, from: (u64, &[u8]), to: (u64, &[u8]), how: Rename) -> Result<()> {
        self.core.write().rename(from, to, how)
    }

    /// Opens an inode: until [`Self::release`], it stays even without names.
    pub fn open(&self, ino: u64) -> Result<()> {
        self.core.read().open(ino)
    }

    /// Ends an [`Self::open`].
    pub fn release(&self, ino: u64) {
        let is_unused = self.core.read().release(ino);
        if is_unused {
            self.core.write().remove_unused(ino);
        }
    }

    /// Fills `buffer` from `offset`; returns the bytes read, fewer only at the end of the file. Damaged data is an
    /// error.
    pub fn read(&self, ino: u64, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        self.core.read().read(ino, offset, buffer)
    }

    /// Writes at `offset`: all of it, or an error.
    pub fn write(&self, ino: u64, offset: u64, data: &[u8]) -> Result<()> {
        self.core.write().write(ino, offset, data)
    }

    /// Appends to a file; returns the offset where the data begins.
    pub fn append(&self, ino: u64, data: &[u8]) -> Result<u64> {
        let mut core = self.core.write();
        let offset = core.inode(ino)?.attributes.size;
        core.write(ino, offset, data)?;
        Ok(offset)
    }

    /// Sets the size of a file, in bytes.
    pub fn truncate(&self, ino: u64, size: u64) -> Result<()> {
        self.core.write().truncate(ino, size)
    }

    /// Makes a range of a file zeros and frees its whole blocks; the size does not change.
    pub fn punch(&self, ino: u64, offset: u64, length: u64) -> Result<()> {
        self.core.write().punch(ino, offset, length)
    }

    /// Preallocates space for the holes in a range of a file, which read as zeros: writes to it find room from then
    /// on. The file grows to the end of the range unless `keep_size`.
    pub fn preallocate(&self, ino: u64, offset: u64, length: u64, keep_size: bool) -> Result<()> {
        self.core
            .write()
            .preallocate(ino, offset, length, keep_size)
    }

    /// Makes a range of a file zeros that are preallocated.
    pub fn zero(&self, ino: u64, offset: u64, length: u64, keep_size: bool) -> Result<()> {
        self.core.write().zero(ino, offset, length, keep_size)
    }

    /// The next byte at or after `offset` that is data, or with `hole` in a hole; `None` after the end.
    pub fn seek(&self, ino: u64, offset: u64, hole: bool) -> Result<Option<u64>> {
        self.core.read().seek(ino, offset, hole)
    }

    /// Sets attributes.
    pub fn set_attributes(&self, ino: u64, set: SetAttributes) -> Result<Attributes> {
        self.core.write().set_attributes(ino, set)
    }

    /// The value of an extended attribute.
    pub fn xattr(&self, ino: u64, name: &[u8]) -> Result<Box<[u8]>> {
        let core = self.core.read();
        let value = core.inode(ino)?.xattrs.get(name).cloned();
        value.ok_or(Error::NoAttribute)
    }

    /// The names of all extended attributes.
    pub fn xattrs(&self, ino: u64) -> Result<Vec<Box<[u8]>>> {
        Ok(self
            .core
            .read()
            .inode(ino)?
            .xattrs
            .keys()
            .cloned()
            .collect())
    }

    /// Sets an extended attribute.
    pub fn set_xattr(&self, ino: u64, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        self.core.write().set_xattr(ino, name, value, how)
    }

    /// Removes an extended attribute.
    pub fn remove_xattr(&self, ino: u64, name: &[u8]) -> Result<()> {
        self.core.write().remove_xattr(ino, name)
    }

    /// Makes all earlier changes durable, as `fsync` does.
    pub fn sync(&self) -> Result<()> {
        {
            let core = self.core.read();
            if core.is_clean() {
                return Ok(());
            }
        }
        Core::commit_by(self.core.write(), flush_beside_readers)
    }

    /// As [`Self::sync`], before an unmount: the next mount can then tell damage to the latest writes from a crash.
    pub fn seal(&self) -> Result<()> {
        self.core.write().seal()
    }

    /// Cleans one band, or a part of a Caveat-Scriptor drive, if that is worth it; `false` if nothing was gained, and nothing
    /// will be.
    pub fn clean(&self, pressure: Pressure) -> Result<bool> {
        self.core.write().clean(pressure)
    }

    /// The periodic work of a background thread: a commit, and cleaning if free bands are few. `true` if there is
    /// more to clean.
    pub fn tick(&self) -> Result<bool> {
        self.sync()?;
        let pressure = self.core.read().pressure();
        match pressure {
            Some(pressure) => self.clean(pressure),
            None => Ok(false),
        }
    }

    /// Space of the file system, and how it is used.
    pub fn space(&self) -> Space {
        let core = self.core.read();
        let block = core.block as u64;
        let usage = core.space.usage(&core.state);
        let (capacity, used) = (core.space.capacity(), core.used());
        let available = capacity.saturating_sub(used);
        let room = usage
            .room
            .map(|room| room.saturating_sub(core.dirty.not_preallocated()));
        Space {
            block_size: block as u32,
            capacity_bytes: capacity * block,
            used_bytes: used * block,
            preallocated_bytes: core.state.preallocated() * block,
            available_bytes: available.min(room.unwrap_or(available)) * block,
            dead_bytes: usage.dead * block,
            unusable_bytes: usage.unusable * block,
            free: usage.free,
            inodes: core.state.count(),
            metadata_bytes: core.state.bytes(),
            metadata_capacity_bytes: log::checkpoint_room(core.log.layout()),
            buffered_bytes: core.dirty.blocks() * block,
            written_bytes: core.counts.user_bytes,
            moved_bytes: core.counts.moved_bytes,
            device_bytes: core.space.bytes_written(),
            cleaned_bands: core.counts.cleaned_zones,
        }
    }

    /// The status of the file system.
    pub fn status(&self) -> Status {
        let space = self.space();
        let core = self.core.read();
        let shape = core.log.shape();
        Status {
            space,
            counts: core.counts,
            label: shape.label.clone(),
            uuid: shape.uuid_text(),
            version: core.log.version(),
            is_caveat: shape.is_caveat,
            is_whole: shape.is_whole,
            open_inodes: core.opens.lock().len() as u64,
            stopped: core.stopped.clone(),
        }
    }

    /// Counters since the mount.
    pub fn counts(&self) -> Counts {
        self.core.read().counts
    }

    /// Whether the mount is read-only.
    pub fn is_read_only(&self) -> bool {
        self.core.read().options.read_only
    }

    /// The parameters that the file system was made with.
    pub fn shape(&self) -> Shape {
        self.core.read().log.shape().clone()
    }

    /// Size limit of a file, in bytes.
    pub fn most_bytes(&self) -> u64 {
        self.core.read().most_bytes()
    }

    /// Checks all metadata; `deep` verifies all data too.
    pub fn check(&self, deep: bool) -> Findings {
        check::check(&self.core.read(), deep)
    }
}

impl Core {
    /// Whether nothing waits for a commit.
    fn is_clean(&self) -> bool {
        self.pending.is_empty()
            && self.dirty.blocks() == 0
            && !self.space.is_unflushed()
            && self.stopped.is_none()
    }

    /// How much cleaning is needed.
    fn pressure(&self) -> Option<Pressure> {
        if self.options.read_only || self.stopped.is_some() {
            return None;
        }
        self.space.pressure()
    }

    /// The first work of a mount for writing: a flush, and the removal of what a crash left behind.
    fn begin(&mut self, is_torn: bool) -> Result<()> {
        // The state that was read may not be durable before this flush.
        self.device.flush()?;
        let orphans: Vec<Record> = self
            .state
            .orphans()
            .iter()
            .map(|ino| Record::Remove { ino: *ino })
            .collect();
        self.change(&orphans);
        if is_torn {
            self.checkpoint()?;
        } else {
            self.commit()?;
        }
        self.space.free_dead(&self.state)?;
        Ok(())
    }
}
