//! What runs under one lock: metadata, the buffer, bands and log; and the one way in which they become durable.
//!
//! A commit writes all data of the buffer into bands, flushes, writes one group of the journal, and flushes. So each
//! state that a crash can leave is the state at a commit, whole: nothing that was synced is missing, and of what was
//! not, there is either all up to some moment or nothing.

use crate::dirty::Dirty;
use crate::error::{Error, Result};
use crate::inode::{Content, Inode, Time};
use crate::log::{self, Log};
use crate::map::{Map, Place};
use crate::options::MountOptions;
use crate::placement::{Placement, Stream, Unplaced};
use crate::record::Record;
use crate::state::State;
use device::ZonedDevice;
use runtime::{HashMap, Runtime};
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
    /// Writing has stopped, why.
    pub stopped: Option<Box<str>>,
    /// Bytes of a block.
    pub block: usize,
    /// What happened since the mount.
    pub counts: Counts,
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
        }
    }

    /// Whether metadata may grow by so many bytes, beside what the buffer will take.
    pub fn check_metadata(&self, bytes: u64) -> Result<()> {
        // Each block of the buffer may become an extent of its own.
        let wanted = self.state.bytes() + bytes + self.dirty.blocks() * 48;
        if wanted > log::checkpoint_room(self.log.layout()) {
            return Err(Error::NoMetadataSpace);
        }
        Ok(())
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
        match self.log.append(&self.pending) {
            Ok(true) => {
                let flushed = self.device.flush();
                self.fatal(flushed)?;
                self.log.flushed();
                self.counts.commits += 1;
                self.pending.clear();
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

    /// Writes everything into the other slot. The buffer has to be empty.
    pub fn checkpoint(&mut self) -> Result<()> {
        let state = &self.state;
        let written = self.log.checkpoint(|each| state.records(each));
        self.fatal(written)?;
        self.counts.checkpoints += 1;
        self.pending.clear();
        self.reclaim()
    }

    /// Gives back what no file has any more. What is durable has to say so.
    fn reclaim(&mut self) -> Result<()> {
        let freed = self.state.take_freed();
        Ok(self.space.reclaim(&freed)?)
    }

    /// Blocks that files have, those in the buffer too.
    pub fn used(&self) -> u64 {
        self.state.live() + self.dirty.new_blocks()
    }

    /// Makes sure that `added` more blocks of `ino` find room when they are written, of which `new` are holes now.
    pub fn make_room(&mut self, ino: u64, added: u64, new: u64) -> Result<()> {
        if self.used() + new > self.space.capacity() {
            return Err(Error::NoSpace);
        }
        self.check_metadata(added * 48)?;
        if self.has_room(ino, added) {
            return Ok(());
        }
        self.commit()?;
        let mut tries = self.space.tries();
        while !self.has_room(ino, added) {
            tries -= 1;
            if tries == 0 || !self.clean(zone_alloc::Pressure::Any)? {
                return Err(Error::NoSpace);
            }
        }
        Ok(())
    }

    /// Whether blocks can be written without making room.
    pub fn has_room_for(&mut self, ino: u64, blocks: &[u64]) -> bool {
        self.has_room(ino, blocks.len() as u64)
    }

    fn has_room(&mut self, ino: u64, added: u64) -> bool {
        if !self.log.shape().is_whole {
            return self.space.admits(self.dirty.blocks() + added);
        }
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
    fn whole_blocks(&self, ino: u64) -> u64 {
        self.map(ino).map_or(0, Map::blocks) + self.dirty.new_of(ino)
    }

    /// Writes all of the buffer into bands.
    pub fn write_out_all(&mut self) -> Result<()> {
        let files: Vec<u64> = self.dirty.files().collect();
        for ino in files {
            self.write_out(ino)?;
        }
        Ok(())
    }

    /// Writes what the buffer has of a file into bands.
    pub fn write_out(&mut self, ino: u64) -> Result<()> {
        if self.log.shape().is_whole && self.write_whole(ino, Stream::User)? {
            return Ok(());
        }
        let most = (MAX_PIECE / self.block) as u64;
        while let Some(first) = self.dirty.next(ino, 0) {
            let count = self.dirty.of(ino).take(most as usize).count();
            let mut data = Vec::with_capacity(count * self.block);
            let mut end = first;
            for (block, bytes) in self.dirty.of(ino) {
                if block != end || end - first == most {
                    break;
                }
                data.extend_from_slice(bytes);
                end += 1;
            }
            let blocks: Vec<u64> = (first..end).collect();
            self.place(ino, &blocks, &data, None, Stream::User, false)?;
            self.dirty.cut(ino, first, end);
        }
        Ok(())
    }

    /// Writes a file as a whole into one band; `false` if a part of it cannot be read, and segments have to do.
    pub fn write_whole(&mut self, ino: u64, stream: Stream) -> Result<bool> {
        let total = self.whole_blocks(ino);
        if total > u64::from(self.space.most_together()) {
            return Ok(false);
        }
        let map = self.map(ino)?;
        let mut blocks = Vec::with_capacity(total as usize);
        let mut data = Vec::with_capacity(total as usize * self.block);
        let mut sums = Vec::with_capacity(total as usize);
        let mut next = 0;
        loop {
            let old = map.next_data(next);
            let new = self.dirty.next(ino, next);
            let Some(block) = old.into_iter().chain(new).min() else {
                break;
            };
            next = block + 1;
            blocks.push(block);
            if let Some(bytes) = self.dirty.get(ino, block) {
                data.extend_from_slice(bytes);
                sums.push(sum(bytes));
            } else if let Some((start, extent)) = map.find(block) {
                let skip = (block - start) as usize;
                let at = self.space.at(extent.zone, extent.offset + skip as u32);
                let from = data.len();
                data.resize(from + self.block, 0);
                if self.device.read(at, &mut data[from..]).is_err() {
                    return Ok(false);
                }
                // Whether it is right or not: its checksum goes with it.
                sums.push(extent.sums[skip]);
            }
        }
        self.place(ino, &blocks, &data, Some(&sums), stream, true)?;
        self.dirty.cut(ino, 0, u64::MAX);
        Ok(true)
    }

    /// Appends blocks of a file and enters where they lie.
    pub fn place(
        &mut self,
        ino: u64,
        blocks: &[u64],
        data: &[u8],
        sums: Option<&[u32]>,
        stream: Stream,
        together: bool,
    ) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let computed: Vec<u32>;
        let sums = match sums {
            Some(sums) => sums,
            None => {
                computed = data.chunks(self.block).map(sum).collect();
                &computed
            }
        };
        let places = match self.space.append(stream, data, together) {
            Ok(places) => places,
            Err(Unplaced::NoZone) => return Err(Error::NoSpace),
            Err(Unplaced::Drive(error)) => return Err(error.into()),
        };
        let mut records = Vec::new();
        let mut done = 0;
        for Place {
            zone,
            offset,
            blocks: count,
        } in places
        {
            let end = done + count as usize;
            let mut from = done;
            while from < end {
                // As many as follow each other in the file.
                let mut to = from + 1;
                while to < end
                    && blocks[to] == blocks[to - 1] + 1
                    && to - from < crate::map::MAX_EXTENT
                {
                    to += 1;
                }
                records.push(Record::Extent {
                    ino,
                    block: blocks[from],
                    zone,
                    offset: offset + (from - done) as u32,
                    sums: sums[from..to].into(),
                });
                from = to;
            }
            done = end;
        }
        self.change(&records);
        self.check_writable()
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
