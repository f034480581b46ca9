//! The operations of S3 that are implemented, each with the query parameters and headers that it knows.
//!
//! In S3, a name in the query selects the operation (`PUT key?renameObject`) and headers change what it does. A
//! server that knows neither would carry out the plain operation instead, which overwrites or deletes. So an
//! operation is carried out only if it knows every name in the request that may be meant for it; other requests are
//! refused before their body is read.

use crate::model::{PARAMETERS, Resource, SUBRESOURCES};
use crate::rights::{Need, Right};
use http::{HeaderMap, Method};
use s3s::path::S3Path;
use s3s::{S3Error, S3Result, s3_error};

/// Memory that a request needs, by kind; requests wait for permits of their kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Almost none.
    Free,
    /// A document as its body or its answer.
    Document,
    /// Object data received.
    Upload,
    /// Object data sent.
    Download,
}

/// An operation.
#[derive(Debug)]
pub struct Operation {
    /// The operation's name in S3.
    pub name: &'static str,
    /// Rights that the caller's key needs.
    pub need: Need,
    /// Kind of memory that it needs.
    pub cost: Cost,
    /// Query parameters that it knows.
    query: &'static [&'static str],
    /// Conditions and `x-amz-` headers that it knows, besides [`COMMON`]. A name that ends in a dash stands for all
    /// names with this prefix.
    headers: &'static [&'static str],
}

/// Headers of every operation. The last five are ignored: the one owner pays, sessions have other keys, and the rest
/// describes the client.
const COMMON: &[&str] = &[
    "x-amz-checksum-crc32",
    "x-amz-checksum-crc32c",
    "x-amz-checksum-crc64nvme",
    "x-amz-checksum-sha1",
    "x-amz-checksum-sha256",
    "x-amz-content-sha256",
    "x-amz-date",
    "x-amz-decoded-content-length",
    "x-amz-expected-bucket-owner",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-trailer",
    "x-amz-api-version",
    "x-amz-request-payer",
    "x-amz-security-token",
    "x-amz-te",
    "x-amz-user-agent",
];

/// Headers that may be repeated; of any other, the second value would be lost. S3 joins the values of a line of user
/// metadata with commas; `s3s` refuses them.
const LISTS: &[&str] = &[
    "x-amz-object-attributes",
    "x-amz-optional-object-attributes",
    "x-amz-trailer",
];

/// Headers that may be empty, because an empty value has a meaning or the header is ignored.
const MAY_BE_EMPTY: &[&str] = &[
    "x-amz-meta-",
    "x-amz-security-token",
    "x-amz-tagging",
    "x-amz-te",
    "x-amz-user-agent",
];

/// Conditions of HTTP. A read that ignores one answers more than it has to; a write that ignores one overwrites.
const CONDITIONS: &[&str] = &[
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
];

const READS: Need = Need::One(Right::Read);
const WRITES: Need = Need::One(Right::Write);
const LISTS_OBJECTS: Need = Need::One(Right::List);
const ADMINISTERS: Need = Need::One(Right::Admin);

/// All implemented operations.
#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    Operation { name: "AbortMultipartUpload", need: WRITES, cost: Cost::Document, query: &["uploadId"], headers: &[] },
    Operation { name: "CompleteMultipartUpload", need: WRITES, cost: Cost::Document, query: &["uploadId"], headers: &[
        "if-match", "if-none-match", "x-amz-checksum-type", "x-amz-mp-object-size",
    ] },
    Operation { name: "CopyObject", need: WRITES, cost: Cost::Upload, query: &[], headers: &[
        "if-match", "if-none-match",
        "x-amz-acl", "x-amz-grant-", "x-amz-meta-", "x-amz-storage-class",
        "x-amz-checksum-algorithm", "x-amz-metadata-directive",
        "x-amz-tagging", "x-amz-tagging-directive",
        "x-amz-object-lock-legal-hold", "x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date",
        // There are no annotations to copy or to leave out.
        "x-amz-object-annotation-directive",
        "x-amz-copy-source", "x-amz-copy-source-if-match", "x-amz-copy-source-if-modified-since",
        "x-amz-copy-source-if-none-match", "x-amz-copy-source-if-unmodified-since",
        "x-amz-source-expected-bucket-owner",
    ] },
    Operation { name: "CreateBucket", need: ADMINISTERS, cost: Cost::Document, query: &[], headers: &[
        "x-amz-acl", "x-amz-grant-", "x-amz-bucket-object-lock-enabled", "x-amz-object-ownership",
    ] },
    Operation { name: "CreateMultipartUpload", need: WRITES, cost: Cost::Free, query: &["uploads"], headers: &[
        "x-amz-acl", "x-amz-grant-", "x-amz-meta-", "x-amz-storage-class", "x-amz-tagging",
        "x-amz-checksum-algorithm", "x-amz-checksum-type", "x-amz-metadata-directive",
        "x-amz-object-lock-legal-hold", "x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date",
    ] },
    Operation { name: "DeleteBucket", need: ADMINISTERS, cost: Cost::Document, query: &[], headers: &[] },
    Operation { name: "DeleteBucketLifecycle", need: ADMINISTERS, cost: Cost::Document, query: &["lifecycle"], headers: &[] },
    Operation { name: "DeleteObject", need: WRITES, cost: Cost::Free, query: &["versionId"], headers: &[
        "if-match", "x-amz-bypass-governance-retention",
    ] },
    Operation { name: "DeleteObjectTagging", need: WRITES, cost: Cost::Free, query: &["tagging", "versionId"], headers: &[] },
    Operation { name: "DeleteObjects", need: WRITES, cost: Cost::Document, query: &["delete"], headers: &[
        "x-amz-bypass-governance-retention",
    ] },
    Operation { name: "GetBucketLifecycleConfiguration", need: Need::Any, cost: Cost::Document, query: &["lifecycle"], headers: &[] },
    Operation { name: "GetBucketLocation", need: Need::Any, cost: Cost::Free, query: &["location"], headers: &[] },
    Operation { name: "GetBucketVersioning", need: Need::Any, cost: Cost::Free, query: &["versioning"], headers: &[] },
    Operation { name: "GetObject", need: READS, cost: Cost::Download, query: READ, headers: &["x-amz-checksum-mode"] },
    Operation { name: "GetObjectAttributes", need: READS, cost: Cost::Free, query: &["attributes", "versionId"], headers: &[
        "x-amz-object-attributes", "x-amz-max-parts", "x-amz-part-number-marker",
    ] },
    Operation { name: "GetObjectLegalHold", need: READS, cost: Cost::Free, query: &["legal-hold", "versionId"], headers: &[] },
    Operation { name: "GetObjectLockConfiguration", need: Need::Any, cost: Cost::Free, query: &["object-lock"], headers: &[] },
    Operation { name: "GetObjectRetention", need: READS, cost: Cost::Free, query: &["retention", "versionId"], headers: &[] },
    Operation { name: "GetObjectTagging", need: READS, cost: Cost::Free, query: &["tagging", "versionId"], headers: &[] },
    Operation { name: "HeadBucket", need: Need::Any, cost: Cost::Free, query: &[], headers: &[] },
    Operation { name: "HeadObject", need: READS, cost: Cost::Free, query: READ, headers: &["x-amz-checksum-mode"] },
    Operation { name: "ListBuckets", need: Need::Key, cost: Cost::Document, query: &[
        "bucket-region", "continuation-token", "max-buckets", "prefix",
    ], headers: &[] },
    Operation { name: "ListMultipartUploads", need: LISTS_OBJECTS, cost: Cost::Document, query: &[
        "uploads", "delimiter", "encoding-type", "key-marker", "max-uploads", "prefix", "upload-id-marker",
    ], headers: &[] },
    Operation { name: "ListObjectVersions", need: LISTS_OBJECTS, cost: Cost::Document, query: &[
        "versions", "delimiter", "encoding-type", "key-marker", "max-keys", "prefix", "version-id-marker",
    ], headers: OPTIONAL },
    Operation { name: "ListObjects", need: LISTS_OBJECTS, cost: Cost::Document, query: &[
        "delimiter", "encoding-type", "marker", "max-keys", "prefix",
    ], headers: OPTIONAL },
    Operation { name: "ListObjectsV2", need: LISTS_OBJECTS, cost: Cost::Document, query: &[
        "list-type", "continuation-token", "delimiter", "encoding-type", "fetch-owner", "max-keys", "prefix",
        "start-after",
    ], headers: OPTIONAL },
    Operation { name: "ListParts", need: WRITES, cost: Cost::Document, query: &["uploadId", "max-parts", "part-number-marker"], headers: &[] },
    // The header concerns transitions, which no rule may have.
    Operation { name: "PutBucketLifecycleConfiguration", need: ADMINISTERS, cost: Cost::Document, query: &["lifecycle"], headers: &[
        "x-amz-transition-default-minimum-object-size",
    ] },
    Operation { name: "PutBucketVersioning", need: ADMINISTERS, cost: Cost::Document, query: &["versioning"], headers: &[] },
    Operation { name: "PutObject", need: WRITES, cost: Cost::Upload, query: &[], headers: &[
        "if-match", "if-none-match", "x-amz-acl", "x-amz-grant-", "x-amz-meta-", "x-amz-storage-class", "x-amz-tagging",
        // Of other operations, but there are clients that send them with this one.
        "x-amz-checksum-algorithm", "x-amz-checksum-type", "x-amz-metadata-directive",
        "x-amz-object-lock-legal-hold", "x-amz-object-lock-mode", "x-amz-object-lock-retain-until-date",
    ] },
    // Requests that set a lock. To weaken one, the key also has to administer the bucket.
    Operation { name: "PutObjectLegalHold", need: WRITES, cost: Cost::Document, query: &["legal-hold", "versionId"], headers: &[] },
    Operation { name: "PutObjectLockConfiguration", need: ADMINISTERS, cost: Cost::Document, query: &["object-lock"], headers: &[] },
    Operation { name: "PutObjectRetention", need: WRITES, cost: Cost::Document, query: &["retention", "versionId"], headers: &[
        "x-amz-bypass-governance-retention",
    ] },
    Operation { name: "PutObjectTagging", need: WRITES, cost: Cost::Document, query: &["tagging", "versionId"], headers: &[] },
    Operation { name: "UploadPart", need: WRITES, cost: Cost::Upload, query: &["partNumber", "uploadId"], headers: &["x-amz-checksum-algorithm"] },
    Operation { name: "UploadPartCopy", need: WRITES, cost: Cost::Upload, query: &["partNumber", "uploadId"], headers: &[
        "x-amz-copy-source", "x-amz-copy-source-if-match", "x-amz-copy-source-if-modified-since",
        "x-amz-copy-source-if-none-match", "x-amz-copy-source-if-unmodified-since", "x-amz-copy-source-range",
        "x-amz-source-expected-bucket-owner",
    ] },
];

/// Query parameters of GetObject and HeadObject.
const READ: &[&str] = &[
    "partNumber",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "versionId",
];

/// Header that asks listings for the state of restores; nothing is ever archived here.
const OPTIONAL: &[&str] = &["x-amz-optional-object-attributes"];

impl Operation {
    /// The operation in words for the audit log, if it is an administrative act.
    pub fn act(&self) -> Option<&'static str> {
        match self.name {
            "CreateBucket" => Some("bucket made"),
            "DeleteBucket" => Some("bucket removed"),
            "DeleteBucketLifecycle" => Some("lifecycle rules removed"),
            "PutBucketLifecycleConfiguration" => Some("lifecycle rules set"),
            "PutBucketVersioning" => Some("versioning set"),
            "PutObjectLegalHold" => Some("legal hold set"),
            "PutObjectLockConfiguration" => Some("object lock set"),
            "PutObjectRetention" => Some("retention set"),
            _ => None,
        }
    }
}

/// The operation of this name, if it is implemented.
pub fn by_name(name: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.name == name)
}

/// The operation of this name, if it knows every parameter and header of the request that may be meant for it.
pub fn admit(
    name: &str,
    method: &Method,
    path: &S3Path,
    query: &str,
    headers: &HeaderMap,
    owner: &str,
) -> S3Result<&'static Operation> {
    let operation = by_name(name);
    let known = operation.map_or(&[][..], |operation| operation.query);
    check_query(known, method, path, query)?;
    let Some(operation) = operation else {
        return Err(s3_error!(NotImplemented, "{name} is not implemented"));
    };
    check_headers(operation, method, headers)?;
    check_owner(headers, owner)?;
    Ok(operation)
}

/// Parameters that S3 does not know are ignored as S3 does, such as the `x-id` of its clients. A name without a value
/// is refused: it selects an operation that S3 has today or may have later.
fn check_query(known: &[&str], method: &Method, path: &S3Path, query: &str) -> S3Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if is_amz(name.as_bytes()) || name == "x-id" {
            // Part of the signature, or already made a header.
            continue;
        }
        if let Some(known) = known.iter().find(|known| **known == name) {
            if seen.contains(known) {
                return Err(s3_error!(
                    InvalidArgument,
                    "The parameter {name} is there more than once"
                ));
            }
            seen.push(known);
        } else if value.is_empty() || is_of_s3(&name) {
            let what = meant(method, path, &name).map_or_else(
                || format!("{name} in the query of a {method} of this resource"),
                str::to_owned,
            );
            return Err(s3_error!(NotImplemented, "{what} is not implemented"));
        }
    }
    Ok(())
}

/// Whether S3 has this name anywhere, in any spelling: `?PartNumber=1` is meant for S3, too.
fn is_of_s3(name: &str) -> bool {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    SUBRESOURCES.iter().any(|(_, _, known, _)| same(known))
        || PARAMETERS.iter().any(|known| same(known))
}

/// Whether a PUT to an object with this name in its query has another body than the object's data.
pub fn puts_no_data(name: &str) -> bool {
    let of_object = |(method, on, known, _): &(&str, Resource, &str, &str)| {
        (*method, *on, *known) == ("PUT", Resource::Object, name)
    };
    SUBRESOURCES.iter().any(of_object)
}

/// The operation that a sub-resource selects.
fn meant(method: &Method, path: &S3Path, name: &str) -> Option<&'static str> {
    let resource = match path {
        S3Path::Root => Resource::Root,
        S3Path::Bucket { .. } => Resource::Bucket,
        S3Path::Object { .. } => Resource::Object,
    };
    SUBRESOURCES
        .iter()
        .find(|(of, on, known, _)| *of == method.as_str() && *on == resource && *known == name)
        .map(|(_, _, _, operation)| *operation)
}

/// Whether this is a header of S3, or the query parameter that replaces one in a presigned URL.
pub fn is_amz(name: &[u8]) -> bool {
    name.len() >= 6 && name[..6].eq_ignore_ascii_case(b"x-amz-")
}

fn is_in(names: &[&str], name: &str) -> bool {
    names
        .iter()
        .any(|known| *known == name || (known.ends_with('-') && name.starts_with(known)))
}

fn check_headers(operation: &Operation, method: &Method, headers: &HeaderMap) -> S3Result<()> {
    let writes = method != Method::GET && method != Method::HEAD;
    if writes && headers.contains_key(http::header::CONTENT_RANGE) {
        // The body is a part of an object, and would replace the whole object.
        return Err(s3_error!(
            InvalidRequest,
            "Content-Range has no place in a request that writes"
        ));
    }
    for name in headers.keys() {
        let name = name.as_str();
        let is_condition = CONDITIONS.contains(&name);
        if !is_amz(name.as_bytes()) && !is_condition {
            continue;
        }
        let is_known = is_in(COMMON, name) || is_in(operation.headers, name);
        if !is_known && (writes || !is_condition) {
            return Err(not_implemented_header(name));
        }
        // The layers below take a header without a value for none, and a condition without a tag
        // for no condition.
        let mut values = headers.get_all(name).iter();
        if values.any(|value| value.is_empty()) && !is_in(MAY_BE_EMPTY, name) {
            return Err(s3_error!(InvalidArgument, "The header {name} has no value"));
        }
        if headers.get_all(name).iter().nth(1).is_some() && !is_in(LISTS, name) {
            return Err(s3_error!(
                InvalidArgument,
                "The header {name} is there more than once"
            ));
        }
    }
    Ok(())
}

fn not_implemented_header(name: &str) -> S3Error {
    s3_error!(
        NotImplemented,
        "A header you provided implies functionality that is not implemented: {name}"
    )
}

/// A request that expects another owner is meant for another bucket.
fn check_owner(headers: &HeaderMap, owner: &str) -> S3Result<()> {
    for name in [
        "x-amz-expected-bucket-owner",
        "x-amz-source-expected-bucket-owner",
    ] {
        if headers
            .get(name)
            .is_some_and(|expected| expected.as_bytes() != owner.as_bytes())
        {
            return Err(s3_error!(
                AccessDenied,
                "The owner of the bucket is not the one in {name}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
