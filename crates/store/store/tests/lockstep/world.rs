//! The model: plain maps that hold what a store should hold, and the effect of every call on them.

use super::call::{Call, Data, Must, Target, attributes, collection, key, object, omap};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Attributes, Hashed, Omap};

/// Why a transaction is refused: the name of the store's error.
pub type Refused = &'static str;

#[derive(Clone, Default, PartialEq, Debug)]
pub struct Object {
    pub bytes: Arc<Vec<u8>>,
    pub attributes: Attributes,
    pub omap: Omap,
}

#[derive(Clone, Default, PartialEq, Debug)]
pub struct Collection {
    pub hashed: Option<Hashed>,
    pub attributes: Attributes,
    /// Objects by hash and name, in the order of listings. In a collection in order of names, all hashes are 0.
    pub objects: BTreeMap<(u32, Vec<u8>), Object>,
}

impl Collection {
    fn key(&self, name: &[u8]) -> Result<(u32, Vec<u8>), Refused> {
        let Some(hashed) = self.hashed else {
            return Ok((0, name.to_vec()));
        };
        if name.is_empty() {
            return Err("NoName");
        }
        let hash = hashed.source.hash(name);
        let covers = hashed.prefix.covers(hash);
        covers
            .then(|| (hash, name.to_vec()))
            .ok_or("HashNotCovered")
    }
}

#[derive(Clone, Default, PartialEq, Debug)]
pub struct World(pub BTreeMap<String, Collection>);

impl World {
    fn collection(&mut self, number: u8) -> Result<&mut Collection, Refused> {
        self.0.get_mut(collection(number)).ok_or("NoCollection")
    }

    /// The object, or `None` if it does not exist.
    pub fn find(&self, (within, name): Target) -> Result<Option<&Object>, Refused> {
        let within = self.0.get(collection(within)).ok_or("NoCollection")?;
        Ok(within.objects.get(&within.key(&object(name))?))
    }

    fn get(&self, target: Target) -> Result<&Object, Refused> {
        self.find(target)?.ok_or("NoObject")
    }

    fn get_mut(&mut self, (within, name): Target) -> Result<&mut Object, Refused> {
        let within = self.collection(within)?;
        let key = within.key(&object(name))?;
        within.objects.get_mut(&key).ok_or("NoObject")
    }

    fn get_or_make(&mut self, (within, name): Target) -> Result<&mut Object, Refused> {
        let within = self.collection(within)?;
        let key = within.key(&object(name))?;
        Ok(within.objects.entry(key).or_default())
    }

    fn take(&mut self, (within, name): Target) -> Result<Object, Refused> {
        let within = self.collection(within)?;
        let key = within.key(&object(name))?;
        within.objects.remove(&key).ok_or("NoObject")
    }

    fn replace(&mut self, target: Target, new: Object) -> Result<(), Refused> {
        *self.get_or_make(target)? = new;
        Ok(())
    }

    /// Bytes of an object; 0 if it does not exist.
    pub fn size(&self, target: Target) -> usize {
        self.get(target).map_or(0, |object| object.bytes.len())
    }

    pub fn bytes(&self) -> usize {
        let objects = self.0.values().flat_map(|within| within.objects.values());
        objects.map(|object| object.bytes.len()).sum()
    }

    fn add(&mut self, number: u8, new: Collection) -> Result<(), Refused> {
        let name = collection(number).to_owned();
        if self.0.contains_key(&name) {
            return Err("CollectionExists");
        }
        self.0.insert(name, new);
        Ok(())
    }

    fn split(&mut self, from: u8, to: u8) -> Result<(), Refused> {
        let old = self.collection(from)?.clone();
        let hashed = old.hashed.ok_or("CannotSplit")?;
        let (lower, upper) = hashed.prefix.halves().ok_or("CannotSplit")?;
        let is_lower = |(hash, _): &(u32, Vec<u8>)| lower.covers(*hash);
        let (first, second) = old.objects.into_iter().partition(|(key, _)| is_lower(key));
        let upper = Collection {
            hashed: Some(Hashed {
                prefix: upper,
                ..hashed
            }),
            attributes: Attributes::new(),
            objects: second,
        };
        self.add(to, upper)?;
        let hashed = Some(Hashed {
            prefix: lower,
            ..hashed
        });
        *self.collection(from)? = Collection {
            hashed,
            attributes: old.attributes,
            objects: first,
        };
        Ok(())
    }

    fn merge(&mut self, from: u8, to: u8) -> Result<(), Refused> {
        let (gone, stays) = (self.collection(from)?.clone(), self.collection(to)?.clone());
        let whole = gone.hashed.zip(stays.hashed).and_then(|(a, b)| {
            let prefix = a.prefix.whole(b.prefix)?;
            (a.family == b.family).then_some(Hashed { prefix, ..b })
        });
        let hashed = Some(whole.ok_or("CannotMerge")?);
        self.0.remove(collection(from));
        let to = self.collection(to)?;
        to.hashed = hashed;
        to.objects.extend(gone.objects);
        Ok(())
    }

    /// Overwrites or appends bytes from `at` on; an offset beyond the end is invalid.
    fn overwrite(object: &mut Object, at: usize, data: &[u8]) -> Result<(), Refused> {
        if at > object.bytes.len() {
            return Err("Invalid");
        }
        let bytes = Arc::make_mut(&mut object.bytes);
        bytes.resize(bytes.len().max(at + data.len()), 0);
        bytes[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    /// Applies one operation. After an error the model must be thrown away, for the operation may be half applied.
    pub fn carry_out(&mut self, call: &Call) -> Result<(), Refused> {
        let bytes = |data: &Data| Arc::new(data.bytes());
        match call {
            Call::CreateCollection(name, rows) => {
                let attributes = attributes(rows);
                self.add(
                    *name,
                    Collection {
                        attributes,
                        ..Collection::default()
                    },
                )
            }
            Call::CreateHashed(name, hashed) => {
                let mut others = self.0.values().filter_map(|other| other.hashed);
                if others.any(|o| o.family == hashed.family && o.prefix.overlaps(hashed.prefix)) {
                    return Err("HashesTaken");
                }
                self.add(
                    *name,
                    Collection {
                        hashed: Some(*hashed),
                        ..Collection::default()
                    },
                )
            }
            Call::RemoveCollection(name) => {
                if !self.collection(*name)?.objects.is_empty() {
                    return Err("CollectionNotEmpty");
                }
                self.0.remove(collection(*name));
                Ok(())
            }
            Call::SetCollectionAttributes(name, rows) => {
                self.collection(*name)?.attributes = attributes(rows);
                Ok(())
            }
            Call::Split(from, to) => self.split(*from, *to),
            Call::Merge(from, to) => self.merge(*from, *to),
            Call::Require(target, must) => {
                let found = self.find(*target)?;
                let value = |name: &u8| found.and_then(|o| o.attributes.get(&name.to_string()));
                let is = |row: &(u8, u16)| value(&row.0) == attributes(&[*row]).values().next();
                let holds = match must {
                    Must::BeAbsent => found.is_none(),
                    Must::BePresent => found.is_some(),
                    Must::HaveAttribute(row) => is(row),
                    Must::NotHaveAttribute(row) => !is(row),
                };
                holds.then_some(()).ok_or("ConditionFailed")
            }
            Call::Put(target, data, rows) => {
                let new = Object {
                    bytes: bytes(data),
                    attributes: attributes(rows),
                    omap: Omap::new(),
                };
                self.replace(*target, new)
            }
            Call::Write(target, at, data) => {
                let object = self.get_mut(*target)?;
                Self::overwrite(object, at.of(object.bytes.len()), &data.bytes())
            }
            Call::Append(target, data) => {
                let object = self.get_or_make(*target)?;
                Self::overwrite(object, object.bytes.len(), &data.bytes())
            }
            Call::Truncate(target, to) => {
                let object = self.get_mut(*target)?;
                let size = to.of(object.bytes.len());
                if size > object.bytes.len() {
                    return Err("Invalid");
                }
                Arc::make_mut(&mut object.bytes).truncate(size);
                Ok(())
            }
            Call::Punch(target, at, length) => {
                let object = self.get_mut(*target)?;
                Self::overwrite(
                    object,
                    at.of(object.bytes.len()),
                    &vec![0; *length as usize],
                )
            }
            Call::Remove(target) => self.take(*target).map(drop),
            Call::RemoveIfPresent(target) => match self.take(*target) {
                Err("NoObject") => Ok(()),
                taken => taken.map(drop),
            },
            Call::SetAttributes(target, rows) => {
                self.get_mut(*target)?.attributes = attributes(rows);
                Ok(())
            }
            Call::UpdateAttributes(target, rows, gone) => {
                let object = self.get_mut(*target)?;
                object.attributes.remove(&gone.to_string());
                object.attributes.extend(attributes(rows));
                Ok(())
            }
            Call::Touch(target) => self.get_or_make(*target).map(drop),
            Call::OmapSet(target, rows) => {
                self.get_mut(*target)?.omap.extend(omap(rows));
                Ok(())
            }
            Call::OmapRemove(target, keys) => {
                let gone: Vec<_> = keys.iter().map(|number| key(*number)).collect();
                self.get_mut(*target)?
                    .omap
                    .retain(|key, _| !gone.contains(key));
                Ok(())
            }
            Call::OmapRemoveRange(target, from, to) => {
                let (from, to) = (key(*from), key(*to));
                let omap = &mut self.get_mut(*target)?.omap;
                omap.retain(|key, _| *key < from || *key >= to);
                Ok(())
            }
            Call::OmapClear(target) => {
                self.get_mut(*target)?.omap.clear();
                Ok(())
            }
            Call::Assemble(target, parts) => {
                self.find(*target)?;
                let mut whole = Vec::new();
                for part in parts {
                    whole.extend_from_slice(&self.take(*part)?.bytes);
                }
                let bytes = Arc::new(whole);
                self.replace(
                    *target,
                    Object {
                        bytes,
                        ..Object::default()
                    },
                )
            }
            Call::Rename(from, to) => {
                let object = self.take(*from)?;
                self.replace(*to, object)
            }
            Call::Clone(from, to) => {
                let object = self.get(*from)?.clone();
                self.replace(*to, object)
            }
            Call::CloneRange(from, first, last, to, at) => {
                let source = self.get(*from)?.bytes.clone();
                let (first, last) = (first.of(source.len()), last.of(source.len()));
                let at = at.of(self.size(*to));
                let range = source.get(first..last).ok_or("Invalid")?;
                Self::overwrite(self.get_or_make(*to)?, at, range)
            }
        }
    }
}
