//! Which maps and omaps are whose, by the rows with names.

use crate::HashSource;
use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::owners::Owners;
use runtime::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};

/// What the rows with names say.
#[derive(Default)]
pub(super) struct Names {
    pub collections: Owners,
    /// By collection.
    pub kinds: BTreeMap<String, Kind>,
    /// By map: start and end of what its object shows; 0 and 0 of one that is doomed.
    pub maps: HashMap<u64, (u64, u64)>,
    pub omaps: HashSet<u64>,
    /// Onodes that are going to be others than the database has; `None`: none.
    pub changed: BTreeMap<Vec<u8>, Option<Onode>>,
    /// The highest numbers that are in use.
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

    /// This name, or with a number behind it the first that is free.
    pub fn free(&self, name: &str) -> String {
        let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let free = names.find(|name| !self.kinds.contains_key(name));
        free.unwrap_or_default()
    }

    /// How a family finds hashes: as its collections say, or as fits this object.
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

    /// Enters what an onode has; false, and nothing entered, if some of it is another's.
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

    /// An onode that is given up leaves what it has to nobody.
    pub fn leave(&mut self, onode: &Onode) {
        for s in &onode.segments {
            self.maps.remove(&s.map);
        }
        if let Some(omap) = &onode.omap {
            self.omaps.remove(omap);
        }
    }
}
