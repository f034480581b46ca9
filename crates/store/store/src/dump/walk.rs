//! Lists the records of the database. A record that cannot be read does not end the walk, which goes on after it.

use super::fields::{Fields, decoded};
use crate::format::key;
use crate::format::onode::Onode;
use crate::rows::{decode_extent, onode_key};
use crate::{Error, Name, Result, Store};
use kv::Kv;
use object::{Blob, BlobId, Content};
use zone::ZoneId;

/// Kinds of records, each with the first byte of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordKind {
    /// The store itself and its counters.
    Numbers,
    /// Collections.
    Collections,
    /// Objects, in collections by name and by hash.
    Onodes,
    /// Runs of bytes of objects.
    Extents,
    /// Blobs that several extents show.
    Blobs,
    /// Fragments of blobs by their place in a zone: the cleaning index.
    Fragments,
    /// Bytes written and dead in each zone: the freelist.
    Zones,
    /// Places of segment summaries.
    Summaries,
    /// Bytes of objects that a scrub found damaged.
    Damage,
    /// Rows of omaps.
    Omap,
    /// Maps and omaps whose rows are still to be purged.
    Doomed,
}

impl RecordKind {
    /// All kinds: their names, and what they contain.
    pub const ALL: &'static [(&'static str, Self, &'static str)] = &[
        (
            "numbers",
            Self::Numbers,
            "the store itself, and its counters",
        ),
        (
            "collections",
            Self::Collections,
            "collections, with their attributes",
        ),
        (
            "onodes",
            Self::Onodes,
            "objects, with their attributes and maps",
        ),
        (
            "extents",
            Self::Extents,
            "runs of bytes of maps: where they are, and their checksums",
        ),
        ("blobs", Self::Blobs, "bytes that several extents show"),
        (
            "fragments",
            Self::Fragments,
            "what lies where in a zone (the cleaning index)",
        ),
        (
            "zones",
            Self::Zones,
            "how much of each zone is written and dead (the freelist)",
        ),
        (
            "summaries",
            Self::Summaries,
            "where zones have segment summaries",
        ),
        (
            "damage",
            Self::Damage,
            "bytes of objects that a scrub found damaged",
        ),
        ("omap", Self::Omap, "keys and values of objects"),
        (
            "doomed",
            Self::Doomed,
            "maps whose rows are still to be given back",
        ),
    ];

    fn namespaces(self) -> &'static [u8] {
        match self {
            Self::Numbers => &[key::SUPER],
            Self::Collections => &[key::COLLECTION],
            Self::Onodes => &key::ONODES,
            Self::Extents => &[key::EXTENT],
            Self::Blobs => &[key::BLOB],
            Self::Fragments => &[key::CLEANING],
            Self::Zones => &[key::FREELIST],
            Self::Summaries => &[key::SUMMARIES],
            Self::Damage => &[key::DAMAGE],
            Self::Omap => &[key::OMAP],
            Self::Doomed => &[key::DOOMED],
        }
    }
}

/// Selection of the records to list.
#[derive(Clone, Debug, Default)]
pub struct Dump {
    /// Only these kinds; all if empty.
    pub kinds: Vec<RecordKind>,
    /// Only the records of this collection and its objects.
    pub collection: Option<String>,
    /// Only the records of this object of the collection.
    pub object: Option<Name>,
    /// Only the records about this zone.
    pub zone: Option<ZoneId>,
}

/// A step of the walk.
pub enum Dumped<'a> {
    /// A record.
    Record {
        /// Name of its kind; `None` if that is unknown.
        kind: Option<&'static str>,
        /// The stored key.
        key: &'a [u8],
        /// The stored value.
        value: &'a [u8],
        /// The decoded key; `None` if it cannot be decoded.
        name: Option<Fields>,
        /// The decoded value; `None` if it cannot be decoded.
        said: Option<Fields>,
    },
    /// The database cannot read on after a key. The walk goes on at a later key, and rows in between may be missing.
    Unreadable {
        /// The last key that was read.
        behind: &'a [u8],
        /// The error of the database.
        why: Error,
    },
}

impl Store {
    /// Passes every record that `which` selects to `each`, until that returns an error.
    pub fn dump<E: From<Error>>(
        &self,
        which: &Dump,
        each: &mut dyn FnMut(Dumped<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let kv = self.inner.kv()?;
        let walk = Walk { kv: &kv, which };
        match (&which.collection, which.zone) {
            (Some(collection), _) => {
                let kind = self.kind(collection)?;
                let record = key::collection(collection);
                let (lower, upper) = match &which.object {
                    None => {
                        walk.one(&record, each)?;
                        (kind.position(&[]), kind.end())
                    }
                    Some(object) => {
                        let onode = onode_key(&kind, collection, object)?;
                        if kv.get(&onode).is_ok_and(|found| found.is_none()) {
                            return Err(Error::no_object(collection, object).into());
                        }
                        let behind = [&onode[..], &[0]].concat();
                        (onode, Some(behind))
                    }
                };
                walk.objects(&lower, upper, each)
            }
            (None, Some(zone)) => {
                let first = key::cleaning(zone::ZoneAddress::new(zone, 0));
                let prefix = &first[..1 + size_of::<u32>()];
                walk.all(prefix, key::after_prefix(prefix), each)?;
                walk.one(&key::freelist(zone), each)?;
                walk.one(&key::summaries(zone), each)?;
                let first = key::damage(zone::ZoneAddress::new(zone, 0));
                let prefix = &first[..1 + size_of::<u32>()];
                walk.all(prefix, key::after_prefix(prefix), each)
            }
            (None, None) => {
                // Also namespaces that should have no records.
                let mut namespaces = 0..=u8::MAX;
                namespaces.try_for_each(|first| {
                    let lower = [first];
                    walk.all(&lower, key::after_prefix(&lower), each)
                })
            }
        }
    }
}

/// A key and its value, or the last key before an error.
type Row<'a> = Result<(&'a [u8], &'a [u8]), (&'a [u8], Error)>;
type Each<'a, E> = &'a mut dyn FnMut(Dumped<'_>) -> Result<(), E>;

struct Walk<'a> {
    kv: &'a Kv,
    which: &'a Dump,
}

impl Walk<'_> {
    fn wants(&self, key: &[u8]) -> bool {
        let kinds = &self.which.kinds;
        let is_of = |kind: &RecordKind| key.first().is_some_and(|n| kind.namespaces().contains(n));
        kinds.is_empty() || kinds.iter().any(is_of)
    }

    fn show<E>(&self, key: &[u8], value: &[u8], each: Each<'_, E>) -> Result<(), E> {
        if !self.wants(key) {
            return Ok(());
        }
        let mut known = RecordKind::ALL.iter();
        let is_of = |(_, kind, _): &&(&str, RecordKind, &str)| kind.namespaces().contains(&key[0]);
        let kind = known.find(is_of).map(|(name, ..)| *name);
        let (name, said) = decoded(key, value);
        each(Dumped::Record {
            kind,
            key,
            value,
            name,
            said,
        })
    }

    /// Shows the record with this key, if there is one.
    fn one<E>(&self, key: &[u8], each: Each<'_, E>) -> Result<(), E> {
        match self.kv.get(key) {
            Ok(Some(value)) => self.show(key, &value, each),
            Ok(None) => Ok(()),
            Err(error) => each(Dumped::Unreadable {
                behind: key,
                why: error.into(),
            }),
        }
    }

    fn all<E>(&self, lower: &[u8], upper: Option<Vec<u8>>, each: Each<'_, E>) -> Result<(), E> {
        // Namespaces that were not selected are not read.
        if !self.wants(lower) {
            return Ok(());
        }
        self.scan(lower, upper, &mut |row| match row {
            Ok((key, value)) => self.show(key, value, each),
            Err((behind, why)) => each(Dumped::Unreadable { behind, why }),
        })
    }

    /// Shows rows in order. Where the database cannot read on, it goes on at the next key after a prefix of the last
    /// one, and shortens that prefix until reading succeeds.
    fn scan<E>(
        &self,
        lower: &[u8],
        upper: Option<Vec<u8>>,
        each: &mut dyn FnMut(Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last = lower.to_vec();
        let mut from = Some(lower.to_vec());
        let mut kept = usize::MAX;
        while let Some(lower) = from.take() {
            let is_over = upper.as_ref().is_some_and(|upper| *upper <= lower);
            if is_over {
                break;
            }
            for row in self.kv.scan(&lower, upper.as_deref()) {
                match row {
                    Ok((key, value)) => {
                        each(Ok((&key, &value)))?;
                        (last, kept) = (key, usize::MAX);
                    }
                    Err(error) => {
                        if kept == usize::MAX {
                            each(Err((&last, error.into())))?;
                            kept = last.len() + 1;
                        }
                        kept -= 1;
                        // The first byte, the namespace, is kept.
                        from = match kept {
                            0 | 1 => None,
                            _ => key::after_prefix(&last[..kept]),
                        };
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Shows onodes, and all records that they name.
    fn objects<E>(&self, lower: &[u8], upper: Option<Vec<u8>>, each: Each<'_, E>) -> Result<(), E> {
        self.scan(lower, upper, &mut |row| match row {
            Ok((key, value)) => {
                self.show(key, value, each)?;
                match Onode::decode(value) {
                    Some(onode) => self.parts(&onode, each),
                    None => Ok(()),
                }
            }
            Err((behind, why)) => each(Dumped::Unreadable { behind, why }),
        })
    }

    fn parts<E>(&self, onode: &Onode, each: Each<'_, E>) -> Result<(), E> {
        for segment in &onode.segments {
            let lower = key::extent(segment.map, segment.start.saturating_add(1));
            let upper = key::after_prefix(&key::map(segment.map));
            let end = segment.start.saturating_add(segment.length);
            self.scan(&lower, upper, &mut |row| match row {
                Ok((key, value)) => {
                    let found = decode_extent(key, value).ok();
                    if found.as_ref().is_some_and(|(_, start, _)| *start >= end) {
                        return Ok(());
                    }
                    self.show(key, value, each)?;
                    match found.map(|(_, _, extent)| extent.content) {
                        Some(Content::Own { blob, .. }) => self.fragments(&blob, each),
                        Some(Content::Shared { blob, .. }) => self.shared(blob, each),
                        _ => Ok(()),
                    }
                }
                Err((behind, why)) => each(Dumped::Unreadable { behind, why }),
            })?;
        }
        match onode.omap {
            Some(omap) => {
                let prefix = key::omap(omap, &[]);
                self.all(&prefix, key::after_prefix(&prefix), each)
            }
            None => Ok(()),
        }
    }

    fn shared<E>(&self, id: BlobId, each: Each<'_, E>) -> Result<(), E> {
        let key = key::blob(id);
        self.one(&key, each)?;
        let found = self.kv.get(&key).ok().flatten();
        match found.and_then(|value| crate::format::blob::decode_shared(&value)) {
            Some(shared) => self.fragments(&shared.blob, each),
            None => Ok(()),
        }
    }

    fn fragments<E>(&self, blob: &Blob, each: Each<'_, E>) -> Result<(), E> {
        let places = blob.fragments.iter().filter_map(|fragment| fragment.at);
        let mut keys = places.map(key::cleaning);
        keys.try_for_each(|key| self.one(&key, each))
    }
}
