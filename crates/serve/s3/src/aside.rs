//! Requests for the server itself, below `/-/`: whether it is there, and its status page.

use crate::config::ClientQuotas;
use crate::errors;
use crate::hosts::Hosts;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use objects::Unread;
use s3s::{Body, HttpError};
use status::Status;
use std::error::Error;
use std::sync::Arc;
use store::Store;

/// Answers without asking who it is: whether the server is there.
const HEALTH_PATH: &str = "/-/healthy";
/// Likewise: whether objects can be stored, for whoever spreads requests over servers.
const READY_PATH: &str = "/-/ready";

/// What such requests are answered from.
pub struct Aside {
    /// Whether objects can be stored there is told.
    pub store: Store,
    /// Which names are the server's.
    pub hosts: Hosts,
    /// What an address may ask for.
    pub quotas: ClientQuotas,
    /// The status page, if there is one.
    pub status: Option<Arc<Status>>,
}

impl Aside {
    /// Answers what is no request of S3's: a bucket's name is longer than `-`. The request, if it is one.
    pub async fn answer<B>(
        &self,
        request: Request<B>,
        unread: &Unread,
    ) -> Result<Result<Response<Body>, Request<B>>, HttpError>
    where
        B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>>
            + Send
            + 'static,
    {
        let path = request.uri().path();
        if !path.starts_with("/-/") {
            return Ok(Err(request));
        }
        let host = request.headers().get(http::header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let bucket = self.hosts.bucket(host);
        if matches!(bucket, Ok(Some(_))) {
            // An object of that bucket.
            return Ok(Err(request));
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let response = match (path, &self.status) {
            (HEALTH_PATH, _) if is_read => Response::new(Body::from("ok\n".to_owned())),
            (READY_PATH, _) if is_read => readiness(&self.store),
            (HEALTH_PATH | READY_PATH, _) => left_unread(
                status::other_method(request.method(), status::READ),
                &request,
                unread,
            )
            .map(Body::from),
            (_, Some(status)) if status.is_for(path) => {
                // Whoever has the keys may look although the address, perhaps a proxy's, is over its limit.
                match status.is_admin(request.headers()) {
                    false if let Err(error) = self.quotas.admit_address(request.extensions()) => {
                        left_unread(errors::response(error)?, &request, unread)
                    }
                    _ => {
                        let is_own_host = bucket.is_ok();
                        let answer = status.answer(request, is_own_host, unread).await;
                        answer.map(Body::from)
                    }
                }
            }
            _ => return Ok(Err(request)),
        };
        Ok(Ok(response))
    }
}

/// An answer to a request whose body nobody has read: the connection cannot go on behind it.
fn left_unread<T, B: http_body::Body>(
    response: Response<T>,
    request: &Request<B>,
    unread: &Unread,
) -> Response<T> {
    if !request.body().is_end_stream() {
        unread.set();
    }
    response
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
