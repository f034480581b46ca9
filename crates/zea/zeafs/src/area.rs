//! The metadata log: two areas, one of which holds a checkpoint and the frames after it.
//!
//! The next checkpoint goes to the other area, so a crash leaves one of the two complete. It is written when
//! all extents that it names are durable. A frame is written after the extents that it names, and one flush
//! makes all of these durable, so a crash may leave the frame without its extents. Each frame names the last
//! frame before it that was durable by then: if one up to that frame is not complete, it is damaged.

use crate::error::{Error, Result};
use crate::format::FORMAT_VERSION;
use crate::format::frame::{Decoded, Frame, checksum};
use crate::format::operation::Operation;
use appender::Flusher;
use device::ZonedDevice;
use std::collections::VecDeque;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneId, ZoneKind};

/// Bytes of one read in the search for later frames.
const LOOK_AT_ONCE: u64 = 1 << 20;

/// Blocks that this search passes over because they cannot be read. If there are more, the area cannot be read.
const MOST_UNREADABLE: u64 = 64;

/// Zones that are partly written at a time: two of metadata while a checkpoint is written, one of files, one of
/// the cleaner.
const LEAST_ACTIVE: u32 = 4;

/// A part of a conventional zone, about half of it, or a sequential zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Area {
    pub zone: ZoneId,
    pub offset: u64,
    pub room: u64,
    pub is_sequential: bool,
}

/// The two areas of a drive, and the remaining sequential zones, which are for files.
pub(crate) fn areas(g: &Geometry) -> Result<([Area; 2], Vec<ZoneId>)> {
    let is_sequential = |zone: &ZoneId| g.kind(*zone) != ZoneKind::Conventional;
    let mut zones: Vec<ZoneId> = g.zones().filter(is_sequential).collect();
    let found = zones.len() as u32;
    let needed = crate::space::LEAST_ZONES + if g.conventional_zones > 0 { 0 } else { 2 };
    if found < needed {
        return Err(Error::DriveTooSmall { found, needed });
    }
    let found = g.max_active_zones;
    if (1..LEAST_ACTIVE).contains(&found) {
        let needed = LEAST_ACTIVE;
        return Err(Error::TooFewActiveZones { found, needed });
    }
    if g.conventional_zones > 0 {
        let block = u64::from(g.block_size);
        let middle = g.conventional_capacity() / 2 / block * block;
        let part = |offset: u64, end: u64| Area {
            zone: ZoneId(0),
            offset,
            room: end.saturating_sub(offset),
            is_sequential: false,
        };
        let heads = u64::from(crate::head::COPIES) * block;
        return Ok(([part(heads, middle), part(middle, 2 * middle)], zones));
    }
    let rest = zones.split_off(2);
    let whole = |zone| Area {
        zone,
        offset: 0,
        room: g.zone_capacity,
        is_sequential: true,
    };
    Ok(([whole(zones[0]), whole(zones[1])], rest))
}

/// Most bytes of a checkpoint in areas of `room` bytes. The rest is for removals, and for moves by the cleaner.
pub(crate) fn most_metadata(room: u64, g: &Geometry) -> u64 {
    (room - room / 16).saturating_sub(4 * u64::from(g.block_size))
}

/// A frame and its operations.
pub(crate) type Said = (Frame, Vec<Operation>);

/// The frames read from an area.
#[derive(Debug)]
pub(crate) struct Found {
    /// The checkpoint, which is frame 0, and all complete frames after it.
    pub frames: Vec<Said>,
    /// The last of these frames.
    pub last: Frame,
    /// The offset in the area at which the last frame ends.
    pub end: u64,
}

impl Area {
    pub fn address(&self, at: u64) -> ZoneAddress {
        ZoneAddress::new(self.zone, self.offset + at)
    }

    fn place(&self, g: &Geometry, at: u64) -> ByteOffset {
        g.absolute(self.address(at))
    }

    /// Bytes of the area that may have been written.
    fn written(&self, device: &dyn ZonedDevice) -> Result<u64> {
        if !self.is_sequential {
            return Ok(self.room);
        }
        let report = device.report_zone(self.zone)?;
        Ok(match report.write_pointer_valid() {
            true => report.write_pointer.min(self.room),
            false => self.room,
        })
    }

    /// Reads the frame at `at` with its operations' bytes. The error is the version of a frame of another
    /// version, or `None` if there is no complete frame.
    fn frame(&self, device: &dyn ZonedDevice, at: u64, end: u64) -> Result<Looked> {
        let g = device.geometry();
        let block = u64::from(g.block_size);
        if at + block > end {
            return Ok(Err(None));
        }
        let mut bytes = vec![0; block as usize];
        device.read(self.place(g, at), &mut bytes)?;
        let (other, frame, sum) = match Frame::decode(&bytes) {
            Decoded::Header(frame, sum) => (None, frame, sum),
            Decoded::OtherVersion(version, frame, sum) => (Some(version), frame, sum),
            Decoded::Nothing => return Ok(Err(None)),
        };
        if frame.bytes() > end - at {
            return Ok(Err(None));
        }
        bytes.resize(g.round_up(frame.bytes()) as usize, 0);
        if bytes.len() as u64 > block {
            device.read(self.place(g, at), &mut bytes)?;
        }
        bytes.truncate(frame.bytes() as usize);
        if checksum(&bytes) != sum {
            return Ok(Err(None));
        }
        if other.is_some() {
            return Ok(Err(other));
        }
        bytes.drain(..crate::format::frame::HEADER);
        Ok(Ok((frame, bytes)))
    }

    /// Whether the area begins with a frame header, of whatever version.
    pub fn begins(&self, device: &dyn ZonedDevice) -> Result<bool> {
        let g = device.geometry();
        let mut bytes = vec![0; g.block_size as usize];
        if self.written(device)? < bytes.len() as u64 {
            return Ok(false);
        }
        device.read(self.place(g, 0), &mut bytes)?;
        Ok(!matches!(Frame::decode(&bytes), Decoded::Nothing))
    }

    /// Reads the area: its frames, `None` if it has no complete checkpoint, and the drive's error if one ended
    /// the reading.
    pub fn read(&self, device: &dyn ZonedDevice) -> Result<(Option<Found>, Option<Error>)> {
        let written = self.written(device)?;
        let g = device.geometry();
        let mut at = 0;
        let mut found: Option<Found> = None;
        loop {
            let looked = match self.frame(device, at, written) {
                Err(error) if error.is_unreadable() => return Ok((found, Some(error))),
                looked => looked?,
            };
            let (frame, bytes) = match looked {
                Ok(whole) => whole,
                Err(Some(version)) if at == 0 => {
                    return Err(Error::UnsupportedVersion {
                        found: version,
                        supported: FORMAT_VERSION,
                    });
                }
                Err(_) => break,
            };
            let follows = match &found {
                None => frame.number == 0,
                Some(found) => {
                    (frame.uuid, frame.epoch) == (found.last.uuid, found.last.epoch)
                        && frame.number == found.last.number + 1
                }
            };
            if !follows {
                break;
            }
            // The checksum was valid, so this is not a torn write.
            let operations = Operation::decode_all(&bytes).ok_or(Error::Corrupt {
                at: self.address(at),
                what: "operations of a frame",
                expected: frame.number,
                found: frame.length,
            })?;
            let end = at + g.round_up(frame.bytes());
            match &mut found {
                None => {
                    found = Some(Found {
                        frames: vec![(frame, operations)],
                        last: frame,
                        end,
                    });
                }
                Some(found) => {
                    found.frames.push((frame, operations));
                    (found.last, found.end) = (frame, end);
                }
            }
            at = end;
        }
        Ok((found, None))
    }

    /// Whether there is a torn or damaged frame after `last`, the last complete frame, which ends at `end`.
    pub fn goes_on(&self, device: &dyn ZonedDevice, end: u64, last: &Frame) -> Result<bool> {
        let g = device.geometry();
        let mut block = vec![0; g.block_size as usize];
        let written = self.written(device)?;
        if written < end + block.len() as u64 {
            return Ok(false);
        }
        // The write pointer of a finished zone does not show where its data ends.
        if self.is_sequential && written < self.room {
            return Ok(true);
        }
        device.read(self.place(g, end), &mut block)?;
        let is_next = |frame: Frame| (frame.uuid, frame.epoch) == (last.uuid, last.epoch);
        Ok(match Frame::decode(&block) {
            Decoded::Header(frame, _) | Decoded::OtherVersion(_, frame, _) => is_next(frame),
            Decoded::Nothing => false,
        })
    }

    /// Searches from `behind` on for a frame which says that one after `last` was durable; that one is damaged,
    /// which is an error.
    ///
    /// `last` is the last complete frame after the newest checkpoint. Frames that were in flight with it may be
    /// torn. An area that was being overwritten by a new checkpoint has older frames only. Returns the number of
    /// blocks that cannot be read; if a frame whose header says so cannot be read to its end, the drive's error.
    pub fn refuse_later(&self, device: &dyn ZonedDevice, behind: u64, last: &Frame) -> Result<u64> {
        let end = self.written(device)?;
        let g = device.geometry();
        let block = u64::from(g.block_size);
        let tells = |frame: &Frame| {
            let newer = |durable| (frame.epoch, durable) > (last.epoch, last.number);
            frame.uuid == last.uuid && frame.behind_durable().is_some_and(newer)
        };
        let (mut at, mut unreadable) = (behind, 0);
        // Blocks before `singly` are read one at a time.
        let (mut window, mut seen, mut singly) = (Vec::new(), behind, behind);
        while at + block <= end {
            // One read covers many blocks, since hardly any of them begins a frame.
            if at + block > seen {
                let most = if at < singly { block } else { LOOK_AT_ONCE };
                let bytes = (end - at).min(most) / block * block;
                window.resize(bytes as usize, 0);
                if let Err(error) = device.read(self.place(g, at), &mut window) {
                    let error = Error::from(error);
                    unreadable += u64::from(bytes == block);
                    if !error.is_unreadable() || unreadable > MOST_UNREADABLE {
                        return Err(error);
                    }
                    match bytes == block {
                        true => at += block,
                        false => singly = at + bytes,
                    }
                    continue;
                }
                seen = at + bytes;
            }
            let mut step = block;
            let here = window.len() as u64 - (seen - at);
            let begins = window.get(here as usize..).map(Frame::decode);
            let looked = match begins {
                Some(Decoded::Header(header, _)) => match self.frame(device, at, end) {
                    Err(error) if error.is_unreadable() && !tells(&header) => Err(None),
                    looked => looked?,
                },
                _ => Err(None),
            };
            if let Ok((frame, _)) = looked {
                step = g.round_up(frame.bytes());
                if tells(&frame) {
                    return Err(Error::Corrupt {
                        at: self.address(at),
                        what: "frame behind a damaged one",
                        expected: last.number + 1,
                        found: frame.number,
                    });
                }
            }
            at += step;
        }
        Ok(unreadable)
    }

    /// Whether nothing newer than `last` can have been durable in this area, whose checkpoint cannot be read.
    ///
    /// The first block says so, as a newer checkpoint would begin there. If that is one of the `unreadable` blocks and
    /// the only one, [`Self::refuse_later`] would have found frame 1 of a newer checkpoint, if anything relies on that.
    pub fn is_older(
        &self,
        device: &dyn ZonedDevice,
        last: &Frame,
        unreadable: u64,
    ) -> Result<bool> {
        let g = device.geometry();
        let mut block = vec![0; g.block_size as usize];
        if let Err(error) = device.read(self.place(g, 0), &mut block) {
            let error = Error::from(error);
            return match error.is_unreadable() {
                true => Ok(unreadable == 1),
                false => Err(error),
            };
        }
        Ok(match Frame::decode(&block) {
            Decoded::Header(frame, _) | Decoded::OtherVersion(_, frame, _) => {
                frame.uuid != last.uuid || frame.epoch <= last.epoch
            }
            Decoded::Nothing => true,
        })
    }
}

/// A frame with its operations' bytes. The error is the version of a frame of another version, if there is one.
type Looked = Result<(Frame, Vec<u8>), Option<u32>>;

/// The metadata log of a mounted file system, to which frames are appended.
#[derive(Debug)]
pub(crate) struct MetadataLog {
    areas: [Area; 2],
    current: usize,
    last: Frame,
    /// Offset of the next frame in the current area.
    at: u64,
    /// The last frame that is known to be durable.
    durable: u64,
    /// The frames after it: their numbers, and the flush of each that makes it durable.
    on_the_way: VecDeque<(u64, u64)>,
    /// The flush that makes all frames written so far durable.
    covered_by: u64,
}

impl MetadataLog {
    /// A log that continues after frame `last` in the area `current`. The next write has to be a checkpoint.
    pub fn behind(areas: [Area; 2], current: usize, last: Frame) -> Self {
        Self {
            areas,
            current,
            last,
            at: u64::MAX,
            durable: 0,
            on_the_way: VecDeque::new(),
            covered_by: 0,
        }
    }

    /// Bytes of the smaller area.
    pub fn room(&self) -> u64 {
        self.areas[0].room.min(self.areas[1].room)
    }

    /// Where the next frame begins.
    pub fn next(&self, g: &Geometry) -> ByteOffset {
        self.areas[self.current].place(g, self.at)
    }

    pub const fn uuid(&self) -> [u8; 16] {
        self.last.uuid
    }

    /// The flush that makes everything written so far durable.
    pub const fn covered_by(&self) -> u64 {
        self.covered_by
    }

    /// Writes a frame; false if it does not fit, so that a checkpoint has to come first.
    pub fn append(
        &mut self,
        device: &dyn ZonedDevice,
        flusher: &Flusher,
        operations: &[u8],
    ) -> Result<bool> {
        let g = device.geometry();
        let finished = flusher.finished();
        while let Some((number, flush)) = self.on_the_way.front().copied()
            && flush <= finished
        {
            self.durable = number;
            self.on_the_way.pop_front();
        }
        let frame = Frame {
            number: self.last.number + 1,
            length: operations.len() as u64,
            durable: self.durable,
            ..self.last
        };
        let (area, bytes) = (self.areas[self.current], g.round_up(frame.bytes()));
        if self.at.checked_add(bytes).is_none_or(|end| end > area.room) {
            return Ok(false);
        }
        device.write(area.place(g, self.at), &frame.encode(operations))?;
        self.at += bytes;
        self.last = frame;
        self.covered_by = flusher.next();
        self.on_the_way.push_back((frame.number, self.covered_by));
        Ok(true)
    }

    /// Writes a checkpoint into the other area and flushes it. All extents that it names have to be durable.
    ///
    /// Nothing that relies on the checkpoint may be answered or reset before [`Self::covered_by`], the flush of frame 1: if
    /// the checkpoint's first block cannot be read, only that frame tells that it was there.
    pub fn checkpoint(
        &mut self,
        device: &dyn ZonedDevice,
        flusher: &Flusher,
        operations: &[u8],
    ) -> Result<()> {
        let g = device.geometry();
        let epoch = self.last.epoch.checked_add(1);
        let frame = Frame {
            uuid: self.last.uuid,
            epoch: epoch.ok_or(Error::UsedUp { what: "epochs" })?,
            number: 0,
            length: operations.len() as u64,
            durable: 0,
            block_size: g.block_size,
            zone_count: g.zone_count,
            zone_capacity: g.zone_capacity,
        };
        let other = 1 - self.current;
        let (area, bytes) = (self.areas[other], g.round_up(frame.bytes()));
        // At least one frame has to fit after it.
        if bytes + u64::from(g.block_size) > area.room {
            let room = area.room;
            return Err(Error::MetadataFull { bytes, room });
        }
        if area.is_sequential {
            appender::reset_if_written(device, area.zone)?;
        }
        device.write(area.place(g, 0), &frame.encode(operations))?;
        flusher.flush(|| device.flush())?;
        let before = self.areas[self.current];
        (self.current, self.last, self.at) = (other, frame, bytes);
        self.durable = 0;
        self.on_the_way.clear();
        // An empty frame records that the checkpoint is complete.
        self.append(device, flusher, &[])?;
        if before.is_sequential {
            appender::finish(device, before.zone);
        }
        Ok(())
    }
}
