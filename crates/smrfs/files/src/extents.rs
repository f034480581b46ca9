//! Free extents of a Caveat-Scriptor drive (thesis, section 4.4): which are free, which is taken next, and writing to them.
//!
//! A write takes its blocks and, as a footer, as many as it may damage behind them; the footer is free again when the
//! write has succeeded. So nothing that is live is ever damaged, neither for files as they are nor as the last commit
//! has them: what files lose is free behind the next one.
//!
//! For what was preallocated runs of blocks are kept apart from the free ones, each with a footer at its end. What is written
//! goes to the front of a run, whichever block of a file it is, so that it damages nothing but the rest of the run.
//!
//! Cleaning is implicit. If it is wanted, one extent is kept free besides. Once no write fits any more, the live blocks of
//! a part of the drive move there; that part is kept free from then on, and what is left of the first is free.

use crate::layout::Shape;
use crate::map::Place;
use crate::options::Policy;
use crate::placement::{ExtentSpace, Free, Placement, Stream, Unplaced, Usage, Victim};
use crate::state::{Freed, State};
use crate::window::Windows;
use appender::{Left, Zones};
use caveat::{CaveatDevice, Fit, FreeList, Parameters};
use device::ZonedDevice;
use std::sync::Arc;
use zone::{ByteOffset, ZoneError, ZoneResult};
use zone_alloc::Pressure;

/// The zone that all data lies in.
const ZONE: u32 = 0;

/// Blocks of the shingled part.
pub fn blocks(parameters: &Parameters, block: u64) -> u64 {
    (parameters.blocks - parameters.unshingled) * u64::from(parameters.block_size) / block
}

/// A run of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    start: u64,
    length: u64,
}

/// See the head of this file.
#[derive(Clone)]
pub struct Extents {
    drive: Arc<CaveatDevice>,
    /// Bytes of a block.
    block: u64,
    /// Where the shingled part begins.
    start: u64,
    blocks: u64,
    /// Blocks that a write may damage behind it.
    footer: u64,
    /// As many blocks as a footer has lie behind the end of the drive: nothing is there to be damaged.
    free: FreeList,
    fit: Fit,
    /// Behind the last allocation.
    last: u64,
    /// Blocks that have to find room; as one piece if files are whole.
    promised: u64,
    is_whole: bool,
    /// Runs that only what was preallocated is written to, footers included.
    set_aside: Vec<Run>,
    /// Blocks that are kept free for cleaning; 0 if there is none.
    reserve_blocks: u64,
    reserve: Option<Run>,
    /// Blocks where writing failed, until the next mount.
    retired: u64,
    is_unflushed: bool,
    bytes_written: u64,
}

impl Extents {
    /// With nothing free yet.
    pub fn new(drive: Arc<CaveatDevice>, shape: &Shape, fit: Fit) -> Self {
        let parameters = drive.modesense();
        let block = u64::from(shape.block_size);
        let bytes = u64::from(parameters.block_size);
        let blocks = blocks(&parameters, block);
        let footer = (parameters.isolation_distance * bytes).div_ceil(block);
        // With a twentieth of the drive free, as much as a footer and more is free somewhere in it.
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

    /// What of a run is blocks of the drive: behind them is room for the footer of the last extent, and a run may lie in that alone.
    fn on_drive(&self, start: u64, length: u64) -> u64 {
        length.min(self.blocks.saturating_sub(start))
    }

    /// Whether an extent may be split in the middle, and what was promised still finds room.
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

    /// Takes blocks with their footer: all that are needed, or as many as the largest extent has.
    fn take(&mut self, need: u64, together: bool) -> Option<Run> {
        self.take_behind(need, together, None)
    }

    /// The same, as if a write had ended at block `last`.
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

    /// Takes as many of some pieces as lie one behind the other, if each is put where it would go by itself; how many.
    fn take_some(&mut self, lengths: &[u64]) -> Option<(Run, usize)> {
        let (first, others) = lengths.split_first()?;
        let mut run = self.take(*first, false)?;
        let mut count = 1;
        for length in others {
            let end = run.start + run.length;
            if run.length < *first {
                break;
            }
            // Its footer is free when it is written, which it is by the same write.
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

    /// Takes blocks of what is kept free.
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

    /// Takes blocks of what is set aside, from the front of a run.
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

    /// The run of what is set aside that begins at `start`.
    fn rest_at(&mut self, start: u64) -> Option<usize> {
        self.set_aside.iter().position(|run| run.start == start)
    }

    /// Behind a write to `run`; `false` if it was not taken of what is set aside.
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

    /// Sets so many blocks more aside: in one run if one is long enough.
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

    /// Gives so many blocks back that are set aside.
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
                // Nothing is wrong with these.
                if stream != Stream::Moved && !self.took_set_aside(run, false) {
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

    /// Writing to a run failed: what is there, and what lies behind it, is used no more until the next mount.
    fn retire(&mut self, run: Run) {
        if let Some(rest) = self.rest_at(run.start + run.length) {
            let rest = self.set_aside.swap_remove(rest);
            let behind = rest.length - self.footer;
            self.free.give(rest.start + self.footer, behind);
        }
        self.retired += run.length + self.footer;
    }

    /// The same of all that is free in the zones of the drive below that a run lies in.
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
                self.retired += end - start;
            }
        }
    }

    /// Keeps an extent free for cleaning: this one, or the largest.
    fn keep(&mut self, wanted: Option<u64>) {
        let size = self.reserve_blocks;
        if size == 0 {
            return;
        }
        let wanted = wanted.filter(|start| self.free.take_at(*start, size));
        let start = wanted.or_else(|| {
            // The blocks behind the end are none.
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
}

impl Placement for Extents {
    fn load(&mut self, state: &State) -> ZoneResult<()> {
        let mut end = 0;
        for (start, length) in Self::runs(state) {
            self.free.give(end, start - end);
            end = start + length;
        }
        self.free.give(end, self.blocks + self.footer - end);
        self.keep(None);
        if !self.set_aside(state.preallocated(), 0) {
            // What was promised to files goes first.
            if let Some(reserve) = self.reserve.take() {
                self.free.give(reserve.start, reserve.length);
            }
            if !self.set_aside(state.preallocated(), 0) {
                tracing::warn!("there is less room than was preallocated");
            }
            self.keep(None);
        }
        Ok(())
    }

    fn begin(&mut self, _state: &State) -> ZoneResult<()> {
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
            let place = appender::append(&mut allocating, |allocating, run| {
                let part = &rest[..(run.length * block) as usize];
                allocating.extents.write(*run, part, stream).map(Some)
            })?;
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
                    let mut places = self.append(stream, rest, false)?;
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

    /// All of it if cleaning is implicit, and nobody knows how much of that can be used. A twentieth is left for the cleaner.
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
        // Wherever the allocator puts them: the largest extent has room for those that are left.
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
        let reserve = self.reserve?;
        let most = reserve.length.checked_sub(self.footer)?;
        // What is set aside is as good as live: nothing in it moves, and it is not free.
        let set_aside = self.set_aside.iter();
        let set_aside = set_aside.map(|run| (run.start, self.on_drive(run.start, run.length)));
        let mut runs: Vec<(u64, u64)> = Self::runs(state).chain(set_aside).collect();
        runs.sort_unstable();
        let windows = Windows::new(runs.into_iter(), self.footer, self.blocks);
        let barrier = reserve.start..reserve.start + reserve.length;
        let window = windows.best(self.reserve_blocks, most, &barrier)?;
        Some(Victim {
            zone: ZONE,
            blocks: window.start as u32..window.end as u32,
        })
    }

    fn cleaned(&mut self, victim: &Victim, has_moved: bool) -> bool {
        if let Some(rest) = self.reserve.take() {
            self.free.give(rest.start, rest.length);
        }
        self.keep(Some(victim.blocks.start.into()));
        // What was free before is no gain, and would be chosen again: it may be too short to be kept.
        has_moved
    }

    fn tries(&self) -> u64 {
        2 * self.free.count() + 8
    }

    fn pressure(&self) -> Option<Pressure> {
        // Only when it is needed: most of what is cleaned ahead would have been free of itself.
        None
    }

    /// The first extent that the drive says may be damaged.
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
    /// Runs to which writing has failed.
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
            // Where writing has failed, whatever is free has to do.
            Stream::Preallocated => self
                .extents
                .take_set_aside(self.need)
                .or_else(|| self.extents.take(self.need, self.together)),
        };
        run.ok_or(Unplaced::NoZone)
    }

    fn leave(&mut self, run: Run, why: Left<'_>) -> Result<(), Unplaced> {
        if let Left::Failed(_) = why
            && self.stream != Stream::Moved
        {
            self.extents.retire(run);
            self.failed += 1;
            // It is not these blocks alone.
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
