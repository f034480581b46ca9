//! Moves what is live out of a zone while everybody goes on.
//!
//! Bytes are copied without the state's lock. Then, under it, a piece that is still the file's, the
//! same to the letter, is exchanged for its copy, and the journal is told; otherwise the copy is
//! dropped. That is enough: in a zone that is not open every piece is registered and none grows, so
//! it changes only by a cut (which is counted), by another move, or by going with its file; and the
//! zone is reset only after the frame with the move is durable.

use crate::format::crc32c;
use crate::format::journal::{Kind, Operation};
use crate::node::{Node, Piece, push_piece, read_bytes};
use crate::shared::Shared;
use crate::slot::{Class, Slot};
use crate::state::State;
use crate::{Error, Result};
use crc_fast::{CrcAlgorithm, checksum_combine};
use device::ZonedDevice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneError, ZoneId, ZoneKind};

/// Bytes that are copied at once.
const AT_ONCE: u64 = 1 << 20;
/// How many zones in a row may fail under a copy.
const MAX_BAD_ZONES: u32 = 4;

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
            written: 0,
            avoid: Vec::new(),
        }
    }

    /// Lets `write` write at the end of a zone, and grow the count of used bytes with it; `None`
    /// stands for a zone without room.
    pub fn write<T>(
        &mut self,
        mut write: impl FnMut(&Arc<Slot>, &mut u64) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut bad_zones = 0;
        loop {
            let Some(slot) = self.slots.last().cloned() else {
                self.next()?;
                continue;
            };
            let mut used = slot.fill();
            let before = *used;
            let result = write(&slot, &mut used);
            self.written += *used - before;
            drop(used);
            match result {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => self.next()?,
                Err(Error::Drive(error))
                    if bad_zones < MAX_BAD_ZONES && Shared::another_zone_may_do(&error) =>
                {
                    tracing::warn!(%error, "a copy failed; going on in another zone");
                    bad_zones += 1;
                    if self.shared.abandon(&slot, &error) {
                        self.slots.pop();
                    }
                    self.next()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn next(&mut self) -> Result<()> {
        let shared = self.shared;
        let take = |state: &mut State| shared.take_slot(state, self.class.into(), self.kept);
        let mut state = shared.state.lock();
        state.check()?;
        let mut slot = take(&mut state)?;
        if slot.is_none() && shared.available(&state) > self.kept {
            // One may be had that is not at hand yet.
            shared.top_up(&mut state)?;
            drop(state);
            shared.commit()?;
            state = shared.state.lock();
            state.check()?;
            slot = take(&mut state)?;
        }
        let free_zones = shared.available(&state);
        let slot = slot.ok_or(Error::NoSpace { free_zones })?;
        let slot = if self.avoid.contains(&slot.salt) {
            let renewed = state.begin_run(&slot);
            renewed.ok_or(Error::NoSpace { free_zones })?
        } else {
            slot
        };
        self.slots.push(slot);
        Ok(())
    }

    /// The metadata has what it wanted of the copies.
    pub fn release(&mut self, state: &mut State) {
        for slot in self.slots.drain(..) {
            state.release(&slot);
        }
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
            for (piece, cuts) in pieces_in(&node, zone) {
                if stop() {
                    return Ok(());
                }
                let moved = self.move_piece(&node, &piece, cuts, kept, written);
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
        let moved = &self.counters.moved_written;
        moved.fetch_add(target.written, Ordering::Relaxed);
    }

    fn nodes_in(&self, zone: ZoneId) -> Vec<Arc<Node>> {
        let state = self.state.lock();
        let here = |node: &&Arc<Node>| {
            let body = node.body.read();
            let g = self.device.geometry();
            node.extents(g, &body).iter().any(|(of, _)| *of == zone)
        };
        let nodes = state.names.nodes.values();
        let mut found: Vec<_> = nodes.filter(here).cloned().collect();
        // A run is to be the same every time.
        found.sort_unstable_by_key(|node| node.inode);
        found
    }

    /// Moves a piece of a file that has been cut so often.
    fn move_piece(
        &self,
        node: &Node,
        piece: &Piece,
        cuts: u32,
        kept: u32,
        written: &mut u64,
    ) -> Result<(), MoveError> {
        let mut target = Target::new(self, Class::Moved, kept);
        let moved = self.copy(node, cuts, piece, &mut target);
        self.count_moved(&target, written);
        let mut moved = moved?;
        keep_damage_known(piece, &mut moved);
        let mut state = self.state.lock();
        state.check()?;
        let mut body = node.body.write();
        let is_there = node.links.load(Ordering::Acquire) > 0
            && body.cuts == cuts
            && body.pieces.get(body.position(piece.file_offset)) == Some(piece);
        let g = self.device.geometry();
        if is_there {
            for fresh in &moved {
                state.zones.add(fresh.at.zone, 1, fresh.blocks(g))?;
                if self.device.geometry().kind(fresh.at.zone) == ZoneKind::Conventional {
                    state.pending_without_witness = true;
                }
            }
            state.record(Operation::Move {
                inode: node.inode,
                extents: moved.iter().map(|p| (*p).into()).collect(),
            });
            body.replace(moved);
        }
        drop(body);
        if is_there {
            state.free(piece.at.zone, 1, piece.blocks(g));
        }
        target.release(&mut state);
        Ok(())
    }

    fn copy(
        &self,
        node: &Node,
        cuts: u32,
        piece: &Piece,
        target: &mut Target<'_>,
    ) -> Result<Vec<Piece>, MoveError> {
        let g = self.device.geometry();
        let block = u64::from(g.block_size);
        let mut new = Vec::new();
        let mut done = 0;
        while done < piece.length {
            let from = ZoneAddress::new(piece.at.zone, piece.at.offset + done);
            let mut bytes = vec![0; (piece.length - done).min(AT_ONCE) as usize];
            read_bytes(&*self.device, from, &mut bytes)
                .map_err(|error| self.cannot_move(node, cuts, piece.at.zone, error.into()))?;
            let mut left = &bytes[..];
            while !left.is_empty() {
                let (fresh, length) = target.write(|slot, used| {
                    let room = slot.capacity - *used;
                    if room < block {
                        return Ok(None);
                    }
                    let at = ZoneAddress::new(slot.zone, *used);
                    let length = room.min(left.len() as u64) as usize;
                    let mut blocks = left[..length].to_vec();
                    blocks.resize(g.round_up(length as u64) as usize, 0);
                    self.device.write(g.absolute(at), &blocks)?;
                    *used += blocks.len() as u64;
                    let fresh = Piece {
                        file_offset: piece.file_offset + done,
                        at,
                        length: length as u64,
                        checksum: crc32c(&left[..length]),
                    };
                    Ok(Some((fresh, length)))
                })?;
                push_piece(&mut new, fresh);
                done += length as u64;
                left = &left[length..];
            }
        }
        Ok(new)
    }

    /// What a failure to read something of a file in `zone` means, which had been cut so often. A
    /// zone of which something cannot be read is not emptied; it would be tried again and again.
    pub fn cannot_move(&self, node: &Node, cuts: u32, zone: ZoneId, error: Error) -> MoveError {
        if let Error::Drive(error) = &error {
            self.notice(error);
        }
        if matches!(error, Error::Drive(ZoneError::PowerLost { .. })) {
            return MoveError::Failed(error);
        }
        let mut state = self.state.lock();
        // Otherwise the zone may have been reset by now, and what was found is not the file's.
        let is_there = node.links.load(Ordering::Acquire) > 0 && node.body.read().cuts == cuts;
        if !is_there {
            return MoveError::Changed;
        }
        state.zones.set_stuck(zone);
        MoveError::Source(error)
    }

    /// Whether what failed in one zone may succeed in another.
    pub fn another_zone_may_do(error: &ZoneError) -> bool {
        !matches!(error, ZoneError::PowerLost { .. }) && !error.is_host_full()
    }

    /// A write into `slot` failed: nobody goes on in it, and what is in it stays readable. True if
    /// it was given up altogether, so that its writer need not release it.
    pub fn abandon(&self, slot: &Arc<Slot>, error: &ZoneError) -> bool {
        use ZoneError::{TooManyActiveZones, TooManyOpenZones};
        let mut used = slot.fill();
        if *used == 0 && matches!(error, TooManyActiveZones { .. } | TooManyOpenZones { .. }) {
            drop(used);
            // Somebody else has more than their share; be content with less.
            self.state.lock().return_unused(slot);
            return true;
        }
        *used = slot.capacity;
        drop(used);
        self.notice(error);
        if let Err(error) = self.device.finish(slot.zone) {
            tracing::warn!(%error, "a zone that failed cannot be finished");
        }
        false
    }
}

/// Pieces of a file in a zone, and how often the file had been cut by then.
fn pieces_in(node: &Node, zone: ZoneId) -> Vec<(Piece, u32)> {
    let body = node.body.read();
    let here = body.pieces.iter().filter(|p| p.at.zone == zone);
    here.map(|p| (*p, body.cuts)).collect()
}

/// Bytes that do not match their checksum are moved as they are, but must not get one that they
/// match.
fn keep_damage_known(piece: &Piece, moved: &mut [Piece]) {
    let whole = moved.iter().fold(0, |sum, p| {
        let (a, b) = (u64::from(sum), u64::from(p.checksum));
        checksum_combine(CrcAlgorithm::Crc32Iscsi, a, b, p.length) as u32
    });
    if piece.checksum != 0 && piece.checksum != whole {
        tracing::warn!(at = %piece.at, expected = piece.checksum, found = whole, "damaged data was moved");
        for piece in moved {
            piece.checksum = (!piece.checksum).max(1);
        }
    }
}
