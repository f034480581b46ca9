//! Moves what is live out of a zone while everybody goes on.
//!
//! Bytes are copied without the state's lock. Then, under it, a piece that is still the file's, the
//! same to the letter, is exchanged for its copy, and the journal is told; otherwise the copy is
//! dropped. That is enough: in a zone that is not open every piece is registered and none grows, so
//! it changes only by a truncation (which is counted), by another move, or by going with its file; and the
//! zone is reset only after the frame with the move is durable.

use crate::combine::combined;
use crate::format::crc32c;
use crate::format::operation::{JournalOperation, Kind};
use crate::moved_piece::{is_copy_of, keep_damage_known};
use crate::node::{Node, Piece, push_piece, read_bytes};
use crate::shared::Shared;
use crate::slot::{Class, Filling, Slot};
use crate::state::State;
use crate::{Error, Result};
use appender::{Left, Zones};
use device::ZonedDevice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneError, ZoneId, ZoneKind, ZoneResult};

/// Bytes that are copied at once.
const AT_ONCE: u64 = 1 << 20;

/// Why nothing was moved.
pub(crate) enum MoveError {
    /// What is to be moved cannot be read.
    Source(Error),
    /// It is not there any more.
    Changed,
    /// Anything else.
    Failed(Error),
}

impl From<Error> for MoveError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Zones that copies are written to. They are held until the metadata has them, so that none is
/// taken for empty meanwhile.
pub(crate) struct Target<'a> {
    shared: &'a Shared,
    class: Class,
    kept: u32,
    slots: Vec<Arc<Slot>>,
    /// The last of them is written to.
    is_open: bool,
    /// Bytes written.
    written: u64,
    /// Salts of runs that must not be gone on with.
    pub avoid: Vec<u32>,
}

impl<'a> Target<'a> {
    /// Zones of a class, of which `kept` are left to others.
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

    /// Lets `write` write at the end of a zone, and grow the count of used bytes with it; `None`
    /// stands for a zone without room.
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
            // One may be had that is not ready yet.
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

    /// The metadata has what it wanted of the copies.
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
    /// Moves the live pieces of files out of `zone`, as far as nobody changes them meanwhile, into
    /// zones of which `kept` are left to others. `written` grows by the bytes that this cost, in
    /// vain or not. What moved is in no frame yet.
    pub fn evacuate(
        &self,
        zone: ZoneId,
        kept: u32,
        stop: &dyn Fn() -> bool,
        written: &mut u64,
    ) -> Result<()> {
        for node in self.nodes_in(zone) {
            if node.kind == Kind::Log {
                // One segment after the other, until there is none here.
                while !stop() {
                    let moved = self.move_segment(&node, zone, kept, written);
                    if !self.go_on_after(moved, zone)? {
                        break;
                    }
                }
                continue;
            }
            for (piece, truncates) in pieces_in(&node, zone) {
                if stop() {
                    return Ok(());
                }
                let moved = self.move_piece(&node, &piece, truncates, kept, written);
                if !self.go_on_after(moved.map(|()| true), zone)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A failure to read ends the emptying of the zone, and is no failure of who asked for it.
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

    /// The bytes that a move wrote, in vain or not.
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

    /// Moves a piece of a file that has been truncated so often.
    fn move_piece(
        &self,
        node: &Node,
        piece: &Piece,
        truncates: u32,
        kept: u32,
        written: &mut u64,
    ) -> Result<(), MoveError> {
        self.check_there(node.inode, piece)
            .map_err(MoveError::Source)?;
        let mut target = Target::new(self, Class::Moved, kept);
        let is_wrong = |moved: &Result<Vec<Piece>, MoveError>| {
            let is_wrong = |moved: &Vec<Piece>| !is_copy_of(piece, moved);
            moved.as_ref().is_ok_and(is_wrong) && self.device.twin(piece.at.zone).is_some()
        };
        let from_drive = &|at, bytes: &mut [u8]| read_bytes(&*self.device, at, bytes);
        let mut moved = self.copy(node, truncates, piece, &mut target, from_drive);
        if is_wrong(&moved) {
            self.device.turn_to_other(piece.at.zone);
            moved = self.copy(node, truncates, piece, &mut target, from_drive);
        }
        if is_wrong(&moved)
            && let Some(whole) = combined(&*self.device, piece)
        {
            let from_both = &|at: ZoneAddress, bytes: &mut [u8]| {
                let from = (at.offset - piece.at.offset) as usize;
                bytes.copy_from_slice(&whole[from..from + bytes.len()]);
                Ok(())
            };
            moved = self.copy(node, truncates, piece, &mut target, from_both);
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

    /// What a failure to read something of a file in `zone` means, which had been truncated so often. A
    /// zone of which something cannot be read is not emptied; it would be tried again and again.
    pub fn cannot_move(
        &self,
        node: &Node,
        truncates: u32,
        zone: ZoneId,
        error: Error,
    ) -> MoveError {
        if let Error::Drive(error) = &error {
            self.notice(error);
        }
        if matches!(error, Error::Drive(ZoneError::PowerLost { .. })) {
            return MoveError::Failed(error);
        }
        let mut state = self.state.lock();
        // Otherwise the zone may have been reset by now, and what was found is not the file's.
        let is_there =
            node.links.load(Ordering::Acquire) > 0 && node.body.read().truncates == truncates;
        if !is_there {
            return MoveError::Changed;
        }
        state.zones.set_stuck(zone);
        MoveError::Source(error)
    }

    /// Writes as much of `bytes` as fits the rest of the zone; `None` if not even a block does.
    pub fn write_extent(
        &self,
        slot: &Slot,
        used: &mut u64,
        file_offset: u64,
        bytes: &[u8],
    ) -> Result<Option<Piece>> {
        let g = self.device.geometry();
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

    /// A write into `slot` failed: nobody goes on in it, and what is in it stays readable. True if
    /// it was given up altogether, so that its writer need not release it.
    pub fn abandon(&self, slot: &Arc<Slot>, error: &ZoneError) -> bool {
        let used = slot.fill();
        if *used == 0 && appender::is_of_limit(error) {
            drop(used);
            // Somebody else has more than their share; be content with less.
            self.state.lock().return_unused(slot);
            return true;
        }
        self.close(slot, used);
        self.notice(error);
        false
    }

    /// Nobody finds room in it any more.
    pub fn close(&self, slot: &Slot, mut used: Filling<'_>) {
        *used = slot.capacity;
        drop(used);
        appender::finish(&*self.device, slot.zone);
    }
}

/// Pieces of a file in a zone, and how often the file had been truncated by then.
fn pieces_in(node: &Node, zone: ZoneId) -> Vec<(Piece, u32)> {
    let body = node.body.read();
    let here = body.pieces.iter().filter(|p| p.at.zone == zone);
    here.map(|p| (*p, body.truncates)).collect()
}
