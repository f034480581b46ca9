//! Making space: first what is free but not reset yet, then zones that are mostly dead.

use crate::format::journal::{Kind, Operation};
use crate::node::{Node, Piece, read_bytes};
use crate::shared::{Shared, State};
use crate::slot::{Class, Slot};
use crate::{Error, Result};
use device::ZonedDevice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneId};

impl Shared {
    /// Frees a zone or makes room in an open one; false if nothing more can be done.
    pub fn make_space(&self) -> Result<bool> {
        let free = || {
            let counts = self.pool.counts();
            counts.free_sequential + counts.free_conventional
        };
        let before = free();
        self.commit()?;
        if free() > before {
            return Ok(true);
        }
        let Some(zone) = self.victim() else {
            return Ok(false);
        };
        self.evacuate(zone)?;
        self.commit()?;
        // Even if the live data took a zone for the one that was freed: it has room at its end.
        Ok(true)
    }

    /// The zone with the fewest live bytes, if moving them is worth it. Zones that somebody
    /// writes to and zones with logs are left alone.
    fn victim(&self) -> Option<ZoneId> {
        let state = self.state.lock();
        let live = self.live_bytes(&state);
        let mut fixed: Vec<ZoneId> = state.slots.iter().map(|h| h.slot.zone).collect();
        for node in state.names.nodes.values() {
            if node.kind == Kind::Log || node.writers.load(Ordering::Acquire) > 0 {
                fixed.extend(Node::zones(&node.body.read(), node.kind));
            }
        }
        let bytes = |zone: &ZoneId| live.get(zone).copied().unwrap_or(0);
        let worth = |zone: &&ZoneId| {
            bytes(zone) < self.device.geometry().capacity(**zone) * 15 / 16 && !fixed.contains(zone)
        };
        state
            .zones
            .keys()
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
        let old = node.body.read().pieces.clone();
        let mut new = Vec::with_capacity(old.len());
        for piece in &old {
            if piece.at.zone == zone {
                self.copy(&mut state, piece, &mut new)?;
            } else {
                new.push(*piece);
            }
        }
        let (inode, modified_micros) = {
            let mut body = node.body.write();
            body.pieces.clone_from(&new);
            (node.inode, body.modified_micros)
        };
        let moved: Vec<_> = old
            .iter()
            .filter(|p| p.at.zone == zone)
            .map(|p| p.at.zone)
            .collect();
        let extents = new.iter().map(|p| (*p).into()).collect();
        state.pending.push(Operation::Replace {
            inode,
            modified_micros,
            extents,
        });
        state.free_extents(&moved);
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
            let length = (piece.length - done).min(room).min(AT_ONCE);
            let mut blocks = vec![0; g.round_up(length) as usize];
            let from = ZoneAddress::new(piece.at.zone, piece.at.offset + done);
            read_bytes(&*self.device, from, &mut blocks[..length as usize])?;
            let at = ZoneAddress::new(slot.zone, *used);
            self.device.write(g.absolute(at), &blocks)?;
            *used += blocks.len() as u64;
            drop(used);
            self.counters
                .moved_written
                .fetch_add(blocks.len() as u64, Ordering::Relaxed);
            let checksum = crate::format::crc32c(&blocks[..length as usize]);
            new.push(Piece {
                file_offset: piece.file_offset + done,
                at,
                length,
                checksum,
            });
            if let Some(held) = state.zones.get_mut(&slot.zone) {
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
        // The journal may need its next zone and one for a new epoch.
        self.take_slot(state, Class::Long, 2)
            .ok_or(Error::NoSpace { free_zones: 2 })
    }
}
