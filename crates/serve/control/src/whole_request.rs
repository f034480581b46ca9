//! Reads requests to their end, within limits of time and size, before their handlers run.

use crate::api::{Kind, MAX_REQUEST_BYTES};
use crate::failure::Failure;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use std::time::Duration;
use tokio::time::Instant;

/// Time limit of a request's body.
const BODY: Duration = Duration::from_secs(5);
/// Limits, in time and bytes, for reading the rest of a request that is too large.
const TOO_LARGE: (Duration, usize) = (Duration::from_secs(2), 16 << 20);

/// Reads a request to its end before it is answered, whatever the answer: a client that is still writing when the
/// connection closes gets a broken pipe and never sees why it was refused.
pub async fn read_whole(request: Request, next: Next) -> Response {
    let (head, mut body) = request.into_parts();
    let mut whole = Vec::new();
    let invalid = |why: &dyn ToString| {
        Failure::new(StatusCode::BAD_REQUEST, Kind::Invalid, why.to_string()).into_response()
    };
    let until = Instant::now() + BODY;
    while whole.len() <= MAX_REQUEST_BYTES {
        match tokio::time::timeout_at(until, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                whole.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
            }
            Ok(Some(Err(error))) => return invalid(&error),
            Ok(None) => return next.run(Request::from_parts(head, Body::from(whole))).await,
            // A chunked body, for instance, without the chunk that ends it.
            Err(_) => return invalid(&"the end of the request's body did not come"),
        }
    }
    let (time, mut left) = TOO_LARGE;
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, |data| data.len());
            match left.checked_sub(bytes) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(time, rest).await;
    let message = format!("a request has at most {MAX_REQUEST_BYTES} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, Kind::TooLarge, message).into_response()
}
