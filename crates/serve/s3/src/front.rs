//! A request from HTTP to `s3s` and back: the checks before, the body's watch, and the last word
//! on the answer.

use crate::asked::Asked;
use crate::auth::NoBody;
use crate::body::{Checked, Document, Failed};
use crate::config::Limits;
use crate::digest::Announced;
use crate::errors;
use crate::head::{self, Refusal};
use crate::hosts::Hosts;
use crate::object::{BareTag, PartialContent};
use crate::xml;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, request};
use objects::digest::{Digester, hex};
use objects::{Classes, Flow, Inbound, Pace, Unread};
use s3s::service::S3Service;
use s3s::{Body, HttpError, S3Error, S3Result, s3_error};
use std::sync::atomic::{AtomicU64, Ordering};
use store::Store;

/// Answers without asking who it is: whether the server is there.
const HEALTH_PATH: &str = "/-/healthy";
/// Likewise: whether objects can be stored, for whoever spreads requests over servers.
const READY_PATH: &str = "/-/ready";

/// The front of the service.
pub struct Front {
    service: S3Service,
    store: Store,
    pace: Pace,
    max_document_bytes: u64,
    region: String,
    hosts: Hosts,
    run: String,
    requests: AtomicU64,
    classes: Classes<(Asked, StatusCode)>,
}

impl Front {
    /// Requests are numbered within this run of the server.
    pub fn new(
        service: S3Service,
        store: Store,
        limits: &Limits,
        region: String,
        hosts: Hosts,
        run: [u8; 4],
    ) -> Self {
        let pace = Pace {
            idle: limits.idle_timeout,
            min_bytes_per_second: limits.min_bytes_per_second,
        };
        let max_document_bytes = limits.max_document_bytes as u64;
        let requests = AtomicU64::new(0);
        Self {
            service,
            store,
            pace,
            max_document_bytes,
            region,
            hosts,
            run: hex(&run),
            requests,
            classes: Classes::default(),
        }
    }

    /// Answers a request; tells if it left the body unread.
    pub async fn handle<B>(
        &self,
        request: Request<B>,
        unread: Unread,
    ) -> Result<Response<Body>, HttpError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
    {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            match request.uri().path() {
                HEALTH_PATH => return Ok(Response::new(Body::from("ok\n".to_owned()))),
                READY_PATH => return Ok(readiness(&self.store)),
                _ => {}
            }
        }
        let method = request.method().clone();
        let resource = request.uri().path().to_owned();
        let asked = Asked::of(&request);
        let waits = request.headers().contains_key(http::header::EXPECT);
        let nothing_to_say = request.body().is_end_stream();
        let mut response = match self.admit(request, unread.clone()) {
            Ok((request, failed)) => {
                let response = self.service.call(request).await?;
                match failed.failure() {
                    // Whatever was made of the broken body, this is what happened.
                    Some(failure) if !response.status().is_success() => {
                        in_words(failure.to_error())?
                    }
                    _ => response,
                }
            }
            Err(Refusal::Error(error)) => in_words(error)?,
            Err(Refusal::Region) => self.other_region(),
        };
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}{number:08x}", self.run);
        finish(&mut response, &method, &resource, &id);
        if unread.is_set() || (waits && nothing_to_say) {
            // A client that waits for `100 Continue` does not send the body after this answer. On a
            // connection that goes on, its next request would be taken for that body. After such an answer
            // to an empty body, botocore 1.43 reads the next one on the connection without its first line.
            let close = HeaderValue::from_static("close");
            response
                .headers_mut()
                .insert(http::header::CONNECTION, close);
        }
        if response.extensions().get::<PartialContent>().is_some() {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        if let Some(count) = self.classes.count((asked, response.status())) {
            let Asked { method, about } = asked;
            let status = response.status().as_u16();
            tracing::info!(method, about, status, count, "answered");
        }
        if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
            // The reason has been logged where it was found; this says whom it hit.
            tracing::error!(request = %id, "answered 500");
        }
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert("x-amz-request-id", id);
        }
        response
            .headers_mut()
            .insert("server", HeaderValue::from_static("ZoneStore"));
        Ok(response)
    }

    fn admit<B>(
        &self,
        request: Request<B>,
        unread: Unread,
    ) -> Result<(Request<Body>, Failed), Refusal>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
    {
        let (mut head, body) = request.into_parts();
        let (flow, failed) = (Flow::default(), Failed::default());
        let left = unread.clone();
        let at_end = body.is_end_stream();
        let admitted = self.check(&mut head).and_then(|document| {
            let body = Inbound::new(body, flow.clone(), self.pace, unread);
            Ok(Checked::new(body, &head.headers, document, failed.clone())?)
        });
        if admitted.is_err() && !at_end {
            left.set();
        }
        let body = Body::http_body_unsync(admitted?);
        head.extensions.insert(flow);
        head.extensions.insert(failed.clone());
        if at_end {
            head.extensions.insert(NoBody);
        }
        Ok((Request::from_parts(head, body), failed))
    }

    fn check(&self, head: &mut request::Parts) -> Result<Option<Document>, Refusal> {
        let checked = head::check(head).and_then(|()| Ok(head::take_headers_of_query(head)?));
        hide_secrets(head);
        checked?;
        compare_with_nothing(head)?;
        let max_bytes = self.max_document_bytes;
        let host = head.headers.get(http::header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        if let Some(authority) = head.uri.authority()
            && !authority.as_str().eq_ignore_ascii_case(host)
        {
            // Either may name a bucket, and only one of them is signed.
            return Err(s3_error!(
                InvalidRequest,
                "The request is to {authority} and its Host header says {host}"
            )
            .into());
        }
        let in_bucket = self.hosts.bucket(host)?.is_some();
        Ok(document(head, in_bucket)?.map(|announced| Document {
            announced,
            max_bytes,
        }))
    }

    /// The client signed for a region that cannot be one; it is told which one is, as S3 does, and
    /// comes back.
    fn other_region(&self) -> Response<Body> {
        let region = &self.region;
        let document = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <Error><Code>AuthorizationHeaderMalformed</Code><Message>The authorization header is \
             malformed; expecting region '{region}'</Message><Region>{region}</Region></Error>"
        );
        let mut response = Response::new(Body::from(document));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        let kind = HeaderValue::from_static("application/xml");
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, kind);
        response
    }
}

/// Says nothing of the drive but this: anybody may ask.
fn readiness(store: &Store) -> Response<Body> {
    let why = match (
        store.failure(),
        store.waiting().iter().map(|w| w.seconds).max(),
    ) {
        (Some(_), _) => "nothing can be written before a restart".to_owned(),
        (None, Some(seconds)) => format!("the drive has not answered for {seconds} s"),
        (None, None) => return Response::new(Body::from("ready\n".to_owned())),
    };
    let mut response = Response::new(Body::from(format!("not ready: {why}\n")));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// Marks what nobody may find in a log, wherever in the request it came.
fn hide_secrets(head: &mut request::Parts) {
    for (name, value) in &mut head.headers {
        let name = name.as_str();
        let is_secret = matches!(
            name,
            "authorization" | "proxy-authorization" | "cookie" | "x-amz-security-token"
        );
        if is_secret || name.ends_with("-customer-key") {
            value.set_sensitive(true);
        }
    }
}

/// The last word on an answer's document.
fn finish(response: &mut Response<Body>, method: &Method, resource: &str, id: &str) {
    let no_body = method == Method::HEAD || response.status() == StatusCode::NOT_MODIFIED;
    if no_body && !response.status().is_success() {
        response.headers_mut().remove(http::header::CONTENT_LENGTH);
        *response.body_mut() = Body::empty();
        return;
    }
    let kind = response.headers().get(http::header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "application/xml") {
        return;
    }
    let Some(bytes) = response.body().bytes() else {
        return;
    };
    let Ok(document) = std::str::from_utf8(&bytes) else {
        return;
    };
    let mut changed = None;
    if !response.status().is_success() {
        let worded = errors::in_words(document.as_bytes());
        let worded = worded.as_deref().unwrap_or(document);
        changed = xml::with_request(worded, resource, id);
    } else if response.extensions().get::<BareTag>().is_some() {
        changed = Some(xml::with_bare_tag(document));
    }
    let last = changed.as_deref().unwrap_or(document);
    if !xml::is_sound(last) {
        changed = Some(xml::mend(last));
    }
    if let Some(changed) = changed {
        response.headers_mut().remove(http::header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(changed);
    }
}

/// What was announced of a request's body if that is a document: all bodies but an object's data.
/// The path is one in a bucket if the host names that.
fn document(head: &request::Parts, in_bucket: bool) -> S3Result<Option<Announced>> {
    let path = head.uri.path().trim_start_matches('/');
    let key = if in_bucket {
        path
    } else {
        path.split_once('/').unwrap_or_default().1
    };
    match head.method {
        Method::PUT if key.is_empty() => Announced::of(&head.headers).map(Some),
        Method::POST => {
            let query = head.uri.query().unwrap_or_default();
            if form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "uploadId") {
                // Checksums are of the object that the upload becomes.
                return Announced::md5_of(&head.headers).map(Some);
            }
            Announced::of(&head.headers).map(Some)
        }
        _ => Ok(None),
    }
}

/// Copies and removals have no body that anybody reads: what is announced of it has to be that of no bytes.
fn compare_with_nothing(head: &request::Parts) -> S3Result<()> {
    if head.method != Method::DELETE && !head.headers.contains_key("x-amz-copy-source") {
        return Ok(());
    }
    let announced = Announced::of(&head.headers)?;
    let nothing = Digester::new(announced.algorithms()).finish();
    announced.verify(&nothing, None)
}

fn in_words(error: S3Error) -> Result<Response<Body>, HttpError> {
    error
        .to_http_response()
        .map_err(|error| HttpError::new(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(method: Method, uri: &str) -> Option<Announced> {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("x-amz-checksum-crc32", "AAAAAA==")
            .body(())
            .unwrap();
        document(&request.into_parts().0, false).unwrap()
    }

    #[test]
    fn secrets_are_marked_wherever_they_came() {
        let request = Request::builder()
            .uri("/b/k?X-Amz-Security-Token=hidden&x-amz-acl=private")
            .header("authorization", "hidden")
            .header("x-amz-server-side-encryption-customer-key", "hidden")
            .body(())
            .unwrap();
        let mut head = request.into_parts().0;
        head::take_headers_of_query(&mut head).unwrap();
        hide_secrets(&mut head);
        let shown = format!("{:?}", head.headers);
        assert!(
            shown.contains("private") && !shown.contains("hidden"),
            "{shown}"
        );
    }

    #[test]
    fn documents_are_told_from_data() {
        assert_eq!(announced(Method::PUT, "/b/k"), None);
        assert_eq!(announced(Method::GET, "/b"), None);
        assert!(announced(Method::PUT, "/b").unwrap().checksum.is_some());
        assert!(announced(Method::PUT, "/b/").unwrap().checksum.is_some());
        assert!(
            announced(Method::POST, "/b?delete")
                .unwrap()
                .checksum
                .is_some()
        );
        assert!(
            announced(Method::POST, "/b/k?uploadId=x")
                .unwrap()
                .checksum
                .is_none()
        );
    }

    #[test]
    fn digests_of_a_body_that_is_not_there_are_of_nothing() {
        let check = |method: Method, name: &str, value: &str, copies: bool| {
            let mut request = Request::builder().method(method).uri("/b/k");
            request = request.header(name, value);
            if copies {
                request = request.header("x-amz-copy-source", "/b/from");
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            let code = |error: S3Error| error.code().as_str().to_owned();
            compare_with_nothing(&head).map_err(code)
        };
        let (wrong, malformed) = (Err("BadDigest".to_owned()), Err("InvalidDigest".to_owned()));
        for (method, copies) in [(Method::DELETE, false), (Method::PUT, true)] {
            let with = |name, value| check(method.clone(), name, value, copies);
            assert_eq!(with("x-amz-checksum-crc32", "AAAAAA=="), Ok(()));
            assert_eq!(with("x-amz-checksum-crc32", "AAAAAQ=="), wrong);
            assert_eq!(with("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="), Ok(()));
            assert_eq!(with("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="), wrong);
            assert_eq!(with("content-md5", "x"), malformed);
        }
        // Of an object's data, who writes it finds out.
        let data = check(Method::PUT, "x-amz-checksum-crc32", "AAAAAQ==", false);
        assert_eq!(data, Ok(()));
    }
}
