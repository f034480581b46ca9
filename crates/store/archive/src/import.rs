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
use store::{Attributes, Hashed, Name, ObjectPath, Omap, Pending, Store, Transaction};

/// How objects are added.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Those that are there are replaced; otherwise they stay as they are.
    pub overwrite: bool,
    /// The archive's one collection goes to this one, with this in front of the names. Collections whose names begin
    /// with a dot, which programs keep for themselves, are left out then.
    pub to: Option<ObjectPath>,
    /// Who judges what comes into collections that mean something to it.
    pub keeper: Option<&'static dyn Keeper>,
}

/// What becomes of an object of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// It is put under its name; what is there goes.
    Put,
    /// It is put under its name; what is there stays, under another one.
    Above,
    /// It is not put, for what is there.
    Kept,
    /// It is not put, for what its collection is.
    LeftOut,
    /// Nothing is put any more, for a reason.
    Refused(String),
}

/// Puts an object with these attributes.
pub type Put<'a> = Box<dyn FnOnce(&mut Transaction, Attributes) + 'a>;

/// Judges what comes into collections that mean something to a program, such as buckets and their earlier versions.
pub trait Keeper: std::fmt::Debug + Sync {
    /// What becomes of an object with this collection, name, and attributes.
    ///
    /// # Errors
    /// The store's.
    fn place(
        &self,
        store: &Store,
        object: (&str, &Name),
        attributes: &Attributes,
        overwrite: bool,
    ) -> store::Result<Place>;

    /// Of an object that is [`Place::Above`]: adds what moves the object that is there, and then puts this one. Answers why, if
    /// neither must be.
    ///
    /// # Errors
    /// The store's.
    fn above(
        &self,
        store: &Store,
        transaction: &mut Transaction,
        object: (&str, &Name),
        attributes: Attributes,
        put: Put<'_>,
    ) -> store::Result<Option<String>>;
}

/// What was added.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Imported {
    /// Objects stored.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Objects that were there and stayed.
    pub kept: u64,
    /// Objects that have no place in their collection as it is here.
    pub left_out: u64,
    /// Objects of which the archive has not all bytes; they are not stored.
    pub damaged: Vec<String>,
}

/// Adds what is in an archive. What was stored before an error stays, and `imported` says what that is. `progress` is
/// told how many bytes of the archive were read.
///
/// # Errors
/// Also that the archive is damaged, or an incremental backup.
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
            // The one that it is a copy of may be here.
            let family = store.unused_family()?;
            only.hashed = only.hashed.map(|hashed| Hashed { family, ..hashed });
        }
    }
    for collection in &collections {
        if store.collection(&collection.name)?.is_none() {
            create(store, collection)?;
        }
    }
    place::clear_own(store, false)?;
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
    // Parts that never got their names, and the place for them.
    if store.list(place::OWN, "", "", 1).is_ok() {
        place::clear_own(store, true)?;
    }
    read.map(drop)
}

/// Makes a collection as it was.
pub fn create(store: &Store, collection: &Collection) -> Result<()> {
    let mut transaction = Transaction::new();
    let (name, attributes) = (&collection.name, attributes(collection));
    match collection.hashed {
        None => transaction.create_collection(name, attributes),
        Some(hashed) => transaction.create_hashed_collection(name, hashed, attributes),
    };
    transaction.set_collection_created(name, collection.created_micros);
    Ok(store.commit(transaction)?)
}

pub fn attributes(collection: &Collection) -> Attributes {
    let attributes = collection.attributes.iter();
    attributes.map(|(k, v)| (k.clone(), v.to_vec())).collect()
}

fn is_programs(collection: &str) -> bool {
    collection.starts_with('.')
}

/// What becomes of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Placed,
    /// Beside what was there.
    Above,
    /// For what is there.
    Kept,
    LeftOut,
}

struct Import<'a> {
    store: &'a Store,
    options: &'a ImportOptions,
    placing: Placing,
    /// Of the object that is read.
    fate: Fate,
    /// Of those of the group.
    fates: Vec<Fate>,
    imported: &'a mut Imported,
}

/// The objects of a group on their way into the store.
#[derive(Default)]
struct Batch {
    transaction: Transaction,
    /// Bytes of each object that it puts.
    sizes: Vec<u64>,
    /// Objects that are readable, and their bytes.
    objects: u64,
    bytes: u64,
    /// The last of the transactions that made them so.
    last: Option<Pending>,
}

impl Batch {
    /// Makes readable what it has.
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
                    // The keeper looks at what is there, also at what came before this.
                    batch.commit(self.store)?;
                    batch.transaction = self.place_above(keeper, object)?;
                }
                None => object.place(&mut batch.transaction),
            }
            batch.sizes.push(line.bytes);
        }
        batch.commit(self.store)
    }

    /// A transaction that puts an object above what is there.
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
        // What is readable stays, behind an error too.
        if let Some(last) = batch.last {
            last.wait()?;
        }
        self.imported.objects += batch.objects;
        self.imported.bytes += batch.bytes;
        placed
    }
}
