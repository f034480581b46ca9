//! A transaction: conditions and operations that happen together or not at all.

use crate::step::{Attributes, Condition, Omap, OmapStep, Removal, Step, Target};
use crate::{Hashed, Written};
use std::ops::Range;

/// Operations on collections and objects, carried out in order, atomically.
///
/// Within one transaction an object may be named more than once; later operations see what earlier
/// ones did.
#[derive(Default, Debug)]
pub struct Transaction {
    pub(crate) operations: Vec<Step>,
}

fn target(collection: &str, object: impl AsRef<[u8]>) -> Target {
    Target {
        collection: collection.to_owned(),
        object: object.as_ref().into(),
    }
}

impl Transaction {
    /// A transaction without operations; committing it changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a collection with objects in order of their names; it must not exist.
    pub fn create_collection(&mut self, collection: &str, attributes: Attributes) -> &mut Self {
        self.add(Step::CreateCollection {
            collection: collection.to_owned(),
            hashed: None,
            attributes,
        })
    }

    /// Creates a collection with objects in order of their hashes. It must not exist, and no other collection of its
    /// family may cover any of its hashes.
    pub fn create_hashed_collection(
        &mut self,
        collection: &str,
        hashed: Hashed,
        attributes: Attributes,
    ) -> &mut Self {
        self.add(Step::CreateCollection {
            collection: collection.to_owned(),
            hashed: Some(hashed),
            attributes,
        })
    }

    /// Moves the upper half of a collection's hashes, and the objects that have them, to a new collection. The cost
    /// does not depend on the number of objects.
    pub fn split_collection(
        &mut self,
        collection: &str,
        into: &str,
        attributes: Attributes,
    ) -> &mut Self {
        self.add(Step::SplitCollection {
            collection: collection.to_owned(),
            into: into.to_owned(),
            attributes,
        })
    }

    /// Moves all objects of a collection to `into`, the other half of the hashes that both would cover together, and
    /// removes the collection. The cost does not depend on the number of objects.
    pub fn merge_collection(&mut self, collection: &str, into: &str) -> &mut Self {
        self.add(Step::MergeCollection {
            collection: collection.to_owned(),
            into: into.to_owned(),
        })
    }

    /// Removes a collection; it must be empty.
    pub fn remove_collection(&mut self, collection: &str) -> &mut Self {
        self.add(Step::RemoveCollection {
            collection: collection.to_owned(),
        })
    }

    /// Replaces all attributes of a collection.
    pub fn set_collection_attributes(
        &mut self,
        collection: &str,
        attributes: Attributes,
    ) -> &mut Self {
        self.add(Step::SetCollectionAttributes {
            collection: collection.to_owned(),
            attributes,
        })
    }

    /// Sets when a collection was created (Unix time in microseconds), for a copy of a collection.
    pub fn set_collection_created(&mut self, collection: &str, micros: u64) -> &mut Self {
        self.add(Step::SetCollectionCreated {
            collection: collection.to_owned(),
            micros,
        })
    }

    /// Makes the transaction fail with [`crate::Error::ConditionFailed`] unless `condition` holds.
    pub fn require(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        condition: Condition,
    ) -> &mut Self {
        self.add(Step::Require {
            target: target(collection, object),
            condition,
        })
    }

    /// Creates the object, or replaces its data and attributes.
    pub fn put(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        data: Written,
        attributes: Attributes,
    ) -> &mut Self {
        self.add(Step::Put {
            target: target(collection, object),
            data,
            attributes,
        })
    }

    /// Overwrites a range of an existing object. It may reach beyond the object's end, which then grows, but must not
    /// begin beyond it.
    pub fn write(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        offset: u64,
        data: Written,
    ) -> &mut Self {
        self.add(Step::Write {
            target: target(collection, object),
            offset,
            data,
        })
    }

    /// Appends to the object, creating it if there is none.
    pub fn append(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        data: Written,
    ) -> &mut Self {
        self.add(Step::Append {
            target: target(collection, object),
            data,
        })
    }

    /// Shortens the object to `size` bytes.
    pub fn truncate(&mut self, collection: &str, object: impl AsRef<[u8]>, size: u64) -> &mut Self {
        self.add(Step::Truncate {
            target: target(collection, object),
            size,
        })
    }

    /// Removes the object; it must exist. Damaged rows of its extents do not keep it: a repair gives back its space then.
    pub fn remove(&mut self, collection: &str, object: impl AsRef<[u8]>) -> &mut Self {
        self.add(Step::Remove {
            target: target(collection, object),
            removal: Removal::Existing,
        })
    }

    /// Removes the object if it exists.
    pub fn remove_if_present(&mut self, collection: &str, object: impl AsRef<[u8]>) -> &mut Self {
        self.add(Step::Remove {
            target: target(collection, object),
            removal: Removal::IfPresent,
        })
    }

    /// Removes the object if it exists, also if its record cannot be read: a repair gives back the space of its bytes then.
    pub fn remove_even_damaged(&mut self, collection: &str, object: impl AsRef<[u8]>) -> &mut Self {
        self.add(Step::Remove {
            target: target(collection, object),
            removal: Removal::EvenDamaged,
        })
    }

    /// Replaces all attributes of an object.
    pub fn set_attributes(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        attributes: Attributes,
    ) -> &mut Self {
        self.add(Step::SetAttributes {
            target: target(collection, object),
            attributes,
        })
    }

    /// Creates the object, without bytes, if there is none.
    pub fn touch(&mut self, collection: &str, object: impl AsRef<[u8]>) -> &mut Self {
        self.add(Step::Touch {
            target: target(collection, object),
        })
    }

    /// Sets when an object's data last changed (Unix time in microseconds), for a copy of an object.
    pub fn set_modified(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        micros: u64,
    ) -> &mut Self {
        self.add(Step::SetModified {
            target: target(collection, object),
            micros,
        })
    }

    /// Sets some attributes of an object and removes others; the rest stays.
    pub fn update_attributes(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        set: Attributes,
        remove: &[&str],
    ) -> &mut Self {
        self.add(Step::UpdateAttributes {
            target: target(collection, object),
            set,
            remove: remove.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    /// Sets keys of an object's omap.
    pub fn omap_set(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        rows: Omap,
    ) -> &mut Self {
        self.omap(collection, object, OmapStep::Set(rows))
    }

    /// Removes keys of an object's omap; keys that do not exist are skipped. Very many at once may be refused on a full
    /// drive ([`crate::Error::TransactionTooLarge`]).
    pub fn omap_remove(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        keys: &[&[u8]],
    ) -> &mut Self {
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        self.omap(collection, object, OmapStep::Remove(keys))
    }

    /// Removes the keys of an object's omap in `range`. Very many at once may be refused on a full drive
    /// ([`crate::Error::TransactionTooLarge`]), and more than 128 MiB of keys, each counted with 64 bytes more
    /// ([`crate::Error::Invalid`]). [`Self::omap_clear`] removes all keys, whatever their number.
    pub fn omap_remove_range(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        range: Range<&[u8]>,
    ) -> &mut Self {
        let step = OmapStep::RemoveRange(range.start.to_vec(), range.end.to_vec());
        self.omap(collection, object, step)
    }

    /// Removes all keys of an object's omap, in a time that does not depend on their number.
    pub fn omap_clear(&mut self, collection: &str, object: impl AsRef<[u8]>) -> &mut Self {
        self.omap(collection, object, OmapStep::Clear)
    }

    fn omap(&mut self, collection: &str, object: impl AsRef<[u8]>, step: OmapStep) -> &mut Self {
        self.add(Step::Omap {
            target: target(collection, object),
            step,
        })
    }

    /// Joins `parts` (collection, object), in order, into `object`, without copying data: the parts are removed.
    /// Replaces `object` if it exists. A part may be named only once.
    pub fn assemble(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        parts: &[(&str, impl AsRef<[u8]>)],
        attributes: Attributes,
    ) -> &mut Self {
        let parts = parts.iter().map(|(c, o)| target(c, o)).collect();
        self.add(Step::Assemble {
            target: target(collection, object),
            parts,
            attributes,
        })
    }

    /// Renames an object, also into another collection; replaces an object that has the new name.
    pub fn rename(
        &mut self,
        from: (&str, impl AsRef<[u8]>),
        to: (&str, impl AsRef<[u8]>),
    ) -> &mut Self {
        self.add(Step::Rename {
            from: target(from.0, from.1),
            to: target(to.0, to.1),
        })
    }

    /// Makes `length` bytes from `offset` on a hole, which reads as zeros and takes no space. It may reach beyond the
    /// object's end, which then grows, but must not begin beyond it.
    pub fn punch(
        &mut self,
        collection: &str,
        object: impl AsRef<[u8]>,
        offset: u64,
        length: u64,
    ) -> &mut Self {
        self.add(Step::Punch {
            target: target(collection, object),
            offset,
            length,
        })
    }

    /// Makes `to` an object with the bytes, attributes and omap of `from`, without copying data; replaces an object of
    /// that name. The omap's rows are copied in memory: more than 128 MiB of them, each counted with 64 bytes more, are
    /// refused ([`crate::Error::Invalid`]).
    pub fn clone_object(
        &mut self,
        from: (&str, impl AsRef<[u8]>),
        to: (&str, impl AsRef<[u8]>),
    ) -> &mut Self {
        self.add(Step::Clone {
            from: target(from.0, from.1),
            to: target(to.0, to.1),
        })
    }

    /// Overwrites `to` from `offset` on with the bytes `range` of `from`, without copying data. `to` is created if it
    /// does not exist; `offset` may be its end but not beyond it.
    pub fn clone_range(
        &mut self,
        from: (&str, impl AsRef<[u8]>),
        range: Range<u64>,
        to: (&str, impl AsRef<[u8]>),
        offset: u64,
    ) -> &mut Self {
        self.add(Step::CloneRange {
            from: target(from.0, from.1),
            range,
            to: target(to.0, to.1),
            offset,
        })
    }

    fn add(&mut self, operation: Step) -> &mut Self {
        self.operations.push(operation);
        self
    }
}
