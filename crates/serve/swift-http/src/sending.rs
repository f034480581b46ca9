//! Sends opened data into sockets that clients hand over.

use crate::api::{Send, Sent};
use crate::crowd::unless_crowded;
use crate::failure::{gone, of_read};
use crate::handed::{Handed, json, sockets};
use crate::state::Calls;
use axum::extract::{Request, State};
use axum::response::Response;
use control::{Failure, parse};
use futures::StreamExt;
use std::io::ErrorKind;
use std::time::Duration;

/// What a connection speaks over which sockets are handed over to send to.
const PROTOCOL: &str = "zonestore-sending";
/// How long a socket may take no byte, and the drive give no data.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes the connection one over which sockets are handed over.
pub async fn sending(State(calls): Calls, request: Request) -> Response {
    sockets(calls, request, PROTOCOL, |handed| async {
        match send(handed).await {
            Ok(sent) => json(&Sent { sent }),
            Err(failure) => json(failure.problem()),
        }
    })
}

/// Sends until the socket takes no more; returns how many bytes it took.
async fn send(handed: Handed) -> Result<u64, Failure> {
    let Handed {
        calls,
        message,
        stream: mut to,
        ..
    } = handed;
    let Send { opened } = parse(&message)?;
    let reader = calls.opened.take(&opened).ok_or_else(|| gone(&opened))?;
    let length = reader.info().size;
    let _place = soon(calls.any_place()).await??;
    let mut data = soon(calls.download(reader, 0..length)).await??;
    let mut sent = 0;
    while let Some(part) = soon(data.next()).await? {
        let mut part = &*part.map_err(of_read)?;
        while !part.is_empty() {
            let writing = to.write(part, PATIENCE);
            let wrote = unless_crowded(|| calls.places_are_taken(), writing).await;
            match wrote.unwrap_or_else(|| Err(ErrorKind::TimedOut.into())) {
                Ok(written) => {
                    sent += written as u64;
                    part = &part[written..];
                }
                Err(error) => {
                    tracing::debug!(%error, "a socket took no more");
                    return Ok(sent);
                }
            }
        }
    }
    to.finish();
    Ok(sent)
}

/// Waits for the drive no longer than a client would that reads by itself.
async fn soon<T>(waited: impl Future<Output = T>) -> Result<T, Failure> {
    let late = |_| Failure::failed("the drive has given no data for a minute");
    tokio::time::timeout(PATIENCE, waited).await.map_err(late)
}
