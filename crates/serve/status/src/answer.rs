//! Answers requests under `/-/`, after checking the caller's right.

use crate::access::Access;
use crate::metrics::Connections;
use crate::orders::{MAX_BYTES, Order};
use crate::page;
use crate::status::{Status, Verdict};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use objects::{Peer, Unread};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// Prefix of all paths; no bucket has so short a name.
const PREFIX: &str = "/-/";
/// Paths with data of the drive.
const TOLD: [&str; 4] = [
    "/-/status.json",
    "/-/zones.json",
    "/-/zone.json",
    "/-/metrics",
];
/// Methods of paths that are only read.
pub const READ: &str = "GET, HEAD, OPTIONS";
/// Header of the page's own requests. Another site's page cannot send it without a preflight request, which is
/// refused.
const OWN: &str = "x-zonestore";
/// Time limit of an order's body.
const BODY: Duration = Duration::from_secs(5);

impl Status {
    /// Whether a request is for the status page, by its path.
    pub fn is_for(&self, path: &str) -> bool {
        self.access != Access::Off && path.starts_with(PREFIX)
    }

    /// Answers a request. `is_own_host`: its host name can only be the server's.
    pub async fn answer<B>(
        &self,
        request: Request<B>,
        is_own_host: bool,
        unread: &Unread,
    ) -> Response<Bytes>
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send,
    {
        let (head, body) = request.into_parts();
        let has_body = !body.is_end_stream();
        let mut is_read = false;
        let response = match (&head.method, head.uri.path()) {
            (method, path) if allowed(path).is_some_and(|allow| !has(allow, method)) => {
                other_method(method, allowed(path).unwrap_or_default())
            }
            (&Method::GET | &Method::HEAD, path) if page::file(path).is_some() => {
                shown(page::file(path))
            }
            (&Method::GET | &Method::HEAD, _) => match self.may_look(&head, is_own_host) {
                Ok(()) => self.tell(&head).await,
                Err(refusal) => refusal,
            },
            (&Method::POST, "/-/cleaner") => match self.may_order(&head) {
                Ok(()) => {
                    let order = tokio::time::timeout(BODY, Limited::new(body, MAX_BYTES).collect());
                    match order.await {
                        Ok(Ok(order)) => {
                            is_read = true;
                            self.carry_out(&order.to_bytes()).await
                        }
                        _ => refuse(StatusCode::BAD_REQUEST, "the order did not come whole"),
                    }
                }
                Err(refusal) => refusal,
            },
            _ => refuse(StatusCode::NOT_FOUND, "there is nothing here"),
        };
        let mut response = guarded(response);
        if has_body && !is_read {
            unread.set();
        }
        if head.method == Method::HEAD {
            let length = HeaderValue::from(response.body().len());
            response
                .headers_mut()
                .insert(header::CONTENT_LENGTH, length);
            *response.body_mut() = Bytes::new();
        }
        response
    }

    #[expect(clippy::result_large_err)]
    fn may_look(
        &self,
        head: &http::request::Parts,
        is_own_host: bool,
    ) -> Result<(), Response<Bytes>> {
        if self.access == Access::Open && !head.headers.contains_key(header::AUTHORIZATION) {
            // A page of another site could let its own name resolve to this address, and read what the browser gets
            // (DNS rebinding).
            return match is_own_host {
                true => Ok(()),
                false => Err(refuse(
                    StatusCode::BAD_REQUEST,
                    "this name may not be the server's: start it with --s3-domain",
                )),
            };
        }
        self.has_keys(head)
    }

    #[expect(clippy::result_large_err)]
    fn may_order(&self, head: &http::request::Parts) -> Result<(), Response<Bytes>> {
        if !head.headers.contains_key(OWN) {
            let why = "an order has the header X-ZoneStore, which no other site's page can send";
            return Err(refuse(StatusCode::FORBIDDEN, why));
        }
        self.has_keys(head)
    }

    #[expect(clippy::result_large_err)]
    fn has_keys(&self, head: &http::request::Parts) -> Result<(), Response<Bytes>> {
        match self.judge(&head.headers, asker(head)) {
            Verdict::Allowed => Ok(()),
            Verdict::Unknown { gave_keys } => {
                let why = match gave_keys {
                    true => "these are not the server's keys",
                    false => "this needs an access key and its secret",
                };
                let mut refusal = refuse(StatusCode::UNAUTHORIZED, why);
                // The page asks for keys itself; with this header, the browser would ask as well.
                if !head.headers.contains_key(OWN) {
                    let basic = HeaderValue::from_static("Basic realm=\"ZoneStore\"");
                    refusal
                        .headers_mut()
                        .insert(header::WWW_AUTHENTICATE, basic);
                }
                Err(refusal)
            }
            Verdict::NotAllowed => {
                let why = "this key may not: it takes one that may do everything (admin = true)";
                Err(refuse(StatusCode::FORBIDDEN, why))
            }
            Verdict::Wait(left) => {
                let why = "too many wrong secrets of this key from this address: wait a minute";
                let mut refusal = refuse(StatusCode::TOO_MANY_REQUESTS, why);
                let left = HeaderValue::from(left.as_secs() + 1);
                refusal.headers_mut().insert(header::RETRY_AFTER, left);
                Err(refusal)
            }
        }
    }

    async fn tell(&self, head: &http::request::Parts) -> Response<Bytes> {
        match head.uri.path() {
            "/-/status.json" => json(&self.document().await),
            "/-/zones.json" => self.zones(&head.headers).await,
            "/-/zone.json" => {
                let query = head.uri.query().unwrap_or_default();
                let number = query.strip_prefix("zone=").map(str::parse);
                let Some(Ok(number)) = number else {
                    return refuse(StatusCode::BAD_REQUEST, "write ?zone=NUMBER");
                };
                match self.zone(number).await {
                    Some(zone) => json(&zone),
                    None => refuse(StatusCode::NOT_FOUND, "no such zone is known"),
                }
            }
            "/-/metrics" => {
                let peer = head.extensions.get::<Arc<Peer>>();
                let (clients, strangers) = peer.map_or((0, 0), |peer| peer.connected());
                let connections = Connections { clients, strangers };
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                with_kind(kind, self.metrics(connections).await)
            }
            _ => refuse(StatusCode::NOT_FOUND, "there is nothing here"),
        }
    }

    /// All zones, or 304 if the client has them already.
    async fn zones(&self, headers: &HeaderMap) -> Response<Bytes> {
        let look = self.look(Duration::from_millis(900)).await;
        let Some(drive) = look.as_ref().and_then(|look| look.drive.as_ref()) else {
            return refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "the drive has not answered",
            );
        };
        let zones = &drive.codes;
        let known = headers.get(header::IF_NONE_MATCH);
        let mut response = if known.is_some_and(|known| known == zones.tag.as_str()) {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            with_kind("application/json", zones.json.clone())
        };
        if let Ok(tag) = HeaderValue::from_str(&zones.tag) {
            response.headers_mut().insert(header::ETAG, tag);
        }
        response
    }

    async fn carry_out(&self, order: &[u8]) -> Response<Bytes> {
        let order = match Order::read(order) {
            Ok(order) => order,
            Err(why) => return refuse(StatusCode::BAD_REQUEST, &why),
        };
        match self.order(order).await {
            Ok(Ok(status)) => json(&status),
            Ok(Err(error)) => refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
            Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        }
    }
}

/// Methods of a path, as in the header `Allow`; `None` if the path does not exist.
fn allowed(path: &str) -> Option<&'static str> {
    match path {
        "/-/cleaner" => Some("OPTIONS, POST"),
        path if page::file(path).is_some() || TOLD.contains(&path) => Some(READ),
        _ => None,
    }
}

fn has(allow: &str, method: &Method) -> bool {
    *method != Method::OPTIONS && allow.split(", ").any(|one| one == method.as_str())
}

/// The answer to `OPTIONS`, or to a method that a path does not have: its methods.
pub fn other_method(method: &Method, allow: &'static str) -> Response<Bytes> {
    let mut response = match *method {
        Method::OPTIONS => {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        _ => refuse(StatusCode::METHOD_NOT_ALLOWED, &format!("there is {allow}")),
    };
    let allow = HeaderValue::from_static(allow);
    response.headers_mut().insert(header::ALLOW, allow);
    response
}

fn asker(head: &http::request::Parts) -> IpAddr {
    let peer = head.extensions.get::<Arc<Peer>>();
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.asker())
}

fn with_kind(kind: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn json(told: &impl serde::Serialize) -> Response<Bytes> {
    match serde_json::to_vec(told) {
        Ok(body) => with_kind("application/json", body),
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

fn shown(file: Option<(&'static str, &'static str)>) -> Response<Bytes> {
    let (kind, text) = file.unwrap_or_default();
    with_kind(kind, Bytes::from_static(text.as_bytes()))
}

/// An answer of one line with the reason.
fn refuse(status: StatusCode, why: &str) -> Response<Bytes> {
    let mut response = with_kind("text/plain; charset=utf-8", format!("{why}\n"));
    *response.status_mut() = status;
    response
}

/// Adds headers against caching, sniffing, framing and scripts of other origins.
fn guarded(mut response: Response<Bytes>) -> Response<Bytes> {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, page::POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    let name = header::HeaderName::from_static("cross-origin-resource-policy");
    let value = HeaderValue::from_static("same-origin");
    response.headers_mut().insert(name, value);
    response
}
