//! State that all operations of S3 share.

use crate::attributes;
use crate::config::{Clock, Random};
use crate::errors::not_run;
use crate::lifecycle_rules::Recent;
use crate::versions::Locks;
use objects::Blocking;
use s3s::S3Result;
use s3s::dto::*;
use std::sync::Arc;
use store::Store;
use tokio::sync::Notify;

/// State that every operation gets.
#[derive(Clone)]
pub struct Gateway {
    /// The store with all buckets.
    pub store: Store,
    /// Runs store calls on threads that may block.
    pub blocking: Blocking,
    /// The region of all buckets.
    pub region: String,
    /// `http` or `https`: scheme of the server's own addresses.
    pub scheme: &'static str,
    /// Source of upload ids.
    pub random: Random,
    /// Clock for ages, dates and locks.
    pub clock: Clock,
    /// Serialises changes of an object's versions.
    pub locks: Locks,
    /// Recently used lifecycle rules, for answers.
    pub rules: Recent,
    /// Notified when a bucket's lifecycle rules change.
    pub rules_changed: Arc<Notify>,
}

impl Gateway {
    /// Runs a store call on a thread that may block, and translates its errors.
    pub async fn call<T, F>(&self, call: F) -> S3Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Store) -> S3Result<T> + Send + 'static,
    {
        let store = self.store.clone();
        let done = self.blocking.run(move || call(&store)).await;
        done.unwrap_or_else(|why| Err(not_run(why)))
    }
}

/// Id of the owner of all buckets and objects.
pub const OWNER: &str = "zonestore";

/// The owner of everything.
pub fn owner() -> Owner {
    Owner {
        display_name: Some(OWNER.to_owned()),
        id: Some(OWNER.to_owned()),
    }
}

/// Puts a checksum into the fields of that name of an output.
macro_rules! set_checksum {
    ($output:expr, $checksum:expr) => {
        if let Some(checksum) = $checksum {
            let text = Some(checksum.text.clone());
            match checksum.algorithm {
                // None of S3's checksums.
                objects::digest::Algorithm::Md5 => {}
                objects::digest::Algorithm::Crc32 => $output.checksum_crc32 = text,
                objects::digest::Algorithm::Crc32c => $output.checksum_crc32c = text,
                objects::digest::Algorithm::Crc64Nvme => $output.checksum_crc64nvme = text,
                objects::digest::Algorithm::Sha1 => $output.checksum_sha1 = text,
                objects::digest::Algorithm::Sha256 => $output.checksum_sha256 = text,
            }
        }
    };
}
pub(crate) use set_checksum;

/// The algorithm and the type of a checksum, for listings.
pub fn checksum_names(
    checksum: Option<&attributes::Checksum>,
) -> (Option<ChecksumAlgorithmList>, Option<ChecksumType>) {
    let names = checksum.map(|checksum| {
        let algorithm = ChecksumAlgorithm::from(checksum.algorithm.name().to_owned());
        (vec![algorithm], checksum_type(checksum))
    });
    names.unzip()
}

/// The type of a checksum, for outputs that tell it.
pub fn checksum_type(checksum: &attributes::Checksum) -> ChecksumType {
    ChecksumType::from_static(if checksum.is_composite() {
        ChecksumType::COMPOSITE
    } else {
        ChecksumType::FULL_OBJECT
    })
}
