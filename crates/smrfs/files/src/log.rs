//! The metadata log. One of two slots is current: it has a head, a checkpoint of all metadata, and a journal of later
//! changes. When it is full, a checkpoint goes to the other slot, which is current from then on. A slot is written
//! once from start to end, so that it can lie in sequential zones as well as in conventional ones.
//!
//! If both slots have a whole checkpoint, the one with the higher generation is current. The other one then ends in a
//! record that names this generation; if it names a generation that cannot be read, that is damage.

use crate::error::{Error, Result};
use crate::frame::{self, HEADER, Header, Kind, MAX_PAYLOAD, NoFrame, Parsed};
use crate::layout::{Layout, Shape, Slot};
use crate::record::Record;
use codec::Reader;
use device::ZonedDevice;
use std::sync::Arc;
use zone::{ZoneError, ZoneResult};

/// Bytes after the end of the journal that are searched for frames which prove that the end is damage.
const LOOK_BEHIND: u64 = 4 << 20;
/// Bytes at the end of a slot that are reserved for the record that ends it.
const END_ROOM: u64 = 64 << 10;
/// Bytes of one read.
const WINDOW: u64 = 4 << 20;

/// The metadata log of a mounted file system, open for appending.
pub struct Log {
    device: Arc<dyn ZonedDevice>,
    layout: Layout,
    shape: Shape,
    /// Bytes that frames are aligned to.
    unit: usize,
    nonce: u64,
    end: End,
    /// The highest generation in any head.
    highest: u64,
    /// Bytes of each slot that are used: those before the first place behind its end that could not be read.
    rooms: [u64; 2],
}

/// The end of a slot's valid frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct End {
    slot: usize,
    /// Version of the format.
    version: u16,
    generation: u64,
    /// Offset in the slot of the next frame.
    position: u64,
    /// Sequence number of the next frame.
    sequence: u64,
    /// Hash of the last frame.
    previous: u64,
    /// Frames below this sequence number are flushed.
    durable: u64,
}

/// The result of reading the log.
pub struct Found {
    /// The log, open for appending.
    pub log: Log,
    /// Whether the current slot does not end cleanly: a checkpoint has to come before any append.
    pub is_torn: bool,
    /// Why the other slot, or the end of the current one, cannot be read, if so. What is there is unknown, so neither
    /// should be overwritten.
    pub unreadable: Option<String>,
}

/// The result of scanning one slot.
struct Scanned {
    shape: Shape,
    end: End,
    is_complete: bool,
    /// The generation in the record that ends this slot, if it has one.
    moved: Option<u64>,
    /// Whether there are frames after the last commit, which do not count.
    has_rest: bool,
    /// Why the frame at the end cannot be read, if there may be one.
    unread: Option<ZoneError>,
    /// Bytes of the slot before the first place behind its end that cannot be read.
    room: u64,
}

/// Reads the frames of a slot, a window at a time. Where a window cannot be read, reads only what is asked for: the rest
/// of it may lie behind the end, where nothing counts.
struct Frames<'a> {
    device: &'a dyn ZonedDevice,
    slot: &'a Slot,
    unit: u64,
    window: Vec<u8>,
    start: u64,
    /// End of the last window that could not be read.
    rough: u64,
}

impl Frames<'_> {
    /// `length` bytes of the slot from `at`; `None` if they reach beyond its end.
    fn bytes(&mut self, at: u64, length: u64) -> ZoneResult<Option<&[u8]>> {
        let end = at + length;
        if end > self.slot.size() {
            return Ok(None);
        }
        if at < self.start || end > self.start + self.window.len() as u64 {
            let wide = end.max(at + WINDOW);
            if at >= self.rough && self.fill(at, wide).is_err() {
                self.rough = wide;
            }
            if at < self.rough {
                self.fill(at, end)?;
            }
        }
        let from = (at - self.start) as usize;
        Ok(self.window.get(from..from + length as usize))
    }

    /// Reads the units of `at..end` into the window.
    fn fill(&mut self, at: u64, end: u64) -> ZoneResult<()> {
        let from = at / self.unit * self.unit;
        let to = end.next_multiple_of(self.unit).min(self.slot.size());
        self.window.resize((to - from) as usize, 0);
        self.start = from;
        for piece in self.slot.pieces(from..to) {
            let part = (piece.bytes.start - from) as usize..(piece.bytes.end - from) as usize;
            if let Err(error) = self.device.read(piece.at, &mut self.window[part]) {
                self.window.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// The frame at `at` with its payload, if it is valid.
    fn frame(&mut self, at: u64) -> ZoneResult<std::result::Result<(Parsed, &[u8]), NoFrame>> {
        let Some(bytes) = self.bytes(at, HEADER as u64)? else {
            return Ok(Err(NoFrame::Nothing));
        };
        let parsed = match frame::parse(bytes) {
            Ok(parsed) => parsed,
            Err(none) => return Ok(Err(none)),
        };
        let whole = (HEADER + parsed.length) as u64;
        let Some(bytes) = self.bytes(at, whole)? else {
            return Ok(Err(NoFrame::Damaged));
        };
        if !frame::is_whole(&parsed, bytes) {
            return Ok(Err(NoFrame::Damaged));
        }
        if parsed.header.version > frame::VERSION {
            return Ok(Err(NoFrame::Version(parsed.header.version)));
        }
        Ok(Ok((parsed, &bytes[HEADER..])))
    }
}

/// Whether a drive has the head of a file system of smrfs, valid or damaged. A head that cannot be read is an error only
/// if the other one says nothing.
pub fn is_there(device: &dyn ZonedDevice, layout: &Layout) -> Result<bool> {
    let mut unread = None;
    for slot in &layout.slots {
        match frames(device, slot).frame(0) {
            Ok(Ok((parsed, _))) if parsed.header.kind == Kind::Head => return Ok(true),
            Ok(Err(NoFrame::Version(_) | NoFrame::Damaged)) => return Ok(true),
            Ok(Ok(_) | Err(NoFrame::Nothing)) => {}
            Err(error) => unread = Some(error),
        }
    }
    unread.map_or(Ok(false), |error| Err(error.into()))
}

/// Most bytes of a checkpoint in a slot.
pub fn checkpoint_room(layout: &Layout) -> u64 {
    layout.slots[0].size().saturating_sub(2 * END_ROOM) / 16 * 15
}

fn frames<'a>(device: &'a dyn ZonedDevice, slot: &'a Slot) -> Frames<'a> {
    Frames {
        device,
        slot,
        unit: u64::from(device.geometry().block_size.max(512)),
        window: Vec::new(),
        start: 0,
        rough: 0,
    }
}

impl Log {
    /// A log that is not written yet. The first write to it has to be a checkpoint.
    pub fn new(
        device: Arc<dyn ZonedDevice>,
        layout: Layout,
        shape: Shape,
        nonce: u64,
        generation: u64,
    ) -> Self {
        let unit = device.geometry().block_size.max(512) as usize;
        Self {
            rooms: layout.slots.each_ref().map(Slot::size),
            device,
            layout,
            shape,
            unit,
            nonce,
            end: End {
                slot: 1,
                version: 1,
                generation,
                position: 0,
                sequence: 0,
                previous: 0,
                durable: 0,
            },
            highest: generation,
        }
    }

    /// The parameters that the file system was made with.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Format version of the current slot. Records of newer versions have to wait for a checkpoint.
    pub const fn version(&self) -> u16 {
        self.end.version
    }

    /// The layout of the drive.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The highest generation in any head that can be read; 0 without one.
    pub fn highest(device: &dyn ZonedDevice, layout: &Layout) -> u64 {
        let mut highest = 0;
        for slot in &layout.slots {
            if let Ok(Ok((parsed, _))) = frames(device, slot).frame(0) {
                highest = highest.max(parsed.header.generation);
            }
        }
        highest
    }

    /// Finds the current slot and applies its records, group by group, to the state that `start` returns. `start` is
    /// called again if a slot turns out to be damaged.
    ///
    /// # Errors
    /// [`Error::Drive`]: neither slot can be read. [`Error::NotFormatted`], [`Error::Version`],
    /// [`Error::DamagedMetadata`]: what was read.
    pub fn read<S>(
        device: Arc<dyn ZonedDevice>,
        layout: Layout,
        nonce: u64,
        start: impl Fn(&Shape) -> S,
        apply: impl Fn(&mut S, &Record) -> std::result::Result<(), &'static str>,
    ) -> Result<(Found, S)> {
        let mut heads = [None, None];
        let (mut seen, mut unreadable) = (None, None);
        let mut failed = [None, None];
        for (index, slot) in layout.slots.iter().enumerate() {
            let mut frames = frames(&*device, slot);
            let head = match frames.frame(0) {
                Ok(head) => head,
                Err(error) => {
                    let what = format!("copy {index} cannot be read: {error}");
                    seen.get_or_insert(Error::metadata(what.clone()));
                    unreadable = Some(what);
                    failed[index] = Some(error);
                    continue;
                }
            };
            match head {
                Ok((parsed, _)) if parsed.header.kind == Kind::Head => {
                    heads[index] = Some(parsed.header.generation);
                }
                Err(NoFrame::Version(found)) => {
                    seen = Some(Error::Version {
                        what: "metadata's format",
                        found: found.into(),
                        known: frame::VERSION.into(),
                    });
                }
                Ok(_) | Err(NoFrame::Damaged) => {
                    let what = format!("the head of copy {index} cannot be read");
                    seen.get_or_insert(Error::metadata(what));
                }
                Err(NoFrame::Nothing) => {}
            }
            if heads[index].is_none() && frames.rough > 0 {
                unreadable = Some(format!("copy {index} cannot be read"));
            }
        }
        if let Some(error @ Error::Version { .. }) = seen {
            return Err(error);
        }
        let highest = heads.into_iter().flatten().max();
        let Some(highest) = highest else {
            return Err(match failed {
                [Some(error), Some(_)] => error.into(),
                _ => seen.unwrap_or(Error::NotFormatted),
            });
        };
        let mut order = [0, 1];
        order.sort_by_key(|index| std::cmp::Reverse(heads[*index]));
        let mut chosen = None;
        let mut moved = None;
        let mut rooms = layout.slots.each_ref().map(Slot::size);
        for index in order {
            if heads[index].is_none() {
                continue;
            }
            if chosen.is_some() {
                // Reads only the record that ends the older slot. A checkpoint that was begun in this slot may have
                // overwritten any part of it.
                let nothing = &mut |_: &Shape, _: &Record| Ok(());
                moved = match scan(&*device, &layout, index, nothing) {
                    Ok(found) => found.and_then(|found| {
                        rooms[index] = found.room;
                        if let Some(error) = found.unread {
                            unreadable = Some(format!("copy {index} cannot be read: {error}"));
                        }
                        found.moved
                    }),
                    Err(Error::DamagedMetadata { .. }) => None,
                    Err(Error::Drive(error)) => {
                        unreadable = Some(format!("copy {index} cannot be read: {error}"));
                        None
                    }
                    Err(error) => return Err(error),
                };
                continue;
            }
            let mut state = None;
            let mut take = |shape: &Shape, record: &Record| {
                let state = state.get_or_insert_with(|| start(shape));
                apply(state, record)
            };
            let scanned = match scan(&*device, &layout, index, &mut take) {
                // An unfinished checkpoint, of which a power cut tore a block; else the other slot names it.
                Err(Error::Drive(error)) => {
                    unreadable = Some(format!("copy {index} cannot be read: {error}"));
                    failed[index] = Some(error);
                    continue;
                }
                scanned => scanned?,
            };
            if let Some(scanned) = scanned {
                rooms[index] = scanned.room;
                if let Some(error) = &scanned.unread {
                    unreadable = Some(format!(
                        "what was committed last may be missing, for the end of copy {index} cannot be read: {error}"
                    ));
                }
                if scanned.is_complete {
                    chosen = state.map(|state| (scanned, state));
                }
            }
        }
        let why = || {
            let why = unreadable.as_ref();
            why.map_or_else(String::new, |why| format!(" ({why})"))
        };
        let Some((scanned, state)) = chosen else {
            return Err(match failed {
                [Some(error), Some(_)] => error.into(),
                _ => Error::metadata(format!(
                    "neither copy has a whole checkpoint{}; only a backup helps",
                    why()
                )),
            });
        };
        let end = scanned.end;
        let later = scanned.moved.into_iter().chain(moved).max();
        if let Some(later) = later.filter(|later| *later > end.generation) {
            return Err(Error::metadata(format!(
                "checkpoint {later} was written and cannot be read{}; {} is older",
                why(),
                end.generation
            )));
        }
        let unit = device.geometry().block_size.max(512) as usize;
        // Until the older slot ends in the record that names this one, damage to this one cannot be told from an
        // unfinished checkpoint.
        let is_named = moved == Some(end.generation);
        let mut is_torn = !is_named;
        if let Some(zone) = layout.slots[end.slot].zones.first() {
            // A sequential zone: bytes after the end of the journal cannot be rewritten.
            let written = written(&*device, &layout.slots[end.slot])?;
            is_torn |= scanned.has_rest || written != end.position;
            tracing::debug!(%zone, written, end.position, "metadata in sequential zones");
        }
        let log = Self {
            device,
            layout,
            shape: scanned.shape,
            unit,
            nonce,
            end,
            highest,
            rooms,
        };
        let found = Found {
            log,
            is_torn,
            unreadable,
        };
        Ok((found, state))
    }

    /// Appends a group of encoded records, which count together or not at all. `false` if the slot has no room.
    pub fn append(&mut self, records: &[Vec<u8>]) -> ZoneResult<bool> {
        let mut end = self.end;
        let bytes = self.group(&mut end, Kind::Journal, records);
        let room = self.rooms[end.slot].saturating_sub(END_ROOM);
        if self.end.position + bytes.len() as u64 > room {
            return Ok(false);
        }
        self.write(self.end.slot, self.end.position, &bytes)?;
        self.end = end;
        Ok(true)
    }

    /// Notes that all appended frames are flushed.
    pub const fn flushed(&mut self) {
        self.end.durable = self.end.sequence;
    }

    /// Writes a checkpoint to the other slot, flushes, and makes that slot current. After an error it is unknown
    /// which slot is current, and nothing more may be written.
    pub fn checkpoint(
        &mut self,
        version: u16,
        each: impl FnOnce(&mut dyn FnMut(&Record) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let old = self.end;
        let slot = 1 - old.slot;
        let generation = self.highest.max(old.generation).checked_add(1);
        let generation = generation.ok_or_else(|| Error::metadata("no generation is left"))?;
        for zone in self.layout.slots[slot].zones.clone() {
            appender::reset_if_written(&*self.device, zone)?;
        }
        let mut end = End {
            slot,
            version,
            generation,
            position: 0,
            sequence: 0,
            previous: 0,
            durable: 0,
        };
        self.highest = generation;
        let head = self.shape.encode(self.device.geometry(), slot as u8);
        let mut bytes = Vec::new();
        self.frame(&mut end, Kind::Head, true, &head, &mut bytes);
        self.write(slot, 0, &bytes)?;
        let mut payload = Vec::new();
        let (this, at) = (&*self, &mut end);
        each(&mut |record| {
            let before = payload.len();
            record.encode(&mut payload);
            if payload.len() > MAX_PAYLOAD {
                let next = payload.split_off(before);
                this.part(at, false, &payload)?;
                payload = next;
            }
            Ok(())
        })?;
        this.part(at, true, &payload)?;
        self.device.flush()?;
        end.durable = end.sequence;
        if old.position > 0 {
            // Ends the old slot with a record of the new generation. If that cannot be written, only the detection of
            // damage suffers.
            let mut record = Vec::new();
            Record::Moved { generation }.encode(&mut record);
            let mut after = old;
            let bytes = self.group(&mut after, Kind::Journal, &[record]);
            if let Err(error) = self.write(old.slot, old.position, &bytes) {
                tracing::warn!(%error, "the old copy of the metadata cannot be ended");
            }
            self.device.flush()?;
        }
        self.end = end;
        Ok(())
    }

    fn part(&self, end: &mut End, is_commit: bool, payload: &[u8]) -> Result<()> {
        let at = end.position;
        let mut bytes = Vec::new();
        self.frame(end, Kind::Checkpoint, is_commit, payload, &mut bytes);
        if end.position + END_ROOM > self.rooms[end.slot] {
            return Err(Error::NoMetadataSpace);
        }
        Ok(self.write(end.slot, at, &bytes)?)
    }

    fn group(&self, end: &mut End, kind: Kind, records: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut payload = Vec::new();
        for record in records {
            if payload.len() + record.len() > MAX_PAYLOAD {
                self.frame(end, kind, false, &payload, &mut bytes);
                payload.clear();
            }
            payload.extend_from_slice(record);
        }
        self.frame(end, kind, true, &payload, &mut bytes);
        bytes
    }

    fn frame(&self, end: &mut End, kind: Kind, is_commit: bool, payload: &[u8], out: &mut Vec<u8>) {
        let header = Header {
            version: end.version,
            kind,
            is_commit,
            generation: end.generation,
            sequence: end.sequence,
            nonce: self.nonce,
            previous: end.previous,
            durable: end.durable,
        };
        end.previous = frame::encode(&header, payload, self.unit, out);
        end.sequence += 1;
        end.position += frame::size(payload.len(), self.unit) as u64;
    }

    fn write(&self, slot: usize, at: u64, bytes: &[u8]) -> ZoneResult<()> {
        for piece in self.layout.slots[slot].pieces(at..at + bytes.len() as u64) {
            let part = (piece.bytes.start - at) as usize..(piece.bytes.end - at) as usize;
            self.device.write(piece.at, &bytes[part])?;
        }
        Ok(())
    }
}

/// Bytes written of a slot in sequential zones.
fn written(device: &dyn ZonedDevice, slot: &Slot) -> Result<u64> {
    let mut written = 0;
    for zone in &slot.zones {
        let report = device.report_zone(*zone)?;
        if !report.write_pointer_valid() {
            // The zone cannot be written any more, so it never matches a position.
            return Ok(u64::MAX);
        }
        written += report.write_pointer;
    }
    Ok(written)
}

/// Reads the valid frames of a slot and passes on the records of each whole group. `None` if there is no head.
fn scan(
    device: &dyn ZonedDevice,
    layout: &Layout,
    index: usize,
    each: &mut dyn FnMut(&Shape, &Record) -> std::result::Result<(), &'static str>,
) -> Result<Option<Scanned>> {
    let slot = &layout.slots[index];
    let mut frames = frames(device, slot);
    let unit = frames.unit as usize;
    let Ok((head, payload)) = frames.frame(0)? else {
        return Ok(None);
    };
    if head.header.kind != Kind::Head || head.header.sequence != 0 {
        return Ok(None);
    }
    let shape = Shape::decode(payload, device.geometry(), index as u8)?;
    let mut at = End {
        slot: index,
        version: head.header.version,
        generation: head.header.generation,
        position: frame::size(head.length, unit) as u64,
        sequence: 1,
        previous: head.hash,
        durable: 0,
    };
    let mut end = at;
    let (mut is_complete, mut moved, mut unread) = (false, None, None);
    let mut group: Vec<Record> = Vec::new();
    loop {
        let found = match frames.frame(at.position) {
            Err(error) if is_complete => {
                // A slot that names its successor has ended.
                unread = moved.is_none().then_some(error);
                break;
            }
            found => found?,
        };
        let Ok((parsed, payload)) = found else { break };
        let header = parsed.header;
        let expected = if is_complete {
            Kind::Journal
        } else {
            Kind::Checkpoint
        };
        if header.generation != at.generation
            || header.sequence != at.sequence
            || header.previous != at.previous
            || header.kind != expected
            || header.version != at.version
        {
            break;
        }
        let place = || format!("copy {index} at byte {}", at.position);
        let mut reader = Reader(payload);
        while !reader.0.is_empty() {
            let record = Record::decode(&mut reader)
                .ok_or_else(|| Error::metadata(format!("{}: no record", place())))?;
            group.push(record);
        }
        // A checkpoint counts as a whole, but is too large to be kept in memory until its end.
        if header.is_commit || header.kind == Kind::Checkpoint {
            for record in group.drain(..) {
                if let Record::Moved { generation } = record {
                    moved = Some(generation);
                }
                each(&shape, &record)
                    .map_err(|why| Error::metadata(format!("{}: {why}", place())))?;
            }
        }
        at.position += frame::size(parsed.length, unit) as u64;
        at.sequence += 1;
        at.previous = parsed.hash;
        if header.is_commit {
            is_complete = true;
            end = at;
        }
    }
    let has_rest = at != end;
    let (later, unreadable) = later_durable_frame(&mut frames, &at);
    if is_complete && let Some(later) = later {
        return Err(Error::metadata(format!(
            "copy {index} at byte {}: frame {} was durable and cannot be read (frame {later} says so)",
            at.position, at.sequence
        )));
    }
    // A mount flushes before it writes anything, so all frames it has read are durable then.
    end.durable = end.sequence;
    Ok(Some(Scanned {
        shape,
        end,
        is_complete,
        moved,
        has_rest,
        unread,
        room: unreadable.unwrap_or(slot.size()),
    }))
}

/// Searches for a frame behind the end that was written when the missing frame was already durable, which proves
/// damage. Also returns the first place there that cannot be read: nothing should be written behind it.
fn later_durable_frame(frames: &mut Frames<'_>, end: &End) -> (Option<u64>, Option<u64>) {
    let mut unreadable = None;
    let mut position = end.position;
    let last = (end.position + LOOK_BEHIND).min(frames.slot.size());
    while position < last {
        match frames.frame(position) {
            Ok(Ok((parsed, _)))
                if parsed.header.generation == end.generation
                    && parsed.header.durable > end.sequence =>
            {
                return (Some(parsed.header.sequence), unreadable);
            }
            Ok(_) => {}
            // A frame that cannot be read proves nothing.
            Err(_) => _ = unreadable.get_or_insert(position),
        }
        position += frames.unit;
    }
    (None, unreadable)
}
