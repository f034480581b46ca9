//! One zone as an extent allocator.
//!
//! A put is one write: data, padding, metadata. So it costs the drive one command, and a power cut leaves
//! either the whole of it or, in a zone with a write pointer, a part without metadata, which is no extent.

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

/// What an instance is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Pointers in each extent's metadata to that of the ones before it. More of them make reading all metadata
    /// faster, and no put slower as long as they fit into its block, which they have to.
    pub back_pointers: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { back_pointers: 16 }
    }
}

/// One zone as an extent allocator. Memory: two copies of the largest extent that is under way.
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
    /// Metadata of the last extents, the newest first; as many as there are back pointers.
    recent: VecDeque<u32>,
    /// The next extent's number.
    number: u64,
    last: Option<Metadata>,
    /// A write failed, so the drive has to say where the write pointer is.
    is_uncertain: bool,
}

impl Instance {
    /// Makes an empty zone an instance: writes its labels. Nothing is flushed.
    ///
    /// # Errors
    /// The zone is conventional, too small or not empty; or the drive.
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
        let most = most_back_pointers(g.block_size);
        if !(1..=most).contains(&options.back_pointers) {
            let found = options.back_pointers;
            return Err(Error::BackPointers { found, most });
        }
        // The labels, one block of data and its metadata.
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

    /// Finds the instance that is in a zone. Reads its labels, and metadata of one extent where no put was
    /// cut short; `sequence` is told of the last extent.
    ///
    /// # Errors
    /// There is none, or one of another version or shape; both labels are damaged; or the drive.
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

    /// The zone.
    pub const fn zone(&self) -> ZoneId {
        self.reader.zone
    }

    /// What it was made with.
    pub const fn options(&self) -> Options {
        Options {
            back_pointers: self.reader.label.back_pointers,
        }
    }

    /// The zone's identity in this life of it, as hexadecimal digits.
    pub fn run_id(&self) -> String {
        let id = self.reader.label.run_id.iter();
        id.map(|byte| format!("{byte:02x}")).collect()
    }

    /// The drive.
    pub fn device(&self) -> &Arc<dyn ZonedDevice> {
        &self.reader.device
    }

    /// Appends an extent and its metadata, and answers where it lies once both are written. They are durable
    /// behind the next flush of the drive, and after a power cut the extent is there whole or not at all.
    ///
    /// # Errors
    /// There is no room for it; or the drive, and then the extent may be there all the same.
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
        // No more blocks than a zone has, which are fewer than 2^32.
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
        // Until the answer is known, so that no panic of the drive leaves it out.
        state.is_uncertain = true;
        let at = self.reader.place(state.next);
        self.reader.device.write(at, &bytes)?;
        let placed = self.reader.placed(&metadata);
        state.is_uncertain = false;
        state.append(metadata, self.reader.label.back_pointers);
        Ok(placed)
    }

    /// Reads an extent as it was put: `lba` and `length` are those of one that was. One read of the drive, which
    /// takes its metadata along.
    ///
    /// # Errors
    /// No such extent was put; its bytes are not what they were; or the drive.
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

    /// An extent's blocks, and what its metadata says; the data is not verified yet.
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
        // Both are less than the zone's blocks.
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

    /// Asks the drive where the write pointer is, after a write that failed, and what came to lie there.
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

    /// Bytes of the largest extent that still fits; 0 where none does.
    pub fn room(&self) -> u64 {
        self.room_in(&self.state.lock())
    }

    fn room_in(&self, state: &State) -> u64 {
        room(self.reader.geometry(), state.next)
    }

    /// Bytes of the zone that are written: labels, extents, and what puts that were cut short left.
    pub fn written(&self) -> u64 {
        u64::from(self.state.lock().next) * self.reader.block_size() as u64
    }

    /// Bytes of the largest extent that an empty zone takes.
    pub fn largest(g: &Geometry) -> u64 {
        room(g, COPIES)
    }

    /// The last whole extent.
    pub fn last(&self) -> Option<Placed> {
        let state = self.state.lock();
        state.last.as_ref().map(|last| self.reader.placed(last))
    }

    /// All extents that were put, the newest first, by back pointers.
    pub fn backward(&self) -> Backward {
        Backward::new(self.reader.clone(), self.state.lock().last.clone())
    }

    /// All extents that were put, the oldest first, by reading the whole zone. Finds also what damage hides from
    /// [`Self::backward`].
    pub fn forward(&self) -> Forward {
        Forward::new(self.reader.clone(), self.state.lock().next)
    }

    /// Makes everything that was put durable, in all zones of the drive.
    pub fn flush(&self) -> Result<()> {
        Ok(self.reader.device.flush()?)
    }

    /// Nothing more is put here: gives the drive its open and active resource back.
    pub fn finish(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.reader.device.finish(self.zone())?;
        state.next =
            (self.reader.geometry().zone_capacity / self.reader.block_size() as u64) as u32;
        Ok(())
    }

    /// Makes the zone empty. All extents are gone, and so is the instance.
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

/// Bytes in front of the zone's end, less a block for the metadata.
fn room(g: &Geometry, next: u32) -> u64 {
    let block = u64::from(g.block_size);
    (g.zone_capacity / block)
        .saturating_sub(u64::from(next) + 1)
        .saturating_mul(block)
}
