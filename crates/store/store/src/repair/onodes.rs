//! Repair of collections, onodes and omaps.

use super::Repair;
use super::names::Names;
use crate::format::key::{self, Holder};
use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::format::record::{CollectionRecord, decode_number};
use crate::{Attributes, HashPrefix, HashSource, Hashed, Result};
use std::collections::BTreeSet;

const UNDECODABLE: &str = "its record cannot be decoded";

impl Repair<'_> {
    pub(super) fn plan_collections(&mut self, names: &mut Names) -> Result<()> {
        let mut nameless = Vec::new();
        for (key, value) in self.all(key::COLLECTION)? {
            let name = std::str::from_utf8(&key[1..]).ok().map(str::to_owned);
            let words = key[1..].escape_ascii().to_string();
            match (name, CollectionRecord::decode(&value)) {
                (Some(name), Some(record)) => match names.collections.conflict(&record.kind) {
                    None => names.add(name, record.kind),
                    Some(other) => {
                        let what = format!("its objects are those of {other}");
                        self.report.give_up(words, what);
                        self.drop_row(&key, "collections overlap");
                    }
                },
                (name, _) => {
                    nameless.extend(name);
                    let what = format!("its attributes: {UNDECODABLE}");
                    self.report.give_up(words, what);
                    self.drop_row(&key, "undecodable collection");
                }
            }
        }
        self.plan_homeless(names, nameless)
    }

    /// Plans collections for onodes that have none. If only one collection can be theirs, it gets its old name back.
    fn plan_homeless(&mut self, names: &mut Names, nameless: Vec<String>) -> Result<()> {
        let (mut numbers, mut hashes) = (BTreeSet::new(), BTreeSet::new());
        for namespace in key::ONODES {
            self.rows(namespace, |key, _| {
                let by_hash = |family, hash, name: &[u8]| {
                    let source = names.source(family, hash, name)?;
                    let hash = source.hash(name);
                    let place = key::hashed_onode(family, hash, name);
                    let is_homeless = !name.is_empty() && names.collections.of(&place).is_none();
                    is_homeless.then_some((family, source as u8, hash))
                };
                match key::parse_onode(key) {
                    Some((Holder::Collection(number), _))
                        if names.collections.of(key).is_none() =>
                    {
                        numbers.insert(number);
                    }
                    Some((Holder::Hash { family, hash }, name)) => {
                        hashes.extend(by_hash(family, hash, name));
                    }
                    _ => {}
                }
                Ok(())
            })?;
        }
        let mut nameless = nameless.into_iter();
        let known = nameless
            .next()
            .filter(|_| nameless.len() == 0 && hashes.is_empty() && numbers.len() == 1);
        for number in numbers {
            let name = known.clone();
            let name = name.unwrap_or_else(|| names.free(&format!("fsck-{number}")));
            self.create(names, name, Kind::ByName(number));
        }
        for (family, source, hash) in hashes {
            let Some(source) = HashSource::of_number(source) else {
                continue;
            };
            let place = |prefix| {
                Kind::ByHash(Hashed {
                    family,
                    source,
                    prefix,
                })
            };
            let mut prefix = HashPrefix::ALL;
            while names.collections.conflict(&place(prefix)).is_some() {
                let Some((lower, upper)) = prefix.halves() else {
                    break;
                };
                prefix = if lower.covers(hash) { lower } else { upper };
            }
            // A collection made for another hash of the family may cover this one.
            if names.collections.conflict(&place(prefix)).is_none() {
                let name = names.free(&format!("fsck-family-{family}"));
                self.create(names, name, place(prefix));
            }
        }
        Ok(())
    }

    fn create(&mut self, names: &mut Names, name: String, kind: Kind) {
        let record = CollectionRecord {
            kind,
            created_micros: self.now,
            attributes: Attributes::new(),
        };
        self.changes.put(&key::collection(&name), &record.encode());
        self.report.repaired("collection made");
        names.add(name, kind);
    }

    /// Number and name of a collection by name: the one called `name`, or else a new one, called `name` or `name-2` and
    /// so on.
    pub(super) fn by_name(&mut self, names: &mut Names, name: &str) -> Result<(u32, String)> {
        if let Some(Kind::ByName(number)) = names.kinds.get(name) {
            return Ok((*number, name.to_owned()));
        }
        let recorded = self.opened.kv.get(key::SUPER_NEXT_COLLECTION)?;
        let recorded = recorded.and_then(|value| decode_number(&value));
        let recorded = recorded.map_or(0, |number| u32::try_from(number).unwrap_or(0));
        let number = recorded.max(names.highest_collection.saturating_add(1));
        let name = names.free(name);
        // First: after an interrupted repair, a mount would try the number for the next collection, and refuse that.
        let next = u64::from(number.saturating_add(1)).to_le_bytes();
        self.changes.put(key::SUPER_NEXT_COLLECTION, &next);
        self.create(names, name.clone(), Kind::ByName(number));
        Ok((number, name))
    }

    pub(super) fn plan_onodes(&mut self, names: &mut Names) -> Result<()> {
        for namespace in key::ONODES {
            let mut bad = Vec::new();
            self.rows(namespace, |key, value| {
                let onode = Onode::decode(value);
                let has_place = names.collections.of(key).is_some();
                // Onodes whose collection covers them take their maps first.
                let taken = has_place && onode.as_ref().is_some_and(|onode| names.take(onode));
                if !taken {
                    bad.push((key.to_vec(), onode));
                }
                Ok(())
            })?;
            for (key, onode) in bad {
                self.plan_onode(names, &key, onode)?;
            }
        }
        self.plan_doomed(names)?;
        let mut orphans = Vec::new();
        self.rows(key::OMAP, |key, _| {
            let number = key::parse_omap(key).map(|(number, _)| number);
            let is_doomed = |number: &u64| names.maps.get(number) == Some(&(0, 0));
            let is_known = |number: &u64| names.omaps.contains(number) || is_doomed(number);
            match number.filter(is_known) {
                Some(number) => names.highest = names.highest.max(number),
                None => orphans.push(key.to_vec()),
            }
            Ok(())
        })?;
        for key in orphans {
            self.drop_row(&key, "omap key without an object");
        }
        Ok(())
    }

    /// Plans the repair of an onode that cannot be decoded, conflicts with another one, or has no collection.
    fn plan_onode(&mut self, names: &mut Names, key: &[u8], onode: Option<Onode>) -> Result<()> {
        let words = names.collections.words(key);
        let Some(mut onode) = onode else {
            self.report.give_up(words, UNDECODABLE);
            self.drop_onode(names, key, "undecodable onode");
            return Ok(());
        };
        if !names.take(&onode) {
            // Perhaps only its omap is another object's.
            let omap = onode.omap.take();
            if !names.take(&onode) {
                self.report.give_up(words, "its bytes are another object's");
                self.drop_onode(names, key, "map with two owners");
                return Ok(());
            }
            if omap.is_some() {
                self.report
                    .give_up(&*words, "its omap, which is another object's");
                self.report.repaired("omap with two owners");
                self.put_onode(names, key, &onode);
            }
        }
        if names.collections.of(key).is_some() {
            return Ok(());
        }
        // Collections were made for all onodes whose place can be computed.
        let place = match key::parse_onode(key) {
            Some((Holder::Hash { family, hash }, name)) if !name.is_empty() => names
                .source(family, hash, name)
                .map(|source| key::hashed_onode(family, source.hash(name), name)),
            _ => None,
        };
        let place = place.filter(|place| names.collections.of(place).is_some());
        match place {
            Some(place) if self.opened.kv.get(&place)?.is_none() => {
                self.move_onode(key, &place, &onode, "object without a collection");
                names.changed.insert(key.to_vec(), None);
                names.changed.insert(place, Some(onode));
            }
            _ => {
                names.leave(&onode);
                self.report
                    .give_up(words, "it has no place in any collection");
                self.drop_onode(names, key, "object without a collection");
            }
        }
        Ok(())
    }

    fn put_onode(&mut self, names: &mut Names, key: &[u8], onode: &Onode) {
        self.changes.put(key, &onode.encode());
        names.changed.insert(key.to_vec(), Some(onode.clone()));
    }

    fn drop_onode(&mut self, names: &mut Names, key: &[u8], what: &str) {
        self.drop_row(key, what);
        names.changed.insert(key.to_vec(), None);
    }

    /// Plans the repair of doomed maps: records that cannot be decoded or whose map has an owner are removed.
    fn plan_doomed(&mut self, names: &mut Names) -> Result<()> {
        for (key, _) in self.all(key::DOOMED)? {
            match key::parse_doomed(&key) {
                None => self.drop_row(&key, "undecodable record"),
                Some(map) if names.maps.contains_key(&map) || names.omaps.contains(&map) => {
                    self.drop_row(&key, "doomed map with an owner");
                }
                Some(map) => {
                    names.uses(map);
                    names.maps.insert(map, (0, 0));
                }
            }
        }
        Ok(())
    }
}
