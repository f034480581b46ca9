//! Who may come in, and when it is their turn.
//!
//! `s3s` verifies SigV4 signatures. Around it: what it would accept and we do not (older
//! signatures, unsigned `x-amz-` headers, forms that it would hold in memory), which operations
//! exist, and a bounded number of turns for requests that cost memory. Turns are taken after the
//! signature has been verified and before the body is read, so that strangers cannot hold any.

use crate::config::{Credentials, Limits};
use http::{HeaderMap, Method, request};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::{S3Result, s3_error};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Knows the one key pair.
pub struct Keys(pub Credentials);

#[async_trait::async_trait]
impl S3Auth for Keys {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        if access_key == self.0.access_key() {
            return Ok(SecretKey::from(self.0.secret_key()));
        }
        Err(s3_error!(
            InvalidAccessKeyId,
            "The access key id you provided does not exist in our records"
        ))
    }
}

/// A turn, held as long as the request costs memory.
#[derive(Clone)]
pub struct Permit {
    _permit: Arc<OwnedSemaphorePermit>,
}

/// What a request costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cost {
    Free,
    Document,
    Upload,
    Download,
}

/// The operations there are.
fn cost(operation: &str) -> Option<Cost> {
    Some(match operation {
        "PutObject" | "UploadPart" | "CopyObject" | "UploadPartCopy" => Cost::Upload,
        "GetObject" => Cost::Download,
        "CreateBucket"
        | "DeleteBucket"
        | "ListBuckets"
        | "ListObjects"
        | "ListObjectsV2"
        | "DeleteObjects"
        | "CompleteMultipartUpload"
        | "AbortMultipartUpload"
        | "ListParts"
        | "ListMultipartUploads" => Cost::Document,
        "HeadBucket"
        | "GetBucketLocation"
        | "GetBucketVersioning"
        | "HeadObject"
        | "DeleteObject"
        | "CreateMultipartUpload"
        | "GetObjectAttributes" => Cost::Free,
        _ => return None,
    })
}

/// Lets requests in.
pub struct Gate {
    uploads: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    documents: Arc<Semaphore>,
    turn_timeout: Duration,
}

impl Gate {
    /// With so many turns of each kind.
    pub fn new(limits: &Limits) -> Self {
        let turns = |n: usize| Arc::new(Semaphore::new(n.max(1)));
        Self {
            uploads: turns(limits.max_uploads),
            downloads: turns(limits.max_downloads),
            documents: turns(limits.max_documents),
            turn_timeout: limits.turn_timeout,
        }
    }

    async fn turn(&self, cost: Cost) -> S3Result<Option<Permit>> {
        let turns = match cost {
            Cost::Free => return Ok(None),
            Cost::Document => &self.documents,
            Cost::Upload => &self.uploads,
            Cost::Download => &self.downloads,
        };
        match tokio::time::timeout(self.turn_timeout, turns.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Some(Permit {
                _permit: Arc::new(permit),
            })),
            Ok(Err(_)) => Err(s3_error!(ServiceUnavailable, "The server is stopping")),
            Err(_) => Err(s3_error!(SlowDown, "Please reduce your request rate")),
        }
    }
}

#[async_trait::async_trait]
impl S3Access for Gate {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        if context.credentials().is_none() {
            return Err(s3_error!(
                AccessDenied,
                "Access Denied: requests must be signed"
            ));
        }
        let name = context.s3_op().name();
        let Some(cost) = cost(name) else {
            return Err(s3_error!(NotImplemented, "{name} is not implemented"));
        };
        if let Some(permit) = self.turn(cost).await? {
            context.extensions_mut().insert(permit);
        }
        Ok(())
    }
}

/// Refuses what must not get as far as the signature verifier.
pub fn check_head(head: &request::Parts) -> S3Result<()> {
    let query = head.uri.query().unwrap_or_default();
    let authorization = match head
        .headers
        .get("authorization")
        .map(|value| value.to_str())
    {
        None => None,
        Some(Ok(value)) => Some(value),
        Some(Err(_)) => return Err(s3_error!(InvalidRequest, "invalid header: authorization")),
    };
    if authorization.is_some_and(|value| value.starts_with("AWS "))
        || has_parameter(query, "Signature")
    {
        return Err(s3_error!(
            InvalidRequest,
            "The authorization mechanism you have provided is not supported. Please use \
             AWS4-HMAC-SHA256."
        ));
    }
    // A form upload is held in memory whole by the layer below.
    let content_type = head
        .headers
        .get("content-type")
        .map(|value| value.as_bytes());
    if head.method == Method::POST
        && content_type
            .is_some_and(|t| t.len() >= 10 && t[..10].eq_ignore_ascii_case(b"multipart/"))
    {
        return Err(s3_error!(
            NotImplemented,
            "Uploads by HTML forms are not implemented"
        ));
    }
    let signed = match authorization {
        Some(value) => {
            if value.contains("/sts/aws4_request") {
                return Err(s3_error!(
                    InvalidRequest,
                    "The signature is not for the service s3"
                ));
            }
            parameter_of_authorization(value, "SignedHeaders=").map(str::to_owned)
        }
        None => find_parameter(query, "X-Amz-SignedHeaders")
            .map(|value| value.replace("%3B", ";").replace("%3b", ";")),
    };
    match signed {
        Some(signed) => check_signed_headers(&head.headers, &signed),
        None => Ok(()),
    }
}

/// The host and every `x-amz-` header must be signed: what is not signed may have been changed.
fn check_signed_headers(headers: &HeaderMap, signed: &str) -> S3Result<()> {
    let is_signed = |name: &str| {
        signed
            .split(';')
            .any(|signed| signed.eq_ignore_ascii_case(name))
    };
    if !is_signed("host") {
        return Err(s3_error!(AccessDenied, "The host header must be signed"));
    }
    for name in headers.keys() {
        if name.as_str().starts_with("x-amz-") && !is_signed(name.as_str()) {
            return Err(s3_error!(
                AccessDenied,
                "There were headers present in the request which were not signed: {name}"
            ));
        }
    }
    for name in signed.split(';') {
        if !headers.contains_key(name) {
            return Err(s3_error!(
                SignatureDoesNotMatch,
                "The signed header {name} is not in the request"
            ));
        }
    }
    Ok(())
}

fn parameter_of_authorization<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    let start = value.find(name)? + name.len();
    value[start..].split([',', ' ']).next()
}

fn find_parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

fn has_parameter(query: &str, name: &str) -> bool {
    find_parameter(query, name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn check(method: &str, uri: &str, headers: &[(&str, &str)]) -> Result<(), String> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        check_head(&head).map_err(|error| error.code().as_str().to_owned())
    }

    fn authorization(signed: &str) -> String {
        format!(
            "AWS4-HMAC-SHA256 Credential=K/20240101/us-east-1/s3/aws4_request, \
             SignedHeaders={signed}, Signature=00"
        )
    }

    #[test]
    fn what_is_signed_passes() {
        let signed = authorization("host;x-amz-date;x-amz-meta-a");
        let headers = [
            ("host", "h"),
            ("x-amz-date", "d"),
            ("x-amz-meta-a", "1"),
            ("content-type", "text/plain"),
            ("authorization", signed.as_str()),
        ];
        assert_eq!(check("PUT", "/b/k", &headers), Ok(()));
        assert_eq!(
            check("GET", "/b/k?X-Amz-SignedHeaders=host", &[("host", "h")]),
            Ok(())
        );
        let two = "/b/k?X-Amz-SignedHeaders=host%3Bx-amz-meta-a";
        assert_eq!(
            check("GET", two, &[("host", "h"), ("x-amz-meta-a", "1")]),
            Ok(())
        );
        // Anonymous requests are refused later, by the gate.
        assert_eq!(check("GET", "/b/k", &[("host", "h")]), Ok(()));
    }

    #[test]
    fn what_is_not_signed_is_refused() {
        let signed = authorization("host;x-amz-date");
        let with = |name, value| {
            check(
                "PUT",
                "/b/k",
                &[
                    ("host", "h"),
                    ("x-amz-date", "d"),
                    (name, value),
                    ("authorization", signed.as_str()),
                ],
            )
        };
        assert_eq!(with("x-amz-meta-a", "1"), Err("AccessDenied".into()));
        assert_eq!(
            with("x-amz-copy-source", "/b/x"),
            Err("AccessDenied".into())
        );
        let hidden = "/b/k?X-Amz-SignedHeaders=host";
        let headers = [("host", "h"), ("x-amz-copy-source", "b/secret")];
        assert_eq!(check("PUT", hidden, &headers), Err("AccessDenied".into()));
        let hostless = authorization("x-amz-date");
        let headers = [("x-amz-date", "d"), ("authorization", hostless.as_str())];
        assert_eq!(check("GET", "/b", &headers), Err("AccessDenied".into()));
        let missing = authorization("host;x-amz-date;x-amz-meta-a");
        let headers = [
            ("host", "h"),
            ("x-amz-date", "d"),
            ("authorization", missing.as_str()),
        ];
        assert_eq!(
            check("GET", "/b", &headers),
            Err("SignatureDoesNotMatch".into())
        );
    }

    #[test]
    fn other_ways_in_are_closed() {
        let invalid = Err("InvalidRequest".to_owned());
        assert_eq!(
            check("GET", "/b", &[("authorization", "AWS key:signature")]),
            invalid
        );
        assert_eq!(
            check("GET", "/b?AWSAccessKeyId=k&Expires=1&Signature=x", &[]),
            invalid
        );
        let sts = authorization("host").replace("/s3/", "/sts/");
        assert_eq!(
            check("PUT", "/b/k", &[("host", "h"), ("authorization", &sts)]),
            invalid
        );
        let form = [("content-type", "Multipart/form-data; boundary=x")];
        assert_eq!(check("POST", "/b", &form), Err("NotImplemented".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn turns_run_out_and_come_back() {
        let gate = Gate::new(&Limits {
            max_uploads: 1,
            ..Limits::default()
        });
        let turn = gate.turn(Cost::Upload).await.unwrap();
        let error = gate.turn(Cost::Upload).await.err().unwrap();
        assert_eq!(error.code().as_str(), "SlowDown");
        assert!(gate.turn(Cost::Download).await.unwrap().is_some());
        drop(turn);
        gate.turn(Cost::Upload).await.unwrap();
    }

    #[tokio::test]
    async fn only_one_key_is_known() {
        let keys = Keys(Credentials::new("known", "secret"));
        assert_eq!(
            keys.get_secret_key("known").await.unwrap().expose(),
            "secret"
        );
        let error = keys.get_secret_key("other").await.unwrap_err();
        assert_eq!(error.code().as_str(), "InvalidAccessKeyId");
    }
}
