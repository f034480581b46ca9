//! What the operations of S3 share.

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

/// What every operation is handed.
#[derive(Clone)]
pub struct Gateway {
    /// Where everything is.
    pub store: Store,
    /// The way to it.
    pub blocking: Blocking,
    /// What `GetBucketLocation` answers.
    pub region: String,
    /// `http` or `https`: how its own addresses begin.
    pub scheme: &'static str,
    /// Upload ids.
    pub random: Random,
    /// What ages and dates are judged by.
    pub clock: Clock,
    /// What keeps versions of an object apart.
    pub locks: Locks,
    /// What answers tell of lifecycle rules.
    pub rules: Recent,
    /// Told when a bucket has got other lifecycle rules.
    pub rules_changed: Arc<Notify>,
}

impl Gateway {
    /// Runs a store call, errors translated.
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

/// Who owns everything.
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
