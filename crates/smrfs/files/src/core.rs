//! The state under the one lock of a file system: metadata, buffer, space for data and metadata log; and the commit,
//! the only way in which changes become durable.
//!
//! A commit writes all data of the buffer to its places, flushes, writes one group of the journal, and flushes. So a
//! crash leaves the state of some commit as a whole: everything that was synced is there, and of later changes either
//! all up to some moment or none.

use crate::dirty::{Dirty, Takes};
use crate::error::{Error, Result};
use crate::inode::{Content, Inode, Time};
use crate::log::{self, Log};
use crate::map::Map;
use crate::options::MountOptions;
use crate::placement::Placement;
use crate::record::Record;
use crate::state::State;
use device::ZonedDevice;
use runtime::sync::Mutex;
use runtime::{HashMap, Runtime};
use std::ops::{DerefMut, Range};
use std::sync::Arc;
use zone::{ZoneError, ZoneId, ZoneResult};

/// Most bytes of one read or write command.
pub const MAX_PIECE: usize = 1 << 20;

/// The state of a mounted file system; see the head of this file.
pub struct Core {
    /// The drive.
    pub device: Arc<dyn ZonedDevice>,
    /// The clock.
    pub runtime: Runtime,
    /// All metadata.
    pub state: State,
    /// Encoded records that are applied to [`Self::state`] and not in the journal yet.
    pub pending: Vec<Vec<u8>>,
    /// Bytes of all of them.
    pub pending_bytes: u64,
    /// The oldest format version that has all records of [`Self::pending`].
    pub pending_version: u16,
    /// Blocks of data that are not on the drive yet.
    pub dirty: Dirty,
    /// Allocator of space for data.
    pub space: Box<dyn Placement>,
    /// The log in the zones for metadata.
    pub log: Log,
    /// Number of opens by inode. An inode without names stays as long as it is open. A lock of its own: opening a file
    /// changes nothing else, and waits for no flush.
    pub opens: Mutex<HashMap<u64, u32>>,
    /// Options of the mount.
    pub options: MountOptions,
    /// Descriptions of damage that the file system works without, for example to one of two copies.
    pub damage: Vec<String>,
    /// Why writing has stopped, if it has.
    pub stopped: Option<Box<str>>,
    /// Bytes of a block.
    pub block: usize,
    /// Counters since the mount.
    pub counts: Counts,
    /// Sum of commits and checkpoints at the last [`Self::seal`].
    pub sealed: u64,
}

/// Bytes of metadata that a block may add, at most: an extent of its own, in the middle of another extent or of a
/// preallocated range.
const BLOCK_METADATA: u64 = 64;
/// Free bytes of the host's disk under a drive file that data leave to metadata, beside those of a checkpoint.
const KEPT_ON_HOST: u64 = 8 << 20;
/// Free bytes there without which no commit begins: after a journal that could not be written, all writing stops.
const LEAST_ON_HOST: u64 = 256 << 10;

/// Bytes of records that wait for a commit, beyond which the next change begins with one. As long as no commit
/// succeeds, memory must not grow.
const MOST_PENDING: u64 = 8 << 20;

/// Space that blocks of a file need before they enter the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Demand {
    /// Blocks without preallocated space.
    pub blocks: u64,
    /// Of these, blocks that are holes.
    pub new: u64,
    /// Blocks with preallocated space.
    pub preallocated: u64,
}

/// Counters since a mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Bytes that users wrote.
    pub user_bytes: u64,
    /// Bytes that the cleaner moved.
    pub moved_bytes: u64,
    /// Zones that were cleaned.
    pub cleaned_zones: u64,
    /// Groups written to the journal.
    pub commits: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
}

/// The checksum of a block: CRC-32C.
pub fn sum(block: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, block) as u32
}

/// Which space a block of a file will take when it is written.
pub fn takes(map: &Map, block: u64) -> Takes {
    if map.has(block) {
        Takes::Old
    } else if map.is_preallocated(block) {
        Takes::Preallocated
    } else {
        Takes::New
    }
}

impl Core {
    /// An error if the mount is read-only or writing has stopped.
    pub fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        match &self.stopped {
            Some(why) => Err(Error::Stopped(why.clone())),
            None => Ok(()),
        }
    }

    /// Begins a change by a user: as [`Self::check_writable`], and commits if much waits for it.
    pub fn begin_change(&mut self) -> Result<()> {
        self.check_writable()?;
        match self.pending_bytes > MOST_PENDING {
            true => self.commit(),
            false => Ok(()),
        }
    }

    /// As [`Self::begin_change`], for a change that takes no space and may free some: it begins although what waits finds no
    /// space.
    pub fn begin_removal(&mut self) -> Result<()> {
        match self.begin_change() {
            Err(Error::NoSpace) => Ok(()),
            begun => begun,
        }
    }

    /// The present, by the runtime's clock.
    pub fn now(&self) -> Time {
        Time::from_micros(self.runtime.unix_micros())
    }

    /// An inode; [`Error::NotFound`] if there is none of this number.
    pub fn inode(&self, ino: u64) -> Result<&Inode> {
        self.state.inode(ino).ok_or(Error::NotFound)
    }

    /// The extents of a regular file.
    pub fn map(&self, ino: u64) -> Result<&Map> {
        match &self.inode(ino)?.content {
            Content::File(map) => Ok(map),
            Content::Directory(_) => Err(Error::IsDirectory),
            Content::Link(_) | Content::Nothing => Err(Error::Invalid("not a regular file")),
        }
    }

    /// Applies records that the caller made to fit the state, and queues them for the next commit.
    pub fn change(&mut self, records: &[Record]) {
        for record in records {
            if let Err(why) = self.state.apply(record) {
                // Must not happen: memory would have another state than the journal.
                debug_assert!(false, "{why}: {record:?}");
                self.stop(&format!("{why}: {record:?}"));
                return;
            }
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.pending_bytes += bytes.len() as u64;
            self.pending.push(bytes);
            self.pending_version = self.pending_version.max(record.version());
        }
    }

    /// Makes sure that metadata may grow by `bytes` in addition to what the buffer will add. The buffer's share is an
    /// upper bound until it is written out, so that happens before a refusal.
    pub fn check_metadata(&mut self, bytes: u64) -> Result<()> {
        let room = log::checkpoint_room(self.log.layout());
        let fits = |this: &Self, buffered: u64| {
            let blocks = buffered.saturating_add(this.state.preallocated());
            let wanted = blocks.saturating_mul(BLOCK_METADATA);
            this.state
                .bytes()
                .saturating_add(wanted)
                .saturating_add(bytes)
                <= room
        };
        if fits(self, self.dirty.not_preallocated()) {
            return Ok(());
        }
        if self.dirty.blocks() > 0 && fits(self, 0) {
            self.write_out_all()?;
            if fits(self, 0) {
                return Ok(());
            }
        }
        Err(Error::NoMetadataSpace)
    }

    fn stop(&mut self, why: &str) {
        tracing::error!(why, "writing stops; mount again");
        self.stopped.get_or_insert_with(|| why.into());
    }

    /// Stops all writing after an error: it is not known any more what is on the drive.
    fn fatal<T, E: Into<Error>>(&mut self, result: std::result::Result<T, E>) -> Result<T> {
        result.map_err(|error| {
            let error = error.into();
            self.stop(&error.to_string());
            error
        })
    }

    /// Makes all changes durable.
    pub fn commit(&mut self) -> Result<()> {
        Self::commit_by(self, |core| {
            let flushed = core.device.flush();
            (core, flushed)
        })
    }

    /// As [`Self::commit`], by `flush`, which may let others read the state during the flush, and nothing change it.
    pub fn commit_by<G: DerefMut<Target = Self>>(
        mut core: G,
        flush: impl Fn(G) -> (G, ZoneResult<()>),
    ) -> Result<()> {
        core.check_writable()?;
        core.write_out_all()?;
        if core.space.is_unflushed() {
            let flushed;
            (core, flushed) = flush(core);
            core.fatal(flushed)?;
            core.space.flushed();
        }
        if core.pending.is_empty() {
            return Ok(());
        }
        core.check_host(core.pending_bytes + LEAST_ON_HOST)?;
        if core.pending_version > core.log.version() {
            return core.checkpoint();
        }
        let this = &mut *core;
        match this.log.append(&this.pending) {
            Ok(true) => {
                let flushed;
                (core, flushed) = flush(core);
                core.fatal(flushed)?;
                core.log.flushed();
                core.counts.commits += 1;
                core.forget_pending();
                core.reclaim()
            }
            Ok(false) => core.checkpoint(),
            Err(error @ ZoneError::PowerLost { .. }) => core.fatal(Err(error)),
            Err(error) => {
                tracing::warn!(%error, "the journal cannot be written; going on in the other copy");
                // Without room it fails, and that is final: a part of the group may be in the journal.
                core.write_checkpoint()
            }
        }
    }

    /// Makes all changes durable, and if there were any since the last seal, writes a checkpoint to the other slot
    /// too. A slot that later reverts to an older state can then be told from one that a crash left.
    pub fn seal(&mut self) -> Result<()> {
        self.commit()?;
        if self.sealed == self.counts.commits + self.counts.checkpoints {
            return Ok(());
        }
        // The changes are durable even if the checkpoint fails.
        if let Err(error) = self.checkpoint() {
            tracing::warn!(%error, "the other copy of the metadata could not be written");
        }
        self.sealed = self.counts.commits + self.counts.checkpoints;
        Ok(())
    }

    /// Writes all metadata to the other slot. The buffer has to be empty.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.check_host(self.state.bytes())?;
        self.write_checkpoint()
    }

    fn write_checkpoint(&mut self) -> Result<()> {
        let state = &self.state;
        let version = state.version();
        let written = self.log.checkpoint(version, |each| state.records(each));
        self.fatal(written)?;
        self.counts.checkpoints += 1;
        self.forget_pending();
        self.reclaim()
    }

    fn forget_pending(&mut self) {
        self.pending.clear();
        self.pending_bytes = 0;
        self.pending_version = 1;
    }

    /// Frees the space that no file has any more. The state that says so has to be durable.
    pub fn reclaim(&mut self) -> Result<()> {
        let freed = self.state.take_freed();
        self.space.reclaim(&freed)?;
        let beside = self.dirty.not_preallocated();
        if !self.space.set_aside(self.state.preallocated(), beside) {
            tracing::warn!("there is less room than was preallocated");
        }
        Ok(())
    }

    /// Blocks that files have, including those in the buffer and preallocated ones.
    pub fn used(&self) -> u64 {
        self.state.live() + self.state.preallocated() + self.dirty.new_blocks()
    }

    /// Space that those of `blocks` need which are not in the buffer.
    pub fn demand(&self, ino: u64, blocks: &[u64]) -> Result<Demand> {
        let map = self.map(ino)?;
        let mut demand = Demand::default();
        for block in blocks {
            match takes(map, *block) {
                Takes::Preallocated => demand.preallocated += 1,
                Takes::Old => demand.blocks += 1,
                Takes::New => {
                    demand.blocks += 1;
                    demand.new += 1;
                }
            }
        }
        Ok(demand)
    }

    /// An error if the host's disk under a drive file has no room for `bytes`.
    fn check_host(&self, bytes: u64) -> Result<()> {
        match self.device.host_free_bytes() {
            Some(free) if free < bytes => Err(Error::HostFull),
            _ => Ok(()),
        }
    }

    /// Makes sure that so much more of `ino` finds room when it is written, by cleaning if necessary.
    pub fn make_room(&mut self, ino: u64, demand: Demand) -> Result<()> {
        let has_place = |this: &Self| {
            // A Caveat-Scriptor drive mostly writes where it has written before, which takes no room.
            if this.device.host_free_bytes().is_none() || this.log.shape().is_caveat {
                return Ok(());
            }
            let blocks = match this.log.shape().is_whole {
                true => this.whole_sizes(ino, demand).iter().sum(),
                false => this.dirty.blocks() + demand.blocks + demand.preallocated,
            };
            let data = blocks * this.block as u64;
            this.check_host(data + this.state.bytes() + KEPT_ON_HOST)
        };
        if has_place(self).is_err() {
            self.commit()?;
            has_place(self)?;
        }
        if demand.new > 0 && self.used() + demand.new > self.space.capacity() {
            return Err(Error::NoSpace);
        }
        if demand.blocks > 0 {
            self.check_metadata(demand.blocks * BLOCK_METADATA)?;
        }
        self.clean_until(|this| this.has_room(ino, demand))
    }

    /// Reserves space for `blocks` more preallocated blocks, which are holes, by cleaning if necessary.
    pub fn set_aside(&mut self, blocks: u64) -> Result<()> {
        if self.used().saturating_add(blocks) > self.space.capacity() {
            return Err(Error::NoSpace);
        }
        self.check_metadata(blocks * BLOCK_METADATA)?;
        self.clean_until(|this| {
            let wanted = this.state.preallocated() + blocks;
            this.space.set_aside(wanted, this.dirty.not_preallocated())
        })
    }

    /// Makes sure that blocks `all` of a file can be preallocated once `within`, a part of them, is a hole: in space
    /// that is free now, or in that which the hole frees.
    pub fn check_zeros(&mut self, ino: u64, all: Range<u64>, within: Range<u64>) -> Result<()> {
        let map = self.map(ino)?;
        // The blocks that are zeroed in part, and the one where the file ended.
        let ends = (all.start..within.start.min(all.end)).chain(within.end.max(all.start)..all.end);
        let ends = 1 + ends.take(3).filter(|block| map.has(*block)).count() as u64;
        let holes = map.bare_holes(all.start, all.end).into_iter();
        let holes: u64 = holes.map(|(start, end)| end - start).sum();
        if self.used().saturating_add(holes) > self.space.capacity() {
            return Err(Error::NoSpace);
        }
        let freed = |this: &Self| -> Result<Vec<(u64, u64)>> {
            let extents = this.map(ino)?.iter();
            let freed = extents.filter_map(|(block, extent)| {
                let start = block.max(within.start);
                let end = (block + extent.blocks()).min(within.end);
                (start < end).then(|| (u64::from(extent.offset) + start - block, end - start))
            });
            Ok(freed.collect())
        };
        let data: u64 = freed(self)?.iter().map(|(_, blocks)| blocks).sum();
        let blocks = data + holes;
        self.check_metadata((blocks + ends).saturating_mul(BLOCK_METADATA))?;
        let room = self.clean_until(|this| {
            let wanted = this.state.preallocated() + blocks;
            let beside = this.dirty.not_preallocated() + ends;
            this.space.set_aside(wanted, beside) && this.space.admits(beside, 0)
        });
        if !matches!(room, Err(Error::NoSpace)) {
            return room;
        }
        // The buffer is empty here: `clean_until` has committed.
        let wanted = self.state.preallocated() + blocks;
        let will = self.space.will_set_aside(wanted, &freed(self)?, ends);
        will.then_some(()).ok_or(Error::NoSpace)
    }

    /// Commits, and then cleans until `has_room`; [`Error::NoSpace`] if cleaning gains nothing more.
    fn clean_until(&mut self, mut has_room: impl FnMut(&mut Self) -> bool) -> Result<()> {
        if has_room(self) {
            return Ok(());
        }
        self.commit()?;
        let mut tries = self.space.tries();
        while !has_room(self) {
            tries -= 1;
            if tries == 0 || !self.clean(zone_alloc::Pressure::Any)? {
                return Err(Error::NoSpace);
            }
        }
        Ok(())
    }

    /// Whether so much more of `ino` can be written without cleaning.
    pub fn has_room(&mut self, ino: u64, demand: Demand) -> bool {
        if !self.log.shape().is_whole {
            let (all, others) = (self.dirty.blocks(), self.dirty.not_preallocated());
            let preallocated = all - others + demand.preallocated;
            return self.space.admits(others + demand.blocks, preallocated);
        }
        self.space.admits_whole(&self.whole_sizes(ino, demand))
    }

    /// Blocks of each file that is written as a whole, if so much more of `ino` is: overwritten blocks take no space in
    /// addition.
    fn whole_sizes(&self, ino: u64, demand: Demand) -> Vec<u64> {
        let has_more = self.dirty.has(ino);
        let files = self.dirty.files().chain((!has_more).then_some(ino));
        let sizes = files.map(|file| {
            let more = if file == ino { demand.new } else { 0 };
            self.whole_blocks(file) + more
        });
        sizes.collect()
    }

    /// Blocks that a file takes when it is written as a whole, with those in the buffer.
    pub fn whole_blocks(&self, ino: u64) -> u64 {
        self.map(ino).map_or(0, Map::blocks) + self.dirty.new_of(ino)
    }

    /// Reads blocks from the drive without verifying their checksums.
    pub fn read_raw(&self, zone: u32, offset: u32, buffer: &mut [u8]) -> Result<()> {
        Ok(self.device.read(self.space.at(zone, offset), buffer)?)
    }

    /// The contents of a block from the buffer or, verified, from the drive; zeros for a hole.
    pub fn load(&self, ino: u64, block: u64) -> Result<Box<[u8]>> {
        if let Some(bytes) = self.dirty.get(ino, block) {
            return Ok(bytes.into());
        }
        let mut bytes = vec![0; self.block].into_boxed_slice();
        if let Some((start, extent)) = self.map(ino)?.find(block) {
            let skip = (block - start) as usize;
            if let Some(tail) = self.dirty.tail(ino, block)
                && sum(tail) == extent.sums[skip]
            {
                return Ok(tail.into());
            }
            self.read_raw(extent.zone, extent.offset + skip as u32, &mut bytes)?;
            if sum(&bytes) != extent.sums[skip] {
                return Err(Error::DamagedData {
                    inode: ino,
                    block,
                    zone: ZoneId(extent.zone),
                });
            }
        }
        Ok(bytes)
    }
}
