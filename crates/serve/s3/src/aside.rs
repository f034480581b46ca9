//! Requests for the server itself, below `/-/`: health, readiness and the status page.

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

/// Answered to any caller: whether the server runs.
const HEALTH_PATH: &str = "/-/healthy";
/// Answered to any caller: whether objects can be stored, for load balancers.
const READY_PATH: &str = "/-/ready";

/// State for such requests.
pub struct Aside {
    /// The store, for readiness.
    pub store: Store,
    /// Host names of the server.
    pub hosts: Hosts,
    /// Quotas of addresses.
    pub quotas: ClientQuotas,
    /// The status page, if there is one.
    pub status: Option<Arc<Status>>,
}

impl Aside {
    /// Answers requests below `/-/`, which no bucket's name can be, for those are longer than `-`. Gives other
    /// requests back.
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
        let in_bucket = self.hosts.names_bucket(request.headers());
        if matches!(in_bucket, Ok(true)) {
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
                // An administrator may see the page even if the address, perhaps that of a proxy, is over its quota.
                match status.is_admin(request.headers()) {
                    false if let Err(error) = self.quotas.admit_address(request.extensions()) => {
                        left_unread(errors::response(error)?, &request, unread)
                    }
                    _ => {
                        let is_own_host = in_bucket.is_ok();
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

/// Marks a request's body as unread, after which the connection has to end.
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

/// Tells nothing else of the drive: any caller may ask.
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
