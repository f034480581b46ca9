//! Owners of maps and omaps, by the rows with names (collections and onodes).

use crate::HashSource;
use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::owners::Owners;
use runtime::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};

/// What collections and onodes own.
#[derive(Default)]
pub(super) struct Names {
    pub collections: Owners,
    /// Kinds of collections, by name.
    pub kinds: BTreeMap<String, Kind>,
    /// Start and end of what the owner of a map shows; 0 and 0 if the map is doomed.
    pub maps: HashMap<u64, (u64, u64)>,
    pub omaps: HashSet<u64>,
    /// Planned changes of onodes, by key; `None`: removed.
    pub changed: BTreeMap<Vec<u8>, Option<Onode>>,
    /// The highest numbers in use, of maps, omaps and blobs, and of collections.
    pub highest: u64,
    pub highest_collection: u32,
}

impl Names {
    pub fn add(&mut self, name: String, kind: Kind) {
        if let Kind::ByName(number) = kind {
            self.highest_collection = self.highest_collection.max(number);
        }
        self.collections.add(kind, name.clone());
        self.kinds.insert(name, kind);
    }

    /// `name`, or `name-2` and so on: the first that no collection has.
    pub fn free(&self, name: &str) -> String {
        let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| !self.kinds.contains_key(name));
        free.unwrap_or_default()
    }

    /// The hash source of a family: that of its collections, or else the one that yields `hash` for `name`.
    pub fn source(&self, family: u32, hash: u32, name: &[u8]) -> Option<HashSource> {
        let of_family = self.kinds.values().find_map(|kind| match kind {
            Kind::ByHash(hashed) if hashed.family == family => Some(hashed.source),
            _ => None,
        });
        let mut known = HashSource::ALL.iter().map(|(_, source, _)| *source);
        of_family.or_else(|| known.find(|source| source.hash(name) == hash))
    }

    pub fn uses(&mut self, number: u64) {
        self.highest = self.highest.max(number);
    }

    /// Enters the maps and the omap of an onode; false, and nothing is entered, if one of them has an owner.
    pub fn take(&mut self, onode: &Onode) -> bool {
        let mut maps = BTreeSet::new();
        let is_new = |map| !self.maps.contains_key(&map);
        let are_new = onode
            .segments
            .iter()
            .all(|s| is_new(s.map) && maps.insert(s.map));
        if !are_new || onode.omap.is_some_and(|omap| self.omaps.contains(&omap)) {
            return false;
        }
        for s in &onode.segments {
            self.uses(s.map);
            self.maps.insert(s.map, (s.start, s.start + s.length));
        }
        if let Some(omap) = onode.omap {
            self.uses(omap);
            self.omaps.insert(omap);
        }
        true
    }

    /// Removes the maps and the omap of an onode that is given up.
    pub fn leave(&mut self, onode: &Onode) {
        for s in &onode.segments {
            self.maps.remove(&s.map);
        }
        if let Some(omap) = &onode.omap {
            self.omaps.remove(omap);
        }
    }
}
