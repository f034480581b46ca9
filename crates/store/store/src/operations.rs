//! What each operation of a transaction changes.

use crate::format::key;
use crate::format::onode::Onode;
use crate::format::record::CollectionRecord;
use crate::inner::Inner;
use crate::limits::check_attributes;
use crate::open_maps::Drops;
use crate::staging::Staging;
use crate::step::{Step, Target};
use crate::written::{Hold, Written};
use crate::{Attributes, Condition, Error, Result, Transaction};
use kv::Kv;
use object::{Extent, Segment, Span};
use std::collections::BTreeMap;

/// One transaction while it is put together.
pub(crate) struct Work<'a> {
    pub inner: &'a Inner,
    pub kv: &'a Kv,
    pub staging: Staging<'a>,
    pub collections: &'a BTreeMap<String, CollectionRecord>,
    pub changed: BTreeMap<String, Option<CollectionRecord>>,
    pub next_collection: u32,
    pub holds: Vec<Hold>,
    pub drops: Drops<'a>,
    pub now: u64,
}

impl Work<'_> {
    pub fn run(&mut self, transaction: Transaction) -> Result<()> {
        transaction
            .operations
            .into_iter()
            .try_for_each(|operation| self.operate(operation))
    }

    fn operate(&mut self, operation: Step) -> Result<()> {
        match operation {
            Step::CreateCollection {
                collection,
                attributes,
            } => {
                if self.collection(&collection).is_some() {
                    return Err(Error::CollectionExists { collection });
                }
                let id = self.next_collection;
                self.next_collection += 1;
                let record = CollectionRecord {
                    id,
                    created_micros: self.now,
                    attributes,
                };
                self.changed.insert(collection, Some(record));
                Ok(())
            }
            Step::RemoveCollection { collection } => {
                let id = self.id(&collection)?;
                let lower = key::onode(id, "");
                let upper = key::after_prefix(&lower);
                for row in self.kv.scan(&lower, upper.as_deref()) {
                    let (key, _) = row?;
                    let name = key::parse_onode(&key).map_or("", |(_, name)| name);
                    if self.staging.onode(id, name)?.is_some() {
                        return Err(Error::CollectionNotEmpty { collection });
                    }
                }
                self.changed.insert(collection, None);
                Ok(())
            }
            Step::SetCollectionAttributes {
                collection,
                attributes,
            } => {
                let Some(record) = self.collection(&collection) else {
                    return Err(Error::NoCollection { collection });
                };
                let record = CollectionRecord {
                    attributes,
                    ..record.clone()
                };
                self.changed.insert(collection, Some(record));
                Ok(())
            }
            Step::Require { target, condition } => {
                let id = self.id(&target.collection)?;
                let onode = self.staging.onode(id, &target.object)?;
                let attribute = |name: &str| onode.as_ref().and_then(|o| o.attributes.get(name));
                let holds = match &condition {
                    Condition::Absent => onode.is_none(),
                    Condition::Present => onode.is_some(),
                    Condition::AttributeIs(name, value) => attribute(name) == Some(value),
                    Condition::AttributeIsNot(name, value) => attribute(name) != Some(value),
                };
                let Target { collection, object } = target;
                if holds {
                    Ok(())
                } else {
                    Err(Error::ConditionFailed { collection, object })
                }
            }
            Step::Put {
                target,
                data,
                attributes,
            } => self.put(&target, data, attributes),
            Step::Write {
                target,
                offset,
                data,
            } => self.write(&target, offset, data),
            Step::Append { target, data } => self.append(&target, data),
            Step::Truncate { target, size } => self.truncate(&target, size),
            Step::Punch {
                target,
                offset,
                length,
            } => self.punch(&target, offset, length),
            Step::Clone { from, to } => self.clone(&from, &to),
            Step::CloneRange {
                from,
                range,
                to,
                offset,
            } => self.clone_range(&from, range, &to, offset),
            Step::Remove { target, must_exist } => {
                let id = self.id(&target.collection)?;
                match self.staging.onode(id, &target.object)? {
                    Some(old) => {
                        self.drop_segments(&target, &old.segments)?;
                        self.drop_omap(old.omap);
                        self.staging.set_onode(id, &target.object, None);
                        Ok(())
                    }
                    None if must_exist => Err(no_object(target)),
                    None => Ok(()),
                }
            }
            Step::SetAttributes { target, attributes } => {
                let (id, onode) = self.existing(&target)?;
                let onode = Onode {
                    attributes,
                    ..onode
                };
                self.staging.set_onode(id, &target.object, Some(onode));
                Ok(())
            }
            Step::Touch { target } => {
                let id = self.id(&target.collection)?;
                if self.staging.onode(id, &target.object)?.is_none() {
                    let modified_micros = self.now;
                    let onode = Onode {
                        modified_micros,
                        ..Onode::default()
                    };
                    self.staging.set_onode(id, &target.object, Some(onode));
                }
                Ok(())
            }
            Step::UpdateAttributes {
                target,
                set,
                remove,
            } => {
                let (id, mut onode) = self.existing(&target)?;
                onode.attributes.retain(|name, _| !remove.contains(name));
                onode.attributes.extend(set);
                check_attributes(&onode.attributes)?;
                self.staging.set_onode(id, &target.object, Some(onode));
                Ok(())
            }
            Step::Omap { target, step } => self.change_omap(&target, step),
            Step::Assemble {
                target,
                parts,
                attributes,
            } => {
                self.id(&target.collection)?;
                let mut segments = Vec::new();
                for part in parts {
                    let (part_id, onode) = self.existing(&part)?;
                    segments.extend(onode.segments);
                    self.drop_omap(onode.omap);
                    self.staging.set_onode(part_id, &part.object, None);
                }
                let onode = Onode {
                    modified_micros: self.now,
                    omap: None,
                    segments,
                    attributes,
                };
                self.replace(&target, onode)
            }
            Step::Rename { from, to } => {
                let (from_id, onode) = self.existing(&from)?;
                self.staging.set_onode(from_id, &from.object, None);
                self.replace(&to, onode)
            }
        }
    }

    fn collection(&self, name: &str) -> Option<&CollectionRecord> {
        match self.changed.get(name) {
            Some(changed) => changed.as_ref(),
            None => self.collections.get(name),
        }
    }

    fn id(&self, collection: &str) -> Result<u32> {
        let missing = || Error::NoCollection {
            collection: collection.to_owned(),
        };
        self.collection(collection)
            .map(|c| c.id)
            .ok_or_else(missing)
    }

    pub fn existing(&self, target: &Target) -> Result<(u32, Onode)> {
        let id = self.id(&target.collection)?;
        let found = self.staging.onode(id, &target.object)?;
        let onode = found.ok_or_else(|| no_object(target.clone()))?;
        Ok((id, onode))
    }

    pub fn existing_or_new(&self, target: &Target) -> Result<(u32, Onode)> {
        let id = self.id(&target.collection)?;
        let onode = self.staging.onode(id, &target.object)?;
        Ok((id, onode.unwrap_or_default()))
    }

    fn drop_segments(&mut self, target: &Target, segments: &[Segment]) -> Result<()> {
        for segment in segments {
            let is_open = self.drops.begin(segment.map);
            let dropped = self.staging.drop_map(segment.map, is_open);
            dropped.map_err(met_in(target))?;
        }
        Ok(())
    }

    /// Puts data where nothing is.
    fn insert(&mut self, Span { map, mut from, .. }: Span, mut data: Written) -> Result<()> {
        if let Some(bytes) = data.inline.take() {
            self.staging.rows.write(map, from, Extent::inline(bytes));
        }
        for run in data.hold.take() {
            // What is known to be lost is not acknowledged.
            self.inner.check_readable(run.piece.at.zone)?;
            let length = u64::from(run.raw);
            self.staging.write(map, from, run);
            from += length;
        }
        self.holds.push(data.hold);
        Ok(())
    }

    /// Takes the bytes from `offset` on, `length` of them, out of an object, which may grow by that; answers
    /// where others go in their place. `None` if there are none.
    pub fn make_way(
        &mut self,
        target: &Target,
        onode: &mut Onode,
        offset: u64,
        length: u64,
    ) -> Result<Option<Span>> {
        let size = onode.size();
        let end = offset.checked_add(length).filter(|_| offset <= size);
        let Some(end) = end else {
            return Err(Error::Invalid {
                what: "the offset of a write",
                found: offset,
                allowed: size,
            });
        };
        if length == 0 {
            return Ok(None);
        }
        onode.modified_micros = self.now;
        for span in object::spans(&onode.segments, offset, end) {
            self.staging.cut(span).map_err(met_in(target))?;
        }
        if offset < size {
            return Ok(object::overwrite(&mut onode.segments, offset, end));
        }
        if onode.segments.is_empty() {
            onode.segments.push(Segment {
                map: self.inner.numbers.take(self.kv)?,
                start: 0,
                length: 0,
            });
        }
        Ok(onode.segments.last_mut().map(|last| {
            let from = last.start + last.length;
            last.length += length;
            let (map, to) = (last.map, from + length);
            Span { map, from, to }
        }))
    }

    fn put(&mut self, target: &Target, data: Written, attributes: Attributes) -> Result<()> {
        let mut onode = Onode {
            modified_micros: self.now,
            attributes,
            ..Onode::default()
        };
        if let Some(span) = self.make_way(target, &mut onode, 0, data.len())? {
            self.insert(span, data)?;
        }
        self.replace(target, onode)
    }

    /// Gives an onode a name; what had it goes.
    pub fn replace(&mut self, target: &Target, onode: Onode) -> Result<()> {
        let id = self.id(&target.collection)?;
        if let Some(old) = self.staging.onode(id, &target.object)? {
            self.drop_segments(target, &old.segments)?;
            self.drop_omap(old.omap);
        }
        self.staging.set_onode(id, &target.object, Some(onode));
        Ok(())
    }

    fn append(&mut self, target: &Target, data: Written) -> Result<()> {
        let (id, mut onode) = self.existing_or_new(target)?;
        onode.modified_micros = self.now;
        let size = onode.size();
        if let Some(span) = self.make_way(target, &mut onode, size, data.len())? {
            self.insert(span, data)?;
        }
        self.staging.set_onode(id, &target.object, Some(onode));
        Ok(())
    }

    fn write(&mut self, target: &Target, offset: u64, data: Written) -> Result<()> {
        let (id, mut onode) = self.existing(target)?;
        if let Some(span) = self.make_way(target, &mut onode, offset, data.len())? {
            self.insert(span, data)?;
            self.staging.set_onode(id, &target.object, Some(onode));
        }
        Ok(())
    }

    fn punch(&mut self, target: &Target, offset: u64, length: u64) -> Result<()> {
        let (id, mut onode) = self.existing(target)?;
        if let Some(span) = self.make_way(target, &mut onode, offset, length)? {
            self.staging.punch(span).map_err(met_in(target))?;
            self.staging.set_onode(id, &target.object, Some(onode));
        }
        Ok(())
    }

    fn truncate(&mut self, target: &Target, size: u64) -> Result<()> {
        let (id, mut onode) = self.existing(target)?;
        let old = onode.size();
        if size > old {
            return Err(Error::Invalid {
                what: "the new size",
                found: size,
                allowed: old,
            });
        }
        let (gone, cut) = object::shorten(&mut onode.segments, size);
        self.drop_segments(target, &gone)?;
        if let Some(span) = cut {
            self.staging.cut(span).map_err(met_in(target))?;
        }
        onode.modified_micros = self.now;
        self.staging.set_onode(id, &target.object, Some(onode));
        Ok(())
    }
}

fn no_object(target: Target) -> Error {
    Error::NoObject {
        collection: target.collection,
        object: target.object,
    }
}

/// Names the object whose extents an error is of.
pub(crate) fn met_in(target: &Target) -> impl FnOnce(Error) -> Error + '_ {
    move |error| error.of_object(&target.to_string())
}
