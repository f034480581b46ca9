//! Finds the collection that an onode belongs to.

use crate::Name;
use crate::format::key;
use crate::format::kind::Kind;
use crate::format::record::CollectionRecord;
use std::collections::BTreeMap;

/// Collections by the first key that an onode of theirs can have.
#[derive(Default)]
pub(crate) struct Owners(BTreeMap<Vec<u8>, (Kind, String)>);

impl Owners {
    pub fn of_all(collections: &BTreeMap<String, CollectionRecord>) -> Self {
        let mut owners = Self::default();
        for (name, record) in collections {
            owners.add(record.kind, name.clone());
        }
        owners
    }

    /// Adds a collection. Returns one that it conflicts with, if any.
    pub fn add(&mut self, kind: Kind, name: String) -> Option<String> {
        let conflict = self.conflict(&kind).map(str::to_owned);
        self.0.insert(kind.position(&[]), (kind, name));
        conflict
    }

    /// A collection that would have rows in common with one of this kind, or that has another hash source in the same
    /// family.
    pub fn conflict(&self, kind: &Kind) -> Option<&str> {
        let first = kind.position(&[]);
        let before = self.0.range(..=first.clone()).next_back();
        let neighbours = before.into_iter().chain(self.0.range(first..).next());
        let mut conflicts = neighbours.filter(|(_, (other, _))| kind.conflicts(other));
        conflicts.next().map(|(_, (_, name))| name.as_str())
    }

    /// The collection that the onode with this key belongs to, and the object's name.
    pub fn of(&self, key: &[u8]) -> Option<(&str, Name)> {
        let (holder, name) = key::parse_onode(key)?;
        let (_, (kind, collection)) = self.0.range(..=key.to_vec()).next_back()?;
        kind.has(holder, name)
            .then(|| (collection.as_str(), name.into()))
    }

    /// COLLECTION/OBJECT in full, for people; a question mark stands for a missing collection.
    pub fn words(&self, key: &[u8]) -> String {
        match (self.of(key), key::parse_onode(key)) {
            (Some((collection, name)), _) => format!("{collection}/{name:#}"),
            (None, Some((_, name))) => format!("?/{:#}", Name::from(name)),
            (None, None) => key.escape_ascii().to_string(),
        }
    }
}
