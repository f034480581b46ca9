//! Maps each operation of S3 to the function that carries it out.

use crate::gateway::Gateway;
use crate::{
    buckets, copy, lifecycle, multipart, object, object_listings, object_lock, removal, tagging,
    version_listings,
};
use async_trait::async_trait;
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result};

/// Delegates an operation to `module::function(gateway, request)`.
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
    put_bucket_versioning(PutBucketVersioningInput) -> PutBucketVersioningOutput = buckets::set_versioning;
    get_bucket_lifecycle_configuration(GetBucketLifecycleConfigurationInput) -> GetBucketLifecycleConfigurationOutput = lifecycle::get;
    put_bucket_lifecycle_configuration(PutBucketLifecycleConfigurationInput) -> PutBucketLifecycleConfigurationOutput = lifecycle::put;
    delete_bucket_lifecycle(DeleteBucketLifecycleInput) -> DeleteBucketLifecycleOutput = lifecycle::delete;
    get_object_lock_configuration(GetObjectLockConfigurationInput) -> GetObjectLockConfigurationOutput = object_lock::get_configuration;
    put_object_lock_configuration(PutObjectLockConfigurationInput) -> PutObjectLockConfigurationOutput = object_lock::put_configuration;
    list_objects(ListObjectsInput) -> ListObjectsOutput = object_listings::list_objects;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output = object_listings::list_objects_v2;
    list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput = version_listings::list_versions;
    put_object(PutObjectInput) -> PutObjectOutput = object::put;
    get_object(GetObjectInput) -> GetObjectOutput = object::get;
    head_object(HeadObjectInput) -> HeadObjectOutput = object::head;
    get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput = object::describe;
    delete_object(DeleteObjectInput) -> DeleteObjectOutput = removal::delete;
    delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput = removal::delete_many;
    get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput = tagging::get;
    put_object_tagging(PutObjectTaggingInput) -> PutObjectTaggingOutput = tagging::put;
    delete_object_tagging(DeleteObjectTaggingInput) -> DeleteObjectTaggingOutput = tagging::delete;
    get_object_retention(GetObjectRetentionInput) -> GetObjectRetentionOutput = object_lock::get_retention;
    put_object_retention(PutObjectRetentionInput) -> PutObjectRetentionOutput = object_lock::put_retention;
    get_object_legal_hold(GetObjectLegalHoldInput) -> GetObjectLegalHoldOutput = object_lock::get_legal_hold;
    put_object_legal_hold(PutObjectLegalHoldInput) -> PutObjectLegalHoldOutput = object_lock::put_legal_hold;
    copy_object(CopyObjectInput) -> CopyObjectOutput = copy::object;
    upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput = copy::part;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput = multipart::create;
    upload_part(UploadPartInput) -> UploadPartOutput = multipart::upload_part;
    list_parts(ListPartsInput) -> ListPartsOutput = multipart::list_parts;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput = multipart::complete;
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput = multipart::abort;
    list_multipart_uploads(ListMultipartUploadsInput) -> ListMultipartUploadsOutput = multipart::list_uploads;
}
