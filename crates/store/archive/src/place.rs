//! Objects on their way into a store. Nobody sees one before all of it is there and its checksum has been compared.
//!
//! What is too much for one transaction with others is put together in a collection of our own, and gets its
//! name in the end.

use crate::entry::Entry;
use crate::error::Result;
use store::{Name, ObjectWriter, Omap, Store, Transaction, Written};

/// Where objects are put together that are large in rows; how far a restore is; gone at the end.
pub const OWN: &str = ".zonestore-restore";
/// In it: objects that are put together. Others in it are no parts of objects.
const PARTS: &str = "part/";
/// Runs of data, and bytes of an omap, that wait for the transaction of the group.
const MAX_RUNS: usize = 128;
const MAX_ROWS: usize = 256 << 10;
/// Objects removed at once.
const PAGE: usize = 256;

/// An object whose checksum was not compared yet.
pub struct Ready {
    entry: Entry,
    runs: Vec<(u64, Written)>,
    rows: Omap,
    /// Its name in [`OWN`], if it has rows there.
    part: Option<String>,
}

/// The objects of a group.
pub struct Placing {
    store: Store,
    ready: Vec<Ready>,
    run: Option<(u64, ObjectWriter)>,
    row_bytes: usize,
    parts: u64,
}

/// Makes [`OWN`] if it is not there.
pub fn make_own(store: &Store) -> Result<()> {
    if store.collection(OWN)?.is_none() {
        let mut transaction = Transaction::new();
        transaction.create_collection(OWN, Default::default());
        store.commit(transaction)?;
    }
    Ok(())
}

/// Removes parts that were left, or all of [`OWN`].
pub fn clear_own(store: &Store, all: bool) -> Result<()> {
    if store.collection(OWN)?.is_none() {
        return Ok(());
    }
    remove_objects(store, OWN, PARTS)?;
    if all {
        // With the last of what is in it: without that nobody would know that it is over.
        let mut transaction = Transaction::new();
        for object in store.list(OWN, "", "", PAGE)? {
            transaction.remove(OWN, &object.name);
        }
        transaction.remove_collection(OWN);
        store.commit(transaction)?;
    }
    Ok(())
}

/// Removes the objects of a collection whose names begin so.
pub fn remove_objects(store: &Store, collection: &str, prefix: &str) -> Result<()> {
    // Not from the first name each time: the database would step over all that were removed.
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
            row_bytes: 0,
            parts: 0,
        }
    }

    /// An object begins; its collection and name are those that it is to have.
    pub fn begin(&mut self, entry: Entry) -> Result<()> {
        self.end_run()?;
        self.row_bytes = 0;
        self.ready.push(Ready {
            entry,
            runs: Vec::new(),
            rows: Omap::new(),
            part: None,
        });
        Ok(())
    }

    pub fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let ranges = self.ready.last().map(|ready| &ready.entry.ranges);
        let range = ranges.and_then(|ranges| ranges.iter().find(|range| range.start == offset));
        if let Some(range) = range.cloned() {
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

    /// What there is of the last object goes to [`OWN`].
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

    /// The objects that were begun since the last call, for a transaction that has others' steps, too.
    pub fn take(&mut self) -> Result<Vec<Ready>> {
        self.end_run()?;
        self.parts = 0;
        Ok(std::mem::take(&mut self.ready))
    }
}

/// An object of holes.
fn begin_sparse(transaction: &mut Transaction, collection: &str, name: &[u8], size: u64) {
    transaction.touch(collection, name);
    if size > 0 {
        transaction.punch(collection, name, 0, size);
    }
}

impl Ready {
    /// What the archive says of it.
    pub fn entry(&mut self) -> &mut Entry {
        &mut self.entry
    }

    /// Collection and object, for messages.
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

    /// Gives it its name; what had it goes.
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

    /// It is not wanted; nothing of it stays.
    pub fn give_up(self, transaction: &mut Transaction) {
        if let Some(part) = self.part {
            transaction.remove(OWN, part);
        }
    }
}
