//! Compares the journal and the superblocks on the drive with those in memory.
//!
//! A mounted file system has both in memory, so it notices damage to them only here. A journal that is damaged in all
//! copies is repaired by the snapshot that begins the next one.

use crate::Result;
use crate::format::journal::{DecodedFrame, HEADER, Place, decode_frame, decode_header};
use crate::format::operation::JournalOperation;
use crate::journal::Journal;
use crate::mirror::Mirror;
use crate::ring::{Rings, ring_zones};
use crate::shared::Shared;
use std::collections::BTreeSet;
use zone::{ZoneAddress, ZoneError, ZoneId, ZoneResult};

/// How often the comparison is repeated because the journal or the superblock has changed meanwhile.
const TRIES: u32 = 8;

/// Damaged copies of metadata.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct MetadataCopies {
    /// Frames of which one of two copies is damaged.
    pub in_one: Vec<ZoneAddress>,
    /// Frames that are damaged in all copies: the place of the first, and the number of damaged ones that follow each
    /// other.
    pub in_all: Vec<(ZoneAddress, u64)>,
    /// Rings without the superblock that was written last, by their first zones.
    pub superblocks: Vec<ZoneId>,
    /// Unreadable copies of frames whose other copy is whole, and of superblocks.
    pub unreadable: u64,
    /// Zones of the drive with unreadable metadata: both zones of a pair, or of a ring.
    pub unread_in: BTreeSet<ZoneId>,
}

impl MetadataCopies {
    /// Frames that are damaged in all copies.
    pub fn frames_in_all(&self) -> u64 {
        self.in_all.iter().map(|(_, frames)| frames).sum()
    }

    /// Frames and superblocks with a copy that is damaged.
    pub fn count(&self) -> u64 {
        (self.in_one.len() + self.superblocks.len()) as u64 + self.frames_in_all()
    }

    /// Whether no copy is damaged or unreadable.
    pub fn is_whole(&self) -> bool {
        self.count() == 0 && self.unreadable == 0
    }
}

/// A frame that is whole.
#[derive(PartialEq, Eq)]
struct Frame {
    place: Place,
    checksum: u32,
    /// Bytes with padding.
    length: u64,
    goes_on_elsewhere: bool,
}

/// What one copy holds at the position of a frame.
#[derive(PartialEq, Eq)]
enum Copy {
    Whole(Frame),
    /// No whole frame, or not the expected one.
    Damaged,
    Unreadable,
}

impl Copy {
    fn frame(self) -> Option<Frame> {
        match self {
            Self::Whole(frame) => Some(frame),
            Self::Damaged | Self::Unreadable => None,
        }
    }

    fn filter(self, is_expected: impl Fn(&Frame) -> bool) -> Self {
        match self {
            Self::Whole(frame) if !is_expected(&frame) => Self::Damaged,
            copy => copy,
        }
    }
}

impl Shared {
    /// Compares the current journal and superblocks with the drive.
    pub fn look_at_metadata(&self) -> Result<MetadataCopies> {
        for _ in 0..TRIES {
            let (journal, superblock) = {
                let state = self.state.lock();
                (state.journal.clone(), state.superblock)
            };
            let looked = self.compare_with(&journal, superblock.generation);
            let state = self.state.lock();
            // Resets and writes during the comparison are no damage.
            let is_same = state.superblock.generation == superblock.generation
                && state.journal.epoch == journal.epoch;
            if is_same {
                return looked;
            }
        }
        // The journal was replaced in each try, so the present one was written a moment ago.
        Ok(MetadataCopies::default())
    }

    fn compare_with(&self, journal: &Journal, generation: u64) -> Result<MetadataCopies> {
        let mut found = MetadataCopies::default();
        // A kill or a power cut between writing two copies leaves one of them a write behind.
        let may_be_behind = self.read_only;
        look_at_frames(&*self.device, journal, may_be_behind, &mut found)?;
        for (ring, can_be_read) in Rings::not_as_written(&*self.drive, generation, may_be_behind)? {
            match can_be_read {
                true => found.superblocks.push(ring),
                false => {
                    found.unreadable += 1;
                    let rings = ring_zones(self.drive.geometry()).into_iter();
                    let ours = rings.filter(|zones| zones.contains(&ring));
                    found.unread_in.extend(ours.flatten());
                }
            }
        }
        Ok(found)
    }
}

fn look_at_frames(
    device: &dyn Mirror,
    journal: &Journal,
    may_be_behind: bool,
    found: &mut MetadataCopies,
) -> Result<()> {
    let g = device.geometry();
    let block = u64::from(g.block_size);
    let mut next = 0;
    // Checksum of the frame before; `None` if that is damaged.
    let mut previous = Some(0);
    let mut gap = None;
    for zone in &journal.zones {
        let capacity = g.capacity(*zone);
        let end = if *zone == journal.zone() {
            journal.end().offset.min(capacity)
        } else {
            capacity
        };
        let mut offset = 0;
        while next < journal.next_frame && offset + block <= end {
            let at = ZoneAddress::new(*zone, offset);
            let expected = |frame: &Frame| {
                frame.place.epoch == journal.epoch
                    && (next..journal.next_frame).contains(&frame.place.sequence)
                    && previous.is_none_or(|sum| {
                        frame.place.sequence == next && frame.place.previous == sum
                    })
            };
            let read = |read: &dyn Fn(ZoneAddress, &mut [u8]) -> ZoneResult<()>| {
                Ok::<_, ZoneError>(frame_at(at, g.block_size, end, read)?.filter(expected))
            };
            let first = read(&|at, bytes| device.read_first(at, bytes))?;
            let other = match device.twin(*zone) {
                Some(_) => Some(read(&|at, bytes| {
                    device.read_other(at, bytes).unwrap_or(Ok(()))
                })?),
                None => None,
            };
            let is_unread = |copy: &Copy| matches!(copy, Copy::Unreadable);
            let has_unread = is_unread(&first) || other.as_ref().is_some_and(is_unread);
            if has_unread {
                found.unread_in.insert(*zone);
                found.unread_in.extend(device.twin(*zone));
            }
            let has_damaged = other.as_ref().is_some_and(|other| *other != first);
            let Some(frame) = first.frame().or(other.and_then(Copy::frame)) else {
                gap = gap.or(Some(at));
                previous = None;
                offset += block;
                continue;
            };
            if let Some(at) = gap.take() {
                found.in_all.push((at, frame.place.sequence - next));
            }
            let written = offset..offset + frame.length;
            let is_short = may_be_behind
                && frame.place.sequence >= journal.durable
                && device
                    .shorter_end(*zone)
                    .is_some_and(|end| written.contains(&end));
            match (has_damaged && !is_short, has_unread) {
                (true, true) => found.unreadable += 1,
                (true, false) => found.in_one.push(at),
                (false, _) => {}
            }
            next = frame.place.sequence + 1;
            previous = Some(frame.checksum);
            offset += frame.length;
            if frame.goes_on_elsewhere {
                break;
            }
        }
    }
    if next < journal.next_frame {
        let at = gap.unwrap_or_else(|| journal.end());
        found.in_all.push((at, journal.next_frame - next));
    }
    Ok(())
}

/// The frame at `at`, if it is whole and ends before `end`.
fn frame_at(
    at: ZoneAddress,
    block_size: u32,
    end: u64,
    read: &dyn Fn(ZoneAddress, &mut [u8]) -> ZoneResult<()>,
) -> ZoneResult<Copy> {
    let mut frame = vec![0; block_size as usize];
    let is_read = |result| match result {
        Ok(()) => Ok(true),
        Err(error @ ZoneError::PowerLost { .. }) => Err(error),
        Err(_) => Ok(false),
    };
    if !is_read(read(at, &mut frame))? {
        return Ok(Copy::Unreadable);
    }
    let Some(header) = decode_header(&frame) else {
        return Ok(Copy::Damaged);
    };
    let length = (HEADER + header.length).next_multiple_of(block_size as usize);
    if at.offset + length as u64 > end {
        return Ok(Copy::Damaged);
    }
    frame.resize(length, 0);
    if !is_read(read(at, &mut frame))? {
        return Ok(Copy::Unreadable);
    }
    let DecodedFrame::Whole(operations, checksum) = decode_frame(&frame[..header.frame_length()])
    else {
        return Ok(Copy::Damaged);
    };
    let goes_on = |op: &JournalOperation| matches!(op, JournalOperation::NextZone { .. });
    Ok(Copy::Whole(Frame {
        place: header.place,
        checksum,
        length: length as u64,
        goes_on_elsewhere: operations.iter().any(goes_on),
    }))
}
