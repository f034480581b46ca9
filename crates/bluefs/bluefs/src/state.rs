//! Everything that changes under the one lock of a mounted file system: names, zones, and the recorded changes that are
//! in no batch yet.

use crate::cache::BlockCache;
use crate::end::End;
use crate::format::operation::JournalOperation;
use crate::format::superblock::Superblock;
use crate::journal::{Change, Journal};
use crate::loss::Loss;
use crate::namespace::Namespace;
use crate::node::Node;
use crate::ring::Rings;
use crate::slot::{Class, Slot};
use crate::unsynced::Unsynced;
use crate::zone_table::{Stage, ZoneTable};
use crate::{Error, Result};
use appender::Retries;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::ZoneId;

pub(crate) struct State {
    pub end: Arc<End>,
    pub names: Namespace,
    pub rings: Rings,
    pub superblock: Superblock,
    pub journal: Journal,
    /// Changes that are recorded and in no batch yet.
    pub pending: Vec<Change>,
    /// A pending change names data in a conventional zone. It has no write pointer as a witness, so the data is flushed
    /// before the frame.
    pub pending_without_witness: bool,
    pub zones: ZoneTable,
    /// Unlinked files with an open handle, by inode.
    pub nameless: BTreeMap<u64, Arc<Node>>,
    /// The number of the batch that pending operations go into.
    pub next_batch: u64,
    /// Batches up to this one are durable.
    pub durable_batch: u64,
    /// Zones by which the budget of open zones is reduced: one for each zone that the drive refused to open, down to a
    /// budget of two, less one for each round of resets since then.
    pub budget_cut: usize,
    pub snapshot_bytes: u64,
    /// Bytes by which renames of directories have made a snapshot longer than the journal and the recorded changes.
    pub names_grown: u64,
    /// Cached size of a snapshot: journal epoch, bytes of the journal at that time, bytes of the snapshot (`ready.rs`).
    pub snapshot_length: Cell<(u64, u64, u64)>,
    /// When zones whose reset failed are tried again; `last_retried` is the zone tried last.
    pub retries: Retries,
    pub last_retried: Option<ZoneId>,
    pub locks: BTreeSet<String>,
    pub cache: Arc<BlockCache>,
    pub unsynced: Arc<Unsynced>,
    /// Slots made since the mount, one for each run of log records; a run id is made of this number and the epoch.
    pub runs: u64,
    /// Damage that the mount found: data that was durable and is now wrong or missing.
    pub damage: Vec<Error>,
    /// If the journal is damaged: the known losses of continuing after the damage.
    pub salvaged: Option<Vec<Loss>>,
}

impl State {
    pub fn check(&self) -> Result<()> {
        self.end.check()
    }

    /// Numbers everything recorded so far as one batch; later changes go into the next one.
    pub fn begin_batch(&mut self) -> u64 {
        let number = self.next_batch;
        self.next_batch += 1;
        number
    }

    /// Whether everything recorded is durable.
    pub fn is_durable(&self) -> bool {
        let is_recorded =
            self.pending.is_empty() && self.zones.count(|s| matches!(s, Stage::Freed { .. })) == 0;
        is_recorded && self.durable_batch + 1 >= self.next_batch
    }

    /// Applies an operation in memory and records it for the journal.
    pub fn operate(&mut self, operation: JournalOperation) {
        let nameless = self.names.apply(&operation);
        self.record(operation);
        for node in nameless {
            if node.handles.load(Ordering::Acquire) == 0 {
                self.free_node(&node);
            } else {
                self.nameless.insert(node.inode, node);
            }
        }
    }

    /// Records an operation that was applied in memory already.
    pub fn record(&mut self, operation: JournalOperation) {
        self.pending.push(operation.into());
    }

    /// Frees the space of a file without a name and a handle.
    pub fn free_node(&mut self, node: &Node) {
        // It is taken before the state elsewhere, but nobody writes a file without a handle.
        if let Some(mut stream) = node.writing.try_lock() {
            self.unsynced.let_go(&mut stream.notes);
        }
        let body = node.body.read();
        self.cache
            .forget(node.inode, body.truncates, body.written());
        let extents = node.extents(self.zones.geometry(), &body);
        drop(body);
        for (zone, blocks) in extents {
            self.free(zone, node.inode, 1, blocks);
        }
    }

    /// Subtracts extents and blocks of a file from the live data of a zone.
    pub fn free(&mut self, zone: ZoneId, inode: u64, extents: u32, blocks: u32) {
        let batch = self.next_batch;
        never(self.zones.remove(zone, inode, extents, blocks, batch));
    }

    /// Returns the zone of a slot that the drive refused to open. False if another writer has written to it meanwhile.
    pub fn return_unused(&mut self, slot: &Arc<Slot>) -> bool {
        self.zones.return_unused(slot).is_ok()
    }

    /// The slot of a zone that is opened, with a new run id.
    pub fn new_slot(&mut self, zone: ZoneId, class: Class, capacity: u64, used: u64) -> Arc<Slot> {
        self.runs += 1;
        let epoch = self.journal.epoch;
        Arc::new(Slot::new(zone, class, capacity, used, epoch, self.runs))
    }

    /// The slot of an open zone that goes on as one of `class`, with a new run id.
    pub fn slot_behind(&mut self, old: &Slot, class: Class) -> Arc<Slot> {
        self.runs += 1;
        Arc::new(Slot::behind(old, class, self.journal.epoch, self.runs))
    }

    /// Replaces a slot that only the caller holds by one with a new run id; the caller must have recorded the written
    /// end of the old run. `None` if other writers hold `old` too; the caller's hold on it is then released.
    pub fn begin_run(&mut self, old: &Arc<Slot>) -> Option<Arc<Slot>> {
        let slot = self.slot_behind(old, old.class);
        if self.zones.renew(old, 1, slot.clone()) {
            return Some(slot);
        }
        self.release(old);
        None
    }

    /// Records the written ends of all runs of log records for the next frame.
    pub fn note_written_ends(&mut self) {
        let news = self.zones.news();
        self.pending.extend(news.into_iter().map(Change::from));
    }

    /// Ends a writer's use of its slot.
    pub fn release(&mut self, slot: &Arc<Slot>) {
        match self.zones.release(slot, self.next_batch) {
            Ok(news) => self.pending.extend(news.map(Change::from)),
            refused => never(refused),
        }
    }
}

/// For steps of the zone table in callers that have no error to return; a refused step is a bug and is only logged in
/// release builds.
fn never<T>(refused: Result<T>) {
    if let Err(error) = refused {
        debug_assert!(false, "{error}");
        tracing::error!(%error, "a zone is left as it is");
    }
}
