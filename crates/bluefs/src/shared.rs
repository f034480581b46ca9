//! What all handles of a mounted file system share, and how metadata becomes durable.
//!
//! Locks, in the order in which they are taken: state → a file's body → a slot's `used`; the gate
//! is taken shared by readers before the body, and alone, with or without the state, around a
//! reset. A zone that lost its last extent is reset only after the journal frame with the
//! operation that freed it is durable.

use crate::flusher::Flusher;
use crate::format::journal::{Kind, Operation};
use crate::format::superblock::Superblock;
use crate::journal::{Journal, extent_operations};
use crate::namespace::Namespace;
use crate::node::{Node, Piece, Segment};
use crate::ring::{RING, Ring};
use crate::slot::{Choice, Class, Held, Open, Slot, choose};
use crate::statistics::Counters;
use crate::{Error, Result};
use device::ZonedDevice;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneId, ZoneKind};
use zone_alloc::{Owner, Purpose, ZonePool};

/// Zones that data leaves: one to move things into, the journal's next one, and its next epoch's.
const KEPT_BACK: u32 = 3;
/// The journal is compacted when it is larger than this and than four snapshots.
const MIN_COMPACT_BYTES: u64 = 1 << 20;

/// Who holds a data zone.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Use {
    /// Extents and log segments in it.
    pub extents: u32,
}

pub(crate) struct State {
    pub mounted: bool,
    pub names: Namespace,
    pub ring: Ring,
    pub superblock: Superblock,
    pub journal: Journal,
    /// Operations that are in no frame yet.
    pub pending: Vec<Operation>,
    /// One of them points into a conventional zone, which has no write pointer as a witness.
    pub pending_without_witness: bool,
    pub zones: BTreeMap<ZoneId, Use>,
    pub slots: Vec<Held>,
    /// Freed by operations that are in no frame yet.
    pub freed: Vec<ZoneId>,
    /// Freed by frames up to a number, which have to be durable first.
    pub awaiting: Vec<(u64, ZoneId)>,
    pub snapshot_bytes: u64,
    pub locks: BTreeSet<String>,
}

pub(crate) struct Shared {
    pub device: Arc<dyn ZonedDevice>,
    pub pool: Arc<ZonePool>,
    pub clock: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub read_only: bool,
    pub state: Mutex<State>,
    pub flusher: Flusher,
    /// Shared by readers from looking a place up to the end of the read.
    pub gate: RwLock<()>,
    pub counters: Counters,
}

impl State {
    pub fn check(&self) -> Result<()> {
        if self.mounted {
            Ok(())
        } else {
            Err(Error::Unmounted)
        }
    }

    /// Records an operation and carries it out in memory.
    pub fn operate(&mut self, operation: Operation) {
        let nameless = self.names.apply(&operation);
        self.pending.push(operation);
        for node in nameless {
            if node.handles.load(Ordering::Acquire) == 0 {
                self.free_node(&node);
            }
        }
    }

    /// Gives back the space of a file without name and handle.
    pub fn free_node(&mut self, node: &Node) {
        let zones = Node::zones(&node.body.read(), node.kind);
        self.free_extents(&zones);
    }

    /// So many extents less in each of `zones`.
    pub fn free_extents(&mut self, zones: &[ZoneId]) {
        for zone in zones {
            if let Some(held) = self.zones.get_mut(zone) {
                held.extents = held.extents.saturating_sub(1);
                self.free_if_unused(*zone);
            }
        }
    }

    /// Frees a zone that has neither extents nor writers. An open zone that was never written to
    /// stays open.
    fn free_if_unused(&mut self, zone: ZoneId) {
        if self.zones.get(&zone).is_none_or(|held| held.extents > 0) {
            return;
        }
        if let Some(index) = self.slots.iter().position(|h| h.slot.zone == zone) {
            let held = &self.slots[index];
            if held.writers > 0 || *held.slot.used.lock() == 0 {
                return;
            }
            self.slots.swap_remove(index);
        }
        self.zones.remove(&zone);
        self.freed.push(zone);
    }

    /// A writer lets go of its slot.
    pub fn release(&mut self, slot: &Arc<Slot>) {
        let Some(index) = self.slots.iter().position(|h| Arc::ptr_eq(&h.slot, slot)) else {
            self.free_if_unused(slot.zone);
            return;
        };
        self.slots[index].writers = self.slots[index].writers.saturating_sub(1);
        if self.slots[index].writers == 0 && *slot.used.lock() >= slot.capacity {
            self.slots.swap_remove(index);
        }
        self.free_if_unused(slot.zone);
    }
}

impl Shared {
    pub fn now(&self) -> u64 {
        (self.clock)()
    }

    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            Err(Error::ReadOnly)
        } else {
            Ok(())
        }
    }

    fn is_sequential(&self, zone: ZoneId) -> bool {
        self.device.geometry().kind(zone) != ZoneKind::Conventional
    }

    /// How many data zones may be open at once.
    pub fn slot_budget(&self, state: &State) -> usize {
        let fixed = [state.ring.zone(), state.journal.zone()];
        let fixed = fixed.into_iter().filter(|z| self.is_sequential(*z)).count();
        match self.pool.active_quota(Owner::BlueFs) {
            Some(quota) => (quota as usize).saturating_sub(fixed).max(2),
            None => 16,
        }
    }

    /// A zone for a writer of `class`; `None` if space has to be made first.
    pub fn take_slot(&self, state: &mut State, class: Class, kept: u32) -> Option<Arc<Slot>> {
        state
            .slots
            .retain(|h| h.writers > 0 || *h.slot.used.lock() < h.slot.capacity);
        let open: Vec<_> = state
            .slots
            .iter()
            .map(|h| Open {
                class: h.slot.class,
                writers: h.writers,
                room: h.slot.capacity - *h.slot.used.lock(),
            })
            .collect();
        // A full zone whose writer has not noticed yet is no active one any more.
        let budget = self.slot_budget(state) + open.iter().filter(|o| o.room == 0).count();
        let counts = self.pool.counts();
        let can_take = counts.free_sequential + counts.free_conventional > kept;
        match choose(class, &open, budget, can_take) {
            Choice::Open(index) => {
                let held = &mut state.slots[index];
                if held.writers == 0 && held.slot.class != class {
                    // It changes hands: whoever shares it from now on is of the new family.
                    let (zone, capacity, used) =
                        (held.slot.zone, held.slot.capacity, *held.slot.used.lock());
                    let used = Mutex::new(used);
                    held.slot = Arc::new(Slot {
                        zone,
                        class,
                        capacity,
                        used,
                    });
                }
                held.writers += 1;
                Some(held.slot.clone())
            }
            Choice::New => self.pool.take(Purpose::FileSystemSequential).map(|zone| {
                let capacity = self.device.geometry().capacity(zone);
                let slot = Arc::new(Slot {
                    zone,
                    class,
                    capacity,
                    used: Mutex::new(0),
                });
                state.slots.push(Held {
                    slot: slot.clone(),
                    writers: 1,
                });
                state.zones.insert(zone, Use::default());
                slot
            }),
            Choice::Nothing => None,
        }
    }

    /// A zone for a writer, made if need be.
    pub fn acquire_slot(&self, class: Class) -> Result<Arc<Slot>> {
        for _ in 0..self.device.geometry().zone_count {
            {
                let mut state = self.state.lock();
                state.check()?;
                if let Some(slot) = self.take_slot(&mut state, class, KEPT_BACK) {
                    return Ok(slot);
                }
            }
            if !self.make_space()? {
                break;
            }
        }
        let counts = self.pool.counts();
        Err(Error::NoSpace {
            free_zones: counts.free_sequential + counts.free_conventional,
        })
    }

    /// Puts everything pending into the journal. Not durable yet.
    pub fn write_frame(&self, state: &mut State) -> Result<()> {
        if !state.pending.is_empty() {
            if state.pending_without_witness {
                self.flusher.flush(&*self.device)?;
                state.pending_without_witness = false;
            }
            let operations = std::mem::take(&mut state.pending);
            let pool = &self.pool;
            let no_space = || Error::NoSpace { free_zones: 0 };
            let mut next = || pool.take(Purpose::FileSystem).ok_or_else(no_space);
            let before = state.journal.bytes;
            let result = state.journal.append(&*self.device, &operations, &mut next);
            self.counters.journal(state.journal.bytes - before);
            if let Err(error) = result {
                // Memory is ahead of the journal for good; only a new mount can tell what counts.
                state.mounted = false;
                return Err(error);
            }
        }
        let frames = state.journal.next_frame;
        let freed = std::mem::take(&mut state.freed);
        state
            .awaiting
            .extend(freed.into_iter().map(|zone| (frames, zone)));
        if state.journal.bytes > MIN_COMPACT_BYTES.max(4 * state.snapshot_bytes) {
            self.compact(state)?;
        }
        Ok(())
    }

    /// Makes everything that was written and recorded so far durable, by one flush.
    pub fn commit(&self) -> Result<()> {
        let (epoch, frames) = {
            let mut state = self.state.lock();
            state.check()?;
            self.write_frame(&mut state)?;
            (state.journal.epoch, state.journal.next_frame)
        };
        self.flush()?;
        let zones = {
            let mut state = self.state.lock();
            if state.journal.epoch != epoch {
                return Ok(());
            }
            let mut zones = Vec::new();
            state.awaiting.retain(|(frame, zone)| {
                let durable = *frame <= frames;
                if durable {
                    zones.push(*zone);
                }
                !durable
            });
            zones
        };
        self.reset(&zones)
    }

    pub fn flush(&self) -> Result<()> {
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        Ok(self.flusher.flush(&*self.device)?)
    }

    /// Resets zones and gives them back.
    pub fn reset(&self, zones: &[ZoneId]) -> Result<()> {
        if zones.is_empty() {
            return Ok(());
        }
        let _alone = self.gate.write();
        for zone in zones {
            if self.is_sequential(*zone) {
                match self.device.reset(*zone) {
                    Ok(()) => {}
                    Err(error @ zone::ZoneError::PowerLost { .. }) => return Err(error.into()),
                    Err(error) => {
                        tracing::warn!(%error, %zone, "a zone cannot be reset; it is out of use");
                        self.pool.retire(*zone);
                        continue;
                    }
                }
            }
            self.counters.resets.fetch_add(1, Ordering::Relaxed);
            self.pool.give_back(*zone);
        }
        Ok(())
    }

    /// Writes a snapshot of all metadata into a new zone and switches to it.
    ///
    /// Order: snapshot → flush (with it all data that it points to) → superblock → flush → the
    /// old journal and everything that was waiting is reset.
    pub fn compact(&self, state: &mut State) -> Result<()> {
        let result = self.compact_inner(state);
        if result.is_err() {
            state.mounted = false;
        }
        result
    }

    fn compact_inner(&self, state: &mut State) -> Result<()> {
        let device = &*self.device;
        let no_space = || Error::NoSpace { free_zones: 0 };
        let zone = self.pool.take(Purpose::FileSystem).ok_or_else(no_space)?;
        let old = state.journal.clone();
        if self.pool.active_quota(Owner::BlueFs).is_some()
            && self.is_sequential(old.zone())
            && device.report_zone(old.zone())?.condition.is_active()
        {
            device.finish(old.zone())?;
        }
        let mut journal = Journal::new(old.epoch + 1, zone);
        let pool = &self.pool;
        let mut next = || pool.take(Purpose::FileSystem).ok_or_else(no_space);
        let written = journal.append(device, &snapshot(&state.names), &mut next);
        self.counters.journal(journal.bytes);
        written?;
        self.flush()?;
        state.superblock.generation += 1;
        state.superblock.journal_epoch = journal.epoch;
        state.superblock.journal_zone = zone;
        state.superblock.journal_frames = journal.next_frame;
        state.ring.append(device, &state.superblock)?;
        self.counters
            .superblock(u64::from(state.superblock.block_size));
        self.flush()?;
        state.pending.clear();
        state.pending_without_witness = false;
        state.snapshot_bytes = journal.bytes;
        state.journal = journal;
        let mut zones = old.zones;
        zones.append(&mut state.freed);
        zones.extend(state.awaiting.drain(..).map(|(_, zone)| zone));
        self.reset(&zones)
    }

    /// Enters a piece of data that has just been written.
    pub fn register(&self, node: &Arc<Node>, written: Written) -> Result<()> {
        let mut state = self.state.lock();
        state.check()?;
        node.dirty.store(true, Ordering::Release);
        match written {
            Written::Piece { piece, is_new } => {
                if is_new && let Some(held) = state.zones.get_mut(&piece.at.zone) {
                    held.extents += 1;
                }
                if !self.is_sequential(piece.at.zone) {
                    state.pending_without_witness = true;
                }
                if node.links.load(Ordering::Acquire) > 0 {
                    let extents = [piece.into()];
                    state
                        .pending
                        .extend(extent_operations(node.inode, self.now(), &extents));
                }
            }
            Written::Segment(segment) => {
                if let Some(held) = state.zones.get_mut(&segment.at.zone) {
                    held.extents += 1;
                }
                state.pending.push(segment_operation(node.inode, &segment));
            }
        }
        Ok(())
    }

    /// Live bytes (whole blocks) of each data zone.
    pub fn live_bytes(&self, state: &State) -> HashMap<ZoneId, u64> {
        let g = self.device.geometry();
        let mut live: HashMap<ZoneId, u64> = HashMap::new();
        for node in state.names.nodes.values() {
            let header = if node.kind == Kind::Log {
                crate::format::log_record::HEADER
            } else {
                0
            };
            for piece in &node.body.read().pieces {
                *live.entry(piece.at.zone).or_default() += g.round_up(piece.length + header as u64);
            }
        }
        live
    }

    /// All zones of the file system and what they are for.
    pub fn owned(&self, state: &State) -> Vec<(ZoneId, crate::ZonePurpose)> {
        use crate::ZonePurpose as P;
        let mut zones: BTreeMap<ZoneId, P> = BTreeMap::new();
        zones.extend(RING.map(|z| (z, P::Superblock)));
        zones.extend(state.journal.zones.iter().map(|z| (*z, P::Journal)));
        zones.extend(state.zones.keys().map(|z| (*z, P::Data)));
        for node in state.names.nodes.values().filter(|n| n.kind == Kind::Log) {
            zones.extend(
                node.body
                    .read()
                    .segments
                    .iter()
                    .map(|s| (s.at.zone, P::Log)),
            );
        }
        for held in state.slots.iter().filter(|h| h.slot.class.is_log()) {
            zones.insert(held.slot.zone, P::Log);
        }
        zones.extend(state.freed.iter().map(|z| (*z, P::Freed)));
        zones.extend(state.awaiting.iter().map(|(_, z)| (*z, P::Freed)));
        zones.into_iter().collect()
    }
}

/// What a writer has just put on the drive.
pub(crate) enum Written {
    Piece { piece: Piece, is_new: bool },
    Segment(Segment),
}

fn segment_operation(inode: u64, s: &Segment) -> Operation {
    Operation::LogSegment {
        inode,
        file_offset: s.file_offset,
        at: s.at,
        end: s.end,
    }
}

/// All metadata as operations.
fn snapshot(names: &Namespace) -> Vec<Operation> {
    let mut operations = vec![Operation::NextInode {
        inode: names.next_inode,
    }];
    let directories = names.directories.iter();
    operations.extend(directories.map(|path| Operation::MakeDirectory { path: path.clone() }));
    let mut made = BTreeSet::new();
    for (path, inode) in &names.names {
        let Some(node) = names.nodes.get(inode) else {
            continue;
        };
        let (inode, path) = (*inode, path.clone());
        if !made.insert(inode) {
            operations.push(Operation::Link { inode, path });
            continue;
        }
        let body = node.body.read();
        let (kind, modified_micros) = (node.kind, body.modified_micros);
        operations.push(Operation::Create {
            inode,
            kind,
            modified_micros,
            path,
        });
        if kind == Kind::Plain {
            let extents: Vec<_> = body.pieces.iter().map(|p| (*p).into()).collect();
            operations.extend(extent_operations(inode, modified_micros, &extents));
        }
        for segment in &body.segments {
            operations.push(segment_operation(inode, segment));
            if segment.limit != u64::MAX {
                operations.push(Operation::LogTruncate {
                    inode,
                    size: segment.limit,
                });
            }
        }
    }
    operations
}
