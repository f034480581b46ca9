//! Bodies of requests: with a time limit, and split into metadata and data.

use crate::crowd::unless_crowded;
use crate::failure::invalid;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use control::Failure;
use control::api::Kind;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use objects::{Flow, Inbound, Pace, Unread};
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most bytes of a body that needs no permit.
pub const SMALL: u64 = 64 << 10;

/// A body as it arrives.
pub type Incoming = BoxStream<'static, Result<Bytes, axum::Error>>;

/// A body without progress for this long fails. There is no least rate: the client on this socket is trusted to be no
/// slower than its own client.
const PACE: Pace = Pace {
    idle: Duration::from_secs(120),
    min_bytes_per_second: 0,
};

/// Name of metadata in errors; metadata is read as a whole.
pub const METADATA: &str = "metadata";
/// Name of a body in JSON.
pub const QUESTION: &str = "the request's body";

/// The bytes of a body as they arrive. Beyond [`SMALL`] bytes it needs one of `places`, whatever length was
/// announced, and holds it until this is dropped.
pub fn timed(body: Body, place: Option<OwnedSemaphorePermit>, places: Arc<Semaphore>) -> Incoming {
    let inbound = Inbound::new(body, Flow::default(), PACE, Unread::default());
    let body = Body::new(inbound).into_data_stream();
    let coming = stream::unfold(
        (body, place, places, 0),
        async |(mut body, mut place, places, came)| {
            let next = match &place {
                Some(_) => unless_crowded(|| places.available_permits() == 0, body.next()).await,
                None => Some(body.next().await),
            };
            let late = || Some(Err(axum::Error::new(io::Error::from(ErrorKind::TimedOut))));
            let mut piece = next.unwrap_or_else(late)?;
            let came = came + piece.as_ref().map_or(0, |piece| piece.len() as u64);
            if came > SMALL && place.is_none() {
                match places.clone().acquire_owned().await {
                    Ok(found) => place = Some(found),
                    Err(closed) => piece = Err(axum::Error::new(closed)),
                }
            }
            Some((piece, (body, place, places, came)))
        },
    );
    coming.boxed()
}

/// The first `bytes` bytes of a body, and the rest of it.
pub async fn split(
    mut body: Incoming,
    bytes: u64,
) -> Result<
    (
        Vec<u8>,
        impl Stream<Item = Result<Bytes, axum::Error>> + Unpin,
    ),
    Failure,
> {
    let mut head = Vec::new();
    let mut rest = Bytes::new();
    while (head.len() as u64) < bytes {
        let Some(piece) = body.next().await else {
            return Err(invalid(format_args!(
                "the body ends after {} of {bytes} bytes of metadata",
                head.len()
            )));
        };
        rest = piece.map_err(broken_off)?;
        let missing = usize::try_from(bytes).unwrap_or(usize::MAX) - head.len();
        head.extend_from_slice(&rest.split_to(missing.min(rest.len())));
    }
    Ok((head, stream::iter([Ok(rest)]).chain(body)))
}

/// A whole body of at most `most` bytes, which `what` names in errors.
pub async fn whole(mut body: Incoming, what: &str, most: u64) -> Result<Vec<u8>, Failure> {
    let mut whole = Vec::new();
    while let Some(piece) = body.next().await {
        whole.extend_from_slice(&piece.map_err(broken_off)?);
        if whole.len() as u64 > most {
            return Err(too_large(what, most));
        }
    }
    Ok(whole)
}

/// The error for a body that did not arrive completely.
pub fn broken_off(error: impl Display) -> Failure {
    let message = format!("the request's body broke off: {error}");
    Failure::new(StatusCode::BAD_REQUEST, Kind::BrokenOff, message)
}

/// The error for a body or a part of one of more than `most` bytes.
pub fn too_large(what: &str, most: u64) -> Failure {
    let message = format!("{what} has at most {most} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, Kind::TooLarge, message)
}
