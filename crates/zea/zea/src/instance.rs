//! One zone as an extent allocator.
//!
//! A put is one write of data, padding and metadata. It costs the drive one command, and a power cut leaves
//! either all of it or, in a zone with a write pointer, a part without metadata, which is not an extent.

use crate::backward::Backward;
use crate::error::{Error, Result};
use crate::format::data_checksum;
use crate::format::label::{COPIES, Label};
use crate::format::metadata::{Decoded, Metadata, most_back_pointers};
use crate::forward::Forward;
use crate::placed::{LogicalAddress, Placed};
use crate::reading::{ZoneReader, report, written_blocks};
use crate::sequence::Sequence;
use crate::tail;
use device::ZonedDevice;
use runtime::Runtime;
use runtime::sync::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use zone::{ByteOffset, Geometry, ZoneId};

/// The options that an instance is formatted with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Pointers in each extent's metadata to the metadata of the extents before. A larger number makes reading
    /// all metadata faster and puts no slower. All of them have to fit into the metadata's block.
    pub back_pointers: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { back_pointers: 16 }
    }
}

impl Options {
    /// Checks that instances can be formatted with these options on drives of this block size.
    ///
    /// # Errors
    /// [`Error::BackPointers`].
    pub const fn check(self, block_size: u32) -> Result<()> {
        let (found, most) = (self.back_pointers, most_back_pointers(block_size));
        match found >= 1 && found <= most {
            true => Ok(()),
            false => Err(Error::BackPointers { found, most }),
        }
    }
}

/// One zone as an extent allocator. Memory: two copies of the largest extent in flight.
#[derive(Debug)]
pub struct Instance {
    reader: ZoneReader,
    sequence: Sequence,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The next block to write.
    next: u32,
    /// Metadata blocks of the last extents, the newest first; as many as there are back pointers.
    recent: VecDeque<u32>,
    /// Number of the next extent.
    number: u64,
    last: Option<Metadata>,
    /// Whether a write has failed, so that the drive has to report the write pointer.
    is_uncertain: bool,
}

impl Instance {
    /// Formats an empty zone as an instance by writing its labels. Does not flush.
    ///
    /// # Errors
    /// The zone is conventional, too small or not empty; or the drive's error.
    pub fn format(
        device: Arc<dyn ZonedDevice>,
        zone: ZoneId,
        options: Options,
        sequence: Sequence,
        runtime: &Runtime,
    ) -> Result<Self> {
        let found = report(&*device, zone)?;
        let g = device.geometry().clone();
        if !found.write_pointer_valid() || found.write_pointer > 0 {
            return Err(Error::NotEmpty { zone });
        }
        options.check(g.block_size)?;
        // Two labels, one block of data and its metadata.
        if g.zone_capacity / u64::from(g.block_size) < u64::from(COPIES) + 2 {
            return Err(Error::Unsuitable {
                what: "zone capacity in bytes",
                found: g.zone_capacity,
                needed: "four blocks a zone at least",
            });
        }
        let run_id = runtime.bytes().map_err(|source| zone::ZoneError::Io {
            command: zone::ZoneCommand::Write,
            at: g.start(zone),
            source: Arc::new(source),
        })?;
        let label = Label {
            run_id,
            zone: zone.0,
            back_pointers: options.back_pointers,
            block_size: g.block_size,
            zone_capacity: g.zone_capacity,
        };
        device.write(g.start(zone), &label.encode().repeat(COPIES as usize))?;
        Ok(Self {
            reader: ZoneReader {
                device,
                zone,
                label,
            },
            sequence,
            state: Mutex::new(State {
                next: COPIES,
                recent: VecDeque::new(),
                number: 0,
                last: None,
                is_uncertain: false,
            }),
        })
    }

    /// Opens the instance in a zone. Reads its labels, and the metadata of one extent if no put was incomplete;
    /// raises `sequence` above the last extent.
    ///
    /// # Errors
    /// There is no instance, or one of another version or shape; both labels are damaged; or the drive's error.
    pub fn open(device: Arc<dyn ZonedDevice>, zone: ZoneId, sequence: Sequence) -> Result<Self> {
        let (reader, found) = ZoneReader::find(device, zone)?;
        let next = written_blocks(reader.geometry(), &found);
        let last = tail::last(&reader, next)?;
        let mut recent = VecDeque::new();
        if let Some(last) = &last {
            recent.push_back(last.block);
            recent.extend(&last.back);
            sequence.seen(last.order);
        }
        recent.truncate(reader.label.back_pointers as usize);
        Ok(Self {
            reader,
            sequence,
            state: Mutex::new(State {
                next,
                recent,
                number: last.as_ref().map_or(0, |last| last.number + 1),
                last,
                is_uncertain: false,
            }),
        })
    }

    /// The zone of the instance.
    pub const fn zone(&self) -> ZoneId {
        self.reader.zone
    }

    /// The options that it was formatted with.
    pub const fn options(&self) -> Options {
        Options {
            back_pointers: self.reader.label.back_pointers,
        }
    }

    /// The label's run id, as hexadecimal digits.
    pub fn run_id(&self) -> String {
        let id = self.reader.label.run_id.iter();
        id.map(|byte| format!("{byte:02x}")).collect()
    }

    /// The drive.
    pub fn device(&self) -> &Arc<dyn ZonedDevice> {
        &self.reader.device
    }

    /// Appends an extent and its metadata, and returns its address once both are written. They are durable
    /// after the next flush of the drive; after a power cut the extent is there either completely or not at
    /// all.
    ///
    /// # Errors
    /// The extent does not fit; or the drive's error, after which the extent may be there nevertheless.
    pub fn put(&self, address: LogicalAddress, data: &[u8]) -> Result<Placed> {
        let mut state = self.state.lock();
        if state.is_uncertain {
            self.settle(&mut state)?;
        }
        let room = self.room_in(&state);
        let length = data.len() as u64;
        if length == 0 {
            return Err(Error::EmptyExtent);
        }
        if length > room {
            let zone = self.zone();
            return Err(Error::NoRoom { zone, length, room });
        }
        let block_size = self.reader.block_size();
        // A zone has fewer than 2^32 blocks.
        let blocks = data.len().div_ceil(block_size) as u32;
        let metadata = Metadata {
            run_id: self.reader.label.run_id,
            address: address.0,
            length,
            checksum: data_checksum(data),
            order: self.sequence.next(),
            number: state.number,
            start: state.next,
            block: state.next + blocks,
            back: state.recent.iter().copied().collect(),
        };
        let mut bytes = Vec::with_capacity((blocks as usize + 1) * block_size);
        bytes.extend_from_slice(data);
        bytes.resize(blocks as usize * block_size, 0);
        bytes.extend_from_slice(&metadata.encode(block_size as u32));
        // Set until the write has succeeded, so that a panic of the drive leaves it set.
        state.is_uncertain = true;
        let at = self.reader.place(state.next);
        self.reader.device.write(at, &bytes)?;
        let placed = self.reader.placed(&metadata);
        state.is_uncertain = false;
        state.append(metadata, self.reader.label.back_pointers);
        Ok(placed)
    }

    /// Reads an extent as it was put; `lba` and `length` must be those of one. One read of the drive, which
    /// includes the metadata.
    ///
    /// # Errors
    /// There is no such extent; its bytes are damaged; or the drive's error.
    pub fn get(&self, lba: ByteOffset, length: u64) -> Result<Vec<u8>> {
        let (mut bytes, metadata) = self.fetch(lba, length)?;
        bytes.truncate(length as usize);
        let found = data_checksum(&bytes);
        if found != metadata.checksum {
            return Err(Error::Corrupt {
                at: self.reader.address(metadata.start),
                what: "checksum of an extent",
                expected: metadata.checksum,
                found,
            });
        }
        Ok(bytes)
    }

    /// The blocks of an extent, not verified yet, and its metadata.
    fn fetch(&self, lba: ByteOffset, length: u64) -> Result<(Vec<u8>, Metadata)> {
        let none = Error::NotAnExtent { lba, length };
        let block_size = self.reader.block_size() as u64;
        let g = self.reader.geometry();
        let offset = lba.0.checked_sub(g.start(self.zone()).0);
        let is_block = |offset: &u64| offset.is_multiple_of(block_size);
        let Some(offset) = offset.filter(is_block) else {
            return Err(none);
        };
        let (start, blocks) = (offset / block_size, length.div_ceil(block_size));
        let end = start
            .checked_add(blocks)
            .filter(|end| *end < g.zone_capacity / block_size);
        let (Some(end), true) = (end, length > 0) else {
            return Err(none);
        };
        // Both are less than the zone's number of blocks.
        let (start, block) = (start as u32, end as u32);
        let mut bytes = self.reader.read_run(start, block - start + 1)?;
        let last = bytes.split_off((block - start) as usize * block_size as usize);
        match self.reader.decode(&last, block) {
            Decoded::Valid(metadata) if (metadata.start, metadata.length) == (start, length) => {
                Ok((bytes, metadata))
            }
            damaged @ Decoded::Damaged(..) => Err(self.reader.corrupt(block, &damaged)),
            Decoded::Valid(_) | Decoded::Nothing => Err(none),
        }
    }

    /// After a failed write: reads the write pointer from the drive, and the last extent below it.
    fn settle(&self, state: &mut State) -> Result<()> {
        let found = report(&*self.reader.device, self.zone())?;
        let next = written_blocks(self.reader.geometry(), &found);
        let last = tail::last(&self.reader, next)?;
        if let Some(last) = last.filter(|last| last.number == state.number) {
            state.append(last, self.reader.label.back_pointers);
        }
        state.next = next;
        state.is_uncertain = false;
        Ok(())
    }

    /// Bytes of the largest extent that still fits; 0 if none does.
    pub fn room(&self) -> u64 {
        self.room_in(&self.state.lock())
    }

    fn room_in(&self, state: &State) -> u64 {
        room(self.reader.geometry(), state.next)
    }

    /// Bytes written to the zone: labels, extents, and the remains of incomplete puts.
    pub fn written(&self) -> u64 {
        u64::from(self.state.lock().next) * self.reader.block_size() as u64
    }

    /// Bytes of the largest extent that fits into an empty zone.
    pub fn largest(g: &Geometry) -> u64 {
        room(g, COPIES)
    }

    /// The last complete extent.
    pub fn last(&self) -> Option<Placed> {
        let state = self.state.lock();
        state.last.as_ref().map(|last| self.reader.placed(last))
    }

    /// All extents, the newest first, by back pointers.
    pub fn backward(&self) -> Backward {
        Backward::new(self.reader.clone(), self.state.lock().last.clone())
    }

    /// All extents, the oldest first, by reading the whole zone. Also finds extents that damage hides from
    /// [`Self::backward`].
    pub fn forward(&self) -> Forward {
        Forward::new(self.reader.clone(), self.state.lock().next)
    }

    /// Makes all puts durable, in all zones of the drive.
    pub fn flush(&self) -> Result<()> {
        Ok(self.reader.device.flush()?)
    }

    /// Finishes the zone, which frees the drive's open and active resource. No further extent can be put.
    pub fn finish(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.reader.device.finish(self.zone())?;
        state.next =
            (self.reader.geometry().zone_capacity / self.reader.block_size() as u64) as u32;
        Ok(())
    }

    /// Resets the zone: the instance and all its extents are gone.
    pub fn reset(self) -> Result<()> {
        Ok(self.reader.device.reset(self.zone())?)
    }
}

impl State {
    fn append(&mut self, metadata: Metadata, back_pointers: u32) {
        self.next = metadata.block + 1;
        self.recent.push_front(metadata.block);
        self.recent.truncate(back_pointers as usize);
        self.number = metadata.number + 1;
        self.last = Some(metadata);
    }
}

/// Bytes from block `next` to the zone's end, less one block for metadata.
fn room(g: &Geometry, next: u32) -> u64 {
    let block = u64::from(g.block_size);
    (g.zone_capacity / block)
        .saturating_sub(u64::from(next) + 1)
        .saturating_mul(block)
}
