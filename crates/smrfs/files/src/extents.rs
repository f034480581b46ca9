//! Allocator of the free extents of a Caveat-Scriptor drive (thesis, section 4.4), and the writes to them.
//!
//! A write takes its blocks and, as a footer, as many as it may damage after them; the footer is free again when the
//! write has succeeded. So no write damages live blocks, neither those of the present state nor those of the last
//! commit: blocks that a file loses are free only after the next commit.
//!
//! Space for preallocated ranges is kept in runs of blocks that are not in the free list, each with a footer at its
//! end. Writes to preallocated blocks, whichever they are, take the front of a run, so that they damage nothing but
//! the rest of the run.
//!
//! Cleaning is implicit. If the file system was made to be cleaned, one extent, the reserve, is kept free as well.
//! Once no write fits any more, the live blocks of a part of the drive move to the reserve; that part is the new
//! reserve, and the rest of the old one is free.

use crate::layout::Shape;
use crate::map::Place;
use crate::options::Policy;
use crate::placement::{ExtentSpace, Free, Placement, Stream, Unplaced, Usage, Victim};
use crate::ranges::Ranges;
use crate::state::{Freed, State};
use crate::window::Windows;
use appender::{Left, Zones};
use caveat::{CaveatDevice, Fit, FreeList, Parameters};
use device::ZonedDevice;
use std::ops::Range;
use std::sync::Arc;
use zone::{ByteOffset, ZoneError, ZoneResult};
use zone_alloc::Pressure;

/// The only zone for data.
const ZONE: u32 = 0;

/// Number of file-system blocks in the shingled part of a drive.
pub fn blocks(parameters: &Parameters, block: u64) -> u64 {
    (parameters.blocks - parameters.unshingled) * u64::from(parameters.block_size) / block
}

/// A run of file-system blocks of the shingled part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    start: u64,
    length: u64,
}

/// Allocator of a Caveat-Scriptor drive.
#[derive(Clone)]
pub struct Extents {
    drive: Arc<CaveatDevice>,
    /// Bytes of a file-system block.
    block: u64,
    /// Byte offset of the shingled part.
    start: u64,
    blocks: u64,
    /// Number of blocks that a write may damage after its last one.
    footer: u64,
    /// Free extents. The list has a footer's blocks more than the drive, after its end, where a write damages
    /// nothing.
    free: FreeList,
    fit: Fit,
    /// The block after the last allocation.
    last: u64,
    /// Blocks that the buffer holds and that have to find room; as one piece if files are whole.
    promised: u64,
    is_whole: bool,
    /// Runs for preallocated blocks, footers included; no other data is written there.
    set_aside: Vec<Run>,
    /// Size of [`Self::reserve`] in blocks; 0 if the file system is not cleaned.
    reserve_blocks: u64,
    reserve: Option<Run>,
    /// Number of blocks where writing failed, until the next mount.
    retired: u64,
    /// Blocks that cannot be read or written, until the next mount: no part with any of them is cleaned.
    broken: Ranges,
    is_unflushed: bool,
    bytes_written: u64,
}

impl Extents {
    /// An allocator that has no free extents yet; [`Placement::load`] finds them.
    pub fn new(drive: Arc<CaveatDevice>, shape: &Shape, fit: Fit) -> Self {
        let parameters = drive.modesense();
        let block = u64::from(shape.block_size);
        let bytes = u64::from(parameters.block_size);
        let blocks = blocks(&parameters, block);
        let footer = (parameters.isolation_distance * bytes).div_ceil(block);
        // With a twentieth of the drive free, some part of it has more than a footer free.
        let reserve_blocks = match shape.is_cleaned {
            true => (32 * footer + 256).min(blocks / 8),
            false => 0,
        };
        Self {
            start: parameters.unshingled * bytes,
            free: FreeList::with_footer(footer),
            drive,
            block,
            blocks,
            footer,
            fit,
            last: 0,
            promised: 0,
            is_whole: shape.is_whole,
            set_aside: Vec::new(),
            reserve_blocks,
            reserve: None,
            retired: 0,
            broken: Ranges::default(),
            is_unflushed: false,
            bytes_written: 0,
        }
    }

    fn runs(state: &State) -> impl Iterator<Item = (u64, u64)> {
        let owners = state
            .holding(ZONE)
            .into_iter()
            .flat_map(|holding| &holding.owners);
        owners.map(|(start, owner)| (u64::from(*start), u64::from(owner.blocks)))
    }

    /// The part of a run that is on the drive: after its end, the free list has room for one footer more, and a run
    /// may lie in that alone.
    fn on_drive(&self, start: u64, length: u64) -> u64 {
        length.min(self.blocks.saturating_sub(start))
    }

    /// Whether an extent may be split in the middle and [`Self::promised`] blocks still find room.
    fn may_split(&self, length: u64) -> bool {
        let wanted = self.promised + self.footer;
        match self.is_whole {
            true => {
                let largest = self.free.largest().map_or(0, |(_, size)| size);
                largest.saturating_sub(length) / 2 >= wanted
            }
            false => self.free.room() >= wanted,
        }
    }

    /// Takes `need` blocks and a footer. If no extent is large enough, takes the largest one unless `together`.
    fn take(&mut self, need: u64, together: bool) -> Option<Run> {
        self.take_behind(need, together, None)
    }

    /// As [`Self::take`], as if the last write had ended at block `last`.
    fn take_behind(&mut self, need: u64, together: bool, last: Option<u64>) -> Option<Run> {
        let (fit, behind) = match self.fit {
            Fit::Next | Fit::LastAccessed if !self.may_split(need) => (Fit::First, 0),
            fit if last.is_some() => (fit, last.unwrap_or(0)),
            Fit::LastAccessed => {
                let bytes = u64::from(self.drive.modesense().block_size);
                let position = self.drive.position() * bytes;
                (
                    self.fit,
                    position.saturating_sub(self.start).div_ceil(self.block),
                )
            }
            fit => (fit, self.last),
        };
        if let Some(start) = self.free.take(need + self.footer, fit, behind) {
            return Some(Run {
                start,
                length: need,
            });
        }
        let (start, size) = self.free.largest().filter(|_| !together)?;
        let length = size.checked_sub(self.footer).filter(|length| *length > 0)?;
        self.free.take_at(start, size);
        Some(Run { start, length })
    }

    /// Takes as many of the pieces `lengths` as lie consecutively when each is placed by itself; the run, and the
    /// number of pieces.
    fn take_some(&mut self, lengths: &[u64]) -> Option<(Run, usize)> {
        let (first, others) = lengths.split_first()?;
        let mut run = self.take(*first, false)?;
        let mut count = 1;
        for length in others {
            let end = run.start + run.length;
            if run.length < *first {
                break;
            }
            // The footer of a piece is free once the piece is written, and one write writes both pieces.
            self.free.give(end, self.footer);
            match self.take_behind(*length, false, Some(end)) {
                Some(next) if (next.start, next.length) == (end, *length) => {
                    run.length += length;
                    count += 1;
                }
                other => {
                    if let Some(other) = other {
                        self.free.give(other.start, other.length + self.footer);
                    }
                    let is_free = self.free.take_at(end, self.footer);
                    debug_assert!(is_free, "a footer that was given back");
                    break;
                }
            }
        }
        Some((run, count))
    }

    /// Takes at most `need` blocks from the front of the reserve.
    fn take_reserve(&mut self, need: u64) -> Option<Run> {
        let reserve = self.reserve.as_mut()?;
        let length = need.min(reserve.length.saturating_sub(self.footer));
        let run = Run {
            start: reserve.start,
            length,
        };
        reserve.start += length;
        reserve.length -= length;
        (length > 0).then_some(run)
    }

    /// Takes at most `need` blocks from the front of the longest run for preallocated blocks.
    fn take_set_aside(&mut self, need: u64) -> Option<Run> {
        let run = self.set_aside.iter_mut().max_by_key(|run| run.length)?;
        let length = need.min(run.length.saturating_sub(self.footer));
        let taken = Run {
            start: run.start,
            length,
        };
        run.start += length;
        run.length -= length;
        (length > 0).then_some(taken)
    }

    /// Index of the run for preallocated blocks that begins at `start`.
    fn rest_at(&mut self, start: u64) -> Option<usize> {
        self.set_aside.iter().position(|run| run.start == start)
    }

    /// Updates the run that `run` was taken from, after a write to it; `false` if `run` does not come from
    /// [`Self::set_aside`].
    fn took_set_aside(&mut self, run: Run, is_written: bool) -> bool {
        let Some(rest) = self.rest_at(run.start + run.length) else {
            return false;
        };
        if !is_written {
            self.set_aside[rest].start = run.start;
            self.set_aside[rest].length += run.length;
        } else if self.set_aside[rest].length <= self.footer {
            let rest = self.set_aside.swap_remove(rest);
            self.free.give(rest.start, rest.length);
        }
        true
    }

    /// Takes runs for `blocks` more preallocated blocks: one run if an extent is long enough. `false`, and nothing
    /// changes, if there is no room.
    fn set_more_aside(&mut self, blocks: u64) -> bool {
        let mut rest = blocks;
        let before = self.set_aside.len();
        while rest > 0 {
            let best = self.free.take(rest + self.footer, Fit::Best, 0);
            let run = best.map(|start| (start, rest + self.footer)).or_else(|| {
                let (start, size) = self.free.largest()?;
                (size > self.footer && self.free.take_at(start, size)).then_some((start, size))
            });
            let Some((start, length)) = run else {
                for run in self.set_aside.drain(before..) {
                    self.free.give(run.start, run.length);
                }
                return false;
            };
            self.set_aside.push(Run { start, length });
            rest -= length - self.footer;
        }
        true
    }

    /// Frees runs, or parts of them, for `blocks` preallocated blocks.
    fn set_less_aside(&mut self, blocks: u64) {
        let mut rest = blocks;
        while rest > 0 {
            let Some(run) = self.set_aside.last_mut() else {
                return;
            };
            let usable = run.length - self.footer;
            let given = match usable <= rest {
                true => run.length,
                false => rest,
            };
            run.length -= given;
            self.free.give(run.start + run.length, given);
            rest -= rest.min(usable);
            if run.length == 0 {
                self.set_aside.pop();
            }
        }
    }

    fn write(&mut self, run: Run, data: &[u8], stream: Stream) -> Result<Place, Unplaced> {
        self.is_unflushed = true;
        let at = self.at(ZONE, run.start as u32);
        if let Err(error) = self.drive.write(at, data) {
            if !appender::is_of_zone(&error) {
                // The error is not due to these blocks, so they are free again.
                if stream == Stream::Moved {
                    self.give_back_to_reserve(run);
                } else if !self.took_set_aside(run, false) {
                    self.free.give(run.start, run.length + self.footer);
                }
            }
            return Err(error.into());
        }
        if stream != Stream::Moved && !self.took_set_aside(run, true) {
            self.free.give(run.start + run.length, self.footer);
            self.last = run.start + run.length;
        }
        self.bytes_written += data.len() as u64;
        Ok(Place {
            zone: ZONE,
            offset: run.start as u32,
            blocks: run.length as u32,
        })
    }

    fn give_back_to_reserve(&mut self, run: Run) {
        if let Some(reserve) = &mut self.reserve
            && reserve.start == run.start + run.length
        {
            reserve.start = run.start;
            reserve.length += run.length;
        }
    }

    /// Gives back the first places of an append that failed later, to where they came from: no file has them.
    fn give_back(&mut self, stream: Stream, places: &[Place]) {
        for place in places.iter().rev() {
            let (start, length) = (place.offset.into(), place.blocks.into());
            let run = Run { start, length };
            if stream == Stream::Moved {
                self.give_back_to_reserve(run);
            } else if stream == Stream::User || !self.took_set_aside(run, false) {
                self.free.give(start, length);
                // The run for preallocated blocks was used up, and only its footer was left.
                let length = length + self.footer;
                if stream == Stream::Preallocated && self.free.take_at(start, length) {
                    self.set_aside.push(Run { start, length });
                }
            }
        }
    }

    /// Retires a run to which a write failed, and its footer, until the next mount.
    fn retire(&mut self, run: Run) {
        if let Some(rest) = self.rest_at(run.start + run.length) {
            let rest = self.set_aside.swap_remove(rest);
            let behind = rest.length - self.footer;
            self.free.give(rest.start + self.footer, behind);
        }
        self.retire_blocks(run.start, run.start + run.length + self.footer);
    }

    fn retire_blocks(&mut self, start: u64, end: u64) {
        self.retired += end - start;
        self.broken.insert(start, end);
    }

    /// Retires all free blocks in the zones of the drive below that the run lies in.
    fn retire_beside(&mut self, run: Run) {
        let bytes = u64::from(self.drive.modesense().block_size);
        let block_at = |block: u64| (self.start + block * self.block) / bytes;
        let beside = block_at(run.start)..block_at(run.start + run.length);
        let beside = self.drive.beside(beside.start, beside.end);
        let from = (beside.start * bytes)
            .saturating_sub(self.start)
            .div_ceil(self.block);
        let to = (beside.end * bytes).saturating_sub(self.start) / self.block;
        let free: Vec<(u64, u64)> = self
            .free
            .extents()
            .map(|(start, length)| (start.max(from), (start + length).min(to)))
            .filter(|(start, end)| start < end)
            .collect();
        for (start, end) in free {
            if self.free.take_at(start, end - start) {
                self.retire_blocks(start, end);
            }
        }
    }

    /// Takes the reserve from the free list, at block `wanted` if all of it is free there, or else in the largest
    /// extent.
    fn keep(&mut self, wanted: Option<u64>) {
        let size = self.reserve_blocks;
        if size == 0 {
            return;
        }
        let wanted = wanted.filter(|start| self.free.take_at(*start, size));
        let start = wanted.or_else(|| {
            // The footer after the drive's end is no space for the reserve.
            let starts = self.free.extents();
            let (start, _) = starts
                .filter(|(start, length)| (start + length).min(self.blocks) >= start + size)
                .max_by_key(|(_, length)| *length)?;
            self.free.take_at(start, size).then_some(start)
        });
        self.reserve = start.map(|start| Run {
            start,
            length: size,
        });
    }

    /// As [`Self::keep`], beside `blocks` preallocated blocks.
    fn keep_beside(&mut self, blocks: u64, wanted: Option<u64>) {
        self.keep(wanted);
        if !self.set_aside(blocks, 0) {
            // Preallocated space was promised to files, so it takes precedence over the reserve.
            if let Some(reserve) = self.reserve.take() {
                self.free.give(reserve.start, reserve.length);
            }
            if !self.set_aside(blocks, 0) {
                tracing::warn!("there is less room than was preallocated");
            }
            self.keep(None);
        }
    }
}

impl Placement for Extents {
    fn load(&mut self, state: &State) -> ZoneResult<()> {
        let mut end = 0;
        for (start, length) in Self::runs(state) {
            self.free.give(end, start - end);
            end = start + length;
        }
        self.free.give(end, self.blocks + self.footer - end);
        self.keep_beside(state.preallocated(), None);
        Ok(())
    }

    fn append(
        &mut self,
        stream: Stream,
        data: &[u8],
        together: bool,
    ) -> Result<Vec<Place>, Unplaced> {
        let mut places = Vec::new();
        let mut rest = data;
        while !rest.is_empty() {
            let block = self.block;
            let mut allocating = Allocating {
                extents: self,
                stream,
                need: rest.len() as u64 / block,
                together,
                failed: 0,
            };
            let placed = appender::append(&mut allocating, |allocating, run| {
                let part = &rest[..(run.length * block) as usize];
                allocating.extents.write(*run, part, stream).map(Some)
            });
            let place = placed.inspect_err(|_| self.give_back(stream, &places))?;
            rest = &rest[(u64::from(place.blocks) * block) as usize..];
            places.push(place);
        }
        Ok(places)
    }

    fn append_some(
        &mut self,
        stream: Stream,
        data: &[u8],
        lengths: &[u64],
    ) -> Result<(usize, Vec<Place>), Unplaced> {
        let first = lengths.first().copied().unwrap_or(0);
        if stream == Stream::User
            && lengths.len() > 1
            && let Some((run, count)) = self.take_some(lengths)
        {
            let part = &data[..(run.length * self.block) as usize];
            match self.write(run, part, stream) {
                Ok(place) if run.length >= first => return Ok((count, vec![place])),
                Ok(place) => {
                    let rest = &data[part.len()..(first * self.block) as usize];
                    let places = self.append(stream, rest, false);
                    let mut places = places.inspect_err(|_| self.give_back(stream, &[place]))?;
                    places.insert(0, place);
                    return Ok((1, places));
                }
                Err(Unplaced::Drive(error)) if appender::is_of_zone(&error) => {
                    tracing::warn!(%error, "a write failed; going on elsewhere");
                    self.retire(run);
                }
                Err(error) => return Err(error),
            }
        }
        let data = &data[..(first * self.block) as usize];
        Ok((1, self.append(stream, data, false)?))
    }

    fn at(&self, _zone: u32, block: u32) -> ByteOffset {
        ByteOffset(self.start + u64::from(block) * self.block)
    }

    fn most_together(&self) -> u32 {
        self.blocks as u32
    }

    /// All blocks if the file system is not cleaned, although some may be unusable. Otherwise the reserve, and a
    /// twentieth of the rest, is left for the cleaner.
    fn capacity(&self) -> u64 {
        let blocks = self.blocks - self.retired.min(self.blocks);
        match self.reserve_blocks {
            0 => blocks,
            reserve => blocks.saturating_sub(reserve) / 20 * 19,
        }
    }

    fn admits(&mut self, blocks: u64, _preallocated: u64) -> bool {
        let does = self.free.room() >= blocks;
        if does {
            self.promised = blocks;
        }
        does
    }

    fn set_aside(&mut self, blocks: u64, beside: u64) -> bool {
        let before = self.blocks_aside().unwrap_or(0);
        if blocks <= before {
            self.set_less_aside(before - blocks);
            return true;
        }
        if !self.set_more_aside(blocks - before) {
            return false;
        }
        if self.free.room() < beside {
            self.set_less_aside(blocks - before);
            return false;
        }
        self.promised = beside;
        true
    }

    fn will_set_aside(&self, blocks: u64, freed: &[(u64, u64)], others: u64) -> bool {
        let mut then = self.clone();
        for _ in 0..others {
            let Some(run) = then.take(1, false) else {
                return false;
            };
            then.free.give(run.start + run.length, then.footer);
            then.last = run.start + run.length;
        }
        for (start, length) in freed {
            then.free.give(*start, *length);
        }
        then.set_aside(blocks, 0)
    }

    fn admits_whole(&mut self, sizes: &[u64]) -> bool {
        // If the largest extent has room for all pieces, they fit wherever the allocator puts the first ones.
        let total: u64 = sizes.iter().sum();
        let largest = self.free.largest().map_or(0, |(_, size)| size);
        let does = largest >= total + self.footer;
        if does {
            self.promised = total;
        }
        does
    }

    fn blocks_aside(&self) -> Option<u64> {
        let usable = |run: &Run| run.length.saturating_sub(self.footer);
        Some(self.set_aside.iter().map(usable).sum())
    }

    fn reclaim(&mut self, freed: &Freed) -> ZoneResult<()> {
        for place in &freed.places {
            self.free.give(place.offset.into(), place.blocks.into());
        }
        Ok(())
    }

    fn victim(&mut self, state: &State, _policy: Policy, _pressure: Pressure) -> Option<Victim> {
        // Cleaning that failed, or a part that could not be read, has left less of it.
        if self
            .reserve
            .is_none_or(|rest| rest.length < self.reserve_blocks)
        {
            let rest = self.reserve.take();
            if let Some(rest) = rest {
                self.free.give(rest.start, rest.length);
            }
            self.keep(None);
            if self.reserve.is_none() {
                self.reserve = rest.filter(|rest| self.free.take_at(rest.start, rest.length));
            }
        }
        let reserve = self.reserve?;
        let most = reserve.length.checked_sub(self.footer)?;
        // Runs for preallocated blocks count as live: their blocks are set aside elsewhere.
        let set_aside = self.set_aside.iter();
        let set_aside = set_aside.map(|run| (run.start, self.on_drive(run.start, run.length)));
        let mut runs: Vec<(u64, u64)> = Self::runs(state).chain(set_aside).collect();
        runs.sort_unstable();
        let windows = Windows::new(runs.into_iter(), self.footer, self.blocks);
        let mut barriers = self.broken.clone();
        barriers.insert(reserve.start, reserve.start + reserve.length);
        let window = windows.best(self.reserve_blocks, most, &barriers)?;
        Some(Victim {
            zone: ZONE,
            blocks: window.start as u32..window.end as u32,
        })
    }

    fn cleaned(&mut self, victim: &Victim, mut has_moved: bool) -> bool {
        let part = u64::from(victim.blocks.start)..u64::from(victim.blocks.end);
        if self.broken.overlap(&part) {
            // It could not be read, and it is the turn of another, with what is left of the reserve.
            return true;
        }
        if let Some(rest) = self.reserve.take() {
            self.free.give(rest.start, rest.length);
        }
        let blocks = self.blocks_aside().unwrap_or(0);
        for run in self
            .set_aside
            .extract_if(.., |run| part.contains(&run.start))
        {
            self.free.give(run.start, run.length);
            has_moved = true;
        }
        self.keep_beside(blocks, Some(part.start));
        // Space that was free before is no gain, and may be too short for the reserve: the same victim would be
        // chosen again.
        has_moved
    }

    fn leave(&mut self, _zone: u32, blocks: Range<u32>) {
        self.broken.insert(blocks.start.into(), blocks.end.into());
    }

    fn tries(&self) -> u64 {
        2 * self.free.count() + 8
    }

    fn pressure(&self) -> Option<Pressure> {
        // No cleaning ahead of need: most of these blocks would become free by themselves.
        None
    }

    /// The first extent of a file that may be damaged according to the drive's bitmap.
    fn misplaced(&self, state: &State) -> Option<String> {
        let owners = &state.holding(ZONE)?.owners;
        let bytes = u64::from(self.drive.modesense().block_size);
        owners.iter().find_map(|(offset, owner)| {
            let from = self.at(ZONE, *offset).0 / bytes;
            let to = self.at(ZONE, offset + owner.blocks).0 / bytes;
            let block = self.drive.damaged(from, to)?;
            Some(format!(
                "inode {} has data in block {block} of the drive, which may be damaged",
                owner.ino
            ))
        })
    }

    fn is_unflushed(&self) -> bool {
        self.is_unflushed
    }

    fn flushed(&mut self) {
        self.is_unflushed = false;
    }

    fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    fn usage(&self, _state: &State) -> Usage {
        let free = self.free.free().saturating_sub(self.footer);
        let largest = self
            .free
            .largest()
            .map_or(0, |(start, size)| self.on_drive(start, size));
        Usage {
            dead: 0,
            unusable: free.saturating_sub(self.free.room()),
            room: (self.reserve_blocks == 0).then(|| self.free.room()),
            free: Free::Extents(ExtentSpace {
                free_extents: self.free.count(),
                largest_free_bytes: largest * self.block,
                footer_bytes: self.footer * self.block,
                reserve_bytes: self.reserve.map_or(0, |run| run.length) * self.block,
            }),
        }
    }
}

struct Allocating<'a> {
    extents: &'a mut Extents,
    stream: Stream,
    need: u64,
    together: bool,
    /// Number of runs to which writing has failed.
    failed: u32,
}

impl Zones for Allocating<'_> {
    type Open = Run;
    type Error = Unplaced;
    const MAX_FAILED: u32 = 3;

    fn open(&mut self) -> Result<Run, Unplaced> {
        let run = match self.stream {
            Stream::User => self.extents.take(self.need, self.together),
            Stream::Moved => self.extents.take_reserve(self.need),
            // After a failed write, any free extent serves if no run has the blocks.
            Stream::Preallocated => self
                .extents
                .take_set_aside(self.need)
                .or_else(|| self.extents.take(self.need, self.together)),
        };
        run.ok_or(Unplaced::NoZone)
    }

    fn leave(&mut self, run: Run, why: Left<'_>) -> Result<(), Unplaced> {
        if let Left::Failed(_) = why {
            if self.stream == Stream::Moved {
                // The footer is the front of the reserve.
                self.extents
                    .retire_blocks(run.start, run.start + run.length);
                return Ok(());
            }
            self.extents.retire(run);
            self.failed += 1;
            // After a second failure, the zone below is suspected, not these blocks alone.
            if self.failed > 1 {
                self.extents.retire_beside(run);
            }
        }
        Ok(())
    }

    fn drive_error(error: &Unplaced) -> Option<&ZoneError> {
        match error {
            Unplaced::Drive(error) => Some(error),
            Unplaced::NoZone => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use caveat::CaveatShape;
    use device::MemoryDrive;
    use device::faults::{Fault, Faults, Plan};
    use std::io::ErrorKind;
    use zone::{Geometry, ZoneCommand, ZoneKind};

    const BLOCK: usize = 4096;

    /// Free extents of 10 blocks, of which 7 can be used, with a block between two of them; and a reserve.
    fn extents() -> (Arc<Faults<MemoryDrive>>, Extents) {
        let geometry = Geometry {
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 1 << 20,
            zone_count: 4,
            conventional_zones: 4,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        };
        let below = Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()));
        let shape = CaveatShape {
            block_size: 4096,
            isolation_distance: 3,
            no_overlap_range: 0,
            unshingled_bytes: 256 << 10,
        };
        let drive = Arc::new(CaveatDevice::in_memory(below.clone(), &shape, None).unwrap());
        let shape = Shape {
            block_size: 4096,
            is_whole: false,
            is_caveat: true,
            is_cleaned: true,
            uuid: [0; 16],
            label: String::new(),
            created: 0,
        };
        let mut extents = Extents::new(drive, &shape, Fit::First);
        extents.free.give(0, extents.reserve_blocks);
        extents.keep(None);
        for n in 0..10 {
            extents.free.give(extents.reserve_blocks + 1 + 11 * n, 10);
        }
        (below, extents)
    }

    /// The host's disk is full behind the first of several places.
    #[test]
    fn an_append_that_fails_takes_nothing() {
        let streams = [Stream::User, Stream::Preallocated, Stream::Moved];
        for stream in streams {
            let (below, mut extents) = extents();
            assert!(extents.set_aside(40, 0));
            let has = |extents: &Extents| {
                let set_aside: u64 = extents.set_aside.iter().map(|run| run.length).sum();
                let kept = extents.reserve.unwrap().length;
                (
                    extents.free.free() + set_aside + kept,
                    kept,
                    extents.blocks_aside(),
                )
            };
            let before = has(&extents);
            for (kth, lengths) in [(2, vec![20]), (2, vec![20, 1]), (1, vec![3])] {
                // What moves is in one place.
                let kth = if stream == Stream::Moved { 1 } else { kth };
                let full = Fault::Io(ErrorKind::StorageFull);
                below.add(Plan::at(ZoneCommand::Write, kth, full));
                let blocks: u64 = lengths.iter().sum();
                let data = vec![1; blocks as usize * BLOCK];
                let failed = extents.append_some(stream, &data, &lengths);
                assert!(
                    matches!(failed, Err(Unplaced::Drive(_))),
                    "{stream:?} {lengths:?}"
                );
                assert_eq!(has(&extents), before, "{stream:?}, {lengths:?}");
            }
        }
    }
}
