//! Checks of a request's head before the signature verifier: refuses what `s3s` would accept and this server does
//! not.
//!
//! Those are older signatures, headers that the signature does not cover, forms that would be held in memory whole,
//! and regions that `s3s` cannot name. The query is decoded exactly as the verifier decodes it, so that no spelling
//! is visible to only one of the two.

use crate::digest;
use crate::errors::with_status;
use crate::operations::is_amz;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, request};
use s3s::region::Region;
use s3s::{S3Error, S3Result, s3_error};
use std::borrow::Cow;

/// Why a request is refused before its signature is verified.
#[derive(Debug)]
pub enum Refusal {
    /// The error to answer with.
    Error(S3Error),
    /// It was signed for an invalid region; s3cmd sends one such request.
    Region,
}

impl From<S3Error> for Refusal {
    fn from(error: S3Error) -> Self {
        Self::Error(error)
    }
}

/// Fields of a signature, from the header or the query.
struct Signature {
    credential: String,
    signed_headers: String,
}

/// Longest validity of a presigned URL in S3: seven days.
const MAX_EXPIRES_SECONDS: u64 = 7 * 24 * 3600;
/// Most characters of an unverified access key in the log.
const NAMED_CHARS: usize = 64;
/// Parameters of a presigned URL that belong to the signature; other `X-Amz-` names stand for headers.
const OF_SIGNATURE: [&str; 6] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
];

/// Refuses requests that must not reach the signature verifier.
pub fn check(head: &request::Parts) -> Result<(), Refusal> {
    refuse_form(head)?;
    if !is_text(head.uri.query().unwrap_or_default()) {
        let why = "The query is not UTF-8 once its percent-encoding is undone";
        return Err(s3_error!(InvalidURI, "{why}").into());
    }
    let Some(signature) = signature(head)? else {
        // Anonymous: refused later by the access check.
        return Ok(());
    };
    let mut scope = signature.credential.rsplit('/').skip(1);
    let (service, region) = (scope.next(), scope.next());
    if service == Some("sts") {
        return Err(s3_error!(InvalidRequest, "The signature is not one for S3").into());
    }
    if region.is_some_and(|region| Region::new(region.into()).is_err()) {
        return Err(Refusal::Region);
    }
    Ok(check_signed_headers(
        &head.headers,
        &signature.signed_headers,
    )?)
}

/// The access key that a request names, not verified.
pub fn access_key<B>(request: &Request<B>) -> Option<String> {
    let mut query = Query::of(request.uri().query().unwrap_or_default());
    let credential = match query.has("X-Amz-Credential") {
        true => query.take("X-Amz-Credential"),
        false => {
            let header = request.headers().get("authorization")?.to_str().ok()?;
            header.split_once("Credential=")?.1.to_owned()
        }
    };
    Some(
        credential
            .split('/')
            .next()?
            .chars()
            .take(NAMED_CHARS)
            .collect(),
    )
}

/// When a request was signed, as it says.
pub fn signed_at<B>(request: &Request<B>) -> Option<String> {
    match request.headers().get("x-amz-date") {
        Some(date) => date.to_str().ok().map(str::to_owned),
        None => {
            let mut query = Query::of(request.uri().query()?);
            Some(query.take("X-Amz-Date"))
        }
    }
}

/// Refuses forms: `s3s` would hold the file of a form in memory whole. An upload in parts may be of another type `multipart/…`.
fn refuse_form(head: &request::Parts) -> S3Result<()> {
    const FORM: &[u8] = b"multipart/form-data";
    let kind = head.headers.get("content-type");
    let kind = kind.and_then(|kind| kind.as_bytes().get(..FORM.len()));
    let is_form = kind.is_some_and(|kind| kind.eq_ignore_ascii_case(FORM));
    if head.method == Method::POST && is_form {
        return Err(s3_error!(
            NotImplemented,
            "Uploads by HTML forms are not implemented"
        ));
    }
    Ok(())
}

/// Whether a query is UTF-8 once its percent-encoding is undone. If not, the verifier would see other bytes than were
/// signed.
fn is_text(query: &str) -> bool {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let (mut bytes, mut decoded) = (query.as_bytes(), Vec::new());
    while let [first, rest @ ..] = bytes {
        let code = digit(rest.first()).zip(digit(rest.get(1)));
        let code = code.filter(|_| *first == b'%');
        bytes = if code.is_some() { &rest[2..] } else { rest };
        decoded.push(code.map_or(*first, |(high, low)| (high * 16 + low) as u8));
    }
    std::str::from_utf8(&decoded).is_ok()
}

fn signature(head: &request::Parts) -> S3Result<Option<Signature>> {
    let mut query = Query::of(head.uri.query().unwrap_or_default());
    if query.has("Signature") {
        return Err(old_signature());
    }
    let header = head.headers.get("authorization");
    if query.has("X-Amz-Signature") {
        if header.is_some() {
            return Err(s3_error!(
                InvalidArgument,
                "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter or the \
                 Authorization header should be specified"
            ));
        }
        check_expires(&query.take("X-Amz-Expires"))?;
        return Ok(Some(Signature {
            credential: query.take("X-Amz-Credential"),
            signed_headers: query.take("X-Amz-SignedHeaders"),
        }));
    }
    let Some(header) = header else {
        return Ok(None);
    };
    let text = header
        .to_str()
        .map_err(|_| s3_error!(InvalidRequest, "invalid header: authorization"))?;
    let Some(fields) = text.strip_prefix("AWS4-HMAC-SHA256") else {
        return Err(old_signature());
    };
    let field = |name: &str| {
        let value = fields
            .split(',')
            .find_map(|field| field.trim().strip_prefix(name));
        value.unwrap_or_default().to_owned()
    };
    Ok(Some(Signature {
        credential: field("Credential="),
        signed_headers: field("SignedHeaders="),
    }))
}

/// Values that are no numbers are left to the verifier.
fn check_expires(text: &str) -> S3Result<()> {
    if text
        .parse::<u64>()
        .is_ok_and(|seconds| seconds > MAX_EXPIRES_SECONDS)
    {
        return Err(with_status(
            "AuthorizationQueryParametersError",
            400,
            format!(
                "X-Amz-Expires must be less than a week (in seconds); that is, the given \
                 X-Amz-Expires must be at most {MAX_EXPIRES_SECONDS} seconds"
            ),
        ));
    }
    Ok(())
}

/// Turns `x-amz-` parameters of the query into headers: clients that presign a request put its headers there. They
/// are signed with the query. A checksum of no bytes stays there if there is a body: who signed it had none.
pub fn take_headers_of_query(head: &mut request::Parts) -> S3Result<()> {
    let Query(pairs) = Query::of(head.uri.query().unwrap_or_default());
    let mut added = HeaderMap::new();
    let length = head.headers.get(http::header::CONTENT_LENGTH);
    let has_body = head.method == Method::PUT && length.is_none_or(|length| length != "0");
    for (name, value) in pairs {
        let is_left =
            OF_SIGNATURE.contains(&name.as_ref()) || has_body && is_of_nothing(&name, &value);
        if !is_amz(name.as_bytes()) || is_left {
            continue;
        }
        let invalid = || s3_error!(InvalidArgument, "The parameter {name} is no header");
        let header = HeaderName::try_from(name.as_ref()).map_err(|_| invalid())?;
        let value = HeaderValue::try_from(value.as_ref()).map_err(|_| invalid())?;
        if head.headers.get(&header).is_some_and(|sent| *sent != value) {
            return Err(s3_error!(
                InvalidArgument,
                "The header {header} and the parameter of that name differ"
            ));
        }
        if !head.headers.contains_key(&header) {
            added.append(header, value);
        }
    }
    head.headers.extend(added);
    Ok(())
}

/// Whether this is the checksum of no bytes. The SDK for JavaScript signs it into the URL of an upload that it has no data of.
fn is_of_nothing(name: &str, value: &str) -> bool {
    let mut checksums = digest::CHECKSUMS.into_iter();
    let algorithm =
        checksums.find(|algorithm| name.eq_ignore_ascii_case(&digest::header(*algorithm)));
    algorithm.is_some_and(|algorithm| value == digest::base64(&algorithm.of(&[])))
}

fn old_signature() -> S3Error {
    s3_error!(
        InvalidRequest,
        "The authorization mechanism you have provided is not supported. Please use \
         AWS4-HMAC-SHA256."
    )
}

/// Requires the host and every `x-amz-` header to be signed: an unsigned header may have been changed.
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
    match signed.split(';').find(|name| !headers.contains_key(*name)) {
        None => Ok(()),
        Some(name) => Err(s3_error!(
            SignatureDoesNotMatch,
            "The signed header {name} is not in the request"
        )),
    }
}

/// A decoded query.
struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    fn of(query: &'a str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    fn take(&mut self, name: &str) -> String {
        let at = self.0.iter().position(|(key, _)| key == name);
        at.map(|at| self.0.swap_remove(at).1.into_owned())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Refusal, check as check_head, take_headers_of_query};
    use http::Request;

    fn check(method: &str, uri: &str, headers: &[(&str, &str)]) -> Result<(), String> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        check_head(&head).map_err(|refusal| match refusal {
            Refusal::Error(error) => error.code().as_str().to_owned(),
            Refusal::Region => "region".to_owned(),
        })
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
            check(
                "GET",
                "/b/k?X-Amz-Signature=0&X-Amz-SignedHeaders=host",
                &[("host", "h")]
            ),
            Ok(())
        );
        let two = "/b/k?X-Amz-Signature=0&X-Amz-SignedHeaders=host%3Bx-amz-meta-a";
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
        let hidden = "/b/k?X-Amz-Signature=0&X-Amz-SignedHeaders=host";
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
    fn a_query_that_is_no_text_is_said_so() {
        for text in ["prefix=%C3%A4", "prefix=100%", "a=%zz&b", "%"] {
            assert_eq!(check("GET", &format!("/b?{text}"), &[]), Ok(()), "{text}");
        }
        for wrong in ["prefix=%FF", "%c3=1", "a&b=%80"] {
            let invalid = Err("InvalidURI".to_owned());
            assert_eq!(
                check("GET", &format!("/b?{wrong}"), &[]),
                invalid,
                "{wrong}"
            );
        }
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

    #[test]
    fn spelling_hides_nothing() {
        let headers = [("host", "h"), ("x-amz-copy-source", "b/secret")];
        let denied = Err("AccessDenied".to_owned());
        let plain = "/b/k?X-Amz-Signature=0&X-Amz-SignedHeaders=host";
        assert_eq!(check("PUT", plain, &headers), denied);
        let spelt = "/b/k?X%2DAmz%2dSignature=0&X-Amz%2DSignedHeaders=host";
        assert_eq!(check("PUT", spelt, &headers), denied);
        let all = authorization("host;x-amz-copy-source");
        let both = [headers[0], headers[1], ("authorization", all.as_str())];
        assert_eq!(check("PUT", plain, &both), Err("InvalidArgument".into()));
    }

    #[test]
    fn presigned_urls_live_seven_days_at_most() {
        let url = |seconds: &str| {
            let uri =
                format!("/b/k?X-Amz-Signature=0&X-Amz-SignedHeaders=host&X-Amz-Expires={seconds}");
            check("GET", &uri, &[("host", "h")])
        };
        assert_eq!(url("604800"), Ok(()));
        let refused = Err("AuthorizationQueryParametersError".to_owned());
        assert_eq!(url("604801"), refused);
        assert_eq!(url("18446744073709551615"), refused);
    }

    #[test]
    fn headers_in_the_query_become_headers() {
        let taken = |uri: &str, sent: &[(&str, &str)]| {
            let mut request = Request::builder().uri(uri);
            for (name, value) in sent {
                request = request.header(*name, *value);
            }
            let (mut head, ()) = request.body(()).unwrap().into_parts();
            take_headers_of_query(&mut head)
                .map(|()| head.headers)
                .map_err(|error| error.code().as_str().to_owned())
        };
        let found = taken("/b/k?X-Amz-Date=1&x%2Damz-acl=public-read&prefix=x", &[]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found["x-amz-acl"], "public-read");
        let same = taken("/b/k?X-Amz-Acl=private", &[("x-amz-acl", "private")]).unwrap();
        assert_eq!(same.get_all("x-amz-acl").iter().count(), 1);
        let twice = taken("/b/k?x-amz-acl=a&x-amz-acl=b", &[]).unwrap();
        assert_eq!(twice.get_all("x-amz-acl").iter().count(), 2);
        let invalid = Err("InvalidArgument".to_owned());
        assert_eq!(
            taken("/b/k?x-amz-acl=a", &[("x-amz-acl", "private")]),
            invalid
        );
        assert_eq!(taken("/b/k?x-amz-a%20b=1", &[]), invalid);
        assert_eq!(taken("/b/k?x-amz-acl=%0d%0a", &[]), invalid);
    }

    #[test]
    fn a_checksum_that_was_signed_without_the_data_is_none() {
        let taken = |method: &str, query: &str, length: &str| {
            let request = Request::builder()
                .method(method)
                .uri(format!("/b/k?{query}"));
            let request = request.header("content-length", length);
            let (mut head, ()) = request.body(()).unwrap().into_parts();
            take_headers_of_query(&mut head).unwrap();
            let mut names: Vec<String> = head.headers.keys().map(ToString::to_string).collect();
            names.retain(|name| name.starts_with("x-amz-checksum-"));
            names
        };
        for query in [
            "x-amz-checksum-crc32=AAAAAA%3D%3D",
            "X-Amz-Checksum-Sha1=2jmj7l5rSw0yVb%2FvlWAYkK%2FYBwk%3D",
        ] {
            let name = query.split('=').next().unwrap().to_ascii_lowercase();
            assert_eq!(taken("PUT", query, "5"), [""; 0]);
            for (method, length) in [("PUT", "0"), ("GET", "5")] {
                assert_eq!(taken(method, query, length), [&*name]);
            }
        }
        let other = "x-amz-checksum-crc32=AAAAAQ%3D%3D";
        assert_eq!(taken("PUT", other, "5"), ["x-amz-checksum-crc32"]);
    }

    #[test]
    fn regions_that_cannot_be_one() {
        for (region, expected) in [("US", Err("region".to_owned())), ("eu-central-1", Ok(()))] {
            let signed = authorization("host").replace("us-east-1", region);
            let headers = [("host", "h"), ("authorization", signed.as_str())];
            assert_eq!(check("PUT", "/b", &headers), expected);
            let query = format!(
                "/b?X-Amz-Signature=0&X-Amz-SignedHeaders=host&\
                 X-Amz-Credential=K%2F20240101%2F{region}%2Fs3%2Faws4_request"
            );
            assert_eq!(check("PUT", &query, &[("host", "h")]), expected);
        }
    }
}
