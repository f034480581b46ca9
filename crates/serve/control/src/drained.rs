//! Lets clients read an error that is answered before their request's body has ended.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// Limits, in time and bytes, for reading the rest of a body after an error.
const REST: (Duration, usize) = (Duration::from_secs(2), 64 << 20);

/// A body that its handler reads, and whose rest can be read after the handler returns.
#[derive(Clone)]
struct Shared(Arc<Mutex<Body>>);

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        body.size_hint()
    }
}

/// Reads the rest of a request's body before an error is answered. Closing a connection with unread bytes would reset
/// it, and the client would see a broken pipe instead of the reason.
pub async fn drain(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let mut body = Shared(Arc::new(Mutex::new(body)));
    let request = Request::from_parts(head, Body::new(body.clone()));
    let answer = next.run(request).await;
    if answer.status().is_success() || body.is_end_stream() {
        return answer;
    }
    let (time, mut left) = REST;
    let rest = async {
        while let Some(Ok(frame)) = body.frame().await {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(bytes) {
                Some(less) => left = less,
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(time, rest).await;
    answer
}
