//! The changes of one transaction: an overlay on the database that becomes one batch.
//!
//! Reads through it see the earlier changes of the transaction. Nothing reaches the database before the batch that
//! [`Staging::fill`] makes is written, so an error in between leaves all objects unchanged.

use crate::blob_reader::read_blob;
use crate::format::key;
use crate::format::kind::Kind;
use crate::format::note::{BatchNote, Piece};
use crate::format::onode::Onode;
use crate::format::record::{encode_counters, encode_name};
use crate::format::{blob, extent};
use crate::inner::Inner;
use crate::omap;
use crate::rows::{Table, no_blob, read_blob_row, read_extents, read_onode};
use crate::space::LARGE;
use crate::step::{Omap, ROW};
use crate::written::Run;
use crate::{Error, Result};
use kv::{Batch, Kv};
use object::{ChecksumKind, Content, Copy, Delta, Extent, Fragment, Span, Staged};
use std::collections::BTreeMap;

/// Most extents that one transaction gives back itself, whatever number of objects it removes; the maps behind them are
/// left to the background purge. Their rows alone are no large batch, which could be refused. Each map that is left
/// costs the purge a flush, however few extents it has: the purge takes one map at a time, so that a thread that needs
/// space can purge the others.
pub(crate) const MAX_DROPPED: usize = (LARGE / ROW / 2) as usize;

/// Most bytes of omap rows that a transaction may clone or remove as a range: all are in memory at once, several times.
const MAX_FOUND: u64 = 128 << 20;

pub(crate) struct Staging<'a> {
    inner: &'a Inner,
    kv: &'a Kv,
    /// Changed onodes by key; `None`: removed.
    onodes: BTreeMap<Vec<u8>, Option<Onode>>,
    /// Changed extents and blobs.
    pub rows: Staged<Table<'a>>,
    /// Changed omap rows, by the omap's number and key; `None`: removed.
    pub omaps: BTreeMap<(u64, Vec<u8>), Option<Vec<u8>>>,
    pub doomed: Vec<u64>,
    noted: Vec<Piece>,
    dropped: usize,
    /// Bytes of omap rows read for clones and range removals.
    found: u64,
}

impl<'a> Staging<'a> {
    pub fn new(inner: &'a Inner, kv: &'a Kv) -> Self {
        let table = Table::new(kv, || inner.take_number(), &inner.shared_blobs);
        Self {
            inner,
            kv,
            onodes: BTreeMap::new(),
            rows: Staged::new(table, inner.device.geometry().block_size),
            omaps: BTreeMap::new(),
            doomed: Vec::new(),
            noted: Vec::new(),
            dropped: 0,
            found: 0,
        }
    }

    pub fn onode(&self, key: &[u8]) -> Result<Option<Onode>> {
        match self.onodes.get(key) {
            Some(staged) => Ok(staged.clone()),
            None => read_onode(self.kv, key),
        }
    }

    pub fn set_onode(&mut self, key: Vec<u8>, onode: Option<Onode>) {
        self.onodes.insert(key, onode);
    }

    /// Whether a collection of this kind has objects, with the changes made so far.
    pub fn has_onodes(&self, kind: &Kind) -> Result<bool> {
        let (first, end) = (kind.position(&[]), kind.end());
        let staged = self.onodes.range(first.clone()..);
        let mut staged = staged.take_while(|(key, _)| end.as_ref().is_none_or(|end| *key < end));
        if staged.any(|(_, onode)| onode.is_some()) {
            return Ok(true);
        }
        for row in self.kv.scan(&first, end.as_deref()) {
            let (key, _) = row?;
            if !self.onodes.contains_key(&key) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Shows a run that has just been written at `offset` of `map`, where nothing is.
    pub fn write(&mut self, map: u64, offset: u64, run: Run) {
        self.rows.write(map, offset, Extent::own(run.blob()));
        self.noted.push(run.piece);
    }

    /// Notes runs that have just been written; returns them as fragments of a blob that is being moved.
    pub fn note(&mut self, runs: Vec<Run>) -> Vec<Fragment> {
        let fragments = runs.iter().map(|run| run.piece.fragment()).collect();
        self.noted.extend(runs.into_iter().map(|run| run.piece));
        fragments
    }

    /// Whether some of the data just written has no checksum.
    pub fn has_unguarded(&self) -> bool {
        let mut kinds = self.noted.iter().map(|piece| piece.checksum_kind);
        kinds.any(|kind| kind == ChecksumKind::None)
    }

    /// Removes the bytes of `span` from their map. Unless they are the map's last, the caller has to put others in
    /// their place.
    pub fn cut(&mut self, span: Span) -> Result<()> {
        let copies = self.rows.cut(span.map, span.from, span.to)?;
        self.copy(span.map, copies)
    }

    /// Makes `span` a hole.
    pub fn punch(&mut self, span: Span) -> Result<()> {
        let copies = self.rows.punch(span.map, span.from, span.to)?;
        self.copy(span.map, copies)
    }

    fn copy(&mut self, map: u64, copies: Vec<Copy>) -> Result<()> {
        for copy in copies {
            let mut bytes = vec![0; copy.raw.len()];
            read_blob(&*self.inner.device, &copy.blob, copy.raw.start, &mut bytes)
                .map_err(|failed| failed.of(&format!("map {map}"), 0))?;
            self.rows.copied(&copy, bytes);
        }
        Ok(())
    }

    /// Gives back all extents of `map`, or dooms it for the purge if a reader has it `open`, if it has many, or if a row of
    /// it is damaged: then what lies behind that row is given back when the purge can read it, or a repair has removed it.
    pub fn drop_map(&mut self, map: u64, open: bool) -> Result<()> {
        let budget = MAX_DROPPED - self.dropped;
        let rows = if open {
            None
        } else {
            self.undamaged(map, budget)?
        };
        let Some(rows) = rows.filter(|rows| rows.len() < budget) else {
            self.doomed.push(map);
            return Ok(());
        };
        self.dropped += rows.len();
        for (offset, extent) in self.rows.changed(rows, map, 0, u64::MAX) {
            self.rows.remove(map, offset, &extent)?;
        }
        Ok(())
    }

    /// At most `limit` extents of `map`, without the changes; `None` if the row of one of them is damaged, or that of a blob
    /// that it shows. Called before any of them is removed, so that a map with a damaged row keeps all its references.
    fn undamaged(&self, map: u64, limit: usize) -> Result<Option<Vec<(u64, Extent)>>> {
        let read = || -> Result<_> {
            let rows = read_extents(self.kv, map, 0, u64::MAX, limit)?;
            for (_, extent) in &rows {
                if let Content::Shared { blob, .. } = extent.content {
                    read_blob_row(self.kv, blob)?.ok_or_else(|| no_blob(blob))?;
                }
            }
            Ok(rows)
        };
        match self.inner.rows_read(read) {
            Err(error) if error.is_damage() => Ok(None),
            rows => rows.map(Some),
        }
    }

    /// Copies the rows of the omap `from`, with the changes made so far, to the omap `to`.
    pub fn copy_omap(&mut self, from: u64, to: u64) -> Result<()> {
        let mut rows = Omap::new();
        for row in omap::rows(self.kv, from, &[], None) {
            let (key, value) = row?;
            self.count((key.len() + value.len()) as u64 + ROW)?;
            rows.insert(key, value);
        }
        let changed = self.omaps.range((from, Vec::new())..);
        let mut found = 0;
        for ((_, key), value) in changed.take_while(|((of, _), _)| *of == from) {
            match value {
                Some(value) => {
                    found += (key.len() + value.len()) as u64 + ROW;
                    rows.insert(key.clone(), value.clone());
                }
                None => _ = rows.remove(key),
            }
        }
        self.count(found)?;
        let rows = rows.into_iter();
        let rows = rows.map(|(key, value)| ((to, key), Some(value)));
        self.omaps.extend(rows);
        Ok(())
    }

    /// Removes the rows of an omap with keys in `from..to`.
    pub fn remove_range(&mut self, number: u64, from: &[u8], to: &[u8]) -> Result<()> {
        if from >= to {
            return Ok(());
        }
        let range = (number, from.to_vec())..(number, to.to_vec());
        self.omaps
            .range_mut(range)
            .for_each(|(_, value)| *value = None);
        for row in omap::rows(self.kv, number, from, Some(to)) {
            let (key, _) = row?;
            self.count(key.len() as u64 + ROW)?;
            self.omaps.insert((number, key), None);
        }
        Ok(())
    }

    /// Counts `bytes` of omap rows that the caller did not pass in but that are in memory; fails above [`MAX_FOUND`].
    fn count(&mut self, bytes: u64) -> Result<()> {
        self.found += bytes;
        if self.found <= MAX_FOUND {
            return Ok(());
        }
        Err(Error::Invalid {
            what: "the size of all rows of omaps that one transaction clones or removes as a range, with 64 bytes more for each row,",
            found: self.found,
            allowed: MAX_FOUND,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.onodes.is_empty()
            && self.rows.is_empty()
            && self.omaps.is_empty()
            && self.doomed.is_empty()
    }

    /// Whether stored bytes gain or lose an object that shows them: a shared blob or the name of an object changes.
    pub fn changes_who_shows(&self) -> bool {
        self.rows.changed_blobs().next().is_some() || self.onodes.values().any(Option::is_none)
    }

    /// Estimated bytes of rows that the batch removes.
    pub fn garbage(&self) -> u64 {
        let onodes = self.onodes.values().filter(|onode| onode.is_none());
        let omaps = self.omaps.values().filter(|value| value.is_none());
        (self.rows.accounts.rows_gone + (onodes.count() + omaps.count()) as u64) * ROW
            + self.rows.accounts.inline.removed
    }

    /// Estimated bytes that removing rows takes in the batch.
    pub fn taken(&self) -> u64 {
        let onodes = self.onodes.iter().filter(|(_, onode)| onode.is_none());
        let onodes = onodes.map(|(key, _)| key.len() as u64 + ROW / 2);
        let omaps = self.omaps.iter().filter(|(_, value)| value.is_none());
        let omaps = omaps.map(|((_, name), _)| name.len() as u64 + ROW / 2);
        self.rows.accounts.rows_gone * ROW + onodes.chain(omaps).sum::<u64>()
    }

    /// Writes all changes to `batch`, and `note` with the pieces of data that the transaction brought.
    pub fn fill(&self, batch: &mut Batch, mut note: BatchNote) {
        for (key, onode) in &self.onodes {
            put_or_delete(batch, key, onode.as_ref().map(Onode::encode));
        }
        for (map, end, row) in self.rows.changed_extents() {
            put_or_delete(batch, &key::extent(map, end), row.map(extent::encode));
        }
        for (id, row) in self.rows.changed_blobs() {
            put_or_delete(batch, &key::blob(id), row.map(blob::encode_shared));
        }
        for (at, name) in self.rows.accounts.changed_index() {
            put_or_delete(batch, &key::cleaning(at), name.map(encode_name));
        }
        for (zone, delta) in &self.rows.accounts.deltas {
            if *delta != Delta::default() {
                let counters = encode_counters(delta.written, delta.dead);
                batch.merge(&key::freelist(*zone), &counters);
            }
        }
        let inline = self.rows.accounts.inline.growth();
        if inline != 0 {
            batch.merge(key::SUPER_INLINE, &inline.to_le_bytes());
        }
        for ((number, name), value) in &self.omaps {
            put_or_delete(batch, &key::omap(*number, name), value.clone());
        }
        for map in &self.doomed {
            batch.put(&key::doomed(*map), &[]);
        }
        note.pieces.clone_from(&self.noted);
        batch.log_data(&note.encode());
    }
}

fn put_or_delete(batch: &mut Batch, key: &[u8], value: Option<Vec<u8>>) {
    match value {
        Some(value) => batch.put(key, &value),
        None => batch.delete(key),
    }
}
