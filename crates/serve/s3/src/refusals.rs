//! Refuses requests for features that are not implemented, which are never just ignored.

use http::HeaderMap;
use s3s::dto::*;
use s3s::{S3Result, s3_error};

/// Most bytes of user metadata, names and values together.
const MAX_METADATA_BYTES: usize = 2048;

/// Refuses a request that uses one of these features.
pub fn refuse(features: &[(bool, &str)]) -> S3Result<()> {
    match features.iter().find(|(used, _)| *used) {
        None => Ok(()),
        Some((_, name)) => Err(s3_error!(NotImplemented, "{name} is not implemented")),
    }
}

/// Refuses another object's metadata for an upload, where there is none. Clients send the directive of a copy here, too: for a
/// copy in parts, or for a file that gets other data together with other metadata.
pub fn refuse_others_metadata(headers: &HeaderMap) -> S3Result<()> {
    let directive = headers.get("x-amz-metadata-directive");
    let is_other = directive.is_some_and(|said| said != MetadataDirective::REPLACE);
    refuse(&[(is_other, "An upload with another object's metadata")])
}

/// Refuses a checksum of parts for an object that is put in one request.
pub fn refuse_parts_checksum(headers: &HeaderMap) -> S3Result<()> {
    match headers.get("x-amz-checksum-type") {
        Some(kind) if kind != ChecksumType::FULL_OBJECT => Err(s3_error!(
            InvalidRequest,
            "The checksum type of an object that is put in one request is {}",
            ChecksumType::FULL_OBJECT
        )),
        _ => Ok(()),
    }
}

/// Refuses storage classes other than the one there is.
pub fn refuse_class(class: Option<&StorageClass>) -> S3Result<()> {
    match class.map(|class| class.as_str()) {
        None | Some(StorageClass::STANDARD) => Ok(()),
        Some(_) => Err(s3_error!(
            InvalidStorageClass,
            "The storage class you specified is not valid"
        )),
    }
}

/// Refuses access control lists: there is only one owner.
pub fn refuse_acl(acl: Option<&str>, grants: [bool; 4]) -> S3Result<()> {
    let plain = matches!(acl, None | Some("private" | "bucket-owner-full-control"));
    if plain && grants == [false; 4] {
        return Ok(());
    }
    Err(s3_error!(
        AccessControlListNotSupported,
        "The bucket does not allow ACLs"
    ))
}

/// Refuses more than [`MAX_METADATA_BYTES`] of user metadata.
pub fn check_metadata(metadata: Option<&Metadata>) -> S3Result<()> {
    let bytes = metadata.map_or(0, |m| {
        m.iter().map(|(name, value)| name.len() + value.len()).sum()
    });
    if bytes > MAX_METADATA_BYTES {
        return Err(s3_error!(
            MetadataTooLarge,
            "Your metadata headers are {bytes} bytes; {MAX_METADATA_BYTES} are allowed"
        ));
    }
    Ok(())
}

/// Refuses storage classes, access control lists and other features in the fields of an input.
macro_rules! refuse_features {
    ($input:expr) => {{
        let input = &$input;
        $crate::refusals::refuse_class(input.storage_class.as_ref())?;
        $crate::refusals::refuse_acl(
            input.acl.as_ref().map(|acl| acl.as_str()),
            [
                input.grant_full_control.is_some(),
                input.grant_read.is_some(),
                input.grant_read_acp.is_some(),
                input.grant_write_acp.is_some(),
            ],
        )?;
    }};
}
pub(crate) use refuse_features;
