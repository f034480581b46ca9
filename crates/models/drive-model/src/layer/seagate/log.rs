//! The persistent cache as a circular log of journal entries in half tracks. Space is freed only at its tail, where
//! an entry has no live block left. A block is live while it is the newest copy.

use super::extents::Extents;
use crate::mechanics::Turn;
use crate::request::Pba;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Entry {
    /// First half track of the entry.
    first: u32,
    half_tracks: u32,
    payload: u64,
    /// Number of live blocks.
    live: u64,
    /// The logical blocks that the entry was written with.
    ranges: Vec<(u64, u64)>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Log {
    size: u32,
    half_track_blocks: u32,
    entries: VecDeque<Entry>,
    /// Number of the oldest entry.
    oldest: u64,
    /// Half track where the next entry begins, and number of half tracks in use.
    head: u32,
    used: u32,
    payload: u64,
}

impl Log {
    pub fn new(size: u32, half_track_blocks: u32) -> Self {
        Self {
            size,
            half_track_blocks,
            entries: VecDeque::new(),
            oldest: 0,
            head: 0,
            used: 0,
            payload: 0,
        }
    }

    /// Length of a number of blocks on the medium, as time and as blocks.
    pub fn length(&self, blocks: u64, rotation: Span) -> (Span, u64) {
        let track = 2 * u128::from(self.half_track_blocks);
        let nanos = u128::from(rotation.nanos()) * u128::from(blocks) / track;
        (Span::from_nanos(nanos as u64), blocks)
    }

    /// Length of a number of half tracks on the medium, as time and as blocks.
    pub fn half_tracks(&self, half_tracks: u32, rotation: Span) -> (Span, u64) {
        self.length(
            u64::from(half_tracks) * u64::from(self.half_track_blocks),
            rotation,
        )
    }

    /// Number of entries ever written.
    pub fn entries(&self) -> u64 {
        self.oldest + self.entries.len() as u64
    }

    /// Number of the host's blocks between tail and head.
    pub const fn payload(&self) -> u64 {
        self.payload
    }

    /// Position of a block of a half track. Half tracks of the log follow each other without skew, so the position is
    /// a matter of the angle alone.
    fn at(&self, half_track: u32, offset: u32) -> (Pba, Turn) {
        let half = u64::from(self.half_track_blocks);
        let pba = Pba(u64::from(half_track) * half + u64::from(offset));
        let within = (u64::from(offset) << 31) / half;
        (pba, Turn((half_track << 31).wrapping_add(within as u32)))
    }

    /// Position where the next entry begins.
    pub fn head(&self) -> (Pba, Turn) {
        self.at(self.head, 0)
    }

    /// Position of a block of an entry.
    pub fn place(&self, entry: u64, offset: u32) -> (Pba, Turn) {
        let entry = &self.entries[(entry - self.oldest) as usize];
        self.at(entry.first, offset)
    }

    /// Number of half tracks at the end of the log that are skipped because the entry does not fit there.
    const fn gap(&self, half_tracks: u32) -> u32 {
        if self.head + half_tracks > self.size {
            self.size - self.head
        } else {
            0
        }
    }

    pub const fn has_room(&self, half_tracks: u32) -> bool {
        self.used + self.gap(half_tracks) + half_tracks <= self.size
    }

    /// Appends an entry; returns its number and position.
    pub fn push(&mut self, half_tracks: u32, ranges: &[(u64, u64)]) -> (u64, (Pba, Turn)) {
        let gap = self.gap(half_tracks);
        if gap > 0 {
            // The gap belongs to the entry before it, and is freed with that.
            if let Some(last) = self.entries.back_mut() {
                last.half_tracks += gap;
                self.used += gap;
            }
            self.head = 0;
        }
        let payload = ranges.iter().map(|(_, blocks)| blocks).sum();
        let first = self.head;
        self.entries.push_back(Entry {
            first,
            half_tracks,
            payload,
            live: payload,
            ranges: ranges.to_vec(),
        });
        self.head = (self.head + half_tracks) % self.size;
        self.used += half_tracks;
        self.payload += payload;
        (self.entries() - 1, self.at(first, 0))
    }

    /// Marks blocks of an entry as dead: a newer copy exists.
    pub fn dies(&mut self, entry: u64, blocks: u32) {
        self.entries[(entry - self.oldest) as usize].live -= u64::from(blocks);
    }

    /// Frees dead entries at the tail.
    pub fn trim(&mut self) {
        while let Some(entry) = self.entries.front()
            && entry.live == 0
        {
            self.used -= entry.half_tracks;
            self.payload -= entry.payload;
            self.entries.pop_front();
            self.oldest += 1;
        }
    }

    /// The oldest live block.
    pub fn oldest_live(&self, extents: &Extents) -> Option<u64> {
        let entry = self.entries.front()?;
        entry.ranges.iter().find_map(|(lba, blocks)| {
            let pieces = extents.pieces(*lba, *blocks);
            let mine =
                |p: &&super::extents::Piece| p.cached.is_some_and(|e| e.entry == self.oldest);
            pieces.iter().find(mine).map(|piece| piece.lba)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn of an hour and all half tracks that there can be.
    #[test]
    fn no_profile_has_too_long_a_log() {
        let hour = Span::from_seconds(3_600.0);
        let log = Log::new(u32::MAX, 1 << 19);
        let (time, _) = log.half_tracks(1 << 20, hour);
        assert_eq!(time.nanos(), hour.nanos() << 19);
    }
}
