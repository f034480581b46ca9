//! Empties a zone by moving its live data, and resets it.
//!
//! Uncommitted data moves too, or one slow upload would keep every zone that it has touched: its writer is told the
//! new place, and no batch is needed.
//! Order: live data is read and verified → written to a stream of the cleaner's → one durable batch moves the blobs,
//! a row each → only then is the zone reset. A blob that changed meanwhile is left to the next pass.
//!
//! A zone with a blob that is damaged or cannot be read is set aside, so that the blob stays and the next zone is cleaned
//! instead. The rest of the zone is moved too, as long as free zones are left to data: it gives no zone back, and must not
//! take those that the cleaner needs for others. If it is not moved, it stays with the blob.

use crate::blob_reader::{ReadError, fragment_range, read_part};
use crate::commit::Change;
use crate::extent_writer::{Stored, append};
use crate::format::key;
use crate::format::record::decode_name;
use crate::found::Found;
use crate::inner::Inner;
use crate::pieces::Pieces;
use crate::rows::corrupt;
use crate::staging::Staging;
use crate::written::Hold;
use crate::{Error, Result};
use kv::{Batch, Durability};
use object::{Blob, BlobName, ChecksumKind};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use zone::{ZoneAddress, ZoneError, ZoneId};
use zone_alloc::Candidate;

/// Most live bytes that one batch of the cleaner moves: it bounds memory, and the time that commits wait for the batch.
const MOVE_AT_ONCE: u64 = 16 << 20;

/// Most live bytes read before any is written: on a disk, each change between reading and writing moves the arm.
const READ_AT_ONCE: u64 = 4 << 20;
/// Reads in a row that the drive may fail in a zone before the rest of it is left: each failure may take the drive seconds.
const MOST_FAILED: u32 = 16;
/// Most bytes of one read or write of the cleaner, so that a user's request waits for no more than that.
const PIECE: usize = 512 << 10;

/// Why a zone could not be cleaned.
pub(crate) enum CleanError {
    /// Something in the zone could not be read: the zone is set aside and another one cleaned.
    Unreadable(Error),
    /// An error that would hit every other zone too.
    Other(Error),
}

impl From<Error> for CleanError {
    fn from(error: Error) -> Self {
        match error {
            // A damaged row, or a block of rows: of entries of the cleaning index in this zone, of a blob that they name, or
            // of what the zone's summaries have copies of.
            Error::CorruptMetadata { .. }
            | Error::BytesLost { .. }
            | Error::Kv(kv::Error::Corruption { .. } | kv::Error::NotFound { .. }) => {
                Self::Unreadable(error)
            }
            _ => Self::Other(error),
        }
    }
}

/// A blob with the copies of its fragments in the victim zone, by fragment index.
struct Move {
    name: BlobName,
    found: Found,
    copies: Vec<(usize, Hold)>,
}

/// What stays in a zone because it cannot be read.
#[derive(Default)]
struct LeftBehind {
    blobs: BTreeSet<BlobName>,
    /// Where runs of uncommitted data begin.
    runs: BTreeSet<ZoneAddress>,
    /// The first error.
    first: Option<Error>,
    /// Reads in a row that the drive has failed.
    failed: u32,
    /// The rest of the zone stays, too.
    is_over: bool,
}

impl LeftBehind {
    /// Whether something stays, and the next turn may go on with the rest. An upload that is damaged keeps the zone set
    /// aside, and is never committed.
    fn has_a_rest(&self) -> bool {
        self.first.is_some() && self.runs.is_empty() && !self.is_over
    }
}

/// Stored bytes of fragments of a blob, by fragment index.
type Parts = Vec<(usize, Vec<u8>)>;

/// Blobs whose fragments in the victim zone have been read and not written yet.
#[derive(Default)]
struct Read {
    bytes: u64,
    blobs: Vec<(BlobName, Found, Parts)>,
}

/// How cleaning a zone ended.
pub(crate) enum Emptied {
    /// The zone was emptied, and reset or taken out of use.
    AndReset,
    /// The zone is empty, but a reader or a moment kept it from being reset.
    NotReset,
    /// Cleaning was stopped before the zone was empty; what had been copied is moved.
    Left,
}

impl Inner {
    /// Moves everything live or uncommitted out of the victim zone, and resets it.
    pub(crate) fn clean_zone(
        &self,
        victim: Candidate,
        pieces: &mut Pieces<'_>,
    ) -> Result<Emptied, CleanError> {
        let mut left = LeftBehind::default();
        let done = self.empty_zone(victim.zone, &mut left, pieces);
        if matches!(done, Ok(Emptied::Left)) && left.has_a_rest() {
            self.freelist.try_again(victim.zone);
        }
        match (done, left.first) {
            // The zone is set aside, and not tried again and again on a full drive.
            (Err(CleanError::Other(error)), Some(first)) if error.is_no_space() => {
                Err(CleanError::Unreadable(first))
            }
            (done, _) => done,
        }
    }

    fn empty_zone(
        &self,
        zone: ZoneId,
        left: &mut LeftBehind,
        pieces: &mut Pieces<'_>,
    ) -> Result<Emptied, CleanError> {
        loop {
            if pieces.are_over() {
                return Ok(Emptied::Left);
            }
            let places = self.places(zone, left)?;
            let all = places.len();
            let moved = if all > 0 {
                self.move_blobs(zone, &places, left, pieces)?
            } else {
                self.move_uncommitted(zone, left, pieces)?
            };
            let wanted = self.freelist.wanted_in(zone);
            if all == 0 && wanted == 0 {
                break;
            }
            if pieces.are_over() {
                continue;
            }
            let is_rest = left.is_over || all == 0 && moved == 0;
            if let Some(error) = left.first.take_if(|_| is_rest) {
                return Err(CleanError::Unreadable(error));
            }
            if moved == 0 {
                self.check_index(zone, left)?;
            }
        }
        pieces.next(0);
        Ok(match self.reset_zone(zone)? {
            true => Emptied::AndReset,
            false => Emptied::NotReset,
        })
    }

    /// Notes that `error` keeps something in `zone`, and sets the zone aside. The rest of the zone stays, too, if the
    /// drive fails one read after the other, or if there is no room for it elsewhere.
    fn leave_behind(&self, zone: ZoneId, left: &mut LeftBehind, error: Error) {
        tracing::error!(%error, %zone, "the cleaner leaves bytes behind that it cannot read");
        let answers = self.set_aside_unreadable(zone, &error);
        left.failed = match &error {
            Error::Unreadable {
                at,
                source: ZoneError::Offline { .. },
                ..
            } if at.zone == zone => MOST_FAILED,
            Error::Unreadable { .. } => left.failed + 1,
            _ => 0,
        };
        // A zone is not set aside while the drive answers nothing.
        left.is_over |= left.failed >= MOST_FAILED
            || !answers
            || !self.freelist.is_unreadable(zone)
            || self.pool.free_for_data() == 0
            || !self.has_room(self.freelist.wanted_in(zone));
        left.first.get_or_insert(error);
    }

    /// Fails unless the cleaner can get on with `zone`: if commits changed all blobs that it wanted to move, it tries
    /// again, but an entry of the cleaning index without its blob would make it try for ever.
    fn check_index(&self, zone: ZoneId, left: &LeftBehind) -> Result<(), CleanError> {
        let _alone = self.mutators.write();
        // What a failed commit may have named is neither moved nor given up.
        self.check_writable()?;
        let places = self.places(zone, left)?;
        for (_, name) in &places {
            let found = Found::look_up(&*self.kv()?, *name)?;
            if found.is_some_and(|found| !fragments_in(zone, found.blob()).is_empty()) {
                return Ok(());
            }
        }
        let has_uncommitted = !self.uncommitted.in_zone(zone).is_empty();
        let wanted = self.freelist.wanted_in(zone);
        match places.first() {
            Some((at, _)) => {
                let (key, what) = (key::cleaning(*at), "a place that no blob has");
                Err(corrupt(&key, what, places.len()).into())
            }
            None if wanted > 0 && !has_uncommitted && left.first.is_none() => {
                let (key, what) = (key::freelist(zone), "live bytes without a place");
                Err(corrupt(&key, what, wanted as usize).into())
            }
            None => Ok(()),
        }
    }

    /// The first entries of `zone` in the cleaning index, over about [`MOVE_AT_ONCE`] bytes, without those of blobs that
    /// are left behind.
    fn places(
        &self,
        zone: ZoneId,
        left: &LeftBehind,
    ) -> Result<Vec<(ZoneAddress, BlobName)>, CleanError> {
        let mut places: Vec<(ZoneAddress, BlobName)> = Vec::new();
        let listed = self.each_place(zone, &mut |at, name| {
            let first = places.first().map_or(at.offset, |(first, _)| first.offset);
            let wanted = at.offset - first < MOVE_AT_ONCE;
            if wanted && !left.blobs.contains(&name) {
                places.push((at, name));
            }
            wanted
        });
        match listed.map_err(|error| CleanError::from(self.of_rows(error))) {
            // What lies in front of a damaged entry is moved before it is met again.
            Err(CleanError::Unreadable(_)) if !places.is_empty() => Ok(places),
            Err(error) => Err(error),
            Ok(()) => Ok(places),
        }
    }

    /// Calls `see` with the entries of `zone` in the cleaning index, in order, until it returns false.
    pub(crate) fn each_place(
        &self,
        zone: ZoneId,
        see: &mut dyn FnMut(ZoneAddress, BlobName) -> bool,
    ) -> Result<()> {
        self.each_place_from(ZoneAddress::new(zone, 0), see)
    }

    /// Like [`Self::each_place`], from a place on.
    pub(crate) fn each_place_from(
        &self,
        from: ZoneAddress,
        see: &mut dyn FnMut(ZoneAddress, BlobName) -> bool,
    ) -> Result<()> {
        let (zone, lower) = (from.zone, key::cleaning(from));
        let upper = key::cleaning(ZoneAddress::new(zone, u64::MAX));
        let kv = self.kv()?;
        for row in kv.scan(&lower, Some(&upper)) {
            let (key, value) = row?;
            let at = key::parse_cleaning(&key)
                .ok_or_else(|| corrupt(&key, "no cleaning key", key.len()))?;
            let name = decode_name(&value)
                .ok_or_else(|| corrupt(&key, "no name of a blob", value.len()))?;
            if !see(at, name) {
                break;
            }
        }
        Ok(())
    }

    /// Moves the fragments of the blobs at `places` in `zone`; returns how many blobs had not changed when the batch
    /// was made. Those that cannot be read are left behind.
    fn move_blobs(
        &self,
        zone: ZoneId,
        places: &[(ZoneAddress, BlobName)],
        left: &mut LeftBehind,
        pieces: &mut Pieces<'_>,
    ) -> Result<usize, CleanError> {
        let (mut moves, mut read) = (Vec::new(), Read::default());
        let mut seen = BTreeSet::new();
        let lost = self.mismatches(zone).map_err(|error| self.of_rows(error))?;
        for (_, name) in places {
            if left.is_over || pieces.are_over() {
                break;
            }
            if !seen.insert(*name) {
                continue;
            }
            let done = self.live_in(zone, *name, &lost).and_then(|live| {
                let Some(found) = live else {
                    return Ok(());
                };
                let here = fragments_in(zone, found.blob());
                let length: u64 = here.iter().map(|(_, length)| u64::from(*length)).sum();
                if read.bytes + length > READ_AT_ONCE {
                    self.write_copies(zone, &mut read, &mut moves, pieces)?;
                }
                let mut parts = Parts::new();
                for (index, _) in here {
                    let bytes = self.fragment(found.blob(), index, pieces, name);
                    let bytes = bytes.map_err(|failed| self.unreadable(failed, name));
                    let bytes = bytes.map_err(CleanError::Unreadable)?;
                    parts.push((index, bytes));
                }
                read.bytes += length;
                read.blobs.push((*name, found, parts));
                Ok(())
            });
            match done {
                Ok(()) => left.failed = 0,
                // Otherwise the drive itself has failed.
                Err(CleanError::Unreadable(error)) if !matches!(error, Error::Drive(_)) => {
                    left.blobs.insert(*name);
                    self.leave_behind(zone, left, error);
                }
                Err(error) => return Err(error),
            }
        }
        self.write_copies(zone, &mut read, &mut moves, pieces)?;
        if moves.is_empty() {
            return Ok(0);
        }
        pieces.next(0);
        let _alone = self.mutators.write();
        let kv = self.kv()?;
        let mut staging = Staging::new(self, &kv);
        let (mut holds, mut moved) = (Vec::new(), 0);
        for Move {
            name,
            found,
            copies,
        } in moves
        {
            if Found::look_up(&kv, name)?.as_ref() != Some(&found) {
                continue;
            }
            moved += 1;
            let mut fresh = Vec::new();
            let blob = found.blob().relocated(|index| {
                let (_, copy) = copies.iter().find(|(copied, _)| *copied == index)?;
                let fragments = staging.note(copy.take());
                fresh.extend_from_slice(&fragments);
                Some(fragments)
            });
            match &found {
                Found::Own(map, end, extent, _) => {
                    staging.rows.move_own(*map, *end, extent, blob, &fresh);
                }
                Found::Shared(id, _) => staging.rows.move_shared(*id, blob, &fresh)?,
            }
            holds.extend(copies.into_iter().map(|(_, copy)| copy));
        }
        let batch = Batch::default();
        let written = self.write_batch(
            &kv,
            &staging,
            batch,
            holds,
            Durability::Synced,
            Change::HasTo,
        );
        written.map_err(CleanError::Other)?;
        Ok(moved)
    }

    /// A blob that has fragments in `zone`; `None` if it has none there any more. Fails if bytes without a checksum are
    /// in the `lost` ranges of the zone.
    fn live_in(
        &self,
        zone: ZoneId,
        name: BlobName,
        lost: &[Range<u64>],
    ) -> Result<Option<Found>, CleanError> {
        let found = Found::look_up(&*self.kv()?, name).map_err(|error| self.of_rows(error))?;
        let Some(found) = found else {
            return Ok(None);
        };
        if fragments_in(zone, found.blob()).is_empty() {
            return Ok(None);
        }
        check_not_lost(zone, (name, found.blob()), lost)?;
        Ok(Some(found))
    }

    /// Writes the fragments in `read`, which came out of `zone`, and adds them to `moves`.
    fn write_copies(
        &self,
        zone: ZoneId,
        read: &mut Read,
        moves: &mut Vec<Move>,
        pieces: &mut Pieces<'_>,
    ) -> Result<()> {
        for (name, found, parts) in std::mem::take(read).blobs {
            let mut copies = Vec::new();
            for (index, bytes) in parts {
                copies.push((index, self.moved_copy(zone, &bytes, Stored::part, pieces)?));
            }
            moves.push(Move {
                name,
                found,
                copies,
            });
        }
        Ok(())
    }

    /// Moves uncommitted data out of `zone`, about [`MOVE_AT_ONCE`] bytes; returns the number of pieces moved. Those that
    /// cannot be read are left behind.
    fn move_uncommitted(
        &self,
        zone: ZoneId,
        left: &mut LeftBehind,
        pieces: &mut Pieces<'_>,
    ) -> Result<usize, CleanError> {
        let mut copies = Vec::new();
        let mut bytes_moved = 0;
        for movable in self.uncommitted.in_zone(zone) {
            let run = &movable.run;
            if left.is_over {
                break;
            }
            if left.runs.contains(&run.piece.at) {
                continue;
            }
            let of = "an upload under way";
            let bytes = match self.fragment(&run.blob(), 0, pieces, of) {
                Ok(bytes) => bytes,
                Err(failed) => match self.unreadable(failed, of) {
                    error @ Error::Drive(_) => return Err(CleanError::Unreadable(error)),
                    error => {
                        left.runs.insert(run.piece.at);
                        self.leave_behind(zone, left, error);
                        continue;
                    }
                },
            };
            left.failed = 0;
            bytes_moved += bytes.len() as u64;
            let copy = self.moved_copy(zone, &bytes, |part| Stored::again(run, part), pieces)?;
            copies.push((movable, copy));
            if bytes_moved >= MOVE_AT_ONCE || pieces.are_over() {
                break;
            }
        }
        // Taken even if nothing was copied: a commit that has taken its pieces has ended after this.
        let _alone = self.mutators.write();
        let moved = copies.len();
        let block_size = self.device.geometry().block_size;
        for (movable, copy) in copies {
            movable.move_to(copy, block_size);
        }
        Ok(moved)
    }

    /// Records a failed read of bytes that `of` names, because finding their object would take a search. The place may
    /// lie in another zone than the victim, beside bytes under the same checksum.
    fn unreadable(&self, failed: ReadError, of: impl fmt::Display) -> Error {
        let at = failed.at;
        let error = failed.of(&of.to_string(), 0);
        self.set_aside_unreadable(at.zone, &error);
        self.note_damage(at);
        error
    }

    /// The stored bytes of a fragment; a failed read is repeated once, as for a user.
    fn fragment(
        &self,
        blob: &Blob,
        index: usize,
        pieces: &mut Pieces<'_>,
        of: impl fmt::Display,
    ) -> Result<Vec<u8>, ReadError> {
        let range = fragment_range(blob, index);
        let mut bytes = Vec::with_capacity(range.len());
        for from in range.clone().step_by(PIECE) {
            let part = from..range.end.min(from + PIECE as u32);
            pieces.next(part.len() as u64);
            let read = || read_part(&*self.device, blob, part.clone());
            bytes.extend(self.read_twice(&of, read)?);
        }
        Ok(bytes)
    }

    /// Appends `bytes`, which came out of `zone`, to a stream of the cleaner's, each part in the form that `stored`
    /// gives. Returns the [`Hold`] that keeps the new places.
    fn moved_copy<'a>(
        &self,
        zone: ZoneId,
        bytes: &'a [u8],
        stored: impl Fn(&'a [u8]) -> Stored<'a>,
        pieces: &mut Pieces<'_>,
    ) -> Result<Hold> {
        let history = self.lifetimes.of_zone(zone);
        let number = self.lifetimes.moved(history, self.freelist.live());
        let mut copy = self.hold();
        for part in bytes.chunks(PIECE) {
            pieces.next(part.len() as u64);
            append(
                self,
                (self.moved.of(number), history),
                stored(part),
                &mut copy,
            )?;
            let block_size = self.device.geometry().block_size as usize;
            let padded = part.len().next_multiple_of(block_size);
            pieces.moved(padded as u64);
        }
        Ok(copy)
    }
}

/// Fails if `blob` has lost bytes in `zone` and no checksum by which a read would tell: once moved, they would count as
/// whole.
fn check_not_lost(
    zone: ZoneId,
    (name, blob): (BlobName, &Blob),
    lost: &[Range<u64>],
) -> Result<()> {
    if blob.checksum_kind != ChecksumKind::None {
        return Ok(());
    }
    for fragment in &blob.fragments {
        let Some(at) = fragment.at.filter(|at| at.zone == zone) else {
            continue;
        };
        let end = at.offset.saturating_add(fragment.length.into());
        if let Some(lost) = lost.iter().find(|l| l.start < end && at.offset < l.end) {
            return Err(Error::BytesLost {
                object: name.to_string(),
                at: ZoneAddress::new(zone, lost.start),
            });
        }
    }
    Ok(())
}

/// The fragments of `blob` that lie in `zone`, by index, with their lengths.
fn fragments_in(zone: ZoneId, blob: &Blob) -> Vec<(usize, u32)> {
    let fragments = blob.fragments.iter().enumerate();
    fragments
        .filter(|(_, fragment)| fragment.at.is_some_and(|at| at.zone == zone))
        .map(|(index, fragment)| (index, fragment.length))
        .collect()
}
