//! Scrubs: reads both copies of all data, and repairs a damaged copy by moving the live data of its zone into another
//! pair.

use crate::combine::combined;
use crate::format::crc32c;
use crate::format::log_record::HEADER;
use crate::format::operation::Kind;
use crate::metadata_copies::MetadataCopies;
use crate::mirror::Mirror;
use crate::move_log::{record_at, record_in_copy};
use crate::node::{Node, Piece, matches};
use crate::ring::reads_beside;
use crate::shared::Shared;
use crate::tenants::Need;
use crate::worn_out::is_worn_out;
use crate::{Error, Result};
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneError, ZoneId};

/// The journal's name among lost files.
const JOURNAL: &str = "the journal";

/// Result of a scrub of all files.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scrubbed {
    /// Places where a copy was newly found damaged, or pairs of zones whose damage was known and has been mended now; their
    /// data has been written again, or is going to be.
    pub repaired: u32,
    /// Files with bytes that are damaged in all copies.
    pub lost: Vec<String>,
}

/// Result of comparing the copies of a piece.
enum Looked {
    /// The copy that is read first is right, or both together are, which is read only after a move.
    Right,
    /// The copy that is read first is wrong, and the other one is right.
    Turned,
    Lost,
}

impl Shared {
    /// See [`crate::BlueFs::scrub`].
    pub fn scrub(&self, goes: &mut dyn FnMut(u64) -> bool) -> Result<Option<Scrubbed>> {
        let known = self.device.damaged();
        let mut turned = 0;
        let mut lost = Vec::new();
        let nodes: Vec<_> = self.state.lock().names.nodes.values().cloned().collect();
        for node in nodes {
            let pieces = node.body.read().pieces.clone();
            let mut is_lost = false;
            for piece in &pieces {
                if !goes(piece.length) {
                    return Ok(None);
                }
                let _reading = {
                    // The piece may have been removed or moved during `goes`; inside the gate it stays where it is.
                    let body = node.body.read();
                    let found = body.pieces.get(body.position(piece.file_offset));
                    if found.is_none_or(|p| p.at != piece.at || p.length < piece.length) {
                        continue;
                    }
                    self.gate.enter_in([piece.at.zone])
                };
                match self.compare_copies(&node, piece)? {
                    Looked::Right => {}
                    Looked::Turned => turned += 1,
                    Looked::Lost => is_lost = true,
                }
            }
            // Damage in a file that was removed meanwhile is no loss.
            let state = self.state.lock();
            if is_lost && node.links.load(Ordering::Acquire) > 0 {
                lost.push(state.names.path(node.inode));
            }
        }
        let journal_bytes = self.state.lock().journal.bytes;
        if !goes(journal_bytes) {
            return Ok(None);
        }
        let metadata = self.scrub_metadata(&mut lost)?;
        let damaged = self.device.damaged();
        let count = turned.max(damaged.difference(&known).count() as u32) + metadata;
        let mut scrubbed = Scrubbed {
            repaired: count,
            lost,
        };
        if self.read_only || damaged.is_empty() {
            self.count_repaired(count, 0);
            return Ok(Some(scrubbed));
        }
        self.check_writable()?;
        // Nothing may be appended to damaged zones.
        self.close_zones(&|zone| damaged.contains(&zone))?;
        let alone = self.moving.lock();
        for zone in damaged {
            let (is_held, before) = {
                let state = self.state.lock();
                let held = state.zones.holding().any(|(held, _)| held == zone);
                (held, state.zones.files_in(zone).count())
            };
            if is_held && before > 0 {
                match self.evacuate(zone, Need::Move.kept(), &|| false, &mut 0) {
                    Ok(()) => {}
                    // No active zone is available while other users have them all; the background cleaning tries again.
                    Err(Error::NoSpace { .. }) => self.wake.call(),
                    Err(error) => return Err(error),
                }
            }
        }
        drop(alone);
        self.commit()?;
        // These were found before, by the mount or by a read.
        let mended = known.difference(&self.device.damaged()).count();
        self.count_repaired(count, mended);
        scrubbed.repaired = count.max(mended as u32);
        Ok(Some(scrubbed))
    }

    /// Writes the journal and the superblocks again if any copy is damaged; all of their content is in memory. Returns
    /// the number of places that were repaired; if the journal is still damaged afterwards, adds it to `lost`.
    fn scrub_metadata(&self, lost: &mut Vec<String>) -> Result<u32> {
        let found = self.look_at_metadata()?;
        if found.is_whole() {
            return Ok(0);
        }
        let frames = found.in_one.len() as u64 + found.frames_in_all() + found.unreadable;
        tracing::warn!(
            frames,
            superblocks = found.superblocks.len(),
            "copies of metadata are damaged"
        );
        if !self.read_only {
            self.find_worn_out(&found)?;
        }
        let result = match (self.read_only, frames) {
            (true, _) => Ok(()),
            // A compaction also writes a superblock.
            (_, 1..) => self.compact_if(&|_| true).map(drop),
            _ => self.seal(),
        };
        match result {
            Ok(()) => {}
            // The journal stays as it is, and the next scrub tries again.
            Err(error @ Error::NoSpace { .. }) => {
                tracing::warn!(%error, "the journal cannot be made anew");
            }
            Err(error) => return Err(error),
        }
        let left = self.look_at_metadata()?;
        if !left.in_all.is_empty() {
            lost.push(JOURNAL.to_owned());
        }
        Ok(found.count().saturating_sub(left.count()) as u32)
    }

    /// Finds zones that accept writes but whose reads fail, and keeps the journal and superblocks out of them.
    fn find_worn_out(&self, found: &MetadataCopies) -> Result<()> {
        // Bytes at the start of a zone: as far as the journal goes in one, and a ring's superblocks.
        const AS_FAR_AS: u64 = 4 << 20;
        for zone in &found.unread_in {
            if !reads_beside(&*self.drive, *zone) {
                // The whole drive or the path to it fails, not this zone alone.
                continue;
            }
            if !self.worn_out.contains(*zone) && is_worn_out(&*self.drive, *zone, AS_FAR_AS)? {
                tracing::warn!(%zone, "a zone with metadata cannot be read; nothing is put there again");
                self.worn_out.add(*zone);
            }
        }
        // With `journaling` held, no other thread uses the rings.
        let _alone = self.journaling.lock();
        self.state.lock().rings.keep_out_of(&self.worn_out);
        Ok(())
    }

    fn count_repaired(&self, found: u32, known: usize) {
        let count = u64::from(found) + known as u64;
        self.counters
            .copies_repaired
            .fetch_add(count, Ordering::Relaxed);
    }

    /// Compares both copies of a piece, and marks the pair as damaged if one is wrong. If that is the one that is read
    /// first, the other is read first from now on.
    fn compare_copies(&self, node: &Node, piece: &Piece) -> Result<Looked> {
        let zone = piece.at.zone;
        let device = &*self.device;
        let copies = device.copies_of(zone);
        let is_right = match node.kind {
            Kind::Plain => matches(device, piece).map_err(Error::from),
            Kind::Log => record_at(device, node.inode, place(piece)).map(|found| found.is_some()),
        };
        if let Err(error @ Error::Drive(ZoneError::PowerLost { .. })) = is_right {
            return Err(error);
        }
        let is_right = is_right.unwrap_or(false);
        let Some([first, other]) = copies else {
            return Ok(if is_right {
                Looked::Right
            } else {
                Looked::Lost
            });
        };
        let copy_is_right = |copy| matches!(is_right_in(device, node, piece, copy), Ok(true));
        Ok(match (is_right, copy_is_right(other)) {
            (true, true) => Looked::Right,
            (true, false) => {
                device.set_damaged(zone);
                Looked::Right
            }
            (false, true) => {
                device.turn_to(zone, other);
                Looked::Turned
            }
            // It was not read if another thread has turned to the other one before.
            (false, false) if copy_is_right(first) => {
                device.set_damaged(zone);
                Looked::Turned
            }
            // Only a move makes that better.
            (false, false) if combined(device, piece).is_some() => {
                device.set_damaged(zone);
                Looked::Right
            }
            // No correct bytes are known that could be written again.
            (false, false) => {
                tracing::error!(%zone, inode = node.inode, "both copies are damaged");
                Looked::Lost
            }
        })
    }
}

/// The position of the record that holds a piece of a log.
fn place(piece: &Piece) -> ZoneAddress {
    ZoneAddress::new(piece.at.zone, piece.at.offset - HEADER as u64)
}

/// Whether the copy of a piece that is read first matches its checksum, and whether the other one does; the latter is
/// true if there is only one copy.
pub(crate) fn are_right(device: &dyn Mirror, node: &Node, piece: &Piece) -> (Result<bool>, bool) {
    let zone = piece.at.zone;
    let copies = device.copies_of(zone);
    let [first, other] = copies.unwrap_or([zone, zone]);
    let is_right = |copy| is_right_in(device, node, piece, copy);
    (
        is_right(first),
        copies.is_none() || matches!(is_right(other), Ok(true)),
    )
}

/// Whether a copy of a piece matches its checksum; the copy is a zone of the pair, or the piece's zone if that is in no
/// pair.
fn is_right_in(device: &dyn Mirror, node: &Node, piece: &Piece, copy: ZoneId) -> Result<bool> {
    if node.kind == Kind::Log {
        let record = record_in_copy(device, node.inode, place(piece), copy)?;
        return Ok(record.is_some_and(|r| piece.length <= (r.len() - HEADER) as u64));
    }
    if !piece.is_inside_zone(device.geometry()) {
        return Ok(false);
    }
    let mut blocks = vec![0; device.geometry().round_up(piece.length) as usize];
    device.read_copy(copy, piece.at.offset, &mut blocks)?;
    // 0 stands for a piece that was truncated and whose checksum is not known.
    Ok(piece.checksum == 0 || crc32c(&blocks[..piece.length as usize]) == piece.checksum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evacuate::tests::{append, mounted};

    /// Only a wrong journal names it, and no memory has room for it.
    #[test]
    fn a_piece_that_no_zone_has_room_for_is_wrong_and_not_read() {
        let (_drive, fs) = mounted();
        let mut file = fs.create("/1.sst").unwrap();
        append(&mut file).unwrap();
        let node = fs.shared.state.lock().names.node("/1.sst").unwrap();
        let mut piece = node.body.read().pieces[0];
        let device = &*fs.shared.device;
        let right = is_right_in(device, &node, &piece, piece.at.zone);
        assert!(matches(device, &piece).unwrap() && right.unwrap());
        for length in [1 << 60, u64::MAX] {
            piece.length = length;
            let right = is_right_in(device, &node, &piece, piece.at.zone);
            assert!(!matches(device, &piece).unwrap() && !right.unwrap());
        }
    }
}
