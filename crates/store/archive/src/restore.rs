//! Restores a store from a full backup and the incremental backups that build on it.
//!
//! Each archive lists all objects, in order. Objects with data in it are stored, objects that it does not list are
//! removed, and listed objects without data must be there from earlier archives. Progress is recorded in the
//! transaction of each group of objects, so that an interrupted restore is resumed.

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::import::add_collection;
use crate::listing::{Collection, Kind, Listed};
use crate::place::{self, Placing, Ready};
use crate::progress::Progress;
use crate::remove::Unlisted;
use crate::sum::Sum;
use crate::unpack::{Archive, Sink};
use serde::Serialize;
use std::io::Read;
use store::{Omap, Store, Transaction};

/// Result of [`restore`].
#[derive(Clone, Debug, Default, Serialize)]
pub struct Restored {
    /// Archives that were read to their end.
    pub archives: u64,
    /// Collections in the store after the restore.
    pub collections: u64,
    /// Objects in the store after the restore.
    pub objects: u64,
    /// Objects stored by this call.
    pub stored: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Whether an earlier restore was resumed.
    pub resumed: bool,
    /// Objects with bytes that are missing in the last archive that has them; they are not stored.
    pub damaged: Vec<String>,
    /// Objects, and ranges of objects, that could not be read at all for the last archive, and that it does not name.
    pub unnamed: u64,
}

/// Makes the store what it was when the last of the archives was made.
///
/// It has to be empty, or left by an earlier restore of these archives. `progress` is called with the bytes of all
/// archives that were read.
///
/// # Errors
/// Objects stored before the error stay, and `restored` counts them; the next restore of these archives resumes.
pub fn restore<R: Read>(
    store: &Store,
    sources: Vec<R>,
    restored: &mut Restored,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let mut archives = Vec::new();
    for source in sources {
        archives.push(Archive::open(source)?);
    }
    check_chain(&archives)?;
    let heads: Vec<Sum> = archives.iter().map(|archive| archive.head_sum).collect();
    let begun = Progress::of(store)?;
    restored.resumed = begun.is_some();
    match &begun {
        Some(begun) if !heads.starts_with(&begun.heads) => return Err(Error::OtherArchives),
        Some(_) => place::clear_own(store, false)?,
        None => {
            let mut others = store.collections()?.into_iter();
            if others.any(|other| other.name != place::OWN) {
                return Err(Error::NotEmpty);
            }
            place::make_own(store)?;
            remember(store, &Progress::default())?;
        }
    }
    store.revise()?;
    let begun = begun.unwrap_or_default();
    let mut last = None;
    let mut before = 0;
    for (number, archive) in archives.into_iter().enumerate() {
        let collections = archive.head.collections.clone();
        // Archives that an earlier run has completed are read only for their checksums.
        let is_done = number + 1 < begun.heads.len();
        let resumes = number + 1 == begun.heads.len();
        let now = Progress {
            heads: heads[..=number].to_vec(),
            sum: None,
        };
        if !is_done && !resumes {
            // Before anything changes: a restore of the earlier archives alone would find it complete.
            remember(store, &now)?;
        }
        if !is_done && (!resumes || begun.sum.is_none()) {
            take_over(store, &collections)?;
        }
        let mut sink = Restore {
            store,
            placing: Placing::new(store),
            unlisted: (number > 0).then(|| Unlisted::new(store, &collections)),
            done: match (is_done, resumes) {
                (true, _) => Done::All,
                (_, true) => begun.sum.map_or(Done::Nothing, Done::UpTo),
                _ => Done::Nothing,
            },
            collections,
            progress: now,
            restored,
        };
        // Every archive lists all damage, so that of the last one counts.
        sink.restored.damaged.clear();
        let mut read = 0;
        let ended = archive.read(&mut sink, &mut |bytes| {
            read = bytes;
            progress(before + bytes);
        })?;
        if let Done::UpTo(_) = sink.done {
            return Err(Error::OtherArchives);
        }
        if !is_done && let Some(unlisted) = &mut sink.unlisted {
            unlisted.end()?;
        }
        before += read;
        if number > 0 && ended.end.since != last {
            let number = number + 1;
            return Err(Error::NotNext { number });
        }
        last = Some(ended.sum);
        restored.archives += 1;
        restored.unnamed = ended.unnamed;
        restored.objects = ended.end.listed - restored.damaged.len() as u64;
    }
    place::clear_own(store, true)?;
    restored.collections = store.collections()?.len() as u64;
    Ok(())
}

/// Checks that the first archive is a full backup, and that each other one was made since the one before it.
fn check_chain<R: Read>(archives: &[Archive<R>]) -> Result<()> {
    let first = archives.first().map(|archive| archive.head.kind);
    let first = first.unwrap_or(Kind::Export);
    if first != Kind::Full {
        let found = first.words();
        return Err(Error::NotFull { found });
    }
    for (number, pair) in archives.windows(2).enumerate() {
        if pair[1].head.since != Some(pair[0].head_sum) {
            let number = number + 2;
            return Err(Error::NotNext { number });
        }
    }
    Ok(())
}

fn remember(store: &Store, progress: &Progress) -> Result<()> {
    let mut transaction = Transaction::new();
    progress.add(&mut transaction);
    Ok(store.commit(transaction)?)
}

/// Makes the store's collections those of the archive. A collection that was removed and created again loses its
/// objects.
fn take_over(store: &Store, collections: &[Collection]) -> Result<()> {
    for found in store.collections()? {
        let found = Collection::from(found);
        let stays = collections.iter().any(|wanted| wanted.is_same(&found));
        if !stays && found.name != place::OWN {
            place::remove_objects(store, &found.name, "")?;
            let mut transaction = Transaction::new();
            transaction.remove_collection(&found.name);
            store.commit(transaction)?;
        }
    }
    for wanted in collections {
        let Some(found) = store.collection(&wanted.name)? else {
            let mut transaction = Transaction::new();
            add_collection(&mut transaction, wanted);
            store.commit(transaction)?;
            continue;
        };
        if Collection::from(found) != *wanted {
            let mut transaction = Transaction::new();
            transaction.set_collection_attributes(&wanted.name, wanted.attributes());
            store.commit(transaction)?;
        }
    }
    Ok(())
}

/// How much of an archive an earlier run has stored.
enum Done {
    Nothing,
    /// Up to and including the part with this checksum.
    UpTo(Sum),
    All,
}

struct Restore<'a> {
    store: &'a Store,
    collections: Vec<Collection>,
    placing: Placing,
    /// `None` for the first archive, of which nothing has to be removed.
    unlisted: Option<Unlisted>,
    done: Done,
    progress: Progress,
    restored: &'a mut Restored,
}

impl Restore<'_> {
    fn is_done(&self) -> bool {
        !matches!(self.done, Done::Nothing)
    }

    fn line(
        &mut self,
        line: &Listed,
        ready: &mut dyn Iterator<Item = Ready>,
        transaction: &mut Transaction,
    ) -> Result<()> {
        let is_done = self.is_done();
        let label = format!("{}/{}", self.collections[line.collection].name, line.name);
        let is_there = match &mut self.unlisted {
            Some(unlisted) => unlisted.listed(line.collection, &line.name, is_done)?,
            None => false,
        };
        if !line.lost.is_empty() {
            self.restored.damaged.push(label.clone());
        }
        if is_done {
            return Ok(());
        }
        match (line.sum.is_some(), line.lost.is_empty()) {
            (true, true) => {
                if let Some(object) = ready.next() {
                    object.place(transaction);
                }
                self.restored.stored += 1;
                self.restored.bytes += line.bytes;
            }
            (true, false) => {
                if let Some(object) = ready.next() {
                    object.give_up(transaction);
                }
                // Otherwise the object's older version would pass for the current one.
                let collection = &self.collections[line.collection].name;
                transaction.remove_if_present(collection, &line.name);
            }
            (false, _) if is_there => {}
            (false, _) => return Err(Error::Missing { object: label }),
        }
        Ok(())
    }
}

impl Sink for Restore<'_> {
    fn begin(&mut self, entry: Entry) -> Result<()> {
        match self.is_done() {
            true => Ok(()),
            false => self.placing.begin(entry),
        }
    }

    fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        match self.is_done() {
            true => Ok(()),
            false => self.placing.data(offset, bytes),
        }
    }

    fn omap(&mut self, rows: Omap) -> Result<()> {
        match self.is_done() {
            true => Ok(()),
            false => self.placing.omap(rows),
        }
    }

    fn group(&mut self, lines: Vec<Listed>, sum: Sum) -> Result<()> {
        let mut ready = self.placing.take()?.into_iter();
        let mut transaction = Transaction::new();
        for line in &lines {
            self.line(line, &mut ready, &mut transaction)?;
        }
        if !self.is_done() {
            self.progress.sum = Some(sum);
            self.progress.add(&mut transaction);
            self.store.commit(transaction)?;
        }
        if let Done::UpTo(stored) = self.done
            && stored == sum
        {
            self.done = Done::Nothing;
        }
        Ok(())
    }
}
