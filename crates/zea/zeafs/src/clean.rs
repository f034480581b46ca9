//! Moves data: live data out of the emptiest zone, to free that zone; and small pieces together, to shrink the
//! map.

use crate::error::{Error, Result};
use crate::file_map::File;
use crate::format::operation::{Operation, Piece};
use crate::inner::Inner;
use crate::reader::{Part, read_pieces};
use crate::streams::Stream;
use std::collections::{BTreeMap, BTreeSet};
use zea::Instance;
use zone::ZoneId;
use zone_alloc::{Candidate, CleaningPolicy, Greedy, Pressure, ZoneView};

/// Most bytes that are moved as one extent, unless a single piece is larger.
const MOST_TOGETHER: u64 = 4 << 20;

/// Pieces below this size are merged with their neighbours if the map gets large.
const SMALL: u64 = 64 << 10;

/// Consecutive pieces of a file. They are moved as one extent, because a log that was synced line by line
/// consists mostly of padding and extent metadata.
struct Run {
    inode: u64,
    /// Zone of the first piece.
    zone: ZoneId,
    file_offset: u64,
    length: u64,
    parts: Vec<Part>,
}

/// The runs of a file in which `may_follow` allows each piece to follow the one before it.
fn runs(inode: u64, file: &File, may_follow: impl Fn(&Piece, &Piece) -> bool) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (place, piece) in file.pieces.iter().enumerate() {
        let length = file.end_of(place) - piece.file_offset;
        let part = (piece.clone(), 0, length);
        match runs.last_mut() {
            Some(run)
                if run.length + length <= MOST_TOGETHER
                    && run
                        .parts
                        .last()
                        .is_none_or(|last| may_follow(&last.0, piece)) =>
            {
                run.length += length;
                run.parts.push(part);
            }
            _ => runs.push(Run {
                inode,
                zone: piece.at.zone,
                file_offset: piece.file_offset,
                length,
                parts: vec![part],
            }),
        }
    }
    runs
}

fn runs_in_zones(inode: u64, file: &File) -> Vec<Run> {
    runs(inode, file, |before, piece| before.at.zone == piece.at.zone)
}

impl Inner {
    /// Cleans zones until one is free for files.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if no further zone can be freed.
    pub fn make_space(&mut self) -> Result<()> {
        // Dead data may only be waiting for a commit to free its zone.
        self.commit()?;
        let mut turns = self.space.geometry().zone_count.saturating_mul(2);
        // Zones with damaged data are left as they are, so that the data can be examined.
        let mut damaged = BTreeSet::new();
        while self.space.free_for_files() == 0 {
            turns = turns.checked_sub(1).ok_or(Error::NoSpace)?;
            let victim = self.victim(&damaged).ok_or(Error::NoSpace)?;
            match self.clean(victim) {
                Err(error) if error.is_of_place() => {
                    tracing::warn!(%error, zone = %victim, "a zone is not cleaned");
                    damaged.insert(victim);
                }
                cleaned => cleaned?,
            }
        }
        Ok(())
    }

    /// All files, including deleted ones that are still read.
    fn all_files(&self) -> impl Iterator<Item = (u64, &File)> {
        let files = self.map.files.iter().chain(&self.orphans);
        files.map(|(inode, file)| (*inode, file))
    }

    /// The zone with the least live data to move. Zones with few dead bytes are moved only if all of them together free a
    /// zone.
    fn victim(&self, without: &BTreeSet<ZoneId>) -> Option<ZoneId> {
        let g = self.space.geometry();
        let mut live: BTreeMap<ZoneId, u64> = BTreeMap::new();
        for run in self
            .all_files()
            .flat_map(|(inode, file)| runs_in_zones(inode, file))
        {
            // Includes the metadata of the extent that the run will be moved to.
            *live.entry(run.zone).or_default() += g.round_up(run.length) + u64::from(g.block_size);
        }
        // Moving data gains nothing from the end of a zone, which no piece fits into.
        let unused = self.space.least_room();
        let dead = |zone: &Candidate| zone.written.saturating_sub(zone.live);
        let written = self.space.full();
        let zones: Vec<Candidate> = written
            .filter(|(zone, _)| !without.contains(zone))
            .map(|(zone, written)| Candidate {
                zone,
                live: live.get(&zone).copied().unwrap_or(0),
                written,
                filled_at: 0,
            })
            .filter(|zone| dead(zone) > unused)
            .collect();
        // Each zone that is filled again loses its end, and the metadata of a piece that is split there.
        let lost = unused + u64::from(g.block_size);
        let gains = zones.iter().map(|zone| dead(zone).saturating_sub(lost));
        let gained = gains.sum::<u64>() + self.space.room_to_move();
        let view = ZoneView {
            zones: &zones,
            now: 0,
        };
        let least = match gained >= Instance::largest(g) {
            true => Pressure::Any,
            false => Pressure::Urgent,
        };
        let choose = |pressure| Greedy.choose(view, pressure);
        let chosen = choose(Pressure::Urgent).or_else(|| choose(least));
        chosen.map(|victim| victim.zone)
    }

    /// Moves all live pieces out of a zone and resets it.
    fn clean(&mut self, zone: ZoneId) -> Result<()> {
        let live: Vec<Run> = self
            .all_files()
            .flat_map(|(inode, file)| runs_in_zones(inode, file))
            .filter(|run| run.zone == zone)
            .collect();
        for run in live {
            self.move_run(&run)?;
        }
        self.commit()
    }

    /// Merges small consecutive pieces, to make the map smaller. The next frame or checkpoint records it. Pieces that
    /// cannot be merged stay in the map as they were.
    pub fn gather(&mut self) {
        let files = self.map.files.iter();
        let small = |before: &Piece, piece: &Piece| before.length.max(piece.length) < SMALL;
        let many = files.flat_map(|(inode, file)| runs(*inode, file, small));
        let many: Vec<Run> = many.filter(|run| run.parts.len() > 2).collect();
        for run in many {
            // Without the zones kept for the cleaner, none could be freed any more.
            if self.space.stored(run.length) > self.space.room_to_move() {
                continue;
            }
            let Err(error) = self.move_run(&run) else {
                continue;
            };
            tracing::warn!(%error, "pieces of a file stay apart");
            if !error.is_of_place() {
                return;
            }
        }
    }

    fn move_run(&mut self, run: &Run) -> Result<()> {
        let device = self.space.device.clone();
        let data = read_pieces(&*device, &run.parts)?;
        self.moved_bytes += run.length;
        let mut to: Vec<Piece> = Vec::new();
        let mut done = 0;
        while done < data.len() {
            let file_offset = run.file_offset + done as u64;
            let put = self
                .space
                .put(Stream::Moved, run.inode, file_offset, &data[done..]);
            let put = match put {
                Ok(put) => put,
                Err(error) => {
                    self.doomed.extend(to);
                    return Err(error);
                }
            };
            done += put.length as usize;
            to.push(put);
        }
        self.relocate(run.inode, run.file_offset, to);
        Ok(())
    }

    fn relocate(&mut self, inode: u64, file_offset: u64, to: Vec<Piece>) {
        // A deleted file has no name after a crash, so no frame records its move.
        if let Some(file) = self.orphans.get_mut(&inode) {
            let dropped = file.relocate(file_offset, to);
            debug_assert!(dropped.is_ok(), "a run that is none");
            self.doomed.extend(dropped.unwrap_or_default());
            return;
        }
        self.change(Operation::Move {
            inode,
            file_offset,
            to,
        });
    }
}
