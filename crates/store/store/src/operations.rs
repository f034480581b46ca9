//! Applies the operations of a transaction to its [`Staging`], in order; later ones see what earlier ones did.

use crate::format::onode::Onode;
use crate::format::record::CollectionRecord;
use crate::inner::Inner;
use crate::limits::check_attributes;
use crate::open_maps::Drops;
use crate::rows::onode_key;
use crate::staging::Staging;
use crate::step::{Removal, Step, Target};
use crate::written::{Hold, Written};
use crate::{Attributes, Error, Result, Transaction};
use object::{Extent, Segment, Span};
use std::collections::BTreeMap;

/// A transaction while its changes are collected.
pub(crate) struct Work<'a> {
    pub inner: &'a Inner,
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
                hashed,
                attributes,
            } => self.create_collection(collection, hashed, attributes),
            Step::RemoveCollection { collection } => self.remove_collection(collection),
            Step::SetCollectionAttributes {
                collection,
                attributes,
            } => self.change_collection(collection, |record| record.attributes = attributes),
            Step::SetCollectionCreated { collection, micros } => {
                self.change_collection(collection, |record| record.created_micros = micros)
            }
            Step::SplitCollection {
                collection,
                into,
                attributes,
            } => self.split_collection(collection, into, attributes),
            Step::MergeCollection { collection, into } => self.merge_collection(collection, into),
            Step::Require { target, condition } => {
                let onode = self.staging.onode(&self.key(&target)?)?;
                let object = onode.as_ref().map(|o| (&o.attributes, o.modified_micros));
                let holds = condition.holds(object);
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
            Step::Remove { target, removal } => {
                let key = self.key(&target)?;
                let even_damaged = removal == Removal::EvenDamaged;
                if self.drop_object(&target, &key, even_damaged)? {
                    self.staging.set_onode(key, None);
                } else if removal == Removal::Existing {
                    return Err(no_object(&target));
                }
                Ok(())
            }
            Step::SetAttributes { target, attributes } => {
                let (key, onode) = self.existing(&target)?;
                let onode = Onode {
                    attributes,
                    ..onode
                };
                self.staging.set_onode(key, Some(onode));
                Ok(())
            }
            Step::Touch { target } => {
                let key = self.key(&target)?;
                if self.staging.onode(&key)?.is_none() {
                    let modified_micros = self.now;
                    let onode = Onode {
                        modified_micros,
                        ..Onode::default()
                    };
                    self.staging.set_onode(key, Some(onode));
                }
                Ok(())
            }
            Step::SetModified { target, micros } => {
                let (key, onode) = self.existing(&target)?;
                let onode = Onode {
                    modified_micros: micros,
                    ..onode
                };
                self.staging.set_onode(key, Some(onode));
                Ok(())
            }
            Step::UpdateAttributes {
                target,
                set,
                remove,
            } => {
                let (key, mut onode) = self.existing(&target)?;
                onode.attributes.retain(|name, _| !remove.contains(name));
                onode.attributes.extend(set);
                check_attributes(&onode.attributes)?;
                self.staging.set_onode(key, Some(onode));
                Ok(())
            }
            Step::Omap { target, step } => self.change_omap(&target, step),
            Step::Assemble {
                target,
                parts,
                attributes,
            } => {
                self.key(&target)?;
                let (mut segments, mut size) = (Vec::new(), 0_u64);
                for part in parts {
                    let (part_key, onode) = self.existing(&part)?;
                    let (found, allowed) = (onode.size(), u64::MAX - size);
                    if found > allowed {
                        return Err(Error::Invalid {
                            what: "the size of a part behind those in front of it",
                            found,
                            allowed,
                        });
                    }
                    size += found;
                    segments.extend(onode.segments);
                    self.drop_omap(onode.omap);
                    self.staging.set_onode(part_key, None);
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
                let (from_key, onode) = self.existing(&from)?;
                self.staging.set_onode(from_key, None);
                self.replace(&to, onode)
            }
        }
    }

    pub fn collection(&self, name: &str) -> Result<&CollectionRecord> {
        let found = match self.changed.get(name) {
            Some(changed) => changed.as_ref(),
            None => self.collections.get(name),
        };
        found.ok_or_else(|| Error::no_collection(name))
    }

    /// The key of an object's onode.
    pub fn key(&self, target: &Target) -> Result<Vec<u8>> {
        let kind = &self.collection(&target.collection)?.kind;
        onode_key(kind, &target.collection, &target.object)
    }

    pub fn existing(&self, target: &Target) -> Result<(Vec<u8>, Onode)> {
        let key = self.key(target)?;
        let found = self.staging.onode(&key)?;
        let onode = found.ok_or_else(|| no_object(target))?;
        Ok((key, onode))
    }

    pub fn existing_or_new(&self, target: &Target) -> Result<(Vec<u8>, Onode)> {
        let key = self.key(target)?;
        let onode = self.staging.onode(&key)?;
        Ok((key, onode.unwrap_or_default()))
    }

    fn drop_segments(&mut self, target: &Target, segments: &[Segment]) -> Result<()> {
        for segment in segments {
            let is_open = self.drops.begin(segment.map);
            let dropped = self.staging.drop_map(segment.map, is_open);
            dropped.map_err(met_in(target))?;
        }
        Ok(())
    }

    /// Shows `data` at the start of a span where no extent is.
    fn insert(&mut self, Span { map, mut from, .. }: Span, mut data: Written) -> Result<()> {
        if let Some(bytes) = data.inline.take() {
            self.staging.rows.write(map, from, Extent::inline(bytes));
        }
        for run in data.hold.take() {
            // Data that is known to be lost must not be acknowledged.
            self.inner.check_readable(run.piece.at.zone)?;
            let length = u64::from(run.raw);
            self.staging.write(map, from, run);
            from += length;
        }
        self.holds.push(data.hold);
        Ok(())
    }

    /// Removes `length` bytes from `offset` on out of an object, which grows if they reach beyond its end. Returns the
    /// span for the bytes that take their place; `None` if `length` is 0.
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
                map: self.inner.take_number()?,
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

    /// Gives an onode the name `target`, and drops the object that had it, also a damaged one.
    pub fn replace(&mut self, target: &Target, onode: Onode) -> Result<()> {
        let key = self.key(target)?;
        self.drop_object(target, &key, true)?;
        self.staging.set_onode(key, Some(onode));
        Ok(())
    }

    /// Drops the segments and the omap of an object; false if there is no object. Which rows are its own is not known if
    /// its record is damaged: with `even_damaged` they stay until a repair finds them without an object.
    fn drop_object(&mut self, target: &Target, key: &[u8], even_damaged: bool) -> Result<bool> {
        let old = self.inner.rows_read(|| self.staging.onode(key));
        match old.map_err(met_in(target)) {
            Ok(Some(old)) => {
                self.drop_segments(target, &old.segments)?;
                self.drop_omap(old.omap);
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) if even_damaged && error.is_damage() => {
                tracing::error!(%error, object = %target, "dropped; `store fsck --repair` gives its space back");
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn append(&mut self, target: &Target, data: Written) -> Result<()> {
        let (key, mut onode) = self.existing_or_new(target)?;
        onode.modified_micros = self.now;
        let size = onode.size();
        if let Some(span) = self.make_way(target, &mut onode, size, data.len())? {
            self.insert(span, data)?;
        }
        self.staging.set_onode(key, Some(onode));
        Ok(())
    }

    fn write(&mut self, target: &Target, offset: u64, data: Written) -> Result<()> {
        let (key, mut onode) = self.existing(target)?;
        if let Some(span) = self.make_way(target, &mut onode, offset, data.len())? {
            self.insert(span, data)?;
            self.staging.set_onode(key, Some(onode));
        }
        Ok(())
    }

    fn punch(&mut self, target: &Target, offset: u64, length: u64) -> Result<()> {
        let (key, mut onode) = self.existing(target)?;
        if let Some(span) = self.make_way(target, &mut onode, offset, length)? {
            self.staging.punch(span).map_err(met_in(target))?;
            self.staging.set_onode(key, Some(onode));
        }
        Ok(())
    }

    fn truncate(&mut self, target: &Target, size: u64) -> Result<()> {
        let (key, mut onode) = self.existing(target)?;
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
        self.staging.set_onode(key, Some(onode));
        Ok(())
    }
}

fn no_object(target: &Target) -> Error {
    Error::no_object(&target.collection, &target.object)
}

/// Adds the name of the object whose extents caused an error.
pub(crate) fn met_in(target: &Target) -> impl FnOnce(Error) -> Error + '_ {
    move |error| error.of_object(&target.to_string())
}
