//! Operations on the data of files: read, write, truncate, punch, preallocate, zero and seek.

use crate::core::{Core, MAX_PIECE, sum, takes};
use crate::error::{Error, Result};
use crate::record::Record;
use crate::state::MAX_SIZE;
use zone::ZoneId;

/// Bytes of metadata that a hole or a preallocation may add: one more extent, or one more range.
const HOLE_METADATA: u64 = 32;

impl Core {
    /// Size limit of a file, in bytes.
    pub fn most_bytes(&self) -> u64 {
        if self.log.shape().is_whole {
            u64::from(self.space.most_together()) * self.block as u64
        } else {
            MAX_SIZE
        }
    }

    fn check_size(&self, size: Option<u64>) -> Result<u64> {
        let most = self.most_bytes();
        size.filter(|size| *size <= most)
            .ok_or(Error::TooLarge { most })
    }

    /// Fills `buffer` from `offset`; returns the bytes read, fewer only at the end of the file.
    pub fn read(&self, ino: u64, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let map = self.map(ino)?;
        let size = self.inode(ino)?.attributes.size;
        let end = size.min(offset.saturating_add(buffer.len() as u64));
        let total = end.saturating_sub(offset) as usize;
        let width = self.block as u64;
        let mut done = 0;
        while done < total {
            let at = offset + done as u64;
            let (block, skip) = (at / width, (at % width) as usize);
            if let Some(bytes) = self.dirty.get(ino, block) {
                let take = (self.block - skip).min(total - done);
                buffer[done..done + take].copy_from_slice(&bytes[skip..skip + take]);
                done += take;
                continue;
            }
            // Stops at the next block that the buffer has a newer version of.
            let last = (end - 1) / width + 1;
            let last = self
                .dirty
                .next(ino, block)
                .map_or(last, |next| next.min(last));
            let Some((start, extent)) = map.find(block) else {
                let next = map.next_data(block).map_or(last, |next| next.min(last));
                let take = ((next * width).min(end) - at) as usize;
                buffer[done..done + take].fill(0);
                done += take;
                continue;
            };
            let most = (MAX_PIECE / self.block) as u64;
            let to = last.min(start + extent.blocks()).min(block + most);
            let (first, count) = ((block - start) as usize, (to - block) as usize);
            let place = extent.offset + first as u32;
            let take = ((to * width).min(end) - at) as usize;
            let target = &mut buffer[done..done + take];
            if skip == 0 && take == count * self.block {
                // Whole blocks are read directly into the caller's buffer.
                self.read_raw(extent.zone, place, target)?;
                self.verify(ino, block, extent.zone, target, &extent.sums[first..])?;
            } else {
                let mut whole = vec![0; count * self.block];
                self.read_raw(extent.zone, place, &mut whole)?;
                self.verify(ino, block, extent.zone, &whole, &extent.sums[first..])?;
                target.copy_from_slice(&whole[skip..skip + take]);
            }
            done += take;
        }
        Ok(total)
    }

    fn verify(&self, inode: u64, first: u64, zone: u32, data: &[u8], sums: &[u32]) -> Result<()> {
        for ((block, bytes), expected) in (first..).zip(data.chunks(self.block)).zip(sums) {
            if sum(bytes) != *expected {
                let zone = ZoneId(zone);
                return Err(Error::DamagedData { inode, block, zone });
            }
        }
        Ok(())
    }

    /// Writes all of `data` at `offset`. After an error, a part of it may have been written.
    pub fn write(&mut self, ino: u64, offset: u64, data: &[u8]) -> Result<()> {
        self.begin_change()?;
        self.map(ino)?;
        if data.is_empty() {
            return Ok(());
        }
        self.check_size(offset.checked_add(data.len() as u64))?;
        if offset > self.inode(ino)?.attributes.size {
            self.zero_tail(ino)?;
        }
        // With small zones, pieces are a quarter of a zone, so that they have room while others are cleaned.
        let zone = self.space.most_together() as usize;
        let piece = MAX_PIECE.min(zone.div_ceil(4) * self.block);
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            // All pieces but the last end at block boundaries.
            let skip = (at % self.block as u64) as usize;
            let take = (piece - skip).min(data.len() - done);
            self.write_piece(ino, at, &data[done..done + take])?;
            done += take;
        }
        self.counts.user_bytes += data.len() as u64;
        Ok(())
    }

    fn write_piece(&mut self, ino: u64, offset: u64, data: &[u8]) -> Result<()> {
        let width = self.block as u64;
        let end = offset + data.len() as u64;
        let (first, last) = (offset / width, (end - 1) / width + 1);
        let size = self.inode(ino)?.attributes.size;
        self.buffer_blocks(ino, first, last, |this, block| {
            let (start, stop) = (block * width, (block + 1) * width);
            // A block whose existing bytes are all overwritten need not be read.
            if start >= offset && stop.min(size) <= end {
                return Ok(vec![0; this.block].into());
            }
            this.load(ino, block)
        })?;
        for block in first..last {
            let start = block * width;
            let (from, to) = (offset.max(start), end.min(start + width));
            let target = self.dirty.get_mut(ino, block).ok_or(Error::NotFound)?;
            let part = &data[(from - offset) as usize..(to - offset) as usize];
            target[(from - start) as usize..(to - start) as usize].copy_from_slice(part);
        }
        let mut attributes = self.inode(ino)?.attributes;
        attributes.size = attributes.size.max(end);
        attributes.mtime = self.now();
        attributes.ctime = attributes.mtime;
        self.change(&[Record::Inode(attributes)]);
        self.bound_buffer()
    }

    /// Puts those of the blocks into the buffer that are not there; `load` returns the contents of one.
    fn buffer_blocks(
        &mut self,
        ino: u64,
        first: u64,
        last: u64,
        load: impl Fn(&Self, u64) -> Result<Box<[u8]>>,
    ) -> Result<()> {
        let missing = |this: &Self| -> Vec<u64> {
            let is_missing = |block: &u64| this.dirty.get(ino, *block).is_none();
            (first..last).filter(is_missing).collect()
        };
        // If it could not be written out before, it does not grow.
        self.bound_buffer()?;
        let mut blocks = missing(self);
        if blocks.is_empty() {
            return Ok(());
        }
        let demand = self.demand(ino, &blocks)?;
        self.make_room(ino, demand)?;
        // Making room may have written the buffer out, so the missing blocks are determined again.
        blocks = missing(self);
        let demand = self.demand(ino, &blocks)?;
        if !self.has_room(ino, demand) {
            self.make_room(ino, demand)?;
            blocks = missing(self);
        }
        // Loads all blocks before any is put: what is in the buffer gets written, and the caller fills in its bytes
        // only after this.
        let map = self.map(ino)?;
        let loaded = blocks
            .into_iter()
            .map(|block| Ok((block, load(self, block)?, takes(map, block))));
        let loaded: Vec<_> = loaded.collect::<Result<_>>()?;
        for (block, bytes, takes) in loaded {
            self.dirty.put(ino, block, bytes, takes);
        }
        Ok(())
    }

    /// Writes out the largest files of the buffer until it is within its limit.
    fn bound_buffer(&mut self) -> Result<()> {
        let most = self.options.buffer_bytes / self.block as u64;
        while self.dirty.blocks() > most {
            let Some(largest) = self.dirty.largest() else {
                break;
            };
            self.write_out(largest)?;
        }
        self.dirty.keep(most);
        Ok(())
    }

    /// Zeros the bytes after the end of a file in its last block, before the file grows.
    fn zero_tail(&mut self, ino: u64) -> Result<()> {
        let size = self.inode(ino)?.attributes.size;
        let (block, skip) = (
            size / self.block as u64,
            (size % self.block as u64) as usize,
        );
        let is_there = self.dirty.get(ino, block).is_some() || self.map(ino)?.has(block);
        if skip == 0 || !is_there {
            return Ok(());
        }
        let old = self.load(ino, block)?;
        if codec::is_zero(&old[skip..]) {
            return Ok(());
        }
        self.buffer_blocks(ino, block, block + 1, |this, block| this.load(ino, block))?;
        let bytes = self.dirty.get_mut(ino, block).ok_or(Error::NotFound)?;
        bytes[skip..].fill(0);
        Ok(())
    }

    /// Sets the size of a file, in bytes; new bytes are a hole.
    pub fn truncate(&mut self, ino: u64, size: u64) -> Result<()> {
        self.begin_removal()?;
        self.map(ino)?;
        self.check_size(Some(size))?;
        let old = self.inode(ino)?.attributes.size;
        if size > old {
            self.zero_tail(ino)?;
        }
        let mut attributes = self.inode(ino)?.attributes;
        attributes.size = size;
        attributes.mtime = self.now();
        attributes.ctime = attributes.mtime;
        let mut records = vec![Record::Inode(attributes)];
        // Preallocated blocks after the end are freed too, as on ext4.
        if size <= old {
            let (from, to) = (size.div_ceil(self.block as u64), u64::MAX);
            self.dirty.cut(ino, from, to);
            records.push(Record::Hole { ino, from, to });
        }
        self.change(&records);
        Ok(())
    }

    /// Makes a range of a file zeros and frees its whole blocks; the size does not change.
    pub fn punch(&mut self, ino: u64, offset: u64, length: u64) -> Result<()> {
        self.begin_removal()?;
        self.cut_out(ino, offset, length)
    }

    fn cut_out(&mut self, ino: u64, offset: u64, length: u64) -> Result<()> {
        self.map(ino)?;
        let end = offset.checked_add(length).filter(|_| length > 0);
        let end = end.ok_or(Error::Invalid("no range of bytes"))?;
        let end = end.min(self.inode(ino)?.attributes.size);
        if end <= offset {
            return Ok(());
        }
        let width = self.block as u64;
        let (from, to) = (offset.div_ceil(width), end / width);
        // Contents of the blocks at both ends, of which a part stays.
        let zeros = vec![0; self.block];
        let part = |this: &mut Self, from: u64, to: u64| {
            let block = from / width;
            let is_there = this.dirty.get(ino, block).is_some() || this.map(ino)?.has(block);
            if from < to && is_there {
                this.write_piece(ino, from, &zeros[..(to - from) as usize])?;
            }
            Ok::<_, Error>(())
        };
        if from > to {
            part(self, offset, end)?;
        } else {
            part(self, offset, (from * width).min(end))?;
            part(self, (to * width).max(offset), end)?;
        }
        if self.map(ino)?.is_split_by(from, to) {
            self.check_metadata(HOLE_METADATA)?;
        }
        let mut attributes = self.inode(ino)?.attributes;
        attributes.mtime = self.now();
        attributes.ctime = attributes.mtime;
        let mut records = vec![Record::Inode(attributes)];
        if from < to {
            self.dirty.cut(ino, from, to);
            records.push(Record::Hole { ino, from, to });
        }
        self.change(&records);
        Ok(())
    }

    /// Preallocates space for the holes in a range of a file: writes to it find room from then on. The file grows to
    /// the end of the range unless `keep_size`.
    pub fn preallocate(
        &mut self,
        ino: u64,
        offset: u64,
        length: u64,
        keep_size: bool,
    ) -> Result<()> {
        self.begin_change()?;
        self.fill_in(ino, offset, length, keep_size)
    }

    fn fill_in(&mut self, ino: u64, offset: u64, length: u64, keep_size: bool) -> Result<()> {
        self.map(ino)?;
        if self.log.shape().is_whole {
            // Each change writes the whole file to another place, and space for that cannot be reserved for good.
            return Err(Error::Unsupported);
        }
        let end = offset.checked_add(length).filter(|_| length > 0);
        let end = end.ok_or(Error::Invalid("no range of bytes"))?;
        self.check_size(Some(end))?;
        let old = self.inode(ino)?.attributes.size;
        if end > old && !keep_size {
            self.zero_tail(ino)?;
        }
        // Blocks in the buffer have space already; once written out, they are no holes.
        self.write_out(ino)?;
        let width = self.block as u64;
        let (from, to) = (offset / width, end.div_ceil(width));
        let holes = self.map(ino)?.bare_holes(from, to);
        let blocks: u64 = holes.iter().map(|(from, to)| to - from).sum();
        let mut records = Vec::new();
        if blocks > 0 {
            self.set_aside(blocks)?;
            records.push(Record::Preallocate { ino, from, to });
        }
        let mut attributes = self.inode(ino)?.attributes;
        attributes.ctime = self.now();
        if end > old && !keep_size {
            attributes.size = end;
            attributes.mtime = attributes.ctime;
        }
        records.push(Record::Inode(attributes));
        self.change(&records);
        self.check_writable()
    }

    /// Makes a range of a file zeros that are preallocated. If there is no room, nothing changes.
    pub fn zero(&mut self, ino: u64, offset: u64, length: u64, keep_size: bool) -> Result<()> {
        // No commit may fail between the two parts.
        self.begin_change()?;
        let end = offset.checked_add(length).filter(|_| length > 0);
        if let Some(end) = end.filter(|_| !self.log.shape().is_whole) {
            self.check_size(Some(end))?;
            self.write_out(ino)?;
            let width = self.block as u64;
            let within = offset.div_ceil(width)..end.min(self.inode(ino)?.attributes.size) / width;
            self.check_zeros(ino, offset / width..end.div_ceil(width), within)?;
            self.cut_out(ino, offset, length)?;
        }
        self.fill_in(ino, offset, length, keep_size)
    }

    /// The next byte at or after `offset` that is data, or with `hole` in a hole. The end of the file counts as a
    /// hole.
    pub fn seek(&self, ino: u64, offset: u64, hole: bool) -> Result<Option<u64>> {
        let map = self.map(ino)?;
        let size = self.inode(ino)?.attributes.size;
        if offset >= size {
            return Ok(None);
        }
        let width = self.block as u64;
        let mut block = offset / width;
        if !hole {
            let next = [map.next_data(block), self.dirty.next(ino, block)];
            let next = next.into_iter().flatten().min();
            let next = next.map(|block| (block * width).max(offset));
            return Ok(next.filter(|next| *next < size));
        }
        loop {
            block = match map.find(block) {
                Some((start, extent)) => start + extent.blocks(),
                None if self.dirty.get(ino, block).is_some() => block + 1,
                None => break,
            };
        }
        Ok(Some((block * width).max(offset).min(size)))
    }
}
