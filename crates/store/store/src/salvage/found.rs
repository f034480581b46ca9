//! The latest row of each key in all summaries, decoded. Pure.

use super::layers::Layers;
use crate::format::key::{self, Holder};
use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::format::record::CollectionRecord;
use crate::format::summary::Summary;
use crate::format::{blob, extent};
use crate::owners::Owners;
use object::{Blob, BlobId, Content, Extent, SharedBlob};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use zone::ZoneAddress;

struct Latest {
    sequence: u64,
    /// `None`: the row is deleted.
    value: Option<Vec<u8>>,
}

/// An object, as its onode describes it.
pub(super) struct FoundObject<'a> {
    pub key: &'a [u8],
    pub sequence: u64,
    pub holder: Holder,
    pub name: &'a [u8],
    pub onode: Onode,
}

/// Rows by key: for each, the one from the summary with the highest sequence.
#[derive(Default)]
pub(super) struct Found {
    rows: BTreeMap<Vec<u8>, Latest>,
}

impl Found {
    pub fn add(&mut self, summary: Summary) {
        for (key, value) in summary.rows {
            let sequence = summary.sequence;
            let newer = Latest { sequence, value };
            match self.rows.get_mut(&key) {
                Some(row) if row.sequence > sequence => {}
                Some(row) => *row = newer,
                None => _ = self.rows.insert(key, newer),
            }
        }
    }

    /// Rows that begin with `prefix` and are not deleted.
    fn rows(&self, prefix: Vec<u8>) -> impl Iterator<Item = (&[u8], u64, &[u8])> {
        let rows = self.rows.range(prefix.clone()..);
        let rows = rows.take_while(move |(key, _)| key.starts_with(&prefix));
        rows.filter_map(|(key, row)| Some((key.as_slice(), row.sequence, row.value.as_deref()?)))
    }

    /// The collections, by name. Of two that would hold the same objects, the later one counts: the other was deleted
    /// or split, which no summary records.
    pub fn collections(&self) -> BTreeMap<&str, CollectionRecord> {
        let rows = self.rows(vec![key::COLLECTION]);
        let mut all: Vec<_> = rows
            .filter_map(|(key, sequence, value)| {
                let name = std::str::from_utf8(&key[1..]).ok()?;
                Some((sequence, name, CollectionRecord::decode(value)?))
            })
            .collect();
        all.sort_by_key(|(sequence, ..)| Reverse(*sequence));
        let mut owners = Owners::default();
        all.retain(|(_, name, record)| {
            let counts = owners.conflict(&record.kind).is_none();
            if counts {
                owners.add(record.kind, (*name).to_owned());
            }
            counts
        });
        all.into_iter()
            .map(|(_, name, record)| (name, record))
            .collect()
    }

    /// All objects, of collections by name first.
    pub fn objects(&self) -> impl Iterator<Item = FoundObject<'_>> {
        let rows = key::ONODES.into_iter();
        let rows = rows.flat_map(|namespace| self.rows(vec![namespace]));
        rows.filter_map(|(key, sequence, value)| {
            let (holder, name) = key::parse_onode(key)?;
            Some(FoundObject {
                key,
                sequence,
                holder,
                name,
                onode: Onode::decode(value)?,
            })
        })
    }

    /// The highest number of a map, omap, blob or summary, and of a collection, deleted ones included.
    pub fn highest(&self) -> (u64, u32) {
        let (mut number, mut collection) = (0, 0);
        for (key, row) in &self.rows {
            number = number.max(row.sequence);
            number = number.max(key::parse_extent(key).map_or(0, |(map, _)| map));
            number = number.max(key::parse_blob(key).map_or(0, |id| id.0));
            if let Some((holder, _)) = key::parse_onode(key) {
                if let Holder::Collection(own) = holder {
                    collection = collection.max(own);
                }
                let onode = row.value.as_deref().and_then(Onode::decode);
                let onode = onode.unwrap_or_default();
                let maps = onode.segments.iter().map(|segment| segment.map);
                number = maps.chain(onode.omap).fold(number, u64::max);
            }
            let record = row.value.as_deref().filter(|_| key[0] == key::COLLECTION);
            if let Some(Kind::ByName(own)) =
                record.and_then(CollectionRecord::decode).map(|c| c.kind)
            {
                collection = collection.max(own);
            }
        }
        (number, collection)
    }

    /// The extents of a map, laid over each other by age.
    pub fn map(&self, map: u64) -> Layers {
        let rows = self.rows(key::map(map));
        let mut extents: Vec<_> = rows
            .filter_map(|(key, sequence, value)| {
                let (_, end) = key::parse_extent(key)?;
                let extent = extent::decode(value)?;
                Some((sequence, end.checked_sub(extent.length)?, extent))
            })
            .collect();
        extents.sort_by_key(|(sequence, ..)| *sequence);
        let mut layers = Layers::default();
        for (_, start, extent) in extents {
            layers.lay(start, extent);
        }
        layers
    }

    /// The shared blob with this number.
    pub fn shared(&self, id: BlobId) -> Option<SharedBlob> {
        let row = self.rows.get(&key::blob(id))?;
        blob::decode_shared(row.value.as_deref()?)
    }

    /// The blob that an extent shows a part of.
    pub fn blob_of(&self, extent: &Extent) -> Option<Blob> {
        match &extent.content {
            Content::Own { blob, .. } => Some(blob.clone()),
            Content::Shared { blob, .. } => Some(self.shared(*blob)?.blob),
            Content::Inline(_) | Content::Hole => None,
        }
    }

    /// All blobs that rows describe.
    pub fn blobs(&self) -> impl Iterator<Item = Blob> {
        let own = self.rows(vec![key::EXTENT]).filter_map(|(_, _, value)| {
            match extent::decode(value)?.content {
                Content::Own { blob, .. } => Some(blob),
                _ => None,
            }
        });
        let shared = self.rows(vec![key::BLOB]);
        let shared = shared.filter_map(|(_, _, value)| Some(blob::decode_shared(value)?.blob));
        own.chain(shared)
    }

    /// Places of all fragments that rows describe, in order, with their bytes.
    pub fn places(&self) -> Vec<(ZoneAddress, u64)> {
        let fragments = self.blobs().flat_map(|blob| blob.fragments);
        let mut places: Vec<_> = fragments
            .filter_map(|fragment| Some((fragment.at?, u64::from(fragment.length))))
            .collect();
        places.sort_unstable();
        places
    }
}
