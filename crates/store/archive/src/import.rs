//! Adds the objects of an archive to a store.

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::listing::{Collection, Kind, Listed};
use crate::place::{self, Placing, Ready};
use crate::progress::check_finished;
use crate::sum::Sum;
use crate::unpack::{Archive, Sink};
use serde::Serialize;
use std::io::Read;
use store::{
    Attributes, CollectionInfo, Hashed, Name, ObjectPath, Omap, Pending, Store, Transaction,
};

/// Options of [`import`].
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Whether objects that exist are replaced; otherwise they are kept.
    pub overwrite: bool,
    /// Target for the archive's only collection: a collection, and a prefix for the names. Collections whose names
    /// begin with a dot, which belong to programs, are left out then.
    pub to: Option<ObjectPath>,
    /// Judges objects for collections that have a meaning for a program.
    pub keeper: Option<&'static dyn Keeper>,
}

/// What is done with an object of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Put under its name; an existing object is replaced.
    Put,
    /// Put under its name; an existing object is kept under another name.
    Above,
    /// Not put, because of an existing object.
    Kept,
    /// Not put: it is newer than an existing object, which stays.
    Newer,
    /// Not put, because of the properties of its collection.
    LeftOut,
    /// The import ends, for this reason.
    Refused(String),
}

/// Adds the steps to a transaction that put an object with these attributes.
pub type Put<'a> = Box<dyn FnOnce(&mut Transaction, Attributes) + 'a>;

/// Judges objects for collections that have a meaning for a program, such as S3 buckets and their earlier versions.
pub trait Keeper: std::fmt::Debug + Sync {
    /// Adds the creation of the collections without which this one is of no use, to the transaction that creates it if it
    /// does not exist.
    ///
    /// # Errors
    /// Errors of the store.
    fn complete(
        &self,
        store: &Store,
        transaction: &mut Transaction,
        collection: &CollectionInfo,
    ) -> store::Result<()>;

    /// Decides about an object, given its collection, name and attributes.
    ///
    /// # Errors
    /// Errors of the store.
    fn place(
        &self,
        store: &Store,
        object: (&str, &Name),
        attributes: &Attributes,
        overwrite: bool,
    ) -> store::Result<Place>;

    /// For an object that is [`Place::Above`]: adds steps that move the existing object away, then those of `put`.
    /// Returns the reason if neither is allowed.
    ///
    /// # Errors
    /// Errors of the store.
    fn above(
        &self,
        store: &Store,
        transaction: &mut Transaction,
        object: (&str, &Name),
        attributes: Attributes,
        put: Put<'_>,
    ) -> store::Result<Option<String>>;
}

/// Result of [`import`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Imported {
    /// Objects stored.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Objects that existed and were kept.
    pub kept: u64,
    /// Objects that were not stored because they are newer than an existing object that stays.
    pub newer: u64,
    /// Objects that have no place in their collection as this store has it.
    pub left_out: u64,
    /// Objects with bytes that are missing in the archive; they are not stored.
    pub damaged: Vec<String>,
    /// Objects, and ranges of objects, that could not be read at all for the archive, and that it does not name.
    pub unnamed: u64,
}

/// Adds the objects of an archive. Objects stored before an error stay, and `imported` counts them. `progress` is
/// called with the bytes of the archive that were read.
///
/// # Errors
/// Also if the archive is damaged, or an incremental backup.
pub fn import(
    store: &Store,
    source: impl Read,
    options: &ImportOptions,
    imported: &mut Imported,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let archive = Archive::open(source)?;
    check_finished(store)?;
    if archive.head.kind == Kind::Incremental {
        return Err(Error::Incremental);
    }
    let mut collections = archive.head.collections.clone();
    if let Some(to) = &options.to {
        collections.retain(|collection| !is_programs(&collection.name));
        let [only] = &mut collections[..] else {
            let collections = collections.len();
            return Err(Error::SeveralCollections { collections });
        };
        only.name.clone_from(&to.collection);
        if store.collection(&to.collection)?.is_none() && only.hashed.is_some() {
            // A new family, because the collection that this one is a copy of may be in the same store.
            let family = store.unused_family()?;
            only.hashed = only.hashed.map(|hashed| Hashed { family, ..hashed });
        }
    }
    store.revise()?;
    for collection in &collections {
        let mut transaction = Transaction::new();
        let there = store.collection(&collection.name)?;
        if there.is_none() {
            add_collection(&mut transaction, collection);
        }
        if let Some(keeper) = options.keeper {
            let there = there.unwrap_or_else(|| collection.into());
            keeper.complete(store, &mut transaction, &there)?;
        }
        store.commit(transaction)?;
    }
    let mut sink = Import {
        store,
        options,
        placing: Placing::new(store),
        fate: Fate::Placed,
        fates: Vec::new(),
        imported,
    };
    let read = archive.read(&mut sink, progress);
    drop(sink);
    // Parts that never got their names, and the collection for them.
    if store.list(place::OWN, "", "", 1).is_ok() {
        place::clear_own(store, true)?;
    }
    imported.unnamed = read?.unnamed;
    Ok(())
}

/// Adds the creation of a collection with the properties that the archive records.
pub fn add_collection(transaction: &mut Transaction, collection: &Collection) {
    let (name, attributes) = (&collection.name, collection.attributes());
    match collection.hashed {
        None => transaction.create_collection(name, attributes),
        Some(hashed) => transaction.create_hashed_collection(name, hashed, attributes),
    };
    transaction.set_collection_created(name, collection.created_micros);
}

fn is_programs(collection: &str) -> bool {
    collection.starts_with('.')
}

/// What is done with an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Placed,
    /// Put; an existing object is moved away.
    Above,
    /// Not put, because of an existing object.
    Kept,
    LeftOut,
}

struct Import<'a> {
    store: &'a Store,
    options: &'a ImportOptions,
    placing: Placing,
    /// Fate of the object that is being read.
    fate: Fate,
    /// Fates of the objects of the group.
    fates: Vec<Fate>,
    imported: &'a mut Imported,
}

/// The objects of a group while they are committed.
#[derive(Default)]
struct Batch {
    transaction: Transaction,
    /// Size of each object that the transaction puts.
    sizes: Vec<u64>,
    /// Objects whose transactions are readable, and their bytes.
    objects: u64,
    bytes: u64,
    /// The last of these transactions.
    last: Option<Pending>,
}

impl Batch {
    /// Commits the transaction, so that it is readable.
    fn commit(&mut self, store: &Store) -> Result<()> {
        let transaction = std::mem::take(&mut self.transaction);
        self.last = Some(store.commit_readable(transaction)?);
        self.objects += self.sizes.len() as u64;
        self.bytes += self.sizes.drain(..).sum::<u64>();
        Ok(())
    }
}

impl Fate {
    fn is_put(self) -> bool {
        matches!(self, Self::Placed | Self::Above)
    }
}

impl Import<'_> {
    fn judge(&mut self, entry: &Entry) -> Result<Fate> {
        let (collection, name, overwrite) =
            (&entry.collection, &entry.name, self.options.overwrite);
        let place = match self.options.keeper {
            Some(keeper) => {
                keeper.place(self.store, (collection, name), &entry.attributes, overwrite)?
            }
            None if overwrite || self.store.stat(collection, name)?.is_none() => Place::Put,
            None => Place::Kept,
        };
        match place {
            Place::Put => Ok(Fate::Placed),
            Place::Above => Ok(Fate::Above),
            Place::Kept => Ok(Fate::Kept),
            Place::Newer => {
                self.imported.newer += 1;
                Ok(Fate::LeftOut)
            }
            Place::LeftOut => {
                self.imported.left_out += 1;
                Ok(Fate::LeftOut)
            }
            Place::Refused(why) => {
                let object = entry.label();
                Err(Error::Guarded { object, why })
            }
        }
    }

    fn place_all(&mut self, lines: Vec<Listed>, batch: &mut Batch) -> Result<()> {
        let mut ready = self.placing.take()?.into_iter();
        let fates = std::mem::take(&mut self.fates);
        let stored = lines.iter().filter(|line| line.sum.is_some());
        for (line, fate) in stored.zip(fates) {
            self.imported.kept += u64::from(fate == Fate::Kept);
            let object = fate.is_put().then(|| ready.next());
            let Some(object) = object.flatten() else {
                continue;
            };
            if !line.lost.is_empty() {
                self.imported.damaged.push(object.label());
                object.give_up(&mut batch.transaction);
                continue;
            }
            match self.options.keeper.filter(|_| fate == Fate::Above) {
                Some(keeper) => {
                    // The keeper looks at existing objects, including those put before this one.
                    batch.commit(self.store)?;
                    batch.transaction = self.place_above(keeper, object)?;
                }
                None => object.place(&mut batch.transaction),
            }
            batch.sizes.push(line.bytes);
        }
        batch.commit(self.store)
    }

    /// A transaction that puts an object where an existing one is moved away.
    fn place_above(&self, keeper: &dyn Keeper, mut ready: Ready) -> Result<Transaction> {
        let (label, entry) = (ready.label(), ready.entry());
        let (collection, name) = (entry.collection.clone(), entry.name.clone());
        let attributes = std::mem::take(&mut entry.attributes);
        let put: Put<'_> = Box::new(|transaction, attributes| {
            ready.entry().attributes = attributes;
            ready.place(transaction);
        });
        let (mut transaction, object) = (Transaction::new(), (&*collection, &name));
        let refused = keeper.above(self.store, &mut transaction, object, attributes, put)?;
        match refused {
            None => Ok(transaction),
            Some(why) => Err(Error::Guarded { object: label, why }),
        }
    }
}

impl Sink for Import<'_> {
    fn begin(&mut self, mut entry: Entry) -> Result<()> {
        self.fate = Fate::Placed;
        if let Some(to) = &self.options.to {
            if is_programs(&entry.collection) {
                self.fate = Fate::LeftOut;
            }
            entry.collection.clone_from(&to.collection);
            let name = [&to.object[..], &entry.name].concat();
            entry.name = (&name).into();
        }
        if self.fate == Fate::Placed {
            self.fate = self.judge(&entry)?;
        }
        self.fates.push(self.fate);
        match self.fate.is_put() {
            true => self.placing.begin(entry),
            false => Ok(()),
        }
    }

    fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.fate.is_put() {
            true => self.placing.data(offset, bytes),
            false => Ok(()),
        }
    }

    fn omap(&mut self, rows: Omap) -> Result<()> {
        match self.fate.is_put() {
            true => self.placing.omap(rows),
            false => Ok(()),
        }
    }

    fn group(&mut self, lines: Vec<Listed>, _: Sum) -> Result<()> {
        let mut batch = Batch::default();
        let placed = self.place_all(lines, &mut batch);
        // Objects that are readable stay, even after an error.
        if let Some(last) = batch.last {
            last.wait()?;
        }
        self.imported.objects += batch.objects;
        self.imported.bytes += batch.bytes;
        placed
    }
}
