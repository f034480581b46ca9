//! What runs under one lock: metadata, the buffer, bands and log; and the one way in which they become durable.
//!
//! A commit writes all data of the buffer into bands, flushes, writes one group of the journal, and flushes. So each
//! state that a crash can leave is the state at a commit, whole: nothing that was synced is missing, and of what was
//! not, there is either all up to some moment or nothing.

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
use runtime::{HashMap, Runtime};
use std::ops::Range;
use std::sync::Arc;
use zone::ZoneId;

/// Most bytes that one command writes or reads.
pub const MAX_PIECE: usize = 1 << 20;

/// See the head of this file.
pub struct Core {
    /// The drive.
    pub device: Arc<dyn ZonedDevice>,
    /// The clock.
    pub runtime: Runtime,
    /// All metadata.
    pub state: State,
    /// Records that are carried out and not durable.
    pub pending: Vec<Vec<u8>>,
    /// The version of the format that has all of them.
    pub pending_version: u16,
    /// The buffer.
    pub dirty: Dirty,
    /// Where data goes.
    pub space: Box<dyn Placement>,
    /// Zones for metadata.
    pub log: Log,
    /// How often inodes are open.
    pub opens: HashMap<u64, u32>,
    /// What mount was told.
    pub options: MountOptions,
    /// What can be done without, and is not as it was written: in words.
    pub damage: Vec<String>,
    /// Writing has stopped, why.
    pub stopped: Option<Box<str>>,
    /// Bytes of a block.
    pub block: usize,
    /// What happened since the mount.
    pub counts: Counts,
    /// Commits and checkpoints of this mount that the journal's end is sealed behind.
    pub sealed: u64,
}

/// Bytes of metadata that a block may add, at most: an extent of its own, in the middle of another one or of what is
/// preallocated.
const BLOCK_METADATA: u64 = 64;

/// Room that blocks of a file need which are not in the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Demand {
    /// Blocks that space was not set aside for.
    pub blocks: u64,
    /// Of them, those that are holes.
    pub new: u64,
    /// Blocks that space was set aside for.
    pub preallocated: u64,
}

/// What happened since a mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Bytes that users wrote.
    pub user_bytes: u64,
    /// Bytes that the cleaner moved.
    pub moved_bytes: u64,
    /// Zones that were cleaned.
    pub cleaned_zones: u64,
    /// Groups of the journal.
    pub commits: u64,
    /// Checkpoints.
    pub checkpoints: u64,
}

/// A checksum of a block: CRC-32C.
pub fn sum(block: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, block) as u32
}

/// What a block of a file will lie in if it is written.
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
    /// Whether anything can be changed.
    pub fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        match &self.stopped {
            Some(why) => Err(Error::Stopped(why.clone())),
            None => Ok(()),
        }
    }

    /// The time of day.
    pub fn now(&self) -> Time {
        Time::from_micros(self.runtime.unix_micros())
    }

    /// An inode.
    pub fn inode(&self, ino: u64) -> Result<&Inode> {
        self.state.inode(ino).ok_or(Error::NotFound)
    }

    /// The blocks of a regular file.
    pub fn map(&self, ino: u64) -> Result<&Map> {
        match &self.inode(ino)?.content {
            Content::File(map) => Ok(map),
            Content::Directory(_) => Err(Error::IsDirectory),
            Content::Link(_) | Content::Nothing => Err(Error::Invalid("not a regular file")),
        }
    }

    /// Carries records out that were made to fit.
    pub fn change(&mut self, records: &[Record]) {
        for record in records {
            if let Err(why) = self.state.apply(record) {
                // Not to be: what is in memory would be another state than what is written.
                debug_assert!(false, "{why}: {record:?}");
                self.stop(&format!("{why}: {record:?}"));
                return;
            }
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.pending.push(bytes);
            self.pending_version = self.pending_version.max(record.version());
        }
    }

    /// Makes sure that metadata may grow by so many bytes, beside what the buffer will take. How much that is nobody knows
    /// before it is written, so that comes before a refusal.
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

    /// Stops all writing if it is not known any more what the drive has.
    fn fatal<T, E: Into<Error>>(&mut self, result: std::result::Result<T, E>) -> Result<T> {
        result.map_err(|error| {
            let error = error.into();
            self.stop(&error.to_string());
            error
        })
    }

    /// Makes everything durable that was done.
    pub fn commit(&mut self) -> Result<()> {
        self.check_writable()?;
        self.write_out_all()?;
        if self.space.is_unflushed() {
            let flushed = self.device.flush();
            self.fatal(flushed)?;
            self.space.flushed();
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.pending_version > self.log.version() {
            return self.checkpoint();
        }
        match self.log.append(&self.pending) {
            Ok(true) => {
                let flushed = self.device.flush();
                self.fatal(flushed)?;
                self.log.flushed();
                self.counts.commits += 1;
                self.forget_pending();
                self.reclaim()
            }
            Ok(false) => self.checkpoint(),
            Err(error @ zone::ZoneError::PowerLost { .. }) => self.fatal(Err(error)),
            Err(error) => {
                tracing::warn!(%error, "the journal cannot be written; going on in the other copy");
                self.checkpoint()
            }
        }
    }

    /// Makes everything durable, and if anything was, writes it into the other slot too: a slot that goes back to what it was
    /// before is none that a crash may have left then.
    pub fn seal(&mut self) -> Result<()> {
        self.commit()?;
        if self.sealed == self.counts.commits + self.counts.checkpoints {
            return Ok(());
        }
        // What was done is durable in any case.
        if let Err(error) = self.checkpoint() {
            tracing::warn!(%error, "the other copy of the metadata could not be written");
        }
        self.sealed = self.counts.commits + self.counts.checkpoints;
        Ok(())
    }

    /// Writes everything into the other slot. The buffer has to be empty.
    pub fn checkpoint(&mut self) -> Result<()> {
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
        self.pending_version = 1;
    }

    /// Gives back what no file has any more. What is durable has to say so.
    pub fn reclaim(&mut self) -> Result<()> {
        let freed = self.state.take_freed();
        self.space.reclaim(&freed)?;
        let beside = self.dirty.not_preallocated();
        if !self.space.set_aside(self.state.preallocated(), beside) {
            tracing::warn!("there is less room than was preallocated");
        }
        Ok(())
    }

    /// Blocks that files have, those in the buffer and those that are preallocated too.
    pub fn used(&self) -> u64 {
        self.state.live() + self.state.preallocated() + self.dirty.new_blocks()
    }

    /// What blocks of a file need that are not in the buffer.
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

    /// Makes sure that so much more of `ino` finds room when it is written.
    pub fn make_room(&mut self, ino: u64, demand: Demand) -> Result<()> {
        if demand.new > 0 && self.used() + demand.new > self.space.capacity() {
            return Err(Error::NoSpace);
        }
        if demand.blocks > 0 {
            self.check_metadata(demand.blocks * BLOCK_METADATA)?;
        }
        self.clean_until(|this| this.has_room(ino, demand))
    }

    /// Sets space aside for `blocks` more that are holes.
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

    /// Makes sure that space can be set aside for blocks of a file once those `within` them are a hole: beside what is there
    /// now, or where that is.
    pub fn check_zeros(&mut self, ino: u64, all: Range<u64>, within: Range<u64>) -> Result<()> {
        let map = self.map(ino)?;
        // Those that are written in part, and the one where the file ended.
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
        // Nothing waits to be written any more.
        let wanted = self.state.preallocated() + blocks;
        let will = self.space.will_set_aside(wanted, &freed(self)?, ends);
        will.then_some(()).ok_or(Error::NoSpace)
    }

    /// Commits, and cleans, until there is room.
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

    /// Whether so much of `ino` can be written without making room.
    pub fn has_room(&mut self, ino: u64, demand: Demand) -> bool {
        if !self.log.shape().is_whole {
            let (all, others) = (self.dirty.blocks(), self.dirty.not_preallocated());
            let preallocated = all - others + demand.preallocated;
            return self.space.admits(others + demand.blocks, preallocated);
        }
        // What it overwrites is written with it once.
        let added = demand.new;
        let has_more = self.dirty.has(ino);
        let files = self.dirty.files().chain((!has_more).then_some(ino));
        let sizes = files.map(|file| {
            let more = if file == ino { added } else { 0 };
            self.whole_blocks(file) + more
        });
        let sizes: Vec<u64> = sizes.collect();
        self.space.admits_whole(&sizes)
    }

    /// Blocks that a file takes when it is written as a whole.
    pub fn whole_blocks(&self, ino: u64) -> u64 {
        self.map(ino).map_or(0, Map::blocks) + self.dirty.new_of(ino)
    }

    /// Reads blocks of an extent, as they are on the drive.
    pub fn read_raw(&self, zone: u32, offset: u32, buffer: &mut [u8]) -> Result<()> {
        Ok(self.device.read(self.space.at(zone, offset), buffer)?)
    }

    /// The contents of a block, verified; zeros for a hole.
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
