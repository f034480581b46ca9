//! Carries out transactions.
//!
//! Order: the data was written to its zones before the transaction came here → one batch goes to
//! the write-ahead log → one flush makes data and log durable → only then the freelist in memory
//! follows and the caller is told (docs/format/store.md, "The write pointer is the witness").

use crate::extent_reader::read_extent;
use crate::format::extent::Extent;
use crate::format::key;
use crate::format::onode::{Onode, Segment};
use crate::format::record::{BatchNote, CollectionRecord};
use crate::inner::Inner;
use crate::open_maps::Drops;
use crate::staging::{Origin, Staging, read_extents};
use crate::transaction::{Operation, Target};
use crate::written::{Hold, Written};
use crate::{Attributes, Condition, Error, Result, Transaction};
use kv::{Batch, Durability, Kv};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Longest object and collection names, in bytes.
const MAX_NAME: usize = 4096;
/// Most bytes of attributes (names and values) of one object.
const MAX_ATTRIBUTES: usize = 1 << 20;

/// One transaction while it is put together.
struct Work<'a, 'k> {
    inner: &'a Inner,
    kv: &'k Kv,
    staging: Staging<'k>,
    collections: &'a BTreeMap<String, CollectionRecord>,
    changed: BTreeMap<String, Option<CollectionRecord>>,
    next_collection: u32,
    holds: Vec<Hold>,
    drops: Drops<'a>,
    now: u64,
}

impl Inner {
    pub(crate) fn commit(&self, transaction: Transaction) -> Result<()> {
        self.check_writable()?;
        check_sizes(&transaction)?;
        let changes_collections = transaction
            .operations
            .iter()
            .any(|op| op.collection_only().is_some());
        // A transaction that changes collections has them alone.
        let _alone = changes_collections.then(|| self.collection_changes.write());
        let _shared = (!changes_collections).then(|| self.collection_changes.read());
        let collections = self.collections();
        let stripes: BTreeSet<usize> = transaction
            .operations
            .iter()
            .flat_map(Operation::targets)
            .map(|t| self.stripes.index(&t.collection, &t.object))
            .collect();
        let _stripes: Vec<_> = stripes
            .into_iter()
            .map(|i| self.stripes.lock(i).lock())
            .collect();
        let kv = self.kv()?;
        let _no_moves = self.mutators.read();

        let mut work = Work {
            inner: self,
            kv: &kv,
            staging: Staging::new(&kv, self.device.geometry().block_size),
            collections: &collections,
            changed: BTreeMap::new(),
            next_collection: self.next_collection.load(Ordering::Acquire),
            holds: Vec::new(),
            drops: Drops::new(&self.open_maps),
            now: self.runtime.unix_micros(),
        };
        self.keep_log_short(&kv)?;
        work.run(transaction)?;
        let Work {
            staging,
            changed,
            holds,
            drops,
            next_collection: next,
            ..
        } = work;
        if staging.is_empty() && changed.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::default();
        for (name, record) in &changed {
            match record {
                Some(record) => batch.put(&key::collection(name), &record.encode()),
                None => batch.delete(&key::collection(name)),
            }
        }
        if changes_collections {
            batch.put(key::SUPER_NEXT_COLLECTION, &u64::from(next).to_le_bytes());
            self.next_collection.store(next, Ordering::Release);
        }
        self.write_batch(&kv, &staging, batch, holds)?;
        self.open_maps.doom(staging.doomed.iter().copied());
        drop(drops);
        if changes_collections {
            let mut now = BTreeMap::clone(&collections);
            for (name, record) in changed {
                match record {
                    Some(record) => now.insert(name, record),
                    None => now.remove(&name),
                };
            }
            *self.collections.write() = Arc::new(now);
        }
        let died = staging
            .deltas
            .values()
            .map(|d| d.dead.max(0).unsigned_abs())
            .sum();
        self.cleaner.after_commit(died, !staging.doomed.is_empty());
        Ok(())
    }

    /// Writes a batch durably and lets the freelist follow. The zones of `holds` are let go of.
    pub(crate) fn write_batch(
        &self,
        kv: &Kv,
        staging: &Staging<'_>,
        mut batch: Batch,
        holds: Vec<Hold>,
    ) -> Result<()> {
        let number = self.next_batch.fetch_add(1, Ordering::Relaxed);
        let acknowledged = self.acknowledged.load(Ordering::Acquire);
        staging.fill(
            &mut batch,
            BatchNote {
                number,
                acknowledged,
                extents: Vec::new(),
            },
        );
        if let Err(error) = kv.write(&batch, Durability::Synced) {
            // Whether the batch will be there after the next mount is unknown, so its data stays.
            holds.into_iter().for_each(Hold::leak);
            return Err(self.stop_writing(error.into()));
        }
        self.acknowledged.store(number, Ordering::Release);
        self.freelist.apply(&staging.deltas, staging.inline);
        self.garbage.fetch_add(staging.removed, Ordering::Relaxed);
        drop(holds);
        Ok(())
    }

    /// Gives back the extents of maps that have no name any more and that nobody reads. True if
    /// there were any.
    pub(crate) fn purge_doomed(&self) -> Result<bool> {
        let mut any = false;
        while let Some(map) = self.open_maps.take_doomed() {
            any = true;
            if let Err(error) = self.purge(map) {
                self.open_maps.doom([map]);
                return Err(error);
            }
        }
        Ok(any)
    }

    fn purge(&self, map: u64) -> Result<()> {
        const AT_ONCE: usize = 1024;
        loop {
            let kv = self.kv()?;
            let _no_moves = self.mutators.read();
            let mut staging = Staging::new(&kv, self.device.geometry().block_size);
            let rows = read_extents(&kv, map, 0, u64::MAX, AT_ONCE)?;
            for (offset, extent) in &rows {
                staging.remove(map, *offset, extent);
            }
            let mut batch = Batch::default();
            if rows.len() < AT_ONCE {
                batch.delete(&key::doomed(map));
            }
            self.write_batch(&kv, &staging, batch, Vec::new())?;
            if rows.len() < AT_ONCE {
                return Ok(());
            }
        }
    }
}

impl Work<'_, '_> {
    fn run(&mut self, transaction: Transaction) -> Result<()> {
        transaction
            .operations
            .into_iter()
            .try_for_each(|operation| self.operate(operation))
    }

    fn operate(&mut self, operation: Operation) -> Result<()> {
        match operation {
            Operation::CreateCollection {
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
            Operation::RemoveCollection { collection } => {
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
            Operation::SetCollectionAttributes {
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
            Operation::Require { target, condition } => {
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
            Operation::Put {
                target,
                data,
                attributes,
            } => self.put(&target, data, attributes),
            Operation::Write {
                target,
                offset,
                data,
            } => self.write(&target, offset, data),
            Operation::Append { target, data } => self.append(&target, data),
            Operation::Truncate { target, size } => self.truncate(&target, size),
            Operation::Remove { target, must_exist } => {
                let id = self.id(&target.collection)?;
                match self.staging.onode(id, &target.object)? {
                    Some(old) => {
                        self.drop_segments(&old.segments)?;
                        self.staging.set_onode(id, &target.object, None);
                        Ok(())
                    }
                    None if must_exist => Err(no_object(target)),
                    None => Ok(()),
                }
            }
            Operation::SetAttributes { target, attributes } => {
                let (id, onode) = self.existing(&target)?;
                let onode = Onode {
                    attributes,
                    ..onode
                };
                self.staging.set_onode(id, &target.object, Some(onode));
                Ok(())
            }
            Operation::Assemble {
                target,
                parts,
                attributes,
            } => {
                let id = self.id(&target.collection)?;
                let mut segments = Vec::new();
                for part in parts {
                    let (part_id, onode) = self.existing(&part)?;
                    segments.extend(onode.segments);
                    self.staging.set_onode(part_id, &part.object, None);
                }
                if let Some(old) = self.staging.onode(id, &target.object)? {
                    self.drop_segments(&old.segments)?;
                }
                let onode = Onode {
                    modified_micros: self.now,
                    segments,
                    attributes,
                };
                self.staging.set_onode(id, &target.object, Some(onode));
                Ok(())
            }
            Operation::Rename { from, to } => {
                let (from_id, onode) = self.existing(&from)?;
                let to_id = self.id(&to.collection)?;
                self.staging.set_onode(from_id, &from.object, None);
                if let Some(old) = self.staging.onode(to_id, &to.object)? {
                    self.drop_segments(&old.segments)?;
                }
                self.staging.set_onode(to_id, &to.object, Some(onode));
                Ok(())
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

    fn existing(&self, target: &Target) -> Result<(u32, Onode)> {
        let id = self.id(&target.collection)?;
        let missing = || no_object(Target { ..target.clone() });
        Ok((
            id,
            self.staging
                .onode(id, &target.object)?
                .ok_or_else(missing)?,
        ))
    }

    fn drop_segments(&mut self, segments: &[Segment]) -> Result<()> {
        for segment in segments {
            let is_open = self.drops.begin(segment.map);
            self.staging.drop_map(segment.map, is_open)?;
        }
        Ok(())
    }

    /// Enters data at `offset` of `map`.
    fn insert(&mut self, map: u64, mut offset: u64, mut data: Written) -> Result<()> {
        for extent in data.take_extents() {
            if let Extent::InZone(extent) = &extent {
                // What is known to be lost is not acknowledged.
                self.inner.check_readable(extent.at.zone)?;
            }
            let length = extent.length();
            self.staging.insert(map, offset, extent, Origin::Fresh);
            offset += length;
        }
        self.holds.push(data.hold);
        Ok(())
    }

    fn new_segment(&mut self, data: Written) -> Result<Vec<Segment>> {
        if data.is_empty() {
            return Ok(Vec::new());
        }
        let map = self.inner.maps.take(self.kv)?;
        let segment = Segment {
            map,
            start: 0,
            length: data.len(),
        };
        self.insert(map, 0, data)?;
        Ok(vec![segment])
    }

    fn put(&mut self, target: &Target, data: Written, attributes: Attributes) -> Result<()> {
        let id = self.id(&target.collection)?;
        if let Some(old) = self.staging.onode(id, &target.object)? {
            self.drop_segments(&old.segments)?;
        }
        let segments = self.new_segment(data)?;
        let onode = Onode {
            modified_micros: self.now,
            segments,
            attributes,
        };
        self.staging.set_onode(id, &target.object, Some(onode));
        Ok(())
    }

    fn append(&mut self, target: &Target, data: Written) -> Result<()> {
        let id = self.id(&target.collection)?;
        let mut onode = self.staging.onode(id, &target.object)?.unwrap_or_default();
        onode.modified_micros = self.now;
        match onode.segments.last_mut() {
            Some(last) => {
                let (map, end) = (last.map, last.start + last.length);
                last.length += data.len();
                self.insert(map, end, data)?;
            }
            None => onode.segments = self.new_segment(data)?,
        }
        self.staging.set_onode(id, &target.object, Some(onode));
        Ok(())
    }

    /// Makes a hole in each segment at the object's bytes `from..to`; answers the position of the
    /// first segment that was touched and where in its map the hole begins.
    fn cut(&mut self, onode: &mut Onode, from: u64, to: u64) -> Result<Option<(usize, u64)>> {
        let device = self.inner.device.clone();
        let read = |extent: &Extent, from: u64, to: u64| {
            let mut bytes = vec![0; (to - from) as usize];
            read_extent(&*device, extent, from, &mut bytes).map(|()| bytes)
        };
        let mut first = None;
        let mut begins = 0;
        for (index, segment) in onode.segments.iter_mut().enumerate() {
            let ends = begins + segment.length;
            let (low, high) = (from.max(begins), to.min(ends));
            if low < high {
                let at = segment.start + (low - begins);
                self.staging
                    .cut(segment.map, at, at + (high - low), &read)?;
                match (first, low == begins) {
                    // The hole's first segment keeps its length; the new data goes there.
                    (None, _) => first = Some((index, at)),
                    (Some(_), true) => {
                        segment.start += high - low;
                        segment.length -= high - low;
                    }
                    (Some(_), false) => {}
                }
            }
            begins = ends;
        }
        Ok(first)
    }

    fn write(&mut self, target: &Target, offset: u64, data: Written) -> Result<()> {
        let (id, mut onode) = self.existing(target)?;
        let size = onode.size();
        if offset > size {
            let what = "the offset of a write";
            return Err(Error::Invalid {
                what,
                found: offset,
                allowed: size,
            });
        }
        if data.is_empty() {
            return Ok(());
        }
        if offset == size {
            return self.append(target, data);
        }
        let end = offset + data.len();
        let Some((index, at)) = self.cut(&mut onode, offset, end)? else {
            return Ok(());
        };
        let segment = &mut onode.segments[index];
        let (map, reach) = (segment.map, at + data.len() - segment.start);
        segment.length = segment.length.max(reach);
        onode.modified_micros = self.now;
        onode.segments.retain(|s| s.length > 0);
        self.insert(map, at, data)?;
        self.staging.set_onode(id, &target.object, Some(onode));
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
        let mut left = size;
        let mut kept = onode.clone();
        for segment in &mut kept.segments {
            segment.length = segment.length.min(left);
            left -= segment.length;
        }
        kept.segments.retain(|s| s.length > 0);
        let gone = onode.segments.split_off(kept.segments.len());
        self.drop_segments(&gone)?;
        let reach = onode.size();
        self.cut(&mut onode, size, reach)?;
        onode.segments = kept.segments;
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

fn check_sizes(transaction: &Transaction) -> Result<()> {
    let limit = |what, found: usize, allowed: usize| {
        let (found, allowed) = (found as u64, allowed as u64);
        if found <= allowed {
            Ok(())
        } else {
            Err(Error::Invalid {
                what,
                found,
                allowed,
            })
        }
    };
    for operation in &transaction.operations {
        for target in operation.targets() {
            limit(
                "the length of an object's name",
                target.object.len(),
                MAX_NAME,
            )?;
        }
        if let Some(name) = operation.collection_only() {
            limit("the length of a collection's name", name.len(), MAX_NAME)?;
        }
        if let Some(attributes) = operation.attributes() {
            let bytes = attributes.iter().map(|(k, v)| k.len() + v.len()).sum();
            limit("the size of the attributes", bytes, MAX_ATTRIBUTES)?;
            limit(
                "the number of attributes",
                attributes.len(),
                usize::from(u16::MAX),
            )?;
        }
    }
    Ok(())
}
