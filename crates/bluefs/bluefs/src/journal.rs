//! The journal: writes frames one after the other and reads them back.
//!
//! Frames are numbered within their epoch. When a zone has room for one small frame only, that frame names the next
//! zone. Nothing here flushes: `commit.rs` does, and tells the journal which frames are durable.

use crate::format::journal::{
    DecodedFrame, FrameHeader, HEADER, MAX_PAYLOAD, Place, decode_frame, decode_header,
    encode_frame,
};
use crate::format::operation::{ExtentEntry, JournalOperation};
use crate::forward::Forward;
use crate::mirror::Mirror;
use crate::{Error, Result};
use device::ZonedDevice;
use zone::{Geometry, ZoneAddress, ZoneCondition, ZoneId, ZoneKind};

/// A recorded change: operations of which a power cut leaves all or none.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    One(JournalOperation),
    /// Operations that must be in one frame, and fit one.
    Together(Vec<JournalOperation>),
}

impl From<JournalOperation> for Change {
    fn from(operation: JournalOperation) -> Self {
        Self::One(operation)
    }
}

impl Change {
    fn encode(&self, payload: &mut Vec<u8>) {
        match self {
            Self::One(operation) => operation.encode(payload),
            Self::Together(operations) => operations.iter().for_each(|o| o.encode(payload)),
        }
    }
}

/// The payload of the next frame, and the number of `changes`, from the first on, that are in it.
pub(crate) fn frame_of(changes: &[Change], limit: usize) -> (Vec<u8>, usize) {
    let mut payload = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let before = payload.len();
        change.encode(&mut payload);
        if payload.len() > limit && before > 0 {
            // This change begins the next frame. Only a list of extents can be too long for a frame of its own, and
            // such lists are split.
            payload.truncate(before);
            return (payload, index);
        }
    }
    (payload, changes.len())
}

/// The end of the journal, and the zones that it occupies.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    pub epoch: u64,
    /// Number of the next frame.
    pub next_frame: u64,
    pub zones: Vec<ZoneId>,
    /// Number of frames known to be durable, which the next frame will record. In a journal that was read, the highest
    /// number that any frame records.
    pub durable: u64,
    /// The checksum of the last frame.
    previous: u32,
    used: u64,
    pub bytes: u64,
    /// A zone taken to continue in that no frame names yet.
    pub next: Option<ZoneId>,
    /// A journal that was read ends at a whole frame with a zone or an extent that cannot be.
    pub ends_at_impossible: bool,
}

impl Journal {
    /// An empty journal of a new epoch that begins in `zone`.
    pub fn new(epoch: u64, zone: ZoneId) -> Self {
        Self {
            epoch,
            next_frame: 0,
            zones: vec![zone],
            durable: 0,
            previous: 0,
            used: 0,
            bytes: 0,
            next: None,
            ends_at_impossible: false,
        }
    }

    /// The zone that is written to.
    pub fn zone(&self) -> ZoneId {
        self.zones.last().copied().unwrap_or(ZoneId(0))
    }

    /// The zones that are not written to any more.
    pub fn left(&self) -> &[ZoneId] {
        self.zones.split_last().map_or(&[], |(_, left)| left)
    }

    /// The position after the last frame.
    pub fn end(&self) -> ZoneAddress {
        ZoneAddress::new(self.zone(), self.used)
    }

    /// Writes `changes` as frames and removes from the list those that are in a frame. Calls `next_zone` for a zone
    /// when the present one is full; if that fails, the journal can still be continued.
    pub fn append(
        &mut self,
        device: &dyn Mirror,
        changes: &mut Vec<Change>,
        next_zone: &mut dyn FnMut() -> Result<ZoneId>,
    ) -> Result<()> {
        let limit = payload_limit(device);
        let mut done = 0;
        let mut result = Ok(());
        while done < changes.len() && result.is_ok() {
            let (payload, count) = frame_of(&changes[done..], limit);
            result = self.append_frame(device, &payload, next_zone);
            done += if result.is_ok() { count } else { 0 };
        }
        changes.drain(..done);
        result
    }

    /// Writes one frame with this payload, and before it a link to the next zone if the present one is full.
    pub fn append_frame(
        &mut self,
        device: &dyn Mirror,
        payload: &[u8],
        next_zone: &mut dyn FnMut() -> Result<ZoneId>,
    ) -> Result<()> {
        let g = device.geometry();
        let block = u64::from(g.block_size);
        let length = g.round_up((HEADER + payload.len()) as u64);
        if self.used + length + block > g.capacity(self.zone()) {
            let zone = self.next.map_or_else(next_zone, Ok)?;
            self.next = Some(zone);
            let mut link = Vec::new();
            if let Some(twin) = device.twin(zone) {
                JournalOperation::Twin { zone, twin }.encode(&mut link);
            }
            JournalOperation::NextZone { zone }.encode(&mut link);
            self.write(device, &link)?;
            self.finish(device);
            self.zones.extend(self.next.take());
            self.used = 0;
        }
        self.write(device, payload)
    }

    /// Upper bound of the bytes that `frames` (their payloads) take from the start of a zone, including the unused ends
    /// of full zones.
    pub fn length_of(g: &Geometry, frames: &[Vec<u8>]) -> u64 {
        let block = u64::from(g.block_size);
        let (mut full, mut used) = (0, 0);
        for payload in frames {
            let length = g.round_up((HEADER + payload.len()) as u64);
            if used + length + block > g.least_capacity() {
                (full, used) = (full + g.least_capacity(), 0);
            }
            used += length;
        }
        full + used
    }

    /// Finishes the journal's zone if active zones are limited, so that it holds no active resource. Nothing more may
    /// be written to it.
    pub fn finish(&self, device: &dyn ZonedDevice) {
        let g = device.geometry();
        let holds_one = g.max_active_zones > 0
            && g.kind(self.zone()) != ZoneKind::Conventional
            && self.used < g.capacity(self.zone());
        if holds_one {
            appender::finish(device, self.zone());
        }
    }

    fn place(&self) -> Place {
        Place {
            epoch: self.epoch,
            sequence: self.next_frame,
            previous: self.previous,
        }
    }

    fn write(&mut self, device: &dyn ZonedDevice, payload: &[u8]) -> Result<()> {
        let g = device.geometry();
        let (frame, sum) = encode_frame(self.place(), self.durable, payload, g.block_size);
        device.write(g.absolute(ZoneAddress::new(self.zone(), self.used)), &frame)?;
        self.previous = sum;
        self.next_frame += 1;
        self.used += frame.len() as u64;
        self.bytes += frame.len() as u64;
        Ok(())
    }

    /// Reads the journal of `epoch` that begins in `zone`, frame by frame, up to the first that is not whole or until
    /// `each` (frame number, operations) returns false.
    pub fn replay(
        device: &dyn Mirror,
        epoch: u64,
        zone: ZoneId,
        each: &mut dyn FnMut(u64, Vec<JournalOperation>) -> bool,
    ) -> Result<Self> {
        let g = device.geometry();
        let mut journal = Self::new(epoch, zone);
        let mut forward = Forward::new(device, zone, written(device, zone)?);
        loop {
            let Some(frame) = journal.read_frame(device, &mut forward)? else {
                return Ok(journal);
            };
            let (operations, sum) = match decode_frame(&frame) {
                DecodedFrame::Whole(operations, sum) => (operations, sum),
                DecodedFrame::Torn => return Ok(journal),
                DecodedFrame::Unknown => {
                    return Err(Error::UnknownOperation {
                        at: journal.end(),
                        frame: journal.next_frame,
                    });
                }
            };
            let next = operations.iter().find_map(|op| match op {
                JournalOperation::NextZone { zone } => Some(*zone),
                _ => None,
            });
            let pairs = operations.iter().all(|op| match op {
                JournalOperation::Twin { zone, twin } => device.pair(*zone, *twin),
                _ => true,
            });
            let is_possible = operations.iter().all(|op| has_possible_extents(g, op));
            if !pairs || !is_possible || next.is_some_and(|z| z.0 >= g.zone_count) {
                journal.ends_at_impossible = true;
                return Ok(journal);
            }
            if let Some(header) = decode_header(&frame) {
                journal.durable = journal.durable.max(header.durable);
            }
            if !each(journal.next_frame, operations) {
                return Ok(journal);
            }
            let length = g.round_up(frame.len() as u64);
            journal.previous = sum;
            journal.next_frame += 1;
            journal.used += length;
            journal.bytes += length;
            if let Some(zone) = next {
                journal.zones.push(zone);
                journal.used = 0;
                forward = Forward::new(device, zone, written(device, zone)?);
            }
        }
    }

    /// Header and payload of the frame at the journal's end, from the copy in which it is whole.
    fn read_frame<'a>(
        &self,
        device: &'a dyn Mirror,
        forward: &mut Forward<'a>,
    ) -> Result<Option<Vec<u8>>> {
        let found = self.read_copy(device, forward);
        let is_whole = |frame: &[u8]| decode_header(frame).is_some_and(|h| h.fits(frame));
        if matches!(&found, Ok(Some(frame)) if is_whole(frame)) {
            return found;
        }
        let Some(other) = self.read_other(device).filter(|frame| is_whole(frame)) else {
            return found;
        };
        if let Some([_, other]) = device.copies_of(self.zone()) {
            device.turn_to(self.zone(), other);
        }
        *forward = Forward::new(device, self.zone(), written(device, self.zone())?);
        Ok(Some(other))
    }

    fn read_copy(&self, device: &dyn Mirror, forward: &mut Forward<'_>) -> Result<Option<Vec<u8>>> {
        let g = device.geometry();
        let block = u64::from(g.block_size);
        if forward.get(self.used, block)?.is_none() {
            // Another process may be writing to the journal.
            forward.extend(written(device, self.zone())?);
        }
        let start = forward.get(self.used, block)?;
        let Some(header) = start.and_then(|start| self.next_header(start)) else {
            return Ok(None);
        };
        let length = header.frame_length();
        let frame = forward.get(self.used, g.round_up(length as u64))?;
        Ok(frame.map(|frame| frame[..length].to_vec()))
    }

    /// The header of the next frame, if `start` begins with it.
    pub fn next_header(&self, start: &[u8]) -> Option<FrameHeader> {
        decode_header(start).filter(|header| header.place == self.place())
    }

    /// Header and payload of the next frame from the copy that is not read first; the checksum is not verified.
    fn read_other(&self, device: &dyn Mirror) -> Option<Vec<u8>> {
        let g = device.geometry();
        let mut frame = vec![0; g.block_size as usize];
        let limit = g.capacity(self.zone()) - self.used;
        if frame.len() as u64 > limit {
            return None;
        }
        device.read_other(self.end(), &mut frame)?.ok()?;
        let header = self.next_header(&frame)?;
        let length = g.round_up(header.frame_length() as u64);
        if length > limit {
            return None;
        }
        frame.resize(length as usize, 0);
        device.read_other(self.end(), &mut frame)?.ok()?;
        frame.truncate(header.frame_length());
        Some(frame)
    }
}

/// Zone offset up to which frames can be read. A read-only zone has no write pointer, but its frames count.
fn written(device: &dyn ZonedDevice, zone: ZoneId) -> Result<u64> {
    let report = device.report_zone(zone)?;
    let capacity = device.geometry().capacity(zone);
    Ok(match report.condition {
        // The journal ends here; durability marks tell whether that is damage.
        ZoneCondition::Offline => 0,
        _ if report.write_pointer_valid() => report.write_pointer.min(capacity),
        _ => capacity,
    })
}

/// Whether the extents that an operation names end within their files and zones, however they were checksummed. Zones
/// that the drive does not have are refused when they are claimed.
pub(crate) fn has_possible_extents(g: &Geometry, operation: &JournalOperation) -> bool {
    let (JournalOperation::Extend { extents, .. } | JournalOperation::Move { extents, .. }) =
        operation
    else {
        return true;
    };
    extents.iter().all(|extent| {
        let ends_by = |start: u64, limit| {
            let end = start.checked_add(extent.length);
            end.is_some_and(|end| end <= limit)
        };
        let (zone, offset) = (extent.at.zone, extent.at.offset);
        ends_by(extent.file_offset, u64::MAX)
            && (zone.0 >= g.zone_count || ends_by(offset, g.capacity(zone)))
    })
}

/// The header of the frame at the start of a zone; the frame may not be whole.
pub(crate) fn first_header(device: &dyn ZonedDevice, zone: ZoneId) -> Option<FrameHeader> {
    let g = device.geometry();
    let mut block = vec![0; g.block_size as usize];
    device.read(g.start(zone), &mut block).ok()?;
    decode_header(&block)
}

/// Most bytes of operations in a frame, so that two frames fit the smallest zone.
pub(crate) fn payload_limit(device: &dyn ZonedDevice) -> usize {
    let g = device.geometry();
    let half = g.least_capacity() / 2 - u64::from(g.block_size);
    MAX_PAYLOAD.min((half as usize).saturating_sub(HEADER))
}

/// Splits long lists of extents, so that every operation fits a frame of `limit` bytes ([`payload_limit`]).
pub(crate) fn extent_operations(
    inode: u64,
    modified_micros: u64,
    extents: &[ExtentEntry],
    limit: usize,
) -> impl Iterator<Item = JournalOperation> {
    const MOST: usize = 256;
    // Type, inode, time and count; file offset, zone, offset, length and checksum of an extent.
    const FIELDS: usize = 1 + 8 + 8 + 4;
    const EXTENT: usize = 8 + 4 + 8 + 8 + 4;
    let at_once = (limit.saturating_sub(FIELDS) / EXTENT).clamp(1, MOST);
    extents.chunks(at_once).map(move |part| {
        let extents = part.to_vec();
        JournalOperation::Extend {
            inode,
            modified_micros,
            extents,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::Mirrored;
    use device::MemoryDrive;

    const EXTENT: ExtentEntry = ExtentEntry {
        file_offset: 0,
        at: ZoneAddress::new(ZoneId(3), 4096),
        length: 1000,
        checksum: 0,
    };

    fn drive() -> MemoryDrive {
        let profile = device::profile::by_name("test-small").unwrap();
        let geometry = profile.geometry(16 << 20, None).unwrap();
        MemoryDrive::new(geometry).unwrap()
    }

    #[test]
    fn a_frame_with_an_impossible_extent_ends_the_journal() {
        let changed = |change: fn(&mut ExtentEntry)| {
            let mut extent = EXTENT;
            change(&mut extent);
            extent
        };
        let impossible = [
            changed(|e| e.length = 1 << 62),
            changed(|e| e.length = u64::MAX),
            changed(|e| e.length = 1 << 20),
            changed(|e| e.at.offset = u64::MAX - 4095),
            changed(|e| e.file_offset = u64::MAX - 999),
        ];
        for extent in impossible {
            let drive = drive();
            let device = Mirrored::new(&drive);
            let mut journal = Journal::new(1, ZoneId(2));
            for extents in [vec![EXTENT], vec![EXTENT, extent]] {
                let operation = JournalOperation::Move { inode: 1, extents };
                let mut none = || Err(Error::NoSpace { free_zones: 0 });
                journal
                    .append(&device, &mut vec![operation.into()], &mut none)
                    .unwrap();
            }
            let mut frames = 0;
            let mut each = |_, _| {
                frames += 1;
                true
            };
            Journal::replay(&device, 1, ZoneId(2), &mut each).unwrap();
            assert_eq!(frames, 1, "{extent:?}");
        }
    }

    #[test]
    fn lists_of_extents_fit_a_frame() {
        for limit in [100, 4056, MAX_PAYLOAD] {
            let operations = extent_operations(1, 2, &[EXTENT; 600], limit);
            let longest = operations.map(|operation| {
                let mut bytes = Vec::new();
                operation.encode(&mut bytes);
                bytes.len()
            });
            assert!(longest.max().unwrap() <= limit);
        }
    }
}
