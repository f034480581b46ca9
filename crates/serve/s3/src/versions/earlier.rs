//! The versions of a key that lie beside its bucket.

use super::version::{NULL, Version, check_id, is_marker, name_of, parse_name, stem};
use crate::collections::versions_of;
use crate::errors::of_store;
use s3s::S3Result;
use store::{Listed, Store};

/// Versions of a key listed at a time.
const BATCH: usize = 1000;

/// Whether a record is not damaged. A damaged `null` version does not take the id from a newer one that was put above it.
fn is_whole(record: &store::Result<bool>) -> bool {
    !matches!(record, Err(error) if error.is_damage())
}

/// Versions of a key other than the current one.
pub struct Earlier<'a> {
    pub store: &'a Store,
    pub bucket: &'a str,
    pub key: &'a str,
}

impl Earlier<'_> {
    /// The newest versions, at most `count`, from the name `from` on. Each comes with whether it is a delete marker, or
    /// with the error of its record. Its name tells its order and its id, so that one damaged record does not keep the
    /// key from being written.
    pub fn list(
        &self,
        from: &str,
        count: usize,
    ) -> store::Result<Vec<(Version, store::Result<bool>)>> {
        let stem = stem(self.key);
        let from = if from.is_empty() { &stem } else { from };
        let found = match self
            .store
            .list_damaged(&versions_of(self.bucket), &stem, from, count)
        {
            // A salvage or a repair may have lost the collection.
            Err(store::Error::NoCollection { .. }) => Vec::new(),
            found => found?,
        };
        let version = |(name, info): Listed| {
            let (key, version) = parse_name(name.text()?)?;
            (key == self.key).then(|| (version, info.map(|info| is_marker(&info))))
        };
        Ok(found.into_iter().filter_map(version).collect())
    }

    /// The newest version.
    pub fn newest(&self) -> store::Result<Option<Version>> {
        Ok(self.list("", 1)?.pop().map(|(version, _)| version))
    }

    /// Whether a version is newer than all earlier ones, of which `newest` is the newest, and none has its id.
    pub fn has_room_for(&self, version: &Version, newest: Option<&Version>) -> store::Result<bool> {
        // Versions sort newest first.
        let is_newer = newest.is_none_or(|newest| version < newest);
        Ok(is_newer && !(version.is_null() && self.find_null(is_whole)?.is_some()))
    }

    /// The version with id `null`.
    pub fn null(&self) -> store::Result<Option<Version>> {
        self.find_null(|_| true)
    }

    /// The newest version with id `null` whose record, or its error, `counts`.
    fn find_null(
        &self,
        counts: impl Fn(&store::Result<bool>) -> bool,
    ) -> store::Result<Option<Version>> {
        let mut from = String::new();
        loop {
            let found = self.list(&from, BATCH)?;
            let is_it = |(version, record): &&(Version, _)| version.is_null() && counts(record);
            if let Some((version, _)) = found.iter().find(is_it) {
                return Ok(Some(version.clone()));
            }
            match found.last() {
                Some((last, _)) => from = name_of(self.key, last) + "\0",
                None => return Ok(None),
            }
        }
    }

    /// The name of the version with this id; `None` if there can be no such version.
    pub fn name(&self, id: &str) -> S3Result<Option<String>> {
        check_id(id)?;
        let version = match id {
            NULL => self.null().map_err(of_store)?,
            _ => Version::parse(id),
        };
        Ok(version.map(|version| name_of(self.key, &version)))
    }
}
