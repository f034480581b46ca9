//! Making space: first what is free but not reset yet, then zones that are mostly dead.

use crate::format::crc32c;
use crate::format::journal::{Kind, Operation};
use crate::node::{Node, Piece, push_piece, read_bytes};
use crate::shared::{Shared, State, Use};
use crate::slot::{Class, Slot};
use crate::{Error, Result};
use crc_fast::{CrcAlgorithm, checksum_combine};
use device::ZonedDevice;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneId};

impl Shared {
    /// Frees a zone or makes room in an open one; false if nothing more can be done.
    pub fn make_space(&self) -> Result<bool> {
        let waiting = {
            let mut state = self.state.lock();
            let waiting = state.is_waiting_for_resets();
            if !state.resetting.is_empty() {
                self.recycled.wait(&mut state);
            }
            waiting || state.is_waiting_for_resets()
        };
        self.commit()?;
        if waiting {
            return Ok(true);
        }
        {
            let mut state = self.state.lock();
            state.check()?;
            let zones = &state.journal.zones;
            let held = zones.iter().skip(1).any(|zone| self.is_sequential(*zone));
            if held && state.journal.bytes > 2 * state.snapshot_bytes {
                self.compact(&mut state)?;
                return Ok(true);
            }
        }
        let Some(zone) = self.victim() else {
            return Ok(false);
        };
        match self.evacuate(zone) {
            // As many zones are open as may be, perhaps only until some are reset that others have
            // freed meanwhile: not a lack of space.
            Err(Error::NoSpace { .. }) => {
                let waiting = self.state.lock().is_waiting_for_resets();
                self.commit()?;
                return Ok(waiting);
            }
            done => done?,
        }
        self.commit()?;
        // Even if the live data took a zone for the one that was freed: it has room at its end.
        Ok(true)
    }

    /// The zone with the fewest live bytes, if moving them is worth it. Zones that somebody
    /// writes to, zones with logs, and zones that hold files which are open and have lost their
    /// name are left alone.
    fn victim(&self) -> Option<ZoneId> {
        let state = self.state.lock();
        let live = self.live_bytes(&state);
        let mut fixed: Vec<ZoneId> = state.slots.iter().map(|h| h.slot.zone).collect();
        let mut named: HashMap<ZoneId, u32> = HashMap::new();
        for node in state.names.nodes.values() {
            for zone in Node::zones(&node.body.read(), node.kind) {
                *named.entry(zone).or_default() += 1;
            }
            if node.kind == Kind::Log || node.writers.load(Ordering::Acquire) > 0 {
                fixed.extend(Node::zones(&node.body.read(), node.kind));
            }
        }
        let bytes = |zone: &ZoneId| live.get(zone).copied().unwrap_or(0);
        let worth = |zone: &&ZoneId| {
            bytes(zone) < self.device.geometry().capacity(**zone) * 15 / 16 && !fixed.contains(zone)
        };
        let all_named =
            |(zone, held): &(&ZoneId, &Use)| named.get(*zone).copied() == Some(held.extents);
        state
            .zones
            .iter()
            .filter(all_named)
            .map(|(zone, _)| zone)
            .filter(worth)
            .min_by_key(|zone| bytes(zone))
            .copied()
    }

    fn evacuate(&self, zone: ZoneId) -> Result<()> {
        tracing::debug!(%zone, "moving live files to make space");
        let nodes: Vec<Arc<Node>> = {
            let state = self.state.lock();
            let here = |n: &&Arc<Node>| n.body.read().pieces.iter().any(|p| p.at.zone == zone);
            state
                .names
                .nodes
                .values()
                .filter(|n| n.kind == Kind::Plain)
                .filter(here)
                .cloned()
                .collect()
        };
        for node in nodes {
            self.move_node(&node, zone)?;
        }
        Ok(())
    }

    /// Moves the pieces of a file that lie in `zone`. The state is held throughout, so that the
    /// file can neither be written nor removed meanwhile; this is the last resort, not a fast path.
    fn move_node(&self, node: &Arc<Node>, zone: ZoneId) -> Result<()> {
        let mut state = self.state.lock();
        state.check()?;
        if node.links.load(Ordering::Acquire) == 0 || node.writers.load(Ordering::Acquire) > 0 {
            return Ok(());
        }
        let here: Vec<Piece> = {
            let body = node.body.read();
            let here = body.pieces.iter().filter(|p| p.at.zone == zone);
            here.copied().collect()
        };
        for piece in here {
            let mut moved = Vec::new();
            if let Err(error) = self.copy(&mut state, &piece, &mut moved) {
                let taken: Vec<_> = moved.iter().map(|p| p.at.zone).collect();
                state.free_extents(&taken);
                return Err(error);
            }
            keep_damage_known(&piece, &mut moved);
            state.pending.push(Operation::Move {
                inode: node.inode,
                extents: moved.iter().map(|p| (*p).into()).collect(),
            });
            node.body.write().replace(moved);
            state.free_extents(&[zone]);
        }
        Ok(())
    }

    fn copy(&self, state: &mut State, piece: &Piece, new: &mut Vec<Piece>) -> Result<()> {
        const AT_ONCE: u64 = 1 << 20;
        let g = self.device.geometry();
        let mut done = 0;
        while done < piece.length {
            let slot = self.slot_for_moving(state)?;
            let mut used = slot.used.lock();
            let room = slot.capacity - *used;
            if room == 0 {
                // A writer that shares the zone has filled it.
                drop(used);
                state.release(&slot);
                continue;
            }
            let length = (piece.length - done).min(room).min(AT_ONCE);
            let mut blocks = vec![0; g.round_up(length) as usize];
            let from = ZoneAddress::new(piece.at.zone, piece.at.offset + done);
            let at = ZoneAddress::new(slot.zone, *used);
            let result = read_bytes(&*self.device, from, &mut blocks[..length as usize])
                .and_then(|()| self.device.write(g.absolute(at), &blocks));
            if let Err(error) = result {
                drop(used);
                state.release(&slot);
                return Err(error.into());
            }
            *used += blocks.len() as u64;
            drop(used);
            self.counters
                .moved_written
                .fetch_add(blocks.len() as u64, Ordering::Relaxed);
            let fresh = Piece {
                file_offset: piece.file_offset + done,
                at,
                length,
                checksum: crc32c(&blocks[..length as usize]),
            };
            if push_piece(new, fresh)
                && let Some(held) = state.zones.get_mut(&slot.zone)
            {
                held.extents += 1;
            }
            if g.kind(slot.zone) == zone::ZoneKind::Conventional {
                state.pending_without_witness = true;
            }
            state.release(&slot);
            done += length;
        }
        Ok(())
    }

    fn slot_for_moving(&self, state: &mut State) -> Result<Arc<Slot>> {
        // The journal may need its next zone.
        self.take_slot(state, Class::Long, 1)
            .ok_or(Error::NoSpace { free_zones: 1 })
    }
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
