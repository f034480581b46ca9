//! Sends opened data into sockets that clients hand over, those of their own clients: so the bytes pass one process less.

use crate::api::{Send, Sent};
use crate::failure::{gone, invalid, of_read};
use crate::state::{Calls, SwiftCalls};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::UPGRADE;
use axum::response::{IntoResponse, Response};
use control::api::Kind;
use control::{Failure, HandedStream, Handover, parse};
use futures::StreamExt;
use serde::Serialize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, interval_at};

/// What a connection speaks over which sockets are handed over.
const PROTOCOL: &str = "zonestore-sending";
/// How long a socket may take no byte, the client no frame, and the drive give no data.
const PATIENCE: Duration = Duration::from_secs(60);
/// So often an empty frame says that this goes on.
const BEAT: Duration = Duration::from_secs(1);

/// Makes the connection one over which sockets are handed over.
pub async fn sending(State(calls): Calls, request: Request) -> Response {
    if !Handover::is_asked(&request, PROTOCOL) {
        let message = format!("this call needs Connection: upgrade and Upgrade: {PROTOCOL}");
        let refused = Failure::new(StatusCode::UPGRADE_REQUIRED, Kind::Invalid, message);
        return ([(UPGRADE, PROTOCOL)], refused).into_response();
    }
    Handover::after(request, PROTOCOL, move |handover| serve(calls, handover))
}

async fn serve(calls: Arc<SwiftCalls>, mut handover: Handover) {
    while let Ok(Some((message, socket))) = handover.receive().await {
        let answer = match stream_of(socket) {
            Ok(to) => match send_watched(&calls, &mut handover, &message, to).await {
                Some(answer) => answer,
                // Nobody waits for an answer.
                None => return,
            },
            Err(failure) => json(failure.problem()),
        };
        if handover.answer(&answer, PATIENCE).await.is_err() {
            return;
        }
    }
}

fn stream_of(socket: Option<OwnedFd>) -> Result<HandedStream, Failure> {
    let socket = socket.ok_or_else(|| invalid("no socket came with the message"))?;
    HandedStream::new(socket).map_err(|error| {
        invalid(format_args!(
            "what came with the message is no socket to send to: {error}"
        ))
    })
}

fn json(answer: &impl Serialize) -> Vec<u8> {
    // Only names, numbers and text, so this does not fail.
    serde_json::to_vec(answer).unwrap_or_default()
}

/// Sends what the message asks for and returns the answer; `None` if the client has ended the connection meanwhile.
async fn send_watched(
    calls: &Arc<SwiftCalls>,
    handover: &mut Handover,
    message: &[u8],
    to: HandedStream,
) -> Option<Vec<u8>> {
    let sending = send(calls, message, to);
    tokio::pin!(sending);
    let mut beat = interval_at(Instant::now() + BEAT, BEAT);
    loop {
        tokio::select! {
            outcome = &mut sending => return Some(match outcome {
                Ok(sent) => json(&Sent { sent }),
                Err(failure) => json(failure.problem()),
            }),
            () = handover.interrupted() => return None,
            _ = beat.tick() => handover.answer(&[], PATIENCE).await.ok()?,
        }
    }
}

/// Sends until the socket takes no more; returns how many bytes it took.
async fn send(
    calls: &Arc<SwiftCalls>,
    message: &[u8],
    mut to: HandedStream,
) -> Result<u64, Failure> {
    let Send { opened } = parse(message)?;
    let reader = calls.opened.take(&opened).ok_or_else(|| gone(&opened))?;
    let length = reader.info().size;
    let _place = soon(calls.any_place()).await??;
    let mut data = soon(calls.download(reader, 0..length)).await??;
    let mut sent = 0;
    while let Some(part) = soon(data.next()).await? {
        let mut part = &*part.map_err(of_read)?;
        while !part.is_empty() {
            match to.write(part, PATIENCE).await {
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
