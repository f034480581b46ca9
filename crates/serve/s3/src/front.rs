//! Passes requests from HTTP to `s3s` and answers back: checks the head, watches the body, counts the request, and
//! completes the answer.

use crate::aside::Aside;
use crate::asked::Asked;
use crate::auth::NoBody;
use crate::body::{Checked, Document, Failed};
use crate::config::{ClientQuotas, Clock, Limits};
use crate::digest::Announced;
use crate::encoded_words;
use crate::errors;
use crate::gateway::Gateway;
use crate::head::{self, Refusal};
use crate::hosts::Hosts;
use crate::object::{BareTag, PartialContent};
use crate::operations::puts_no_data;
use crate::record::{Received, Record, Refusals, Sent};
use crate::sent_document::SentDocument;
use crate::xml;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, request};
use objects::digest::{Digester, hex};
use objects::{BodyFailure as Broken, Classes, Flow, Inbound, Metered, Pace, Peer, Unread};
use s3s::service::S3Service;
use s3s::{Body, HttpError, S3Result, s3_error};
use status::{AnswerBody, Answering, Requests, Status};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::Instrument;

/// Entry point of all requests.
pub struct Front {
    service: S3Service,
    aside: Aside,
    pace: Pace,
    max_document_bytes: u64,
    region: String,
    hosts: Hosts,
    quotas: ClientQuotas,
    refusals: Arc<Refusals>,
    run: String,
    requests: AtomicU64,
    classes: Classes<(Asked, StatusCode)>,
    counts: Arc<Requests>,
    clock: Clock,
}

impl Front {
    /// Request ids begin with `run` and are numbered within this run of the server.
    pub fn new(
        service: S3Service,
        gateway: &Gateway,
        limits: &Limits,
        hosts: Hosts,
        quotas: ClientQuotas,
        run: [u8; 4],
        status: Option<Arc<Status>>,
    ) -> Self {
        let pace = Pace {
            idle: limits.idle_timeout,
            min_bytes_per_second: limits.min_bytes_per_second,
        };
        let max_document_bytes = limits.max_document_bytes as u64;
        let requests = AtomicU64::new(0);
        Self {
            service,
            aside: Aside {
                store: gateway.store.clone(),
                hosts: hosts.clone(),
                quotas: quotas.clone(),
                status: status.clone(),
            },
            pace,
            max_document_bytes,
            region: gateway.region.clone(),
            hosts,
            quotas,
            refusals: Arc::default(),
            run: hex(&run),
            requests,
            classes: Classes::default(),
            counts: status
                .as_ref()
                .map(|status| status.requests())
                .unwrap_or_default(),
            clock: gateway.clock.clone(),
        }
    }

    /// Answers a request; sets `unread` if its body was not read to the end.
    pub async fn handle<B>(
        &self,
        request: Request<B>,
        unread: Unread,
    ) -> Result<Response<AnswerBody<Body>>, HttpError>
    where
        B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>
            + Send
            + 'static,
    {
        let in_bucket = self.hosts.names_bucket(request.headers()).unwrap_or(false);
        let asked = Asked::of(&request, in_bucket);
        let request = match self.aside.answer(request, &unread).await? {
            Ok(response) => return Ok(AnswerBody::uncounted(response)),
            Err(request) => request,
        };
        let answering = self
            .counts
            .begin(asked.method, request.uri().path().to_owned());
        let response = self.handle_s3(request, asked, unread, &answering).await?;
        Ok(AnswerBody::sent(response, answering))
    }

    async fn handle_s3<B>(
        &self,
        request: Request<B>,
        asked: Asked,
        unread: Unread,
        answering: &Answering,
    ) -> Result<Response<Body>, HttpError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
    {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}{number:08x}", self.run);
        let named = head::access_key(&request);
        let record = Record::new(
            &request,
            id.clone(),
            named,
            self.refusals.clone(),
            answering.clone(),
        );
        let record = Arc::new(record);
        let method = request.method().clone();
        let resource = request.uri().path().to_owned();
        let signed_at = head::signed_at(&request);
        let waits = request.headers().contains_key(http::header::EXPECT);
        let nothing_to_say = request.body().is_end_stream();
        let peer = request.extensions().get::<Arc<Peer>>().cloned();
        let mut has_left = false;
        let mut response = match self.admit(request, unread.clone(), &record) {
            Ok((request, failed)) => {
                let answered = self.service.call(request).instrument(record.span());
                let response = answered.await?;
                let failure = failed.failure();
                has_left = failure == Some(Broken::Disconnected.into());
                match failure {
                    // The body's own failure is the cause, whatever error the layers above made of it.
                    Some(failure) if !response.status().is_success() => {
                        errors::response(failure.to_error())?
                    }
                    _ => response,
                }
            }
            Err(Refusal::Error(error)) => errors::response(error)?,
            Err(Refusal::Region) => self.other_region(),
        };
        let times = (signed_at.as_deref(), (self.clock)());
        finish(&mut response, &method, &resource, &id, times);
        if waits && nothing_to_say {
            // After an answer to an empty body that waited for `100 Continue`, botocore 1.43 reads the next one on the
            // connection without its first line.
            let close = HeaderValue::from_static("close");
            response
                .headers_mut()
                .insert(http::header::CONNECTION, close);
        }
        if response.extensions().get::<PartialContent>().is_some() {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        }
        // The request is still answered: the client may have closed one direction only.
        let status = match has_left {
            true => record.left(),
            false => response.status(),
        };
        if let Some(count) = self.classes.count((asked, status)) {
            let Asked { method, about } = asked;
            let status = status.as_u16();
            tracing::info!(method, about, status, count, "answered");
        }
        if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
            // The reason was logged where it occurred; this adds the request's id.
            tracing::error!(request = %id, "answered 500");
        }
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert("x-amz-request-id", id);
        }
        response
            .headers_mut()
            .insert("server", HeaderValue::from_static("ZoneStore"));
        record.answer(status);
        let response = response.map(|body| match (body.bytes(), record.permit()) {
            (Some(bytes), Some(permit)) => {
                Body::http_body_unsync(SentDocument::new(bytes, permit, peer))
            }
            _ => body,
        });
        // The body holds the record, so the access log is written when the body has been sent.
        Ok(response.map(|body| Body::http_body_unsync(Metered::new(body, Sent(record)))))
    }

    fn admit<B>(
        &self,
        request: Request<B>,
        unread: Unread,
        record: &Arc<Record>,
    ) -> Result<(Request<Body>, Failed), Refusal>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
    {
        let (mut head, body) = request.into_parts();
        let (flow, failed) = (Flow::default(), Failed::default());
        let left = unread.clone();
        let at_end = body.is_end_stream();
        let counted = self.quotas.admit_address(&head.extensions);
        let admitted = counted.map_err(Refusal::from).and_then(|account| {
            account
                .into_iter()
                .for_each(|account| record.charge_address(account));
            self.check(&mut head)
        });
        let admitted = admitted.and_then(|document| {
            let body = Metered::new(body, Received(record.clone()));
            let body = Inbound::new(body, flow.clone(), self.pace, unread);
            Ok(Checked::new(body, &head.headers, document, failed.clone())?)
        });
        if admitted.is_err() && !at_end {
            left.set();
        }
        let body = Body::http_body_unsync(admitted?);
        head.extensions.insert(flow);
        head.extensions.insert(failed.clone());
        head.extensions.insert(record.clone());
        if at_end {
            head.extensions.insert(NoBody);
        }
        Ok((Request::from_parts(head, body), failed))
    }

    fn check(&self, head: &mut request::Parts) -> Result<Option<Document>, Refusal> {
        let checked = head::check(head).and_then(|()| Ok(head::take_headers_of_query(head)?));
        hide_secrets(head);
        checked?;
        encoded_words::check(&head.headers)?;
        compare_with_nothing(head)?;
        let max_bytes = self.max_document_bytes;
        let host = head.headers.get(http::header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        if let Some(authority) = head.uri.authority()
            && !authority.as_str().eq_ignore_ascii_case(host)
        {
            // Either name may be that of a bucket, and only one of them is signed.
            return Err(s3_error!(
                InvalidRequest,
                "The request is to {authority} and its Host header says {host}"
            )
            .into());
        }
        let in_bucket = self.hosts.names_bucket(&head.headers)?;
        Ok(document(head, in_bucket)?.map(|announced| Document {
            announced,
            max_bytes,
        }))
    }

    /// Answers a request that was signed for an invalid region with the right one, as S3 does; the client then
    /// repeats its request.
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

/// Marks header values that must not appear in a log.
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

/// Completes the document of an answer. `times`: when the request was signed, and now.
fn finish(
    response: &mut Response<Body>,
    method: &Method,
    resource: &str,
    id: &str,
    times: (Option<&str>, u64),
) {
    let no_body = method == Method::HEAD || response.status() == StatusCode::NOT_MODIFIED;
    if no_body && !response.status().is_success() {
        response.headers_mut().remove(http::header::CONTENT_LENGTH);
        *response.body_mut() = Body::empty();
        return;
    }
    let kind = response.headers().get(http::header::CONTENT_TYPE);
    if kind.is_none() && !response.status().is_success() {
        // `s3s` drops the type where an error has headers of its own.
        let xml = HeaderValue::from_static("application/xml");
        response
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, xml);
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
        let worded = worded.or_else(|| errors::with_times(document, times));
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

/// Digests announced for a request's body if that is a document, as all bodies but object data are. `in_bucket`: the
/// host names the bucket, so the path is only the key.
fn document(head: &request::Parts, in_bucket: bool) -> S3Result<Option<Announced>> {
    // One slash only, as in `s3s`: further ones belong to the key.
    let path = head.uri.path();
    let path = path.strip_prefix('/').unwrap_or(path);
    let key = if in_bucket {
        path
    } else {
        path.split_once('/').unwrap_or_default().1
    };
    let query = head.uri.query().unwrap_or_default();
    let names = || form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    match head.method {
        Method::PUT if key.is_empty() || names().any(|name| puts_no_data(&name)) => {
            Announced::of(&head.headers).map(Some)
        }
        Method::POST => {
            if names().any(|name| name == "uploadId") {
                // Checksums in its headers are those of the completed object.
                return Announced::md5_of(&head.headers).map(Some);
            }
            Announced::of(&head.headers).map(Some)
        }
        _ => Ok(None),
    }
}

/// The bodies of copies and removals are never read: announced digests have to be those of an empty body.
fn compare_with_nothing(head: &request::Parts) -> S3Result<()> {
    if head.method != Method::DELETE && !head.headers.contains_key("x-amz-copy-source") {
        return Ok(());
    }
    let announced = Announced::of(&head.headers)?;
    let nothing = Digester::new(announced.algorithms()).finish();
    announced.verify(&nothing, None)
}

#[cfg(test)]
mod tests;
