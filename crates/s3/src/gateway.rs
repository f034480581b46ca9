//! The operations of S3, each handed to its room.

use crate::blocking::Blocking;
use crate::config::Random;
use crate::{attributes, buckets, copy, multipart, objects, removal};
use async_trait::async_trait;
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result};
use store::Store;

/// What the rooms share.
#[derive(Clone)]
pub struct Gateway {
    /// Where everything is.
    pub store: Store,
    /// The way to it.
    pub blocking: Blocking,
    /// What `GetBucketLocation` answers.
    pub region: String,
    /// Upload ids.
    pub random: Random,
}

impl Gateway {
    /// Runs a store call, errors translated.
    pub async fn call<T, F>(&self, call: F) -> S3Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Store) -> S3Result<T> + Send + 'static,
    {
        let store = self.store.clone();
        self.blocking.run(move || call(&store)).await
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

/// Delegates an operation to `room::function(gateway, request)`.
macro_rules! operations {
    ($($name:ident($input:ident) -> $output:ident = $function:path;)*) => {
        #[async_trait]
        impl S3 for Gateway {
            $(
                async fn $name(&self, request: S3Request<$input>) -> S3Result<S3Response<$output>> {
                    $function(self, request).await
                }
            )*
        }
    };
}

operations! {
    create_bucket(CreateBucketInput) -> CreateBucketOutput = buckets::create;
    delete_bucket(DeleteBucketInput) -> DeleteBucketOutput = buckets::delete;
    head_bucket(HeadBucketInput) -> HeadBucketOutput = buckets::head;
    list_buckets(ListBucketsInput) -> ListBucketsOutput = buckets::list;
    get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput = buckets::location;
    get_bucket_versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput = buckets::versioning;
    list_objects(ListObjectsInput) -> ListObjectsOutput = buckets::list_objects;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output = buckets::list_objects_v2;
    list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput = buckets::list_versions;
    put_object(PutObjectInput) -> PutObjectOutput = objects::put;
    get_object(GetObjectInput) -> GetObjectOutput = objects::get;
    head_object(HeadObjectInput) -> HeadObjectOutput = objects::head;
    get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput = objects::describe;
    delete_object(DeleteObjectInput) -> DeleteObjectOutput = removal::delete;
    delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput = removal::delete_many;
    copy_object(CopyObjectInput) -> CopyObjectOutput = copy::object;
    upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput = copy::part;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput = multipart::create;
    upload_part(UploadPartInput) -> UploadPartOutput = multipart::upload_part;
    list_parts(ListPartsInput) -> ListPartsOutput = multipart::list_parts;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput = multipart::complete;
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput = multipart::abort;
    list_multipart_uploads(ListMultipartUploadsInput) -> ListMultipartUploadsOutput = multipart::list_uploads;
}

/// Puts a checksum into the fields of that name of an output.
macro_rules! set_checksum {
    ($output:expr, $checksum:expr) => {
        if let Some(checksum) = $checksum {
            let text = Some(checksum.text.clone());
            match checksum.algorithm {
                $crate::digest::Algorithm::Crc32 => $output.checksum_crc32 = text,
                $crate::digest::Algorithm::Crc32c => $output.checksum_crc32c = text,
                $crate::digest::Algorithm::Crc64Nvme => $output.checksum_crc64nvme = text,
                $crate::digest::Algorithm::Sha1 => $output.checksum_sha1 = text,
                $crate::digest::Algorithm::Sha256 => $output.checksum_sha256 = text,
            }
        }
    };
}
pub(crate) use set_checksum;

/// The type of a checksum, for outputs that tell it.
pub fn checksum_type(checksum: &attributes::Checksum) -> ChecksumType {
    ChecksumType::from_static(if checksum.is_composite() {
        ChecksumType::COMPOSITE
    } else {
        ChecksumType::FULL_OBJECT
    })
}
