//! Operations of a transaction that change collections themselves. Such a transaction excludes all others.

use crate::format::kind::Kind;
use crate::format::record::CollectionRecord;
use crate::numbers::next_number;
use crate::operations::Work;
use crate::{Attributes, Error, Hashed, Result};

impl Work<'_> {
    pub(crate) fn create_collection(
        &mut self,
        collection: String,
        hashed: Option<Hashed>,
        attributes: Attributes,
    ) -> Result<()> {
        let kind = match hashed {
            Some(hashed) => Kind::ByHash(hashed),
            None => {
                let number = self.next_collection;
                self.next_collection = next_number(number.into(), u32::MAX.into())? as u32;
                Kind::ByName(number)
            }
        };
        let unchanged = self.collections.iter();
        let unchanged = unchanged.filter(|(name, _)| !self.changed.contains_key(*name));
        let changed = self.changed.iter();
        let changed = changed.filter_map(|(name, record)| Some((name, record.as_ref()?)));
        let mut others = unchanged.chain(changed);
        if let Some((other, _)) = others.find(|(_, record)| record.kind.conflicts(&kind)) {
            let other = other.clone();
            return Err(Error::HashesTaken { collection, other });
        }
        self.add_collection(collection, kind, attributes)
    }

    fn add_collection(
        &mut self,
        collection: String,
        kind: Kind,
        attributes: Attributes,
    ) -> Result<()> {
        if self.collection(&collection).is_ok() {
            return Err(Error::CollectionExists { collection });
        }
        let record = CollectionRecord {
            kind,
            created_micros: self.now,
            attributes,
        };
        self.changed.insert(collection, Some(record));
        Ok(())
    }

    pub(crate) fn remove_collection(&mut self, collection: String) -> Result<()> {
        let kind = self.collection(&collection)?.kind;
        if self.staging.has_onodes(&kind)? {
            return Err(Error::CollectionNotEmpty { collection });
        }
        self.changed.insert(collection, None);
        Ok(())
    }

    pub(crate) fn change_collection(
        &mut self,
        collection: String,
        change: impl FnOnce(&mut CollectionRecord),
    ) -> Result<()> {
        let mut record = self.collection(&collection)?.clone();
        change(&mut record);
        self.changed.insert(collection, Some(record));
        Ok(())
    }

    /// Moves the upper half of a collection's hashes to a new collection. No onode changes its key.
    pub(crate) fn split_collection(
        &mut self,
        collection: String,
        into: String,
        attributes: Attributes,
    ) -> Result<()> {
        let (record, hashed) = self.hashed(&collection)?;
        let halves = hashed.and_then(|hashed| Some((hashed, hashed.prefix.halves()?)));
        let Some((hashed, (lower, upper))) = halves else {
            return Err(Error::CannotSplit { collection });
        };
        let half = |prefix| Kind::ByHash(Hashed { prefix, ..hashed });
        self.add_collection(into, half(upper), attributes)?;
        let kind = half(lower);
        self.changed
            .insert(collection, Some(CollectionRecord { kind, ..record }));
        Ok(())
    }

    /// Removes `collection` and adds its hashes, and so its objects, to `into`.
    pub(crate) fn merge_collection(&mut self, collection: String, into: String) -> Result<()> {
        let (_, gone) = self.hashed(&collection)?;
        let (record, stays) = self.hashed(&into)?;
        let whole = gone.zip(stays).and_then(|(gone, stays)| {
            let is_one = (gone.family, gone.source) == (stays.family, stays.source);
            let prefix = gone.prefix.whole(stays.prefix).filter(|_| is_one)?;
            Some(Hashed { prefix, ..stays })
        });
        let Some(hashed) = whole else {
            return Err(Error::CannotMerge { collection, into });
        };
        let kind = Kind::ByHash(hashed);
        self.changed.insert(collection, None);
        self.changed
            .insert(into, Some(CollectionRecord { kind, ..record }));
        Ok(())
    }

    fn hashed(&self, collection: &str) -> Result<(CollectionRecord, Option<Hashed>)> {
        let record = self.collection(collection)?.clone();
        let hashed = match record.kind {
            Kind::ByHash(hashed) => Some(hashed),
            Kind::ByName(_) => None,
        };
        Ok((record, hashed))
    }
}
