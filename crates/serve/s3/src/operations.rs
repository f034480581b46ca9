//! The operations there are, and all that each of them knows of a request.
//!
//! In S3, a name in the query selects the operation (`PUT key?renameObject`) and headers change what
//! it does. A server that knows neither would carry out the plain operation instead, which
//! overwrites or deletes. So an operation is carried out only if it knows every name in the request
//! that may be meant for it; everything else is refused before the body is read.

use crate::model::{PARAMETERS, Resource, SUBRESOURCES};
use http::{HeaderMap, Method};
use s3s::path::S3Path;
use s3s::{S3Error, S3Result, s3_error};

/// What a request costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Next to nothing.
    Free,
    /// A document's memory, coming or going.
    Document,
    /// Object data coming in.
    Upload,
    /// Object data going out.
    Download,
}

/// An operation.
#[derive(Debug)]
pub struct Operation {
    name: &'static str,
    /// What it costs.
    pub cost: Cost,
    /// Names in the query.
    query: &'static [&'static str],
    /// Conditions, and headers that begin with `x-amz-`, beside [`COMMON`]. A name that ends in a
    /// dash stands for all that begin with it.
    headers: &'static [&'static str],
}

/// Headers of every operation. The last four mean nothing here: the one owner pays, sessions have
/// other keys, and the rest describes the client.
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
    "x-amz-request-payer",
    "x-amz-security-token",
    "x-amz-te",
    "x-amz-user-agent",
];

/// Headers that may come several times; of others the second one would be lost.
const LISTS: &[&str] = &[
    "x-amz-meta-",
    "x-amz-object-attributes",
    "x-amz-optional-object-attributes",
    "x-amz-trailer",
];

/// Headers of which an empty one says something, or nothing at all.
const MAY_BE_EMPTY: &[&str] = &[
    "x-amz-meta-",
    "x-amz-security-token",
    "x-amz-te",
    "x-amz-user-agent",
];

/// Conditions of HTTP. A read that does not judge one answers more than it has to; a write that
/// does not judge one overwrites.
const CONDITIONS: &[&str] = &[
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
];

/// The operations there are.
#[rustfmt::skip]
const OPERATIONS: &[Operation] = &[
    Operation { name: "AbortMultipartUpload", cost: Cost::Document, query: &["uploadId"], headers: &[] },
    Operation { name: "CompleteMultipartUpload", cost: Cost::Document, query: &["uploadId"], headers: &[
        "if-match", "if-none-match", "x-amz-checksum-type", "x-amz-mp-object-size",
    ] },
    Operation { name: "CopyObject", cost: Cost::Upload, query: &[], headers: &[
        "if-match", "if-none-match",
        "x-amz-acl", "x-amz-grant-", "x-amz-meta-", "x-amz-storage-class",
        "x-amz-checksum-algorithm", "x-amz-metadata-directive",
        // There are neither tags nor annotations that one could copy or leave.
        "x-amz-object-annotation-directive", "x-amz-tagging-directive",
        "x-amz-copy-source", "x-amz-copy-source-if-match", "x-amz-copy-source-if-modified-since",
        "x-amz-copy-source-if-none-match", "x-amz-copy-source-if-unmodified-since",
        "x-amz-source-expected-bucket-owner",
    ] },
    Operation { name: "CreateBucket", cost: Cost::Document, query: &[], headers: &[
        "x-amz-acl", "x-amz-grant-", "x-amz-bucket-object-lock-enabled", "x-amz-object-ownership",
    ] },
    Operation { name: "CreateMultipartUpload", cost: Cost::Free, query: &["uploads"], headers: &[
        "x-amz-acl", "x-amz-grant-", "x-amz-meta-", "x-amz-storage-class",
        "x-amz-checksum-algorithm", "x-amz-checksum-type",
    ] },
    Operation { name: "DeleteBucket", cost: Cost::Document, query: &[], headers: &[] },
    // Nothing is held by governance, so nothing needs to be bypassed.
    Operation { name: "DeleteObject", cost: Cost::Free, query: &["versionId"], headers: &[
        "if-match", "x-amz-bypass-governance-retention",
    ] },
    Operation { name: "DeleteObjects", cost: Cost::Document, query: &["delete"], headers: &[
        "x-amz-bypass-governance-retention",
    ] },
    Operation { name: "GetBucketLocation", cost: Cost::Free, query: &["location"], headers: &[] },
    Operation { name: "GetBucketVersioning", cost: Cost::Free, query: &["versioning"], headers: &[] },
    Operation { name: "GetObject", cost: Cost::Download, query: READ, headers: &["x-amz-checksum-mode"] },
    Operation { name: "GetObjectAttributes", cost: Cost::Free, query: &["attributes", "versionId"], headers: &[
        "x-amz-object-attributes", "x-amz-max-parts", "x-amz-part-number-marker",
    ] },
    Operation { name: "HeadBucket", cost: Cost::Free, query: &[], headers: &[] },
    Operation { name: "HeadObject", cost: Cost::Free, query: READ, headers: &["x-amz-checksum-mode"] },
    Operation { name: "ListBuckets", cost: Cost::Document, query: &[
        "bucket-region", "continuation-token", "max-buckets", "prefix",
    ], headers: &[] },
    Operation { name: "ListMultipartUploads", cost: Cost::Document, query: &[
        "uploads", "delimiter", "encoding-type", "key-marker", "max-uploads", "prefix", "upload-id-marker",
    ], headers: &[] },
    Operation { name: "ListObjectVersions", cost: Cost::Document, query: &[
        "versions", "delimiter", "encoding-type", "key-marker", "max-keys", "prefix", "version-id-marker",
    ], headers: OPTIONAL },
    Operation { name: "ListObjects", cost: Cost::Document, query: &[
        "delimiter", "encoding-type", "marker", "max-keys", "prefix",
    ], headers: OPTIONAL },
    Operation { name: "ListObjectsV2", cost: Cost::Document, query: &[
        "list-type", "continuation-token", "delimiter", "encoding-type", "fetch-owner", "max-keys", "prefix",
        "start-after",
    ], headers: OPTIONAL },
    Operation { name: "ListParts", cost: Cost::Document, query: &["uploadId", "max-parts", "part-number-marker"], headers: &[] },
    Operation { name: "PutObject", cost: Cost::Upload, query: &[], headers: &[
        "if-match", "if-none-match", "x-amz-acl", "x-amz-grant-", "x-amz-meta-", "x-amz-storage-class",
    ] },
    Operation { name: "UploadPart", cost: Cost::Upload, query: &["partNumber", "uploadId"], headers: &[] },
    Operation { name: "UploadPartCopy", cost: Cost::Upload, query: &["partNumber", "uploadId"], headers: &[
        "x-amz-copy-source", "x-amz-copy-source-if-match", "x-amz-copy-source-if-modified-since",
        "x-amz-copy-source-if-none-match", "x-amz-copy-source-if-unmodified-since", "x-amz-copy-source-range",
        "x-amz-source-expected-bucket-owner",
    ] },
];

/// What a read of an object knows.
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

/// Asks for the state of restores in listings; nothing has ever been archived.
const OPTIONAL: &[&str] = &["x-amz-optional-object-attributes"];

/// The operation of this name, if it knows all that the request says.
pub fn admit(
    name: &str,
    method: &Method,
    path: &S3Path,
    query: &str,
    headers: &HeaderMap,
    owner: &str,
) -> S3Result<&'static Operation> {
    let operation = OPERATIONS.iter().find(|operation| operation.name == name);
    let known = operation.map_or(&[][..], |operation| operation.query);
    check_query(known, method, path, query)?;
    let Some(operation) = operation else {
        return Err(s3_error!(NotImplemented, "{name} is not implemented"));
    };
    check_headers(operation, method, headers)?;
    check_owner(headers, owner)?;
    Ok(operation)
}

/// Parameters that S3 does not know are ignored as S3 does, such as the `x-id` of its clients. A
/// name without a value selects an operation, if not one of today's then one of tomorrow's.
fn check_query(known: &[&str], method: &Method, path: &S3Path, query: &str) -> S3Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if is_amz(name.as_bytes()) || name == "x-id" {
            // Of the signature, or a header by now.
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

/// Whether S3 has this name somewhere, in any spelling: `?PartNumber=1` is meant for it, too.
fn is_of_s3(name: &str) -> bool {
    let same = |known: &str| known.eq_ignore_ascii_case(name);
    SUBRESOURCES.iter().any(|(_, _, known, _)| same(known))
        || PARAMETERS.iter().any(|known| same(known))
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

/// Whether this names a header of S3, or what a presigned URL has in place of one.
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
        // What is sent is a part of an object and would become all of it.
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

/// Somebody who expects another owner has the wrong bucket.
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
mod tests {
    use super::*;
    use http::Request;

    /// What becomes of a request that was taken for `operation`: its name, or an error's code.
    fn admitted(
        operation: &str,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
    ) -> Result<&'static str, String> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let path = s3s::path::parse_path_style(head.uri.path()).unwrap();
        let query = head.uri.query().unwrap_or_default();
        admit(
            operation,
            &head.method,
            &path,
            query,
            &head.headers,
            "zonestore",
        )
        .map(|operation| operation.name)
        .map_err(|error| error.code().as_str().to_owned())
    }

    /// What a method does to a resource if nothing else is said.
    fn plain(method: &str, resource: Resource) -> &'static str {
        match (method, resource) {
            ("PUT", Resource::Bucket) => "CreateBucket",
            ("PUT", _) => "PutObject",
            ("DELETE", Resource::Bucket) => "DeleteBucket",
            ("DELETE", _) => "DeleteObject",
            ("HEAD", Resource::Bucket) => "HeadBucket",
            ("HEAD", _) => "HeadObject",
            (_, Resource::Bucket) => "ListObjects",
            _ => "GetObject",
        }
    }

    #[test]
    fn no_subresource_falls_through_to_the_plain_operation() {
        let refused = Err("NotImplemented".to_owned());
        for (_, _, name, _) in SUBRESOURCES {
            for (resource, path) in [
                (Resource::Bucket, "/bucket"),
                (Resource::Object, "/bucket/key"),
            ] {
                for method in ["PUT", "DELETE", "GET", "HEAD", "POST"] {
                    for query in [
                        name.to_string(),
                        format!("{name}="),
                        format!("{name}=x"),
                        format!("{}=x", name.to_ascii_uppercase()),
                        format!("%{:02x}{}", name.as_bytes()[0], &name[1..]),
                        format!("x-id=PutObject&{name}"),
                    ] {
                        let uri = format!("{path}?{query}");
                        let found = admitted(plain(method, resource), method, &uri, &[]);
                        assert_eq!(found, refused, "{method} {uri}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_header_without_a_value_is_not_none() {
        let refused = Err("InvalidArgument".to_owned());
        for (operation, method, name) in [
            ("PutObject", "PUT", "if-match"),
            ("PutObject", "PUT", "x-amz-acl"),
            ("DeleteObject", "DELETE", "if-match"),
            ("GetObject", "GET", "if-none-match"),
            ("CopyObject", "PUT", "x-amz-copy-source-if-match"),
        ] {
            let found = admitted(operation, method, "/bucket/key", &[(name, "")]);
            assert_eq!(found, refused, "{operation} {name}");
        }
        let found = admitted("PutObject", "PUT", "/bucket/key", &[("x-amz-meta-a", "")]);
        assert_eq!(found, Ok("PutObject"));
    }

    #[test]
    fn what_selects_an_operation_is_all_of_it_that_is_known() {
        for (method, resource, name, operation) in SUBRESOURCES {
            let path = if *resource == Resource::Bucket {
                "/bucket"
            } else {
                "/bucket/key"
            };
            let found = admitted(operation, method, &format!("{path}?{name}"), &[]);
            let there = OPERATIONS.iter().any(|known| known.name == *operation);
            let refused = Err("NotImplemented".to_owned());
            assert_eq!(
                found,
                if there {
                    Ok(*operation)
                } else {
                    refused.clone()
                },
                "{operation}"
            );
            let both = format!("{path}?{name}&acl");
            assert_eq!(admitted(operation, method, &both, &[]), refused, "{both}");
        }
    }

    #[test]
    fn names_are_judged_by_whether_they_may_be_meant() {
        let put = |query: &str| admitted("PutObject", "PUT", &format!("/bucket/key?{query}"), &[]);
        let refused = Err("NotImplemented".to_owned());
        for ignored in ["x-id=PutObject", "x-id", "nonce=1&other=2", "X-Amz-Date=1"] {
            assert_eq!(put(ignored), Ok("PutObject"), "{ignored}");
        }
        for meant in [
            "tomorrow",
            "tomorrow=",
            "partNumber=1",
            "PARTNUMBER=1",
            "uploadid=a",
            "versionId=1",
            "annotationName=a",
        ] {
            assert_eq!(put(meant), refused, "{meant}");
        }
        let twice = "/bucket/key?versionId=null&versionId=old";
        let found = admitted("DeleteObject", "DELETE", twice, &[]);
        assert_eq!(found, Err("InvalidArgument".to_owned()));
    }

    #[test]
    fn headers_that_change_the_meaning_are_known_or_refused() {
        let put = |headers: &[(&str, &str)]| admitted("PutObject", "PUT", "/bucket/key", headers);
        let known = [
            ("content-type", "text/plain"),
            ("if-none-match", "*"),
            ("x-amz-meta-a", "1"),
            ("x-amz-meta-a", "2"),
            ("x-amz-expected-bucket-owner", "zonestore"),
        ];
        assert_eq!(put(&known), Ok("PutObject"));
        for name in [
            "x-amz-rename-source",
            "x-amz-tagging",
            "x-amz-copy-source",
            "x-amz-of-tomorrow",
            "if-modified-since",
        ] {
            assert_eq!(put(&[(name, "x")]), Err("NotImplemented".to_owned()));
        }
        let delete = |name: &str| admitted("DeleteObject", "DELETE", "/b-1/k", &[(name, "x")]);
        for name in [
            "x-amz-mfa",
            "x-amz-if-match-size",
            "x-amz-if-match-last-modified-time",
            "if-none-match",
        ] {
            assert_eq!(delete(name), Err("NotImplemented".to_owned()), "{name}");
        }
        let code = |text: &str| Err(text.to_owned());
        let range = [("content-range", "bytes 0-1/9")];
        assert_eq!(put(&range), code("InvalidRequest"));
        let twice = [("x-amz-acl", "private"), ("x-amz-acl", "public-read")];
        assert_eq!(put(&twice), code("InvalidArgument"));
        let stranger = [("x-amz-expected-bucket-owner", "111122223333")];
        assert_eq!(put(&stranger), code("AccessDenied"));
        let source = [("x-amz-source-expected-bucket-owner", "111122223333")];
        assert_eq!(
            admitted("CopyObject", "PUT", "/bucket/key", &source),
            code("AccessDenied")
        );
        // A read may answer more than it has to.
        let since = [("if-modified-since", "x")];
        assert_eq!(
            admitted("ListObjects", "GET", "/bucket", &since),
            Ok("ListObjects")
        );
    }
}
