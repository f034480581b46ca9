//! What changes under the one lock of a mounted file system: names, zones, and what is recorded of
//! their changes and in no batch yet.

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
    /// What is in no batch yet.
    pub pending: Vec<Change>,
    /// One of them points into a conventional zone, which has no write pointer as a witness.
    pub pending_without_witness: bool,
    pub zones: ZoneTable,
    /// Files without a name that somebody has open.
    pub nameless: BTreeMap<u64, Arc<Node>>,
    /// The number of the batch that pending operations go into.
    pub next_batch: u64,
    /// Batches up to this one are durable.
    pub durable_batch: u64,
    /// So many zones less may be open, for the drive would not have it.
    pub budget_cut: usize,
    pub snapshot_bytes: u64,
    /// Bytes that a snapshot would have taken, in an epoch, when the journal had so many (`ready.rs`).
    pub snapshot_length: Cell<(u64, u64, u64)>,
    /// Of zones that could not be reset, and the last that was tried again.
    pub retries: Retries,
    pub last_retried: Option<ZoneId>,
    pub locks: BTreeSet<String>,
    pub cache: Arc<BlockCache>,
    /// How often a zone was opened, each time for a new run of log records.
    pub runs: u64,
    /// What was durable and is not there any more, as the mount found it.
    pub damage: Vec<Error>,
    /// If the journal is damaged, what is known to be lost by going on behind that.
    pub salvaged: Option<Vec<Loss>>,
}

impl State {
    pub fn check(&self) -> Result<()> {
        self.end.check()
    }

    /// Everything recorded so far counts as one batch from now on.
    pub fn begin_batch(&mut self) -> u64 {
        let number = self.next_batch;
        self.next_batch += 1;
        number
    }

    /// Whether all that was recorded is durable.
    pub fn is_durable(&self) -> bool {
        let is_recorded =
            self.pending.is_empty() && self.zones.count(|s| matches!(s, Stage::Freed { .. })) == 0;
        is_recorded && self.durable_batch + 1 >= self.next_batch
    }

    /// Records an operation and carries it out in memory.
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

    /// Records what has been carried out.
    pub fn record(&mut self, operation: JournalOperation) {
        self.pending.push(operation.into());
    }

    /// Gives back the space of a file without name and handle.
    pub fn free_node(&mut self, node: &Node) {
        let body = node.body.read();
        self.cache
            .forget(node.inode, body.truncates, body.written());
        let extents = node.extents(self.zones.geometry(), &body);
        drop(body);
        for (zone, blocks) in extents {
            self.free(zone, node.inode, 1, blocks);
        }
    }

    /// So many extents and blocks of a file less in a zone.
    pub fn free(&mut self, zone: ZoneId, inode: u64, extents: u32, blocks: u32) {
        let batch = self.next_batch;
        never(self.zones.remove(zone, inode, extents, blocks, batch));
    }

    /// A writer's zone could not be opened; nothing has been written to it.
    pub fn return_unused(&mut self, slot: &Arc<Slot>) {
        self.budget_cut += 1;
        never(self.zones.return_unused(slot));
    }

    /// A zone that is open from now on.
    pub fn new_slot(&mut self, zone: ZoneId, class: Class, capacity: u64, used: u64) -> Arc<Slot> {
        self.runs += 1;
        let epoch = self.journal.epoch;
        Arc::new(Slot::new(zone, class, capacity, used, epoch, self.runs))
    }

    /// Begins a new run in a slot that only the caller holds; what was reached of the last one has
    /// been told. `None` if others hold it: the caller has let go of it.
    pub fn begin_run(&mut self, old: &Arc<Slot>) -> Option<Arc<Slot>> {
        let slot = self.new_slot(old.zone, old.class, old.capacity, old.used());
        if self.zones.renew(old, 1, slot.clone()) {
            return Some(slot);
        }
        self.release(old);
        None
    }

    /// Puts it into the next frame how far the runs of log records reach.
    pub fn note_written_ends(&mut self) {
        let news = self.zones.news();
        self.pending.extend(news.into_iter().map(Change::from));
    }

    /// A writer lets go of its slot.
    pub fn release(&mut self, slot: &Arc<Slot>) {
        match self.zones.release(slot, self.next_batch) {
            Ok(news) => self.pending.extend(news.map(Change::from)),
            refused => never(refused),
        }
    }
}

/// For steps of zones that somebody takes who has no error to return.
fn never<T>(refused: Result<T>) {
    if let Err(error) = refused {
        debug_assert!(false, "{error}");
        tracing::error!(%error, "a zone is left as it is");
    }
}
