//! What all handles of a mounted file system share.
//!
//! Locks, in the order in which they are taken: a file's `writing` → moving → journaling → state → a
//! file's body; and a file's `writing` or moving → the right to fill a slot → what log records vouch
//! for. Nobody holds the state or a body while the drive works, so whoever only looks waits for no
//! command. Readers copy the places that they need and stay in the gate, and a reset waits for those who
//! may know a place in its zone. A zone that lost its last extent is reset only
//! after the journal frame with the operation that freed it is durable. A zone is written to only
//! after the frame that took it is durable, and a flush followed its last reset: so whatever a power
//! cut leaves, a zone is known to be ours, and what lies below its write pointer is what was written
//! last.

use crate::cache::BlockCache;
use crate::failing::Failing;
use crate::flusher::Flusher;
use crate::format::journal::{Kind, Operation};
use crate::format::superblock::Superblock;
use crate::journal::{Change, Journal, extent_operations};
use crate::loss::Loss;
use crate::namespace::Namespace;
use crate::node::{Body, Node, Piece, Segment};
use crate::prepared::{Freed, Prepared};
use crate::ring::{Rings, ring_zones};
use crate::slot::{Choice, Class, Held, Open, Slot, Want, choose};
use crate::statistics::Counters;
use crate::unsynced::Unsynced;
use crate::wake::Wake;
use crate::witness::Witness;
use crate::{Error, Result};
use device::ZonedDevice;
use runtime::sync::{Condvar, Mutex};
use runtime::{HashMap, Runtime};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zone::{ZoneAddress, ZoneId, ZoneKind};
use zone_alloc::{Owner, ReadGate, ZonePool};

/// Zones that a log leaves to others: one to move things into, and the journal's next one.
pub(crate) const KEPT_BACK: u32 = 2;
/// What other files leave besides, and those in the background besides that: a database that cannot
/// compact goes on, one that cannot write out its memtable goes on for a while, and one without a
/// log stops.
pub(crate) const KEPT_FOR_LOGS: u32 = 1;
pub(crate) const KEPT_FOR_URGENT: u32 = 2;
/// Who needs a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Urgency {
    /// A database cannot even be opened without it, and it is a few bytes long.
    Vital,
    /// Somebody waits for it.
    Waited,
    /// Nobody does.
    Background,
}

/// Who holds a data zone.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Use {
    /// Extents and log segments in it.
    pub extents: u32,
    /// Something in it cannot be read, so it cannot be emptied.
    pub stuck: bool,
}

pub(crate) struct State {
    pub mounted: Arc<AtomicBool>,
    pub names: Namespace,
    pub rings: Rings,
    pub superblock: Superblock,
    pub journal: Journal,
    /// What is in no batch yet.
    pub pending: Vec<Change>,
    /// One of them points into a conventional zone, which has no write pointer as a witness.
    pub pending_without_witness: bool,
    pub zones: BTreeMap<ZoneId, Use>,
    pub slots: Vec<Held>,
    /// Empty zones that are ours.
    pub prepared: Vec<Prepared>,
    /// The number of the batch that pending operations go into.
    pub next_batch: u64,
    /// Batches up to this one are durable.
    pub durable_batch: u64,
    /// Freed by operations that are in no batch yet.
    pub freed: Vec<Freed>,
    /// Freed by batches, which have to be durable first.
    pub awaiting: Vec<(u64, Freed)>,
    /// Being reset by somebody, without the lock.
    pub resetting: Vec<Freed>,
    /// Zones on their way back to the pool: in no batch yet, or in this one.
    pub giving: Vec<(Option<u64>, ZoneId)>,
    /// So many zones less may be open, for the drive would not have it.
    pub budget_cut: usize,
    pub snapshot_bytes: u64,
    /// Bytes that a snapshot would have taken, in an epoch, when the journal had so many (`prepared.rs`).
    pub snapshot_length: Cell<(u64, u64, u64)>,
    pub locks: BTreeSet<String>,
    pub cache: Arc<BlockCache>,
    /// How often a zone was opened, each time for a new run of log records.
    pub runs: u64,
    /// What was durable and is not there any more, as the mount found it.
    pub damage: Vec<Error>,
    /// If the journal is damaged, what is known to be lost by going on behind that.
    pub salvaged: Option<Vec<Loss>>,
}

pub(crate) struct Shared {
    pub device: Arc<dyn ZonedDevice>,
    pub pool: Arc<ZonePool>,
    pub runtime: Runtime,
    pub read_only: bool,
    pub state: Mutex<State>,
    /// Held by whoever writes the journal or superblocks: he alone changes those of the state.
    pub journaling: Mutex<()>,
    /// Batches up to this one are in the journal.
    pub batches: runtime::sync::atomic::AtomicU64,
    /// False after unmounting, and after a failure that makes going on unsafe.
    pub mounted: Arc<AtomicBool>,
    /// Unmounted by the user.
    pub unmounted: AtomicBool,
    /// What log records vouch for.
    pub witness: Mutex<Witness>,
    pub flusher: Flusher,
    /// One of those who are resetting zones is done.
    pub recycled: Condvar,
    /// Held by whoever empties a zone, and taken before all other locks.
    pub moving: Mutex<()>,
    /// Calls whoever cleans ahead of need.
    pub wake: Wake,
    /// Zones that are read-only or offline.
    pub failing: Failing,
    /// Readers are in it from looking a place up to the end of the read.
    pub gate: Arc<ReadGate>,
    pub counters: Counters,
    pub cache: Arc<BlockCache>,
    /// It also has what was written and is going to be read soon.
    pub cache_writes: bool,
    pub unsynced: Unsynced,
    /// What readers may still read ahead.
    pub ahead_left: Arc<AtomicU64>,
}

impl State {
    pub fn check(&self) -> Result<()> {
        if self.mounted.load(Ordering::Acquire) {
            Ok(())
        } else {
            Err(Error::Unmounted)
        }
    }

    /// Records an operation and carries it out in memory.
    pub fn operate(&mut self, operation: Operation) {
        let nameless = self.names.apply(&operation);
        self.record(operation);
        for node in nameless {
            if node.handles.load(Ordering::Acquire) == 0 {
                self.free_node(&node);
            }
        }
    }

    /// Records what has been carried out.
    pub fn record(&mut self, operation: Operation) {
        self.pending.push(operation.into());
    }

    /// Gives back the space of a file without name and handle.
    pub fn free_node(&mut self, node: &Node) {
        let body = node.body.read();
        self.cache.forget(node.inode, body.cuts, body.written());
        let zones = Node::zones(&body, node.kind);
        drop(body);
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
        let mut active = false;
        if let Some(index) = self.slots.iter().position(|h| h.slot.zone == zone) {
            let held = &self.slots[index];
            let used = held.slot.used();
            if held.writers > 0 || used == 0 {
                return;
            }
            active = used < held.slot.capacity;
            self.slots.swap_remove(index);
        }
        self.zones.remove(&zone);
        self.freed.push(Freed { zone, active });
    }

    /// Whether zones are on their way from freed to empty.
    pub fn is_waiting_for_resets(&self) -> bool {
        !(self.freed.is_empty() && self.awaiting.is_empty() && self.resetting.is_empty())
    }

    /// A writer's zone could not be opened; nothing has been written to it.
    pub fn return_unused(&mut self, slot: &Arc<Slot>) {
        self.budget_cut += 1;
        if let Some(index) = self.slots.iter().position(|h| Arc::ptr_eq(&h.slot, slot)) {
            self.slots[index].writers = self.slots[index].writers.saturating_sub(1);
            if self.slots[index].writers == 0 {
                self.slots.swap_remove(index);
                self.zones.remove(&slot.zone);
                self.prepared.push(Prepared {
                    zone: slot.zone,
                    taken_in: 0,
                    ready: Some(0),
                });
            }
        }
    }

    /// A zone that is open from now on.
    pub fn new_slot(&mut self, zone: ZoneId, class: Class, capacity: u64, used: u64) -> Arc<Slot> {
        self.runs += 1;
        let epoch = self.journal.epoch;
        Arc::new(Slot::new(zone, class, capacity, used, epoch, self.runs))
    }

    /// Begins a new run in a slot that only the caller holds; what was reached of the last one has
    /// been told. `None` if others hold it: the caller has let go of it.
    pub fn begin_run(&mut self, slot: &Arc<Slot>) -> Option<Arc<Slot>> {
        let mut held = self.slots.iter();
        let index = held.position(|h| Arc::ptr_eq(&h.slot, slot) && h.writers == 1);
        let Some(index) = index else {
            self.release(slot);
            return None;
        };
        let used = slot.used();
        let slot = self.new_slot(slot.zone, slot.class, slot.capacity, used);
        self.slots[index] = Held::new(slot.clone(), 1);
        Some(slot)
    }

    /// Puts it into the next frame how far the runs of log records reach.
    pub fn tell_reaches(&mut self) {
        let news = self.slots.iter_mut().filter_map(Held::news);
        self.pending.extend(news.map(Change::from));
    }

    /// A writer lets go of its slot.
    pub fn release(&mut self, slot: &Arc<Slot>) {
        let Some(index) = self.slots.iter().position(|h| Arc::ptr_eq(&h.slot, slot)) else {
            self.free_if_unused(slot.zone);
            return;
        };
        self.slots[index].writers = self.slots[index].writers.saturating_sub(1);
        let news = self.slots[index].news();
        self.pending.extend(news.map(Change::from));
        if self.slots[index].writers == 0 && slot.used() >= slot.capacity {
            self.slots.swap_remove(index);
        }
        self.free_if_unused(slot.zone);
    }
}

impl Shared {
    pub fn now(&self) -> u64 {
        self.runtime.unix_micros()
    }

    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            Err(Error::ReadOnly)
        } else {
            Ok(())
        }
    }

    /// Nothing is written from now on.
    pub fn stop(&self) {
        self.mounted.store(false, Ordering::Release);
    }

    pub fn check_mounted(&self) -> Result<()> {
        if self.mounted.load(Ordering::Acquire) {
            Ok(())
        } else {
            Err(Error::Unmounted)
        }
    }

    pub fn is_sequential(&self, zone: ZoneId) -> bool {
        self.device.geometry().kind(zone) != ZoneKind::Conventional
    }

    /// How many data zones may be open at once.
    pub fn slot_budget(&self, state: &State) -> usize {
        let journal = usize::from(self.is_sequential(state.journal.zone()));
        let fixed = journal + state.rings.active_zones(self.device.geometry());
        let Some(quota) = self.pool.active_quota(Owner::BlueFs) else {
            return 16;
        };
        // Zones that wait to be reset are active until they are.
        let freed = state
            .freed
            .iter()
            .chain(state.awaiting.iter().map(|(_, f)| f))
            .chain(&state.resetting);
        let waiting = freed
            .filter(|f| f.active && self.is_sequential(f.zone))
            .count();
        let budget = (quota as usize).saturating_sub(fixed + state.budget_cut);
        budget.max(2).saturating_sub(waiting)
    }

    /// A zone for a writer; `None` if space has to be made first.
    pub fn take_slot(&self, state: &mut State, want: Want, kept: u32) -> Option<Arc<Slot>> {
        let class = want.class;
        state
            .slots
            .retain(|h| h.writers > 0 || h.slot.used() < h.slot.capacity);
        let open: Vec<_> = state
            .slots
            .iter()
            .map(|h| Open {
                class: h.slot.class,
                writers: h.writers,
                room: h.slot.capacity - h.slot.used(),
            })
            .collect();
        let budget = self.slot_budget(state);
        let ready = self.ready(state);
        let can_take = ready.is_some() && self.available(state) > kept;
        match choose(want, &open, budget, can_take) {
            Choice::Open(index) => {
                let held = &state.slots[index];
                if held.writers == 0 && held.slot.class != class {
                    // It changes hands: whoever shares it from now on is of the new family.
                    let (zone, capacity, used) =
                        (held.slot.zone, held.slot.capacity, held.slot.used());
                    let slot = state.new_slot(zone, class, capacity, used);
                    state.slots[index] = Held::new(slot, 0);
                }
                let held = &mut state.slots[index];
                held.writers += 1;
                Some(held.slot.clone())
            }
            Choice::New => ready.map(|index| {
                let zone = state.prepared.swap_remove(index).zone;
                let capacity = self.device.geometry().capacity(zone);
                let slot = state.new_slot(zone, class, capacity, 0);
                state.slots.push(Held::new(slot.clone(), 1));
                state.zones.insert(zone, Use::default());
                self.wake.call();
                slot
            }),
            Choice::Nothing => None,
        }
    }

    /// A zone for a writer, made if need be.
    pub fn acquire_slot(&self, want: Want, urgency: Urgency) -> Result<Arc<Slot>> {
        let kept = match (want.class.is_log(), urgency) {
            // What is moved finds room behind it.
            (_, Urgency::Vital) => KEPT_BACK - 1,
            (true, _) => KEPT_BACK,
            (false, Urgency::Waited) => KEPT_BACK + KEPT_FOR_LOGS,
            (false, Urgency::Background) => KEPT_BACK + KEPT_FOR_LOGS + KEPT_FOR_URGENT,
        };
        let mut hopeless = false;
        for _ in 0..self.device.geometry().zone_count {
            {
                let mut state = self.state.lock();
                state.check()?;
                if self.ready(&state).is_none() && self.available(&state) > kept {
                    self.top_up(&mut state);
                    drop(state);
                    self.commit()?;
                    state = self.state.lock();
                    state.check()?;
                }
                if let Some(slot) = self.take_slot(&mut state, want, kept) {
                    return Ok(slot);
                }
                // Where zones are to be had, too many are open, until some have been reset.
                hopeless = hopeless && self.available(&state) <= kept;
            }
            if hopeless {
                break;
            }
            // Even if it moved nothing: its flush may have been what a zone at hand waited for.
            hopeless = !self.make_space()?;
        }
        let free_zones = self.available(&self.state.lock());
        Err(Error::NoSpace { free_zones })
    }

    /// Enters a piece of data that has just been written.
    pub fn register(&self, node: &Arc<Node>, written: Written) -> Result<()> {
        let mut state = self.state.lock();
        state.check()?;
        node.named_in.store(state.next_batch, Ordering::Release);
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
                    let operations = extent_operations(node.inode, self.now(), &extents);
                    state.pending.extend(operations.map(Change::from));
                }
            }
            Written::Segment(segment) => {
                if let Some(held) = state.zones.get_mut(&segment.at.zone) {
                    held.extents += 1;
                }
                state.record(segment_operation(node.inode, &segment));
            }
        }
        Ok(())
    }

    /// Live bytes (whole blocks) of each data zone.
    pub fn live_bytes(&self, state: &State) -> HashMap<ZoneId, u64> {
        let g = self.device.geometry();
        let mut live: HashMap<ZoneId, u64> = HashMap::default();
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
    pub fn owned(&self, state: &State) -> Vec<(ZoneId, crate::info::ZonePurpose)> {
        use crate::info::ZonePurpose as P;
        let mut zones: BTreeMap<ZoneId, P> = BTreeMap::new();
        let rings = ring_zones(self.device.geometry()).concat();
        zones.extend(rings.into_iter().map(|z| (z, P::Superblock)));
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
        zones.insert(state.superblock.spare_zone, P::Spare);
        zones.extend(state.prepared.iter().map(|p| (p.zone, P::Spare)));
        zones.extend(state.freed.iter().map(|f| (f.zone, P::Freed)));
        zones.extend(state.awaiting.iter().map(|(_, f)| (f.zone, P::Freed)));
        zones.extend(state.resetting.iter().map(|f| (f.zone, P::Freed)));
        zones.extend(state.giving.iter().map(|(_, z)| (*z, P::Freed)));
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
        salt: s.salt,
    }
}

/// What names `segments` of a log, which are those of `body` or come in the place of some.
pub(crate) fn log_operations(inode: u64, body: &Body, segments: &[Segment]) -> Vec<Operation> {
    let mut operations = Vec::new();
    for segment in segments {
        operations.push(segment_operation(inode, segment));
        if segment.end == u64::MAX
            && let Some(end) = body.reach(segment)
        {
            operations.push(Operation::Reach {
                at: ZoneAddress::new(segment.at.zone, end),
                salt: segment.salt,
            });
        }
        if segment.limit != u64::MAX {
            operations.push(Operation::LogTruncate {
                inode,
                size: segment.limit,
            });
        }
    }
    operations
}
