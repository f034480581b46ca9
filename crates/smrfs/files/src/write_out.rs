//! Writes the buffer out: its blocks go to the drive, and records say where they lie.
//!
//! Blocks that are adjacent on the drive go in one write, of however many files they are: a small write takes a drive
//! as long as one of ten times its size.

use crate::core::{Core, MAX_PIECE, sum};
use crate::dirty::Takes;
use crate::error::{Error, Result};
use crate::map::{MAX_EXTENT, Place};
use crate::placement::{Stream, Unplaced};
use crate::record::Record;
use std::ops::Range;

/// Consecutive blocks of a file, all of them in the buffer.
struct Segment {
    ino: u64,
    blocks: Range<u64>,
}

/// The segments of one write, all of one stream.
struct Batch {
    stream: Stream,
    segments: Vec<Segment>,
}

/// Inode and block number of a block of a file.
type Owner = (u64, u64);

impl From<Unplaced> for Error {
    fn from(unplaced: Unplaced) -> Self {
        match unplaced {
            Unplaced::NoZone => Self::NoSpace,
            Unplaced::Drive(error) => error.into(),
        }
    }
}

impl Core {
    /// Writes all blocks of the buffer to the drive.
    pub fn write_out_all(&mut self) -> Result<()> {
        if self.log.shape().is_whole {
            let files: Vec<u64> = self.dirty.files().collect();
            return files.into_iter().try_for_each(|ino| self.write_out(ino));
        }
        while let Some(batch) = self.next_batch(self.dirty.files()) {
            self.write_batch(&batch)?;
        }
        Ok(())
    }

    /// Writes a file's blocks in the buffer to the drive.
    pub fn write_out(&mut self, ino: u64) -> Result<()> {
        if self.log.shape().is_whole && self.write_whole(ino, Stream::User)? {
            return Ok(());
        }
        while let Some(batch) = self.next_batch(std::iter::once(ino)) {
            self.write_batch(&batch)?;
        }
        Ok(())
    }

    /// The first blocks of these files in the buffer: as many as go to the drive in one write.
    fn next_batch(&self, files: impl Iterator<Item = u64>) -> Option<Batch> {
        let blocks =
            files.flat_map(|ino| self.dirty.of(ino).map(move |(b, _, takes)| (ino, b, takes)));
        let mut batch: Option<Batch> = None;
        for (ino, block, takes) in blocks.take(MAX_PIECE / self.block) {
            let stream = match takes {
                Takes::Preallocated => Stream::Preallocated,
                Takes::Old | Takes::New => Stream::User,
            };
            let batch = batch.get_or_insert_with(|| Batch {
                stream,
                segments: Vec::new(),
            });
            if batch.stream != stream {
                break;
            }
            match batch.segments.last_mut() {
                Some(last) if (last.ino, last.blocks.end) == (ino, block) => last.blocks.end += 1,
                _ => batch.segments.push(Segment {
                    ino,
                    blocks: block..block + 1,
                }),
            }
        }
        batch
    }

    /// Writes the first segments of a batch, at least one.
    fn write_batch(&mut self, batch: &Batch) -> Result<()> {
        let mut data = Vec::new();
        let mut owners: Vec<Owner> = Vec::new();
        for Segment { ino, blocks } in &batch.segments {
            for block in blocks.clone() {
                data.extend_from_slice(self.dirty.get(*ino, block).ok_or(Error::NotFound)?);
                owners.push((*ino, block));
            }
        }
        let lengths = batch.segments.iter();
        let lengths: Vec<u64> = lengths.map(|s| s.blocks.end - s.blocks.start).collect();
        let (count, places) = self.space.append_some(batch.stream, &data, &lengths)?;
        let blocks: u64 = lengths.iter().take(count).sum();
        owners.truncate(blocks as usize);
        let sums: Vec<u32> = data
            .chunks(self.block)
            .take(owners.len())
            .map(sum)
            .collect();
        self.enter(&owners, &sums, &places)?;
        let width = self.block as u64;
        for Segment { ino, blocks } in batch.segments.iter().take(count) {
            let size = self.inode(*ino)?.attributes.size;
            let tail = (size % width > 0).then_some(size / width);
            self.dirty.written(*ino, blocks.start, blocks.end, tail);
        }
        Ok(())
    }

    /// Writes a file as a whole to one place; `false` if a part of it cannot be read, so that it has to be moved in
    /// segments.
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
                // The old checksum moves with the block, so that existing damage stays detectable.
                sums.push(extent.sums[skip]);
            }
        }
        self.place(ino, &blocks, &data, &sums, stream, true)?;
        self.dirty.cut(ino, 0, u64::MAX);
        Ok(true)
    }

    /// Appends blocks of a file with their checksums, and records where they lie.
    pub fn place(
        &mut self,
        ino: u64,
        blocks: &[u64],
        data: &[u8],
        sums: &[u32],
        stream: Stream,
        together: bool,
    ) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let places = self.space.append(stream, data, together)?;
        let owners: Vec<Owner> = blocks.iter().map(|block| (ino, *block)).collect();
        self.enter(&owners, sums, &places)
    }

    /// Records where blocks of files lie; the places cover all of them, in order.
    fn enter(&mut self, owners: &[Owner], sums: &[u32], places: &[Place]) -> Result<()> {
        let mut records = Vec::new();
        let mut done = 0;
        for place in places {
            let end = done + place.blocks as usize;
            let mut from = done;
            while from < end {
                let (ino, block) = owners[from];
                // One record covers blocks that are consecutive in the file.
                let follows = |to: usize| owners[to] == (ino, block + (to - from) as u64);
                let most = end.min(from + MAX_EXTENT);
                let to = (from + 1..most).find(|to| !follows(*to)).unwrap_or(most);
                records.push(Record::Extent {
                    ino,
                    block,
                    zone: place.zone,
                    offset: place.offset + (from - done) as u32,
                    sums: sums[from..to].into(),
                });
                from = to;
            }
            done = end;
        }
        self.change(&records);
        self.check_writable()
    }
}
