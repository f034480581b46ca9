//! Copies the objects that were found into another store, or in place what cannot stay where it is.

use super::found::FoundObject;
use super::parts::{Object, Part, Stored};
use super::report::{DamagedObject, SalvageReport};
use super::{Found, Salvage};
use crate::format::key::Holder;
use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::format::record::CollectionRecord;
use crate::limits::{damaged_name, possible_name};
use crate::{Attributes, Condition, Error, Name, Result, Store, Transaction, Written};
use object::{Blob, Content};
use std::collections::BTreeMap;

/// Collection for damaged objects, if they are wanted, as `collection/name`.
const DAMAGED: &str = "salvaged-damaged";
/// Attribute of the collections that a salvage makes: the UUID of the salvaged store and the collection's base name.
pub(super) const MARK: &str = "zonestore.salvaged";

/// Options of [`Salvage::copy`].
#[derive(Clone, Copy, Default)]
pub struct SalvageOptions<'a> {
    /// Store that whole objects are copied to under their names; `None`: objects are only read and verified.
    pub to: Option<&'a Store>,
    /// Whether damaged objects are copied too, into a collection `salvaged-damaged`, with holes for lost bytes.
    pub damaged: bool,
    /// Whether `to` is on the salvaged drive itself: then no zone is cleaned to make room for copies, because their
    /// sources could go with it.
    pub in_place: bool,
}

impl Salvage {
    /// Reads every object, verifies its checksums, and copies it. Objects that `to` has already by that name are
    /// skipped, so a copy that was interrupted can be resumed. `progress` is called with objects done and objects in
    /// all.
    pub fn copy(
        &self,
        options: SalvageOptions<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<SalvageReport> {
        self.copy_but(options, &BTreeMap::new(), progress)
    }

    /// Bytes of the objects that are left after the first `done` ones, whole or not.
    pub fn bytes_behind(&self, done: u64) -> u64 {
        let objects = self.found.objects().skip(done as usize);
        objects.map(|object| object.onode.size()).sum()
    }

    /// Like [`Self::copy`], without the objects with these keys, for which there is no room.
    pub(super) fn copy_but(
        &self,
        options: SalvageOptions<'_>,
        without_room: &BTreeMap<Vec<u8>, String>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<SalvageReport> {
        let collections = self.found.collections();
        let mut report = SalvageReport {
            scanned: self.scanned.clone(),
            collections: collections.len() as u64,
            ..SalvageReport::default()
        };
        if let Some(store) = options.to {
            for (name, record) in &collections {
                create(store, name, record)?;
            }
        }
        let by_number: BTreeMap<u32, &str> = collections
            .iter()
            .filter_map(|(name, record)| match record.kind {
                Kind::ByName(number) => Some((number, *name)),
                Kind::ByHash(_) => None,
            })
            .collect();
        let all = self.found.objects().count() as u64;
        for (done, object) in self.found.objects().enumerate() {
            progress(done as u64, all);
            if let Some(name) = without_room.get(object.key) {
                report.without_room.push(name.clone());
                continue;
            }
            let (holder, name) = (object.holder, object.name);
            let own = match holder {
                Holder::Collection(number) => by_number.get(&number).copied(),
                Holder::Hash { .. } => {
                    let mut all = collections.iter();
                    let own = all.find(|(_, record)| record.kind.has(holder, name));
                    own.map(|(collection, _)| *collection)
                }
            };
            let collection = match own {
                Some(collection) => collection.to_owned(),
                None => self.own_collection(options.to, &collection_of(holder))?,
            };
            report.without_collection += u64::from(own.is_none());
            self.object(options, &collection, &object, &mut report)?;
        }
        Ok(report)
    }

    /// A collection for objects without one, named `name` or `name-2` and so on: one that a salvage of the same store
    /// made, or a new one, never one that was found or that holds other objects.
    fn own_collection(&self, to: Option<&Store>, name: &str) -> Result<String> {
        let mark = [&self.scanned.uuid[..], name.as_bytes()].concat();
        for number in 1_u32.. {
            let name = match number {
                1 => name.to_owned(),
                _ => format!("{name}-{number}"),
            };
            if self.found.collections().contains_key(name.as_str()) {
                continue;
            }
            let Some(store) = to else { return Ok(name) };
            match store.collection(&name)? {
                Some(there) if there.attributes.get(MARK) != Some(&mark) => {}
                Some(_) => return Ok(name),
                None => {
                    let mut transaction = Transaction::new();
                    let marked = Attributes::from([(MARK.to_owned(), mark)]);
                    transaction.create_collection(&name, marked);
                    store.commit(transaction)?;
                    return Ok(name);
                }
            }
        }
        Ok(name.to_owned())
    }

    fn object(
        &self,
        options: SalvageOptions<'_>,
        collection: &str,
        FoundObject {
            key, name, onode, ..
        }: &FoundObject<'_>,
        report: &mut SalvageReport,
    ) -> Result<()> {
        report.without_omap += u64::from(onode.omap.is_some());
        // A repair by an earlier version made names that are too long.
        let name = &*possible_name(name);
        let there = options
            .to
            .filter(|store| store.collection(collection).is_ok_and(|c| c.is_some()));
        if let Some(store) = there
            && store.stat(collection, name)?.is_some()
        {
            report.objects += 1;
            report.already_there += 1;
            return Ok(());
        }
        // In place, objects are first only read: there is no room to spare for copies that are not kept.
        let mut object = self.read_all(onode, options.to.filter(|_| !options.in_place))?;
        if let Some(store) = options.to
            && options.in_place
            && (object.lost.is_empty() || options.damaged)
        {
            if !store.has_room(onode.size()) {
                let object = format!("{collection}/{}", Name::from(name));
                report.without_room.push(object);
                return Ok(());
            }
            object = self.read_all(onode, Some(store))?;
        }
        let Object {
            written,
            lost,
            why,
            unverified,
            ..
        } = object;
        let is_damaged = !lost.is_empty();
        if is_damaged {
            report.damaged.push(DamagedObject {
                collection: collection.to_owned(),
                object: name.into(),
                size: onode.size(),
                lost,
                why,
            });
        } else {
            report.objects += 1;
            report.bytes += onode.size();
            report.unverified_bytes += unverified;
            report.whole.insert(key.to_vec());
        }
        match options.to {
            Some(store) if is_damaged && options.damaged => {
                let name = damaged_name(collection, name);
                let damaged = self.own_collection(Some(store), DAMAGED)?;
                place(store, &damaged, &name, onode, written)
            }
            Some(store) if !is_damaged => place(store, collection, name, onode, written),
            _ => Ok(()),
        }
    }

    /// Reads an object, and writes its readable bytes to `store`, if given.
    fn read_all<'a>(&'a self, onode: &Onode, store: Option<&'a Store>) -> Result<Object<'a>> {
        let mut object = Object::new(self, store);
        for part in self.parts(onode) {
            object.take(part)?;
        }
        object.end_run()?;
        Ok(object)
    }

    /// The parts of an object, in order and without gaps.
    fn parts(&self, onode: &Onode) -> Vec<Part> {
        let mut parts = Vec::new();
        for span in object::spans(&onode.segments, 0, onode.size()) {
            for stretch in self.found.map(span.map).stretches(span.from, span.to) {
                let content = stretch.extent.map_or(Stored::Unknown, |(extent, skipped)| {
                    stored(&self.found, &extent.content, skipped)
                });
                parts.push(Part {
                    length: stretch.length,
                    content,
                });
            }
        }
        parts
    }
}

fn stored(found: &Found, content: &Content, skipped: u64) -> Stored {
    let bytes = |blob: Option<Blob>, skip: u32| {
        let from = u64::from(skip).saturating_add(skipped);
        match (blob, u32::try_from(from)) {
            (Some(blob), Ok(from)) => Stored::Bytes { blob, from },
            _ => Stored::Unknown,
        }
    };
    match content {
        Content::Own { blob, skip } => bytes(Some(blob.clone()), *skip),
        Content::Shared { blob, skip } => {
            bytes(found.shared(*blob).map(|shared| shared.blob), *skip)
        }
        Content::Hole => Stored::Hole,
        // Inline bytes are in no summary.
        Content::Inline(_) => Stored::Unknown,
    }
}

/// Name of the collection for objects whose own is not known.
pub(super) fn collection_of(holder: Holder) -> String {
    match holder {
        Holder::Collection(number) => format!("salvaged-{number}"),
        Holder::Hash { family, .. } => format!("salvaged-family-{family}"),
    }
}

fn create(store: &Store, name: &str, record: &CollectionRecord) -> Result<()> {
    if store.collection(name)?.is_some() {
        return Ok(());
    }
    let mut transaction = Transaction::new();
    let attributes = record.attributes.clone();
    match record.kind {
        Kind::ByName(_) => transaction.create_collection(name, attributes),
        Kind::ByHash(hashed) => transaction.create_hashed_collection(name, hashed, attributes),
    };
    transaction.set_collection_created(name, record.created_micros);
    store.commit(transaction)
}

fn place(
    store: &Store,
    collection: &str,
    name: &[u8],
    onode: &Onode,
    mut written: Vec<(u64, Written)>,
) -> Result<()> {
    let mut transaction = Transaction::new();
    transaction.require(collection, name, Condition::Absent);
    let is_one = written.len() == 1 && written[0].0 == 0 && written[0].1.len() == onode.size();
    if let Some((_, data)) = written.pop_if(|_| is_one) {
        transaction.put(collection, name, data, onode.attributes.clone());
    } else {
        transaction.touch(collection, name);
        if onode.size() > 0 {
            transaction.punch(collection, name, 0, onode.size());
        }
        for (offset, data) in written {
            transaction.write(collection, name, offset, data);
        }
        transaction.set_attributes(collection, name, onode.attributes.clone());
    }
    transaction.set_modified(collection, name, onode.modified_micros);
    match store.commit(transaction) {
        // The object was placed meanwhile, from a damaged row or by another writer.
        Err(Error::ConditionFailed { .. }) => Ok(()),
        done => done,
    }
}
