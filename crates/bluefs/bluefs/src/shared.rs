//! State that all handles of a mounted file system share, and the rules for its locks.
//!
//! Locks, in the order in which they are taken: a file's `writing` → moving → journaling → state → a file's body; and a
//! file's `writing`, moving or journaling → the right to fill a slot → `witness`. No thread holds the state or a body during a
//! command to the drive, so a lookup never waits for one. Readers copy the places that they need and stay in the gate;
//! a reset waits for the readers that may know a place in its zone. A zone that lost its last extent is reset only
//! after the journal frame with the operation that freed it is durable. A zone is written to only after the frame that
//! took it is durable and a flush has followed its last reset. So after any power cut a zone that was written is known
//! to be BlueFS's, and what lies below its write pointer is what was written last.

use crate::cache::BlockCache;
use crate::end::End;
use crate::failing::Failing;
use crate::format::log_record;
use crate::format::operation::JournalOperation;
use crate::info::ZonePurpose;
use crate::journal::{Change, extent_operations, payload_limit};
use crate::mirror::Mirror;
use crate::node::{Body, Node, Piece, Segment};
use crate::ring::ring_zones;
use crate::state::State;
use crate::statistics::Counters;
use crate::unsynced::Unsynced;
use crate::wake::Wake;
use crate::witness::Witness;
use crate::worn_out::WornOut;
use crate::zone_table::Stage;
use crate::{Error, Result};
use appender::Flusher;
use device::ZonedDevice;
use runtime::Runtime;
use runtime::sync::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use zone::{ZoneAddress, ZoneId, ZoneKind};
use zone_alloc::{ReadGate, ZonePool};

pub(crate) struct Shared {
    /// The drive, with paired zones where there are two copies.
    pub device: Arc<dyn Mirror>,
    /// The drive as the mount was given it.
    pub drive: Arc<dyn ZonedDevice>,
    pub pool: Arc<ZonePool>,
    pub runtime: Runtime,
    pub read_only: bool,
    /// Copies of each byte, in as many zones: 1 or 2.
    pub copies: u32,
    pub state: Mutex<State>,
    /// Held while the journal or superblocks are written: only its holder changes [`State::journal`], the rings and the
    /// superblock.
    pub journaling: Mutex<()>,
    /// Batches up to this number are in the journal.
    pub batches: runtime::sync::atomic::AtomicU64,
    pub end: Arc<End>,
    /// An unmount has begun: from now on only it writes out tails.
    pub closing: AtomicBool,
    /// Unmounted by the user, perhaps after a failure.
    pub unmounted: AtomicBool,
    /// State from which durability marks in log records are made.
    pub witness: Mutex<Witness>,
    pub flusher: Flusher,
    /// Signals that a thread has finished resetting zones.
    pub recycled: Condvar,
    /// Held while a zone is emptied; taken before all other locks but a file's `writing`.
    pub moving: Mutex<()>,
    /// Wakes the thread that cleans ahead of need.
    pub wake: Wake,
    /// Zones that are read-only or offline.
    pub failing: Failing,
    /// Extents, by inode and place, that the drive had lost at the mount. Their places may be reused once their files
    /// are removed.
    pub missing: BTreeSet<(u64, ZoneAddress)>,
    /// Zones that accept writes, but whose reads fail.
    pub worn_out: WornOut,
    /// Entered by a reader before it looks a place up, until its read has ended.
    pub gate: Arc<ReadGate>,
    pub counters: Counters,
    pub cache: Arc<BlockCache>,
    /// Files that will be read soon are cached when they are written, too.
    pub cache_writes: bool,
    pub unsynced: Arc<Unsynced>,
    /// Bytes that readers may still read ahead, of the budget of all readers.
    pub ahead_left: Arc<AtomicU64>,
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

    /// Stops the file system after `error`: nothing is written any more.
    pub fn stop_for(&self, error: &Error) {
        if self.end.stopped_at(error) {
            tracing::error!(%error, "the file system has stopped; what was synced is there at the next mount");
        }
    }

    pub fn is_sequential(&self, zone: ZoneId) -> bool {
        self.device.geometry().kind(zone) != ZoneKind::Conventional
    }

    /// Registers data that has just been written: adds it to its zone's live data and records it for the journal.
    pub fn register(&self, node: &Arc<Node>, written: Placed) -> Result<()> {
        let mut state = self.state.lock();
        state.check()?;
        node.named_in.store(state.next_batch, Ordering::Release);
        match written {
            Placed::Piece { piece, is_new } => {
                let blocks = piece.blocks(self.device.geometry());
                state
                    .zones
                    .add(piece.at.zone, node.inode, is_new.into(), blocks)?;
                if !self.is_sequential(piece.at.zone) {
                    state.pending_without_witness = true;
                }
                if node.links.load(Ordering::Acquire) > 0 {
                    let extents = [piece];
                    let limit = payload_limit(&*self.device);
                    let operations = extent_operations(node.inode, self.now(), &extents, limit);
                    state.pending.extend(operations.map(Change::from));
                }
            }
            Placed::Segment(segment) => {
                state.zones.add(segment.at.zone, node.inode, 1, 0)?;
                state.record(segment_operation(node.inode, &segment));
            }
        }
        Ok(())
    }

    /// Bytes of all files with a name, in whole blocks, log headers included.
    pub fn live_bytes(&self, state: &State) -> u64 {
        let g = self.device.geometry();
        let nameless = state
            .nameless
            .values()
            .flat_map(|node| node.extents(g, &node.body.read()));
        let nameless: u64 = nameless.map(|(_, blocks)| u64::from(blocks)).sum();
        let record = |p: &Piece| g.round_up(p.length + log_record::HEADER as u64);
        let of_log = |node: &Arc<Node>| node.body.read().pieces.iter().map(record).sum::<u64>();
        let logs: u64 = state.names.logs.values().map(of_log).sum();
        let plain = state.zones.live_blocks().saturating_sub(nameless);
        plain * u64::from(g.block_size) + logs
    }

    /// All zones of the file system and their purposes.
    pub fn owned(&self, state: &State) -> Vec<(ZoneId, ZonePurpose)> {
        use ZonePurpose as P;
        let purpose = |stage: &Stage| match stage {
            Stage::Foreign | Stage::Taken { .. } | Stage::Ready { .. } => P::Spare,
            Stage::Metadata => P::Journal,
            Stage::Open(opened) if opened.slot.class.is_log() => P::Log,
            Stage::Open(_) | Stage::Holding(_) => P::Data,
            Stage::Freed { .. }
            | Stage::Resetting { .. }
            | Stage::Unreset { .. }
            | Stage::Leaving { .. } => P::Freed,
        };
        let zones = state.zones.iter();
        let mut zones: BTreeMap<_, _> = zones.map(|(zone, s)| (zone, purpose(s))).collect();
        for node in state.names.logs.values() {
            let segments = &node.body.read().segments;
            zones.extend(segments.iter().map(|s| (s.at.zone, P::Log)));
        }
        let rings = ring_zones(self.device.geometry()).concat();
        zones.extend(rings.into_iter().map(|z| (z, P::Superblock)));
        zones.insert(state.superblock.spare_zone, P::Spare);
        let twins = zones.iter();
        let twins = twins.filter_map(|(zone, purpose)| Some((self.device.twin(*zone)?, *purpose)));
        let twins: Vec<_> = twins.collect();
        zones.extend(twins);
        zones.into_iter().collect()
    }
}

/// Data that a writer has just written to the drive.
pub(crate) enum Placed {
    Piece { piece: Piece, is_new: bool },
    Segment(Segment),
}

fn segment_operation(inode: u64, s: &Segment) -> JournalOperation {
    JournalOperation::LogSegment {
        inode,
        file_offset: s.file_offset,
        offset: s.at.offset,
        end: s.end,
        zone: s.at.zone,
        run_id: s.run_id,
    }
}

/// The operations that name `segments` of a log in the journal; they belong to `body` or replace some of its segments.
pub(crate) fn log_operations(
    inode: u64,
    body: &Body,
    segments: &[Segment],
) -> Vec<JournalOperation> {
    let mut operations = Vec::new();
    for segment in segments {
        operations.push(segment_operation(inode, segment));
        if segment.end == u64::MAX
            && let Some(end) = body.reach(segment)
        {
            operations.push(JournalOperation::WrittenEnd {
                at: ZoneAddress::new(segment.at.zone, end),
                run_id: segment.run_id,
            });
        }
        if segment.limit != u64::MAX {
            operations.push(JournalOperation::LogTruncate {
                inode,
                size: segment.limit,
            });
        }
    }
    operations
}
