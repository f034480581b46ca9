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
/// How long a socket may take no byte.
const PATIENCE: Duration = Duration::from_secs(60);
/// So often an empty frame says that data is still being sent.
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
        let answer = match to(socket) {
            Ok(to) => match send_watched(&calls, &mut handover, &message, &to).await {
                Some(answer) => answer,
                // Nobody waits for an answer.
                None => return,
            },
            Err(failure) => json(failure.problem()),
        };
        if handover.answer(&answer).await.is_err() {
            return;
        }
    }
}

fn to(socket: Option<OwnedFd>) -> Result<HandedStream, Failure> {
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
/// Where not all was sent, the socket is cut, so that nobody takes it for all.
async fn send_watched(
    calls: &Arc<SwiftCalls>,
    handover: &mut Handover,
    message: &[u8],
    to: &HandedStream,
) -> Option<Vec<u8>> {
    let mut sent = 0;
    let outcome = {
        let sending = send(calls, message, to, &mut sent);
        tokio::pin!(sending);
        let mut beat = interval_at(Instant::now() + BEAT, BEAT);
        loop {
            tokio::select! {
                outcome = &mut sending => break Some(outcome),
                () = handover.interrupted() => break None,
                _ = beat.tick() => if handover.answer(&[]).await.is_err() { break None },
            }
        }
    };
    match &outcome {
        Some(Ok(wanted)) if *wanted == sent => to.uncork(),
        // The client may still send something else.
        Some(Err(_)) if sent == 0 => {}
        _ => to.cut(),
    }
    outcome.map(|outcome| match outcome {
        Ok(_) => json(&Sent { sent }),
        Err(failure) => json(failure.problem()),
    })
}

/// Sends until the socket takes no more, and counts the bytes that it `sent`; returns how many were asked for.
async fn send(
    calls: &Arc<SwiftCalls>,
    message: &[u8],
    to: &HandedStream,
    sent: &mut u64,
) -> Result<u64, Failure> {
    let Send { opened } = parse(message)?;
    let reader = calls.opened.take(&opened).ok_or_else(|| gone(&opened))?;
    let length = reader.info().size;
    let _place = calls.any_place().await?;
    let mut data = calls.download(reader, 0..length).await?;
    while let Some(part) = data.next().await {
        let mut part = &*part.map_err(of_read)?;
        while !part.is_empty() {
            match to.write(part, PATIENCE).await {
                Ok(written) => {
                    *sent += written as u64;
                    part = &part[written..];
                }
                Err(error) => {
                    tracing::debug!(%error, "a socket took no more");
                    return Ok(length);
                }
            }
        }
    }
    Ok(length)
}
