//! Puts objects into a store. No reader sees an object before it is complete and its checksum has been verified.
//!
//! An object too large for the transaction of its group is assembled in a collection of the archive's own, and gets its
//! name at the end.

use crate::entry::Entry;
use crate::error::Result;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;
use store::{Name, ObjectWriter, Omap, Store, Transaction, Written};

/// Collection for objects that are being assembled and for the progress of a restore; removed at the end, and in no
/// archive.
pub const OWN: &str = ".zonestore-restore";
/// Prefix in [`OWN`] of the names of objects that are being assembled.
const PARTS: &str = "part/";
/// Most runs of data, and bytes of omap rows, of one object that wait for the transaction of the group.
const MAX_RUNS: usize = 128;
const MAX_ROWS: usize = 256 << 10;
/// Objects that are removed in one transaction.
const PAGE: usize = 256;

/// An object that has been read, and whose checksum may not be verified yet.
pub struct Ready {
    entry: Entry,
    runs: Vec<(u64, Written)>,
    rows: Omap,
    /// Its name in [`OWN`], if a part of it is there.
    part: Option<String>,
}

/// The objects of the group that is being read.
pub struct Placing {
    store: Store,
    ready: Vec<Ready>,
    run: Option<(u64, ObjectWriter)>,
    /// Ranges of the last object whose data has not begun.
    ranges: Peekable<IntoIter<Range<u64>>>,
    row_bytes: usize,
    parts: u64,
}

/// Creates [`OWN`] if it does not exist.
pub fn make_own(store: &Store) -> Result<()> {
    if store.collection(OWN)?.is_none() {
        let mut transaction = Transaction::new();
        transaction.create_collection(OWN, Default::default());
        store.commit(transaction)?;
    }
    Ok(())
}

/// Removes objects that were being assembled, or, if `all`, the whole collection [`OWN`].
pub fn clear_own(store: &Store, all: bool) -> Result<()> {
    if store.collection(OWN)?.is_none() {
        return Ok(());
    }
    remove_objects(store, OWN, PARTS)?;
    if all {
        // In one transaction with the progress: without that, it would not show that the restore has ended.
        let mut transaction = Transaction::new();
        for object in store.list(OWN, "", "", PAGE)? {
            transaction.remove(OWN, &object.name);
        }
        transaction.remove_collection(OWN);
        store.commit(transaction)?;
    }
    Ok(())
}

/// Removes the objects of a collection whose names begin with `prefix`.
pub fn remove_objects(store: &Store, collection: &str, prefix: &str) -> Result<()> {
    // Each page starts after the last one: otherwise the database would step over all removed rows again.
    let mut from = Name::default();
    loop {
        let page = store.list(collection, prefix, &from, PAGE)?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        from = last.name.clone();
        let mut transaction = Transaction::new();
        for object in &page {
            transaction.remove(collection, &object.name);
        }
        store.commit(transaction)?;
    }
}

impl Placing {
    pub fn new(store: &Store) -> Self {
        Self {
            store: store.clone(),
            ready: Vec::new(),
            run: None,
            ranges: Vec::new().into_iter().peekable(),
            row_bytes: 0,
            parts: 0,
        }
    }

    /// Begins an object; its collection and name are the final ones.
    pub fn begin(&mut self, entry: Entry) -> Result<()> {
        self.end_run()?;
        self.row_bytes = 0;
        self.ranges = entry.ranges.clone().into_iter().peekable();
        self.ready.push(Ready {
            entry,
            runs: Vec::new(),
            rows: Omap::new(),
            part: None,
        });
        Ok(())
    }

    pub fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Some(range) = beginning(&mut self.ranges, offset) {
            self.end_run()?;
            let writer = self.store.writer(Some(range.end - range.start))?;
            self.run = Some((offset, writer));
        }
        if let Some((_, writer)) = &mut self.run {
            writer.write(bytes)?;
        }
        Ok(())
    }

    pub fn omap(&mut self, rows: Omap) -> Result<()> {
        self.end_run()?;
        let bytes = rows.iter().map(|(key, value)| key.len() + value.len());
        self.row_bytes += bytes.sum::<usize>();
        if let Some(ready) = self.ready.last_mut() {
            ready.rows.extend(rows);
        }
        match self.row_bytes > MAX_ROWS {
            true => self.spill(),
            false => Ok(()),
        }
    }

    fn end_run(&mut self) -> Result<()> {
        let Some((start, writer)) = self.run.take() else {
            return Ok(());
        };
        let written = writer.finish()?;
        let Some(ready) = self.ready.last_mut() else {
            return Ok(());
        };
        ready.runs.push((start, written));
        match ready.runs.len() > MAX_RUNS {
            true => self.spill(),
            false => Ok(()),
        }
    }

    /// Moves what was read of the last object to [`OWN`].
    fn spill(&mut self) -> Result<()> {
        make_own(&self.store)?;
        self.row_bytes = 0;
        let number = self.parts;
        let Some(ready) = self.ready.last_mut() else {
            return Ok(());
        };
        let mut transaction = Transaction::new();
        let part = match &ready.part {
            Some(part) => part.clone(),
            None => {
                self.parts += 1;
                let part = format!("{PARTS}{number}");
                transaction.remove_if_present(OWN, &part);
                begin_sparse(&mut transaction, OWN, part.as_bytes(), ready.entry.size);
                part
            }
        };
        ready.add(&mut transaction, OWN, part.as_bytes());
        ready.part = Some(part);
        self.store.commit(transaction)?;
        Ok(())
    }

    /// The objects that were begun since the last call, to be placed by the caller's transaction.
    pub fn take(&mut self) -> Result<Vec<Ready>> {
        self.end_run()?;
        self.parts = 0;
        Ok(std::mem::take(&mut self.ready))
    }
}

/// The range that begins at `offset`, out of those that are left; offsets grow from call to call.
fn beginning(
    left: &mut Peekable<impl Iterator<Item = Range<u64>>>,
    offset: u64,
) -> Option<Range<u64>> {
    while left.next_if(|range| range.start < offset).is_some() {}
    left.next_if(|range| range.start == offset)
}

/// Creates an object that is one hole.
fn begin_sparse(transaction: &mut Transaction, collection: &str, name: &[u8], size: u64) {
    transaction.touch(collection, name);
    if size > 0 {
        transaction.punch(collection, name, 0, size);
    }
}

impl Ready {
    /// The object's header.
    pub fn entry(&mut self) -> &mut Entry {
        &mut self.entry
    }

    /// COLLECTION/OBJECT, for messages.
    pub fn label(&self) -> String {
        self.entry.label()
    }

    /// Adds the runs and rows that wait.
    fn add(&mut self, transaction: &mut Transaction, collection: &str, name: &[u8]) {
        for (offset, data) in self.runs.drain(..) {
            transaction.write(collection, name, offset, data);
        }
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            transaction.omap_set(collection, name, rows);
        }
    }

    /// Adds the steps that give the object its name; an existing object of that name is replaced.
    pub fn place(mut self, transaction: &mut Transaction) {
        let (collection, name) = (self.entry.collection.clone(), self.entry.name.clone());
        let attributes = std::mem::take(&mut self.entry.attributes);
        let is_one = self.part.is_none() && !self.entry.is_sparse();
        if let Some((_, data)) = self.runs.pop_if(|_| is_one) {
            transaction.put(&collection, &name, data, attributes);
            self.add(transaction, &collection, &name);
        } else {
            match self.part.clone() {
                Some(part) => {
                    self.add(transaction, OWN, part.as_bytes());
                    transaction.rename((OWN, part), (&collection, &name));
                }
                None => {
                    transaction.remove_if_present(&collection, &name);
                    begin_sparse(transaction, &collection, &name, self.entry.size);
                    self.add(transaction, &collection, &name);
                }
            }
            transaction.set_attributes(&collection, &name, attributes);
        }
        transaction.set_modified(&collection, &name, self.entry.modified_micros);
    }

    /// Discards the object: adds the step that removes what is in [`OWN`].
    pub fn give_up(self, transaction: &mut Transaction) {
        if let Some(part) = self.part {
            transaction.remove(OWN, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// However many pieces the data of an object comes in, each of its ranges is looked at once.
    #[test]
    fn an_object_of_many_runs_is_gone_through_once() {
        let (taken, mut begun) = (Cell::new(0), 0);
        let ranges = (0..10_000).map(|run| run * 100..run * 100 + 50);
        let ranges = ranges.inspect(|_| taken.set(taken.get() + 1));
        let mut ranges = ranges.peekable();
        for piece in 0..30_000 {
            let offset = piece / 3 * 100 + piece % 3 * 10;
            let found = beginning(&mut ranges, offset);
            assert_eq!(found.is_some(), piece % 3 == 0, "{offset}");
            begun += u32::from(found.is_some());
        }
        assert_eq!((begun, taken.get()), (10_000, 10_000));
    }
}
