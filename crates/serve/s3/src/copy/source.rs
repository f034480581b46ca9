//! What is copied: a version of an object.

use crate::attributes::{Checksum, ObjectAttributes};
use crate::collections;
use crate::conditions::{Preconditions, Verdict};
use crate::errors::{of_read, of_store, precondition_failed};
use crate::gateway::Gateway;
use crate::object::Object;
use crate::upload::MAX_PUT_BYTES;
use objects::digest::{Algorithm, Digester, Digests};
use objects::read_piece;
use s3s::{S3Result, s3_error};
use std::ops;
use std::sync::Arc;
use store::{Condition, ObjectReader, Store, Transaction};

/// The source of a copy: one version of it.
pub struct Source {
    bucket: String,
    key: String,
    reader: Arc<ObjectReader>,
    pub object: Object,
}

impl Source {
    /// Whether the digests of all its bytes are known.
    fn has_digests(&self, algorithm: Option<Algorithm>) -> bool {
        let ObjectAttributes { etag, checksum, .. } = &self.object.attributes;
        let is_known = |wanted| {
            let checksum = checksum.as_ref().filter(|sum| !sum.is_composite());
            checksum.is_some_and(|sum| sum.algorithm == wanted)
        };
        // That of parts, and one that is made up, have a dash.
        !etag.contains('-') && algorithm.is_none_or(is_known)
    }

    /// What an object with these bytes of it is described by, apart from its content.
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

    /// Lets `transaction` make an object of these bytes, without writing them anew, if this is still the
    /// version of the source that counts.
    pub fn put(
        &self,
        transaction: &mut Transaction,
        range: ops::Range<u64>,
        (collection, name): (&str, &str),
    ) {
        let from = (&*self.bucket, &*self.key);
        self.require(transaction);
        if (collection, name) != from {
            transaction.remove_if_present(collection, name).clone_range(
                from,
                range,
                (collection, name),
                0,
            );
        }
    }

    fn require(&self, transaction: &mut Transaction) {
        let condition = Condition::ModifiedAt(self.object.modified_micros);
        transaction.require(&self.bucket, &self.key, condition);
    }

    /// Whether a commit failed because the source has been replaced.
    pub fn is_gone(&self, error: &store::Error) -> bool {
        matches!(error, store::Error::ConditionFailed { collection, object }
            if *collection == self.bucket && **object == *self.key.as_bytes())
    }
}

/// Opens a version, if the client wants it.
pub fn open(
    store: &Store,
    (bucket, key): (&str, &str),
    preconditions: &Preconditions,
) -> S3Result<Source> {
    collections::require(store, bucket)?;
    let reader = store.open(bucket, key).map_err(of_store)?;
    let object = Object::of(reader.info());
    match object.judge(preconditions) {
        Verdict::Proceed => Ok(Source {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            reader: Arc::new(reader),
            object,
        }),
        Verdict::NotModified | Verdict::Failed => Err(precondition_failed()),
    }
}

/// The digests of what is read; if the client goes away, that ends with the next piece.
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
