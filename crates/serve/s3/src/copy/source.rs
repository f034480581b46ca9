//! The source of a copy: a version of an object.

use crate::attributes::{Checksum, ObjectAttributes, TAGS};
use crate::collections;
use crate::conditions::{Preconditions, Verdict};
use crate::errors::{of_read, precondition_failed};
use crate::gateway::Gateway;
use crate::object::Object;
use crate::upload::MAX_PUT_BYTES;
use crate::versions;
use objects::digest::{Algorithm, Digester, Digests};
use objects::read_piece;
use s3s::{S3Result, s3_error};
use std::ops;
use std::sync::Arc;
use store::{Condition, ObjectReader, Store, Transaction};

/// A version of an object: bucket, key and, unless it is the current one, its id.
pub type Located = (String, String, Option<String>);

/// An opened source of a copy.
pub struct Source {
    bucket: String,
    collection: String,
    name: String,
    /// Id of the version, if the bucket has ever kept versions.
    pub id: Option<String>,
    reader: Arc<ObjectReader>,
    pub object: Object,
}

impl Source {
    /// Whether the attributes have all digests of its bytes that a copy needs.
    fn has_digests(&self, algorithm: Option<Algorithm>) -> bool {
        let ObjectAttributes { etag, checksum, .. } = &self.object.attributes;
        let is_known = |wanted| {
            let checksum = checksum.as_ref().filter(|sum| !sum.is_composite());
            checksum.is_some_and(|sum| sum.algorithm == wanted)
        };
        // Entity tags of multipart objects, and those made of size and time, contain a dash.
        !etag.contains('-') && algorithm.is_none_or(is_known)
    }

    /// Entity tag and checksum of an object with these bytes of the source; other attributes are left empty.
    pub async fn describe(
        &self,
        gateway: &Gateway,
        range: &ops::Range<u64>,
        algorithm: Option<Algorithm>,
    ) -> S3Result<ObjectAttributes> {
        let length = range.end - range.start;
        if length > MAX_PUT_BYTES {
            return Err(s3_error!(
                InvalidRequest,
                "The specified copy source is larger than the maximum allowable size for a copy \
                 source: {MAX_PUT_BYTES}"
            ));
        }
        let (etag, checksum) = if length == self.object.size && self.has_digests(algorithm) {
            let attributes = &self.object.attributes;
            let checksum = attributes.checksum.clone().filter(|_| algorithm.is_some());
            (attributes.etag.clone(), checksum)
        } else {
            let digests = digests(gateway, &self.reader, range.clone(), algorithm).await?;
            let checksum = kept_checksum(algorithm, &digests);
            (digests.hex(Algorithm::Md5), checksum)
        };
        Ok(ObjectAttributes {
            etag,
            checksum,
            ..Default::default()
        })
    }

    /// Adds to `transaction` an object of these bytes, which shares them with the source. If the object that it
    /// replaces is kept, it has been `moved` to `.versions/BUCKET` before, and may be the source. If the source is
    /// that object and not kept, its bytes stay, and its time becomes `now`, or later than it was: for whoever has
    /// described it before, it is another object.
    pub fn put(
        &self,
        transaction: &mut Transaction,
        range: ops::Range<u64>,
        to: (&str, &str),
        moved: Option<String>,
        now: u64,
    ) {
        let versions = collections::versions_of(&self.bucket);
        let is_there = (&*self.collection, &*self.name) == to;
        let from = match &moved {
            Some(moved) if is_there => (&*versions, &**moved),
            _ if is_there => {
                let later = self.object.modified_micros.saturating_add(1);
                transaction.set_modified(to.0, to.1, now.max(later));
                return;
            }
            _ => (&*self.collection, &*self.name),
        };
        let (collection, name) = to;
        let replaced = transaction.remove_if_present(collection, name);
        replaced.clone_range(from, range, to, 0);
    }

    /// Makes `transaction` require that the source was not replaced.
    pub fn require(&self, transaction: &mut Transaction) {
        let condition = Condition::ModifiedAt(self.object.modified_micros);
        transaction.require(&self.collection, &self.name, condition);
    }

    /// Makes `transaction` require that the source has the tags that it had: other tags do not make it another object.
    pub fn require_tags(&self, transaction: &mut Transaction) {
        let tags = self.reader.info().attributes.get(TAGS).cloned();
        let condition = match tags {
            Some(tags) => Condition::AttributeIs(TAGS.to_owned(), tags),
            None => Condition::AttributeMissing(TAGS.to_owned()),
        };
        transaction.require(&self.collection, &self.name, condition);
    }

    /// Whether a commit failed because the source was replaced, or has other tags.
    pub fn is_gone(&self, error: &store::Error) -> bool {
        matches!(error, store::Error::ConditionFailed { collection, object }
            if *collection == self.collection && **object == *self.name.as_bytes())
    }
}

/// Opens a version, if it meets the conditions.
pub fn open(
    store: &Store,
    (bucket, key, version): &Located,
    preconditions: &Preconditions,
) -> S3Result<Source> {
    let found = versions::open(store, bucket, key, version.as_deref())?;
    let reader = found.found;
    let object = Object::of(reader.info());
    match object.judge(preconditions) {
        Verdict::Proceed => Ok(Source {
            bucket: bucket.to_owned(),
            collection: found.collection,
            name: found.name,
            id: found.id,
            reader: Arc::new(reader),
            object,
        }),
        Verdict::NotModified | Verdict::Failed => Err(precondition_failed()),
    }
}

/// Digests of a range. If the server closes the connection, this ends after the current piece; that a client has gone
/// away is noticed when it is answered.
async fn digests(
    gateway: &Gateway,
    reader: &Arc<ObjectReader>,
    mut range: ops::Range<u64>,
    algorithm: Option<Algorithm>,
) -> S3Result<Digests> {
    let mut digester = Digester::new(algorithm.into_iter().chain([Algorithm::Md5]));
    while !range.is_empty() {
        let (reader, rest) = (reader.clone(), range.clone());
        let step = move |_: &Store| {
            let piece = read_piece(&reader, &rest).map_err(of_read)?;
            digester.update(&piece);
            Ok((digester, piece.len() as u64))
        };
        let read;
        (digester, read) = gateway.call(step).await?;
        range.start += read;
    }
    Ok(digester.finish())
}

fn kept_checksum(algorithm: Option<Algorithm>, digests: &Digests) -> Option<Checksum> {
    let algorithm = algorithm?;
    digests
        .value(algorithm)
        .map(|value| Checksum::full(algorithm, value))
}
