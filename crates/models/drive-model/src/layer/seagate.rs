//! A translation layer like that of Seagate's ST5000AS0011, as far as the main document found it
//! out (chapter 2, table 2.3): one persistent cache at the outer diameter, a circular log of journal
//! entries in half tracks; a bounded map of extents, merged into the middle of the disk every 240
//! entries; bands cleaned in the order of their oldest block, by reading, merging, a copy in the
//! cache and overwriting in place; long sequential writes straight to the bands.

mod bands;
mod damage;
mod extents;
mod log;

use super::direct::nearest;
use super::{Cleaning, Layer, Turnout};
use crate::disk::Disk;
use crate::mechanics::Access;
use crate::queue::{QUEUE_DEPTH, Queue, Served, Waiting};
use crate::request::{Failure, Lba, Pba, RequestKind};
use crate::time::{Span, Time};
use bands::Bands;
use damage::Damage;
use extents::{CachedRun, Extents};
use log::Log;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Parameters of the layer, as in a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeagateShape {
    /// Half tracks of the persistent cache (its raw size).
    pub cache_half_tracks: u32,
    /// Blocks of 4 KiB of the host that fit in a half track of a journal entry.
    pub half_track_payload_blocks: u32,
    /// Half tracks written with every journal entry that hold no blocks of the host.
    pub out_of_band_half_tracks: u32,
    /// Longest journal entry in half tracks, without the out-of-band ones.
    pub entry_max_half_tracks: u32,
    /// Microseconds at the end of an entry in which nothing is written, so that the next entry can follow without a
    /// missed turn.
    pub entry_gap_us: f64,
    /// Microseconds from the end of an extent that cleaning reads from the cache until it can read the next one: an
    /// extent that passes under the head before that costs another turn.
    pub extent_read_gap_us: f64,
    /// Number of the host's blocks in the cache at which cleaning begins.
    pub cache_payload_blocks: u32,
    /// Number of extents in the map at which cleaning begins.
    pub map_extents: u32,
    /// The map is merged after every so many entries.
    pub map_merge_entries: u32,
    /// Milliseconds that merging the map takes in the middle of the disk.
    pub map_merge_ms: f64,
    /// Milliseconds that updating the map takes in the middle of the disk after a band was cleaned.
    pub map_update_ms: f64,
    /// Number of tracks in a band.
    pub band_tracks: u32,
    /// Milliseconds without a request after which cleaning begins.
    pub idle_before_cleaning_ms: f64,
    /// A sequential run of at least this many blocks is written to its bands directly, if the volatile cache is on; 0
    /// for never.
    pub stream_min_blocks: u32,
    /// Milliseconds that the drive waits for a run to become long enough.
    pub stream_wait_ms: f64,
}

/// A translation layer like that of the ST5000AS0011; see the head of this file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Seagate {
    shape: SeagateShape,
    blocks: u64,
    bands: Bands,
    extents: Extents,
    log: Log,
    volatile_cache: bool,
    stream: Option<Stream>,
    /// The last write of the stream, by band.
    streamed: Vec<Streamed>,
    damage: Damage,
    last_request: Time,
    cleaning: Cleaning,
}

/// A run of blocks that is being written to its bands directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Stream {
    /// First block of the stream in its present band, and the next block.
    first: u64,
    next: u64,
}

/// The blocks of a write of a stream that lie in one band.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Streamed {
    /// First block of the stream in the band.
    first: u64,
    /// First block of the write in the band.
    from: u64,
    blocks: u64,
    began: Time,
    ended: Time,
}

impl Streamed {
    /// Number of its blocks that are on the medium at `now`.
    fn reached(&self, now: Time) -> u64 {
        let whole = self.ended.since(self.began).nanos();
        let part = now.since(self.began).nanos().min(whole);
        if whole == 0 {
            return self.blocks;
        }
        (u128::from(self.blocks) * u128::from(part) / u128::from(whole)) as u64
    }
}

/// A single write of at least this many blocks may be the start of a stream.
const LARGE_BLOCKS: u32 = 64;

impl Seagate {
    /// A drive of `blocks` logical blocks. Every block has a fixed place after the cache.
    pub fn new(shape: &SeagateShape, blocks: u64, disk: &Disk) -> Self {
        let half_track = Self::half_track_blocks(disk);
        let cache_blocks = Self::cache_blocks(shape, disk);
        let geometry = disk.mechanics().geometry();
        Self {
            shape: shape.clone(),
            blocks,
            bands: Bands::new(geometry, cache_blocks, blocks, shape.band_tracks),
            extents: Extents::default(),
            log: Log::new(shape.cache_half_tracks, half_track as u32),
            volatile_cache: false,
            stream: None,
            streamed: Vec::new(),
            damage: Damage::default(),
            last_request: Time::START,
            cleaning: Cleaning::default(),
        }
    }

    /// Number of blocks on half a track of the cache.
    pub fn half_track_blocks(disk: &Disk) -> u64 {
        disk.track_blocks(Pba(0)) / 2
    }

    /// Number of blocks of the cache.
    pub fn cache_blocks(shape: &SeagateShape, disk: &Disk) -> u64 {
        u64::from(shape.cache_half_tracks) * Self::half_track_blocks(disk)
    }

    fn read(&mut self, disk: &mut Disk, now: Time, lba: u64, blocks: u64) -> Time {
        let mut at = now;
        for piece in self.extents.pieces(lba, blocks) {
            at = match piece.cached {
                Some(extent) => self.read_log(disk, at, extent.entry, extent.offset, piece.blocks),
                None => disk.read(at, self.bands.native(piece.lba), piece.blocks),
            };
        }
        at
    }

    fn read_log(&self, disk: &mut Disk, now: Time, entry: u64, offset: u32, blocks: u64) -> Time {
        let rotation = disk.mechanics().geometry().rotation();
        let length = self.log.length(blocks, rotation);
        disk.access_at_angle(now, self.log.place(entry, offset), length, Access::Read)
    }

    /// Serves the oldest writes, as many as fit in one journal entry.
    fn write_entry(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        let at = self.end_stream(disk, now);
        let half_track = u64::from(self.shape.half_track_payload_blocks);
        let room = half_track * u64::from(self.shape.entry_max_half_tracks);
        let mut batch: Vec<Waiting> = Vec::new();
        let mut payload = 0;
        while batch.len() < QUEUE_DEPTH {
            let fits = |w: &Waiting| {
                let blocks = u64::from(w.request.blocks);
                payload == 0 || payload + blocks <= room
            };
            let writes = |w: &Waiting| w.request.operation.is_write();
            let oldest = queue.iter().position(|w| w.ready <= now && writes(w));
            let Some(index) = oldest.filter(|i| queue.iter().nth(*i).is_some_and(fits)) else {
                break;
            };
            let waiting = queue.remove(index);
            payload += u64::from(waiting.request.blocks);
            batch.push(waiting);
        }
        let ranges: Vec<(u64, u64)> = (batch.iter())
            .map(|w| (w.request.lba.0, u64::from(w.request.blocks)))
            .collect();
        let at = self.append(disk, at, &ranges);
        let served = |waiting| Served {
            waiting,
            at,
            result: Ok(()),
        };
        Turnout::Served(batch.into_iter().map(served).collect(), at)
    }

    /// Writes blocks to the log, in as many entries as they need.
    fn append(&mut self, disk: &mut Disk, now: Time, ranges: &[(u64, u64)]) -> Time {
        let mut at = now;
        let half_track = u64::from(self.shape.half_track_payload_blocks);
        let room = half_track * u64::from(self.shape.entry_max_half_tracks);
        let mut rest: Vec<(u64, u64)> = ranges.to_vec();
        while !rest.is_empty() {
            let mut here: Vec<(u64, u64)> = Vec::new();
            let mut payload = 0;
            while payload < room
                && let Some((lba, blocks)) = rest.first_mut()
            {
                let part = (*blocks).min(room - payload);
                here.push((*lba, part));
                payload += part;
                (*lba, *blocks) = (*lba + part, *blocks - part);
                if *blocks == 0 {
                    rest.remove(0);
                }
            }
            let journal = payload.div_ceil(half_track) as u32;
            let half_tracks = journal + self.shape.out_of_band_half_tracks;
            at = self.make_room(disk, at, half_tracks, payload, here.len());
            at = self.write_to_log(disk, at, half_tracks, &here);
        }
        at
    }

    fn write_to_log(
        &mut self,
        disk: &mut Disk,
        now: Time,
        half_tracks: u32,
        ranges: &[(u64, u64)],
    ) -> Time {
        let (entry, first) = self.log.push(half_tracks, ranges);
        let rotation = disk.mechanics().geometry().rotation();
        let (sweep, blocks) = self.log.half_tracks(half_tracks, rotation);
        let gap = Span::from_micros(self.shape.entry_gap_us);
        let mut at = disk.access_at_angle(now, first, (sweep - gap, blocks), Access::Write);
        let mut offset = 0;
        for (lba, blocks) in ranges {
            for gone in self.extents.insert(CachedRun {
                lba: *lba,
                blocks: *blocks as u32,
                entry,
                offset,
            }) {
                self.log.dies(gone.entry, gone.blocks);
            }
            self.damage.overwritten(*lba, *blocks);
            offset += *blocks as u32;
        }
        self.log.trim();
        if self
            .log
            .entries()
            .is_multiple_of(u64::from(self.shape.map_merge_entries))
        {
            let middle = disk.mechanics().geometry().cylinders() / 2;
            at = disk.seek_to(at, middle) + Span::from_millis(self.shape.map_merge_ms);
        }
        at
    }

    /// Cleans until an entry fits: in the log, in the limit on payload and in the map.
    fn make_room(
        &mut self,
        disk: &mut Disk,
        now: Time,
        half_tracks: u32,
        payload: u64,
        extents: usize,
    ) -> Time {
        let mut at = now;
        let full = |this: &Self| {
            !this.log.has_room(half_tracks)
                || this.log.payload() + payload > u64::from(this.shape.cache_payload_blocks)
                || this.extents.len() + extents > this.shape.map_extents as usize
        };
        while full(self) && !self.extents.is_empty() {
            self.cleaning.urgent_bands += 1;
            at = self.clean(disk, at);
        }
        at
    }

    /// Cleans the band of the oldest block in the cache (Algorithm 1).
    fn clean(&mut self, disk: &mut Disk, now: Time) -> Time {
        let Some(block) = self.log.oldest_live(&self.extents) else {
            return now;
        };
        let band = self.bands.band(block);
        let native = self.bands.native(band.first);
        let mut at = disk.fetch(now, native, band.blocks);
        let cached = self.extents.remove(band.first, band.blocks);
        at = self.read_cached(disk, at, &cached);
        // Writes a copy to the cache first: a power cut may interrupt the overwrite of the band.
        let rotation = disk.mechanics().geometry().rotation();
        let copy = self.log.length(band.blocks, rotation);
        at = disk.access_at_angle(at, self.log.head(), copy, Access::Write);
        at = disk.write(at, native, band.blocks);
        let middle = disk.mechanics().geometry().cylinders() / 2;
        at = disk.seek_to(at, middle) + Span::from_millis(self.shape.map_update_ms);
        for extent in cached {
            self.log.dies(extent.entry, extent.blocks);
        }
        self.log.trim();
        self.cleaning.bands += 1;
        self.cleaning.nanos += at.since(now).nanos();
        at
    }

    /// Reads extents from the cache, entry by entry. Each is a read of its own, and the next one can begin only a gap
    /// later: most of several adjacent extents are missed and read in another turn, as the paper saw when it read
    /// such blocks one by one (section 2.4.3).
    fn read_cached(&self, disk: &mut Disk, now: Time, extents: &[CachedRun]) -> Time {
        let gap = Span::from_micros(self.shape.extent_read_gap_us);
        let mut entries: BTreeMap<u64, Vec<CachedRun>> = BTreeMap::new();
        for extent in extents {
            let here = entries.entry(extent.entry).or_default();
            match here.last_mut() {
                // Extents that are consecutive both in the entry and on the drive are read as one.
                Some(last) if last.is_followed_by(extent) => last.blocks += extent.blocks,
                _ => here.push(*extent),
            }
        }
        let mut at = now;
        for (entry, mut rest) in entries {
            let place = |extent: &CachedRun| self.log.place(entry, extent.offset);
            while let Some(nearest) =
                (0..rest.len()).min_by_key(|n| disk.reach_at_angle(at + gap, place(&rest[*n])))
            {
                let extent = rest.swap_remove(nearest);
                let blocks = u64::from(extent.blocks);
                at = self.read_log(disk, at + gap, entry, extent.offset, blocks);
            }
        }
        at
    }

    /// Number of blocks that wait in one run from the oldest write on, and the time until which more of the run may
    /// arrive.
    fn run(&self, queue: &Queue, first: &Waiting) -> (u64, Time) {
        let (mut end, mut newest) = (first.request.end(), first.submitted);
        let mut blocks = u64::from(first.request.blocks);
        for waiting in queue.iter().filter(|w| w.request.operation.is_write()) {
            if waiting.request.lba == end && waiting.tag > first.tag {
                end = waiting.request.end();
                newest = waiting.submitted;
                blocks += u64::from(waiting.request.blocks);
            }
        }
        (
            blocks,
            newest + Span::from_millis(self.shape.stream_wait_ms),
        )
    }

    /// Writes the first request of a run to its band.
    fn write_stream(&mut self, disk: &mut Disk, now: Time, waiting: Waiting) -> Turnout {
        let (lba, blocks) = (waiting.request.lba.0, u64::from(waiting.request.blocks));
        let mut at = now;
        if self.stream.is_some_and(|s| s.next != lba) {
            at = self.end_stream(disk, at);
        }
        let at = self.stream_on(disk, at, lba, blocks);
        self.last_request = at;
        Turnout::one(waiting, at, Ok(()))
    }

    fn stream_on(&mut self, disk: &mut Disk, now: Time, lba: u64, blocks: u64) -> Time {
        let mut at = now;
        let mut done = 0;
        self.streamed.clear();
        while done < blocks {
            let next = lba + done;
            let band = self.bands.band(next);
            let here = (blocks - done).min(band.first + band.blocks - next);
            let began = at;
            at = disk.write(at, self.bands.native(next), here);
            let goes_on = self.stream.filter(|s| s.next == next && next != band.first);
            let first = goes_on.map_or(next, |s| s.first);
            self.stream = Some(Stream {
                first,
                next: next + here,
            });
            self.streamed.push(Streamed {
                first,
                from: next,
                blocks: here,
                began,
                ended: at,
            });
            for gone in self.extents.remove(next, here) {
                self.log.dies(gone.entry, gone.blocks);
            }
            self.damage.overwritten(next, here);
            if next + here == band.first + band.blocks {
                self.cleaning.streamed_bands += 1;
            }
            done += here;
        }
        self.log.trim();
        at
    }

    /// Ends a stream: restores the blocks after its end in the band, which the last written track has overlapped.
    fn end_stream(&mut self, disk: &mut Disk, now: Time) -> Time {
        let Some(stream) = self.stream.take() else {
            return now;
        };
        let band = self.bands.band(stream.next - 1);
        let rest = band.first + band.blocks - stream.next;
        if rest == 0 {
            return now;
        }
        let native = self.bands.native(stream.next);
        let at = disk.fetch(now, native, rest);
        disk.write(at, native, rest)
    }
}

impl Layer for Seagate {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn serve(&mut self, disk: &mut Disk, now: Time, queue: &mut Queue) -> Turnout {
        let reads = |w: &&Waiting| w.ready <= now && w.request.operation == RequestKind::Read;
        let due = queue.oldest(now).and_then(|oldest| queue.get(oldest));
        let write_is_due = due.is_some_and(|w| w.is_due() && w.request.operation.is_write());
        if queue.has_reads()
            && !write_is_due
            && let Some(oldest) = queue.iter().find(reads).map(|w| w.tag)
        {
            let place = |lba: u64| match self.extents.at(lba) {
                Some(extent) => self.log.place(extent.entry, extent.offset).0,
                None => self.bands.native(lba),
            };
            let nearest = nearest(disk, now, queue, place, |w| {
                w.request.operation == RequestKind::Read
            });
            let index = nearest
                .or_else(|| queue.iter().position(|w| w.tag == oldest))
                .unwrap_or(0);
            let waiting = queue.serve(index, now);
            let (lba, blocks) = (waiting.request.lba, waiting.request.blocks);
            let at = self.read(disk, now, lba.0, u64::from(blocks));
            self.last_request = at;
            let result = match self.unreadable(lba, u64::from(blocks)) {
                Some(lba) => Err(Failure::Unreadable { lba }),
                None => Ok(()),
            };
            return Turnout::one(waiting, at, result);
        }
        let first = queue.oldest(now).unwrap_or(0);
        let least = u64::from(self.shape.stream_min_blocks);
        if self.volatile_cache
            && least > 0
            && let Some(waiting) = queue.iter().nth(first).copied()
            && waiting.acknowledged
        {
            let goes_on = self.stream.is_some_and(|s| s.next == waiting.request.lba.0);
            let (run, until) = if goes_on {
                (least, now)
            } else {
                self.run(queue, &waiting)
            };
            if run >= least {
                let waiting = queue.remove(first);
                return self.write_stream(disk, now, waiting);
            }
            let flushing = queue.has_flushes();
            let may_grow =
                waiting.request.blocks >= LARGE_BLOCKS || run > u64::from(waiting.request.blocks);
            if may_grow && until > now && !flushing {
                return Turnout::NotBefore(until);
            }
        }
        let turnout = self.write_entry(disk, now, queue);
        if let Turnout::Served(_, at) = &turnout {
            self.last_request = *at;
        }
        turnout
    }

    fn idle(&mut self, disk: &mut Disk, from: Time, until: Time) -> Time {
        let before = Span::from_millis(self.shape.idle_before_cleaning_ms);
        let mut at = from.max(self.last_request + before);
        let mut busy = from;
        while at < until && self.is_dirty() {
            at = if self.stream.is_some() {
                self.end_stream(disk, at)
            } else {
                self.clean(disk, at)
            };
            busy = at;
        }
        busy
    }

    fn set_volatile_cache(&mut self, on: bool) {
        self.volatile_cache = on;
    }

    fn power_cut(&mut self, disk: &Disk, now: Time) {
        let streamed = std::mem::take(&mut self.streamed);
        if self.stream.take().is_none() {
            return;
        }
        let under_way = streamed.iter().find(|part| part.ended > now);
        let Some(last) = under_way.or(streamed.last()) else {
            return;
        };
        let position = last.from + last.reached(now);
        let band = self.bands.band(last.from);
        let native = self.bands.native(position);
        let track = disk.mechanics().geometry().place(native).track;
        let torn = damage::torn(
            last.first..position,
            self.bands.logical(track.first),
            u64::from(track.blocks),
            band.first + band.blocks,
        );
        for range in torn {
            self.damage.add(range);
        }
    }

    /// Blocks of a journal entry count when it is whole: only then does the map name it.
    fn reached(&self, _disk: &Disk, now: Time) -> u64 {
        match self.stream {
            Some(_) => self.streamed.iter().map(|part| part.reached(now)).sum(),
            None => 0,
        }
    }

    fn unreadable(&self, lba: Lba, blocks: u64) -> Option<Lba> {
        let damaged = self.damage.first(lba.0, blocks)?;
        // A newer copy in the cache is unharmed.
        let native = |piece: &extents::Piece| piece.cached.is_none();
        self.extents
            .pieces(damaged, lba.0 + blocks - damaged)
            .into_iter()
            .filter(native)
            .find_map(|piece| self.damage.first(piece.lba, piece.blocks))
            .map(Lba)
    }

    fn cleaning(&self) -> Cleaning {
        self.cleaning
    }

    fn is_dirty(&self) -> bool {
        self.stream.is_some() || !self.extents.is_empty()
    }
}
