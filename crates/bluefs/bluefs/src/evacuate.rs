//! Moves live data out of a zone while files are read and written.
//!
//! Bytes are copied without the state's lock. Then, under the lock, a piece that the file still has unchanged is
//! replaced by its copy, and the move is recorded for the journal; otherwise the copy is dropped. That is sufficient:
//! in a zone that is not open every piece is registered and none grows, and a zone with a live piece is not opened
//! again. A piece can change only by a truncation (which is counted), by another move, or by removal of its file. The
//! zone is reset only after the frame with the move is durable.

use crate::combine::{combined, right_copy};
use crate::format::crc32c;
use crate::format::log_record;
use crate::format::operation::{JournalOperation, Kind};
use crate::moved_piece::{is_copy_of, keep_damage_known};
use crate::node::{Node, Piece, push_piece, read_bytes};
use crate::ring::unread;
use crate::shared::Shared;
use crate::slot::{Class, Filling, Slot};
use crate::state::State;
use crate::{Error, Result};
use appender::{IN_NEED, Left, Zones};
use device::ZonedDevice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneError, ZoneId, ZoneKind, ZoneResult};

/// Bytes that are copied at a time.
const AT_ONCE: u64 = 1 << 20;

/// The reason why nothing was moved.
pub(crate) enum MoveError {
    /// The data to be moved cannot be read.
    Source(Error),
    /// The file was truncated or removed meanwhile, so the data is not the file's any more.
    Changed,
    /// Any other error.
    Failed(Error),
}

impl From<Error> for MoveError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Open zones that copies are written to. The slots are held until the metadata names the copies, so that no zone with
/// copies is taken for empty meanwhile.
pub(crate) struct Target<'a> {
    shared: &'a Shared,
    class: Class,
    kept: u32,
    slots: Vec<Arc<Slot>>,
    /// The last slot can still be written to.
    is_open: bool,
    /// Bytes written.
    written: u64,
    /// Ids of runs that must not be continued.
    pub avoid: Vec<u32>,
}

impl<'a> Target<'a> {
    /// Copies go into zones of `class`; `kept` empty zones are left to other users.
    pub fn new(shared: &'a Shared, class: Class, kept: u32) -> Self {
        Self {
            shared,
            class,
            kept,
            slots: Vec::new(),
            is_open: false,
            written: 0,
            avoid: Vec::new(),
        }
    }

    /// Calls `write` with a slot and its count of used bytes, which `write` increases by what it has written. If
    /// `write` returns `None`, the zone has no room, and it is called again with another one.
    pub fn write<T>(
        &mut self,
        write: impl Fn(&Arc<Slot>, &mut u64) -> Result<Option<T>>,
    ) -> Result<T> {
        appender::append(self, |target, slot| {
            let mut used = slot.fill();
            let before = *used;
            let result = write(slot, &mut used);
            target.written += *used - before;
            result
        })
    }

    fn next(&self) -> Result<Arc<Slot>> {
        let shared = self.shared;
        let take = |state: &mut State| shared.take_slot(state, self.class.into(), self.kept);
        let mut state = shared.state.lock();
        state.check()?;
        let mut slot = take(&mut state)?;
        if slot.is_none() && shared.available(&state) > self.kept {
            // Empty zones are available, but none is ready yet.
            shared.top_up(&mut state)?;
            drop(state);
            shared.commit()?;
            state = shared.state.lock();
            state.check()?;
            slot = take(&mut state)?;
        }
        let free_zones = shared.available(&state);
        let slot = slot.ok_or(Error::NoSpace { free_zones })?;
        if !self.avoid.contains(&slot.run_id) {
            return Ok(slot);
        }
        let renewed = state.begin_run(&slot);
        renewed.ok_or(Error::NoSpace { free_zones })
    }

    /// Releases all slots, once the metadata names the copies or they are given up.
    pub fn release(&mut self, state: &mut State) {
        for slot in self.slots.drain(..) {
            state.release(&slot);
        }
    }
}

impl Zones for Target<'_> {
    type Open = Arc<Slot>;
    type Error = Error;
    const MAX_FAILED: u32 = 4;

    fn open(&mut self) -> Result<Arc<Slot>> {
        if !self.is_open {
            self.slots.push(self.next()?);
            self.is_open = true;
        }
        let last = self.slots.last().cloned();
        last.ok_or(Error::NoSpace { free_zones: 0 })
    }

    fn leave(&mut self, slot: Arc<Slot>, why: Left<'_>) -> Result<()> {
        self.is_open = false;
        if let Left::Failed(error) = why
            && self.shared.abandon(&slot, error)
        {
            self.slots.pop();
        }
        Ok(())
    }

    fn drive_error(error: &Error) -> Option<&ZoneError> {
        error.of_drive()
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if !self.slots.is_empty() {
            let shared = self.shared;
            self.release(&mut shared.state.lock());
        }
    }
}

impl Shared {
    /// Moves the live pieces of files out of `zone`, except those that change meanwhile, and leaves `kept` empty zones
    /// to other users. `stop` is asked between two pieces whether to end early. `written` grows by the bytes written,
    /// even if a move was in vain. The moves are recorded, but are in no frame yet.
    pub fn evacuate(
        &self,
        zone: ZoneId,
        kept: u32,
        stop: &dyn Fn() -> bool,
        written: &mut u64,
    ) -> Result<()> {
        // What is left in such a zone may be lost with it.
        let is_rescue = self.failing.contains(zone) || self.device.damaged().contains(&zone);
        for node in self.nodes_in(zone) {
            if node.kind == Kind::Log {
                // One segment at a time, until the log has none in this zone but those passed over.
                let mut passed = 0;
                while !stop() {
                    let moved = self.move_segment(&node, zone, passed, kept, written);
                    let is_unreadable = matches!(moved, Err(MoveError::Source(_)));
                    if self.go_on_after(moved, zone)? {
                        continue;
                    }
                    if !is_rescue || !is_unreadable {
                        break;
                    }
                    passed += 1;
                }
                continue;
            }
            for (piece, truncates) in self.pieces_in(&node, zone) {
                if stop() {
                    return Ok(());
                }
                let moved = self.move_piece(&node, &piece, truncates, kept, written);
                if !self.go_on_after(moved.map(|()| true), zone)? && !is_rescue {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether to continue with the zone. A failure to read ends the emptying of a sound zone, which gains no space any
    /// more, but is no failure of the caller.
    fn go_on_after(&self, moved: Result<bool, MoveError>, zone: ZoneId) -> Result<bool> {
        match moved {
            Err(MoveError::Source(error)) => {
                tracing::warn!(%error, %zone, "what cannot be read cannot be moved");
                Ok(false)
            }
            Err(MoveError::Changed) => Ok(false),
            Err(MoveError::Failed(error)) => Err(error),
            Ok(done) => Ok(done),
        }
    }

    /// Adds the bytes that a move wrote, in vain or not.
    pub fn count_moved(&self, target: &Target<'_>, written: &mut u64) {
        *written += target.written;
        let moved = &self.counters.moved_bytes_written;
        moved.fetch_add(target.written, Ordering::Relaxed);
    }

    fn nodes_in(&self, zone: ZoneId) -> Vec<Arc<Node>> {
        let state = self.state.lock();
        let files = state.zones.files_in(zone);
        let nodes = files.filter_map(|(inode, _)| state.names.nodes.get(&inode));
        nodes.cloned().collect()
    }

    /// Pieces of a file in a zone, each with the file's count of truncations; none while the zone is open, because they
    /// may grow or not be registered yet.
    fn pieces_in(&self, node: &Node, zone: ZoneId) -> Vec<(Piece, u32)> {
        let state = self.state.lock();
        let body = node.body.read();
        let is_movable = |p: &&Piece| p.at.zone == zone && state.zones.is_holding(zone);
        let here = body.pieces.iter().filter(is_movable);
        here.map(|p| (*p, body.truncates)).collect()
    }

    /// Moves a piece of a file, if the file's count of truncations is still `truncates`.
    fn move_piece(
        &self,
        node: &Node,
        piece: &Piece,
        truncates: u32,
        kept: u32,
        written: &mut u64,
    ) -> Result<(), MoveError> {
        let zone = piece.at.zone;
        self.check_there(node.inode, piece)
            .map_err(|error| self.cannot_move(node, truncates, zone, error))?;
        let mut target = Target::new(self, Class::Moved, kept);
        let from_drive = &|at, bytes: &mut [u8]| read_bytes(&*self.device, at, bytes);
        let mut moved = self.copy(node, truncates, piece, &mut target, from_drive);
        let is_wrong = |moved: &Vec<Piece>| !is_copy_of(piece, moved);
        if moved.as_ref().is_ok_and(is_wrong) {
            moved = match self.whole_of_copies(node, piece, truncates) {
                Ok(Some(whole)) => {
                    let from_memory = &|at: ZoneAddress, bytes: &mut [u8]| {
                        let from = (at.offset - piece.at.offset) as usize;
                        bytes.copy_from_slice(&whole[from..from + bytes.len()]);
                        Ok(())
                    };
                    self.copy(node, truncates, piece, &mut target, from_memory)
                }
                Ok(None) => moved,
                Err(changed) => Err(changed),
            };
        }
        self.count_moved(&target, written);
        let mut moved = moved?;
        keep_damage_known(piece, &mut moved);
        let mut state = self.state.lock();
        state.check()?;
        let mut body = node.body.write();
        let is_there = node.links.load(Ordering::Acquire) > 0
            && body.truncates == truncates
            && body.pieces.get(body.position(piece.file_offset)) == Some(piece);
        let g = self.device.geometry();
        if is_there {
            for fresh in &moved {
                state
                    .zones
                    .add(fresh.at.zone, node.inode, 1, fresh.blocks(g))?;
                if self.device.geometry().kind(fresh.at.zone) == ZoneKind::Conventional {
                    state.pending_without_witness = true;
                }
            }
            state.record(JournalOperation::Move {
                inode: node.inode,
                extents: moved.clone(),
            });
            body.replace(moved);
        }
        drop(body);
        if is_there {
            state.free(piece.at.zone, node.inode, 1, piece.blocks(g));
        }
        target.release(&mut state);
        Ok(())
    }

    /// The bytes of a piece that was read wrong from a pair of zones; `None` if the copies do not have them.
    fn whole_of_copies(
        &self,
        node: &Node,
        piece: &Piece,
        truncates: u32,
    ) -> Result<Option<Vec<u8>>, MoveError> {
        let (copy, whole) = match right_copy(&*self.device, piece) {
            Some((copy, whole)) => (Some(copy), whole),
            None => match combined(&*self.device, piece) {
                Some(whole) => (None, whole),
                None => return Ok(None),
            },
        };
        // As long as the file has the piece, the zone is not reset.
        let _state = self.state.lock();
        if !has_still(node, truncates) {
            return Err(MoveError::Changed);
        }
        match copy {
            Some(copy) => self.device.turn_to(piece.at.zone, copy),
            None => self.device.set_damaged(piece.at.zone),
        }
        Ok(Some(whole))
    }

    fn copy(
        &self,
        node: &Node,
        truncates: u32,
        piece: &Piece,
        target: &mut Target<'_>,
        read: &dyn Fn(ZoneAddress, &mut [u8]) -> ZoneResult<()>,
    ) -> Result<Vec<Piece>, MoveError> {
        let mut new = Vec::new();
        let mut done = 0;
        while done < piece.length {
            let from = ZoneAddress::new(piece.at.zone, piece.at.offset + done);
            let mut bytes = vec![0; (piece.length - done).min(AT_ONCE) as usize];
            read(from, &mut bytes)
                .map_err(|error| self.cannot_move(node, truncates, piece.at.zone, error.into()))?;
            let mut left = &bytes[..];
            while !left.is_empty() {
                let at = piece.file_offset + done;
                let fresh = target.write(|slot, used| self.write_extent(slot, used, at, left))?;
                push_piece(&mut new, fresh);
                done += fresh.length;
                left = &left[fresh.length as usize..];
            }
        }
        Ok(new)
    }

    /// The error for data of a file in `zone` that could not be read; `truncates` is the file's count of truncations
    /// when the place was looked up. The zone is marked as stuck, because emptying it would fail again and again.
    pub fn cannot_move(
        &self,
        node: &Node,
        truncates: u32,
        zone: ZoneId,
        error: Error,
    ) -> MoveError {
        if let Error::Drive(of_drive) = &error {
            self.notice(of_drive);
            // While the drive reads nothing, that tells nothing about the zone.
            if unread(&*self.drive, zone, of_drive.clone()).is_err() {
                return MoveError::Failed(error);
            }
        }
        let mut state = self.state.lock();
        // If the piece is not the file's any more, the zone may have been reset, and the bytes that were read are other
        // data.
        if !has_still(node, truncates) {
            return MoveError::Changed;
        }
        state.zones.set_stuck(zone);
        MoveError::Source(error)
    }

    /// Writes the part of `bytes` that fits the rest of the zone as one extent; `None` if not even one block fits.
    ///
    /// Behind a log, what begins with zeros or as a record does would look like damage of the log once the file is removed:
    /// a record without payload comes first.
    pub fn write_extent(
        &self,
        slot: &Slot,
        used: &mut u64,
        file_offset: u64,
        bytes: &[u8],
    ) -> Result<Option<Piece>> {
        let g = self.device.geometry();
        let start = &bytes[..bytes.len().min(g.block_size as usize)];
        let misleads = log_record::misleads(start);
        // Where there is no room for more than that record, it fills the zone: else the zone would be chosen again.
        if slot.is_behind_a_log(*used) && misleads && slot.capacity > *used {
            let at = ZoneAddress::new(slot.zone, *used);
            let record = log_record::ends_a_log(at, slot.run_id, g.block_size);
            self.device.write(g.absolute(at), &record)?;
            *used += record.len() as u64;
        }
        let room = slot.capacity - *used;
        if room < u64::from(g.block_size) {
            return Ok(None);
        }
        let at = ZoneAddress::new(slot.zone, *used);
        let bytes = &bytes[..bytes.len().min(room as usize)];
        let blocks = appender::padded(bytes, g.block_size);
        self.device.write(g.absolute(at), &blocks)?;
        *used += blocks.len() as u64;
        Ok(Some(Piece {
            file_offset,
            at,
            length: bytes.len() as u64,
            checksum: crc32c(bytes),
        }))
    }

    /// After a failed write into `slot`: nothing is appended to the zone any more, and its data stays readable. True if
    /// the zone was given back unused, so that the writer must not release it; another writer may use it meanwhile.
    pub fn abandon(&self, slot: &Arc<Slot>, error: &ZoneError) -> bool {
        let used = slot.fill();
        if *used == 0 && appender::is_of_limit(error) {
            drop(used);
            let has_left_one = self.finish_again(IN_NEED);
            let mut state = self.state.lock();
            if !has_left_one {
                // Another user of the drive has more active zones than its share, so the file system uses fewer.
                self.cut_budget(&mut state);
            }
            return state.return_unused(slot);
        }
        self.close(slot, used);
        self.notice(error);
        false
    }

    /// Closes an open zone to further appends: it counts as full, and is finished on the drive, now or
    /// later (`unfinished.rs`).
    pub fn close(&self, slot: &Slot, mut used: Filling<'_>) {
        *used = slot.capacity;
        drop(used);
        appender::finish(&*self.device, slot.zone);
        self.wake_for_unfinished();
    }
}

/// Whether a file has a name and was not truncated since its count of truncations was `truncates`. The caller holds the
/// state.
pub(crate) fn has_still(node: &Node, truncates: u32) -> bool {
    node.links.load(Ordering::Acquire) > 0 && node.body.read().truncates == truncates
}

#[cfg(test)]
pub(crate) mod tests;
