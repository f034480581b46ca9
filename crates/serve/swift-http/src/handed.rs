//! Connections over which clients hand sockets over, those of their own clients: so the bytes of objects pass one process less.

use crate::api::Passed;
use crate::failure::invalid;
use crate::state::SwiftCalls;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::UPGRADE;
use axum::response::{IntoResponse, Response};
use control::api::Kind;
use control::{Failure, HandedStream, Handover};
use serde::Serialize;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, interval_at};

/// How long the client may leave an answer untaken.
const PATIENCE: Duration = Duration::from_secs(60);
/// So often a frame says that this goes on. The body stands still while a frame is not taken, and there is room for some
/// hundred frames: a client that takes none for as long is gone.
const BEAT: Duration = Duration::from_millis(500);

/// A socket that was handed over, and the message that came with it.
pub struct Handed {
    pub calls: Arc<SwiftCalls>,
    pub message: Vec<u8>,
    pub stream: HandedStream,
    pub progress: Arc<BodyProgress>,
}

/// What the client is told about meanwhile.
#[derive(Default)]
pub struct BodyProgress {
    /// Bytes that were taken from the socket.
    pub passed: AtomicU64,
    /// Whether the drive is waited for, and not the socket.
    pub is_busy: AtomicBool,
}

/// Makes the connection one over which sockets are handed over. `work` makes the answer to each; it is dropped if the client
/// ends the connection meanwhile.
pub fn sockets<F: Future<Output = Vec<u8>> + Send + 'static>(
    calls: Arc<SwiftCalls>,
    request: Request,
    protocol: &'static str,
    work: impl Fn(Handed) -> F + Send + Sync + 'static,
) -> Response {
    if !Handover::is_asked(&request, protocol) {
        let message = format!("this call needs Connection: upgrade and Upgrade: {protocol}");
        let refused = Failure::new(StatusCode::UPGRADE_REQUIRED, Kind::Invalid, message);
        return ([(UPGRADE, protocol)], refused).into_response();
    }
    Handover::after(request, protocol, move |handover| {
        serve(calls, handover, work)
    })
}

async fn serve<F: Future<Output = Vec<u8>> + Send>(
    calls: Arc<SwiftCalls>,
    mut handover: Handover,
    work: impl Fn(Handed) -> F + Send + Sync,
) {
    while let Ok(Some((message, socket))) = handover.receive().await {
        let answer = match stream_of(socket) {
            Ok(stream) => {
                let progress = Arc::<BodyProgress>::default();
                let working = work(Handed {
                    calls: calls.clone(),
                    message,
                    stream,
                    progress: progress.clone(),
                });
                match watched(&mut handover, working, &progress).await {
                    Some(answer) => answer,
                    // Nobody waits for an answer.
                    None => return,
                }
            }
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
            "what came with the message is no socket of a stream: {error}"
        ))
    })
}

/// An answer as the bytes of a frame.
pub fn json(answer: &impl Serialize) -> Vec<u8> {
    // Only names, numbers and text, so this does not fail.
    serde_json::to_vec(answer).unwrap_or_default()
}

/// The answer, with frames before it that say that this goes on; `None` if the client has ended the connection meanwhile.
async fn watched(
    handover: &mut Handover,
    working: impl Future<Output = Vec<u8>>,
    progress: &BodyProgress,
) -> Option<Vec<u8>> {
    tokio::pin!(working);
    let mut beat = interval_at(Instant::now() + BEAT, BEAT);
    let mut told = 0;
    loop {
        tokio::select! {
            answer = &mut working => return Some(answer),
            () = handover.interrupted() => return None,
            _ = beat.tick() => {
                let passed = progress.passed.load(Ordering::Relaxed);
                let busy = progress.is_busy.load(Ordering::Relaxed);
                let is_news = busy || passed != told;
                let news = if is_news { json(&Passed { passed, busy }) } else { Vec::new() };
                told = passed;
                handover.answer(&news, BEAT).await.ok()?;
            }
        }
    }
}
