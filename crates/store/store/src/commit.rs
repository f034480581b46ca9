//! Commits transactions.
//!
//! Order: the data was written to its zones before the transaction came here → one batch goes to the write-ahead
//! log → one flush makes data and log durable, unless the caller accepts a batch that is only readable → only then is
//! the freelist in memory updated and the caller answered (docs/format/store.md, "The write pointer is the witness").

use crate::format::key;
use crate::format::note::BatchNote;
use crate::inner::Inner;
use crate::limits::check_sizes;
use crate::omap;
use crate::open_maps::{Drops, Purged};
use crate::operations::Work;
use crate::rows::{onode_key, read_extents, read_onode};
use crate::space::LARGE;
use crate::staging::Staging;
use crate::step::{Step, Target};
use crate::written::Hold;
use crate::{Error, Result, TRACE, Transaction};
use kv::{Batch, Durability, Kv};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How a batch may use the zones that are kept for deleting and compacting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Adds data: leaves these zones alone.
    Adds,
    /// Removes data: may take some of them.
    Takes,
    /// May take all of them: it is small, or space cannot be made without it.
    HasTo,
}

impl Inner {
    /// Carries out a transaction. Returns the number under which it becomes durable, or `None` if it is already.
    pub(crate) fn commit(
        &self,
        transaction: Transaction,
        durability: Durability,
    ) -> Result<Option<u64>> {
        self.check_writable()?;
        check_sizes(&transaction)?;
        let mut data = transaction.operations.iter().filter_map(Step::data);
        if let Some((target, _)) = data.find(|(_, data)| !data.hold.is_of(&self.freelist)) {
            let object = target.to_string();
            return Err(Error::DataOfOther { object });
        }
        let brought = self.brought(&transaction)?;
        let adds = brought > LARGE || transaction.operations.iter().any(Step::adds_metadata);
        if adds {
            self.admit_metadata(brought)?;
        } else {
            let taken = transaction.operations.iter().map(Step::taken_bytes);
            self.wait_for_compaction(taken.sum())?;
        }
        // Not within the transaction, where a database that takes no batch would end it.
        self.reserve_numbers()?;
        let changes_collections = transaction
            .operations
            .iter()
            .any(|op| !op.collections().is_empty());
        // A transaction that changes collections excludes all others.
        let _alone = changes_collections.then(|| self.collection_changes.write());
        let _shared = (!changes_collections).then(|| self.collection_changes.read());
        let collections = self.collections();
        let stripes: BTreeSet<usize> = transaction
            .operations
            .iter()
            .flat_map(Step::targets)
            .map(|t| self.stripes.index(&t.collection, &t.object))
            .collect();
        let _stripes: Vec<_> = stripes
            .into_iter()
            .map(|i| self.stripes.lock(i).lock())
            .collect();
        let kv = self.kv()?;
        let _no_moves = self.mutators.read();

        let mut work = Work {
            inner: self,
            staging: Staging::new(self, &kv),
            collections: &collections,
            changed: BTreeMap::new(),
            next_collection: self.next_collection.load(Ordering::Acquire),
            holds: Vec::new(),
            drops: Drops::new(&self.open_maps),
            now: self.runtime.unix_micros(),
        };
        self.keep_log_short(&kv)?;
        work.run(transaction)?;
        let Work {
            staging,
            changed,
            holds,
            drops,
            next_collection: next,
            ..
        } = work;
        // A transaction that changes nothing still waits for the batches that it may have seen.
        if staging.is_empty() && changed.is_empty() && !self.unsynced.any() {
            return Ok(None);
        }
        let mut batch = Batch::default();
        for (name, record) in &changed {
            match record {
                Some(record) => batch.put(&key::collection(name), &record.encode()),
                None => batch.delete(&key::collection(name)),
            }
        }
        if changes_collections {
            batch.put(key::SUPER_NEXT_COLLECTION, &u64::from(next).to_le_bytes());
            self.next_collection.store(next, Ordering::Release);
        }
        let change = if adds { Change::Adds } else { Change::Takes };
        let number = self.write_batch(&kv, &staging, batch, holds, durability, change)?;
        self.open_maps.doom(staging.doomed.iter().copied());
        drop(drops);
        if changes_collections {
            let mut now = BTreeMap::clone(&collections);
            for (name, record) in changed {
                match record {
                    Some(record) => now.insert(name, record),
                    None => now.remove(&name),
                };
            }
            *self.collections.write() = Arc::new(now);
        }
        let died = staging
            .rows
            .accounts
            .deltas
            .values()
            .map(|d| d.dead.max(0).unsigned_abs())
            .sum();
        // A failed write of this data, or of another's, may have set a zone aside.
        let has_more = !staging.doomed.is_empty() || self.freelist.takes_news();
        self.cleaner.after_commit(died, has_more);
        Ok(number)
    }

    /// Bytes of metadata that a transaction adds, as far as known before its objects are locked.
    fn brought(&self, transaction: &Transaction) -> Result<u64> {
        let mut bytes = 0;
        for step in &transaction.operations {
            bytes += step.metadata_bytes();
            if let Step::Clone { from, .. } = step {
                bytes += self.omap_bytes(from)?;
            }
        }
        Ok(bytes)
    }

    /// Bytes of the omap of an object; zero if there is none yet: the transaction may create the object or its
    /// collection.
    fn omap_bytes(&self, object: &Target) -> Result<u64> {
        let kv = self.kv()?;
        let collections = self.collections();
        let key = collections
            .get(&object.collection)
            .and_then(|record| onode_key(&record.kind, &object.collection, &object.object).ok());
        let onode = key.map(|key| read_onode(&*kv, &key)).transpose()?.flatten();
        let Some(number) = onode.and_then(|onode| onode.omap) else {
            return Ok(0);
        };
        omap::rows(&*kv, number, &[], None)
            .map(|row| row.map(|(key, value)| (key.len() + value.len()) as u64))
            .sum()
    }

    /// Writes a batch and updates the freelist; `holds` are released. A large batch that finds no room is refused,
    /// unless it has to be written: otherwise it would stop the store. Returns the number under which the batch becomes
    /// durable, or `None` if it is already.
    pub(crate) fn write_batch(
        &self,
        kv: &Kv,
        staging: &Staging<'_>,
        mut batch: Batch,
        mut holds: Vec<Hold>,
        durability: Durability,
        change: Change,
    ) -> Result<Option<u64>> {
        let (number, copied) = self.summaries.begin();
        if let Some(record) = copied {
            batch.put(key::SUPER_SUMMARIES, &record.encode());
        }
        let acknowledged = self.acknowledged.load(Ordering::Acquire);
        staging.fill(
            &mut batch,
            BatchNote {
                number,
                acknowledged,
                pieces: Vec::new(),
            },
        );
        let span = tracing::debug_span!(target: TRACE, "flush", ?durability, bytes = batch.as_bytes().len() as i64);
        let bytes = batch.as_bytes().len() as u64;
        let lacks_room = match change {
            Change::Adds => bytes > LARGE && !self.takes_metadata(kv, bytes),
            Change::Takes => staging.taken() > LARGE && !self.takes_removals(kv, bytes),
            Change::HasTo => false,
        };
        let written = if lacks_room {
            Err(match change {
                Change::Takes => self.transaction_too_large(bytes),
                _ => self.no_room_to_add(kv, bytes),
            })
        } else {
            span.in_scope(|| {
                self.flush_unguarded(staging)
                    .and_then(|()| self.write_when_possible(kv, &batch, durability))
            })
        };
        let waits = match written {
            Ok(waits) => waits,
            // None of the batch was written.
            Err(error @ (Error::NoMetadataSpace { .. } | Error::TransactionTooLarge { .. })) => {
                self.summaries.abandon(number);
                return Err(error);
            }
            Err(error) => {
                // Whether the batch is there after the next mount is unknown, so its data stays.
                holds.into_iter().for_each(Hold::leak);
                return Err(self.stop_writing(error));
            }
        };
        if waits.is_none() {
            self.acknowledged.store(number, Ordering::Release);
        }
        self.summaries.note(number, &batch);
        let inline = staging.rows.accounts.inline.growth();
        let reserved = holds.iter_mut().map(Hold::take_reserved).sum();
        let deltas = &staging.rows.accounts.deltas;
        self.freelist.apply(deltas, inline, reserved);
        if staging.changes_who_shows() {
            self.shows.fetch_add(1, Ordering::Release);
        }
        self.garbage.fetch_add(staging.garbage(), Ordering::Relaxed);
        self.taken.fetch_add(staging.taken(), Ordering::Relaxed);
        drop(holds);
        Ok(waits)
    }

    /// Flushes data without checksums before its batch is written. After a power cut that loses the data but keeps the
    /// batch, what the zone held before its reset would otherwise pass for it.
    fn flush_unguarded(&self, staging: &Staging<'_>) -> Result<()> {
        if staging.has_unguarded() {
            self.fs.flush()?;
        }
        Ok(())
    }

    /// Purges maps and omaps that lost their last name and that no reader has open: about a thousand rows at a time, as
    /// long as `goes_on` is true. True if there were any. One with a damaged row stays doomed on the drive until the
    /// next mount or deep scrub tries again, and does not keep the others from being purged.
    pub(crate) fn purge_doomed(&self, goes_on: impl Fn() -> bool) -> Result<bool> {
        let mut damage = BTreeSet::new();
        let any = self.purge_each(goes_on, &mut damage);
        // The first is written down already.
        if damage.len() > 1 {
            self.remember_damages(&damage);
        }
        any
    }

    fn purge_each(
        &self,
        goes_on: impl Fn() -> bool,
        damage: &mut BTreeSet<String>,
    ) -> Result<bool> {
        let mut any = false;
        while let Some((map, mut purged)) = self.open_maps.take_doomed() {
            any = true;
            let (is_gone, goes_on) = loop {
                let mut purge = || self.purge(map, &mut purged);
                // A drive may fail a read for a moment.
                let done = purge().or_else(|error| match error.is_damage() {
                    true => purge(),
                    false => Err(error),
                });
                match (done, goes_on()) {
                    (Ok(false), true) => self.open_maps.step(),
                    done => break done,
                }
            };
            match is_gone {
                Ok(true) => self.open_maps.end_purge(map, None),
                Err(error) if error.is_damage() => {
                    tracing::error!(%error, map, "what was removed cannot be given back");
                    damage.insert(error.to_string());
                    if damage.len() == 1 {
                        // The rest of the purge may take long.
                        self.remember_damages(damage);
                    }
                    self.open_maps.stick(map);
                    self.open_maps.end_purge(map, None);
                }
                unfinished => {
                    self.open_maps.end_purge(map, Some(purged));
                    unfinished?;
                }
            }
            if !goes_on {
                break;
            }
        }
        Ok(any)
    }

    /// One step of a purge; true if nothing of the map is left.
    fn purge(&self, map: u64, purged: &mut Purged) -> Result<bool> {
        const AT_ONCE: usize = 1024;
        const BYTES_AT_ONCE: usize = 64 << 10;
        let kv = self.kv()?;
        self.keep_log_short(&kv)?;
        self.wait_for_compaction(0)?;
        let _no_moves = self.mutators.read();
        let mut staging = Staging::new(self, &kv);
        let rows = read_extents(&*kv, map, purged.extents, u64::MAX, AT_ONCE);
        let rows = rows.map_err(|error| self.of_rows(error))?;
        for (offset, extent) in &rows {
            let removed = staging.rows.remove(map, *offset, extent);
            removed.map_err(|error| self.of_rows(error))?;
        }
        let keys = omap::keys(&*kv, map, &purged.omap, (AT_ONCE, BYTES_AT_ONCE));
        let (keys, has_all) = keys.map_err(|error| self.of_rows(error))?;
        let last = keys.last().cloned();
        let gone = keys.into_iter().map(|key| ((map, key), None));
        staging.omaps.extend(gone);
        let is_last = rows.len() < AT_ONCE && has_all;
        let mut batch = Batch::default();
        if is_last {
            batch.delete(&key::doomed(map));
        }
        let holds = Vec::new();
        self.write_batch(
            &kv,
            &staging,
            batch,
            holds,
            Durability::Synced,
            Change::HasTo,
        )?;
        if let Some((offset, extent)) = rows.last() {
            purged.extents = offset + extent.length;
        }
        if let Some(key) = last {
            purged.omap = key;
            purged.omap.push(0);
        }
        Ok(is_last)
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
