//! The rows that summaries have, the latest of each key, and what they say. Pure.

use super::layers::Layers;
use crate::format::key::{self, Holder};
use crate::format::onode::Onode;
use crate::format::record::CollectionRecord;
use crate::format::summary::Summary;
use crate::format::{blob, extent};
use object::{Blob, BlobId, Content};
use std::collections::BTreeMap;
use zone::ZoneAddress;

struct Latest {
    sequence: u64,
    /// `None`: deleted.
    value: Option<Vec<u8>>,
}

/// Rows by key, those of the highest sequence.
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

    /// Those that were not deleted and begin with `prefix`.
    fn rows(&self, prefix: Vec<u8>) -> impl Iterator<Item = (&[u8], u64, &[u8])> {
        let rows = self.rows.range(prefix.clone()..);
        let rows = rows.take_while(move |(key, _)| key.starts_with(&prefix));
        rows.filter_map(|(key, row)| Some((key.as_slice(), row.sequence, row.value.as_deref()?)))
    }

    /// The collections, by name.
    pub fn collections(&self) -> impl Iterator<Item = (&str, CollectionRecord)> {
        self.rows(vec![key::COLLECTION])
            .filter_map(|(key, _, value)| {
                let name = std::str::from_utf8(&key[1..]).ok()?;
                Some((name, CollectionRecord::decode(value)?))
            })
    }

    /// The objects: where they are, and their names.
    pub fn objects(&self) -> impl Iterator<Item = (Holder, &[u8], Onode)> {
        let rows = key::ONODES.into_iter();
        let rows = rows.flat_map(|namespace| self.rows(vec![namespace]));
        rows.filter_map(|(key, _, value)| {
            let (holder, name) = key::parse_onode(key)?;
            Some((holder, name, Onode::decode(value)?))
        })
    }

    /// What a map shows.
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

    /// A blob that several extents show.
    pub fn shared(&self, id: BlobId) -> Option<Blob> {
        let row = self.rows.get(&key::blob(id))?;
        Some(blob::decode_shared(row.value.as_deref()?)?.blob)
    }

    /// The blobs that rows name.
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

    /// Where rows say that data is, in order: the place, and its bytes.
    pub fn places(&self) -> Vec<(ZoneAddress, u64)> {
        let fragments = self.blobs().flat_map(|blob| blob.fragments);
        let mut places: Vec<_> = fragments
            .filter_map(|fragment| Some((fragment.at?, u64::from(fragment.length))))
            .collect();
        places.sort_unstable();
        places
    }
}
