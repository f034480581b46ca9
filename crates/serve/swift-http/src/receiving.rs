//! Stages data from sockets that clients hand over.

use crate::api::{NotReceived, Receive, Staged, Staging};
use crate::body::{SMALL, broken_off};
use crate::crowd::unless_crowded;
use crate::data::check_size;
use crate::handed::{BodyProgress, Handed, json, sockets};
use crate::state::{Calls, SwiftCalls};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::{Buf, Bytes};
use control::{Failure, HandedStream, parse};
use objects::{Buffer, Source};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a connection speaks over which sockets are handed over to receive from.
const PROTOCOL: &str = "zonestore-receiving";
/// How long a socket may bring no byte: longer than Swift waits unless it is told to.
const PATIENCE: Duration = Duration::from_secs(120);

/// Makes the connection one over which sockets are handed over.
pub async fn receiving(State(calls): Calls, request: Request) -> Response {
    sockets(calls, request, PROTOCOL, |handed| async {
        let progress = handed.progress.clone();
        match receive(handed).await {
            Ok(staged) => json(&staged),
            Err(failure) => json(&NotReceived {
                passed: progress.passed.load(Ordering::Relaxed),
                problem: failure.problem(),
            }),
        }
    })
}

/// Stages what the message has of the data behind its first line, and the rest from the socket.
async fn receive(handed: Handed) -> Result<Staged, Failure> {
    let (message, stream) = (Bytes::from(handed.message), handed.stream);
    let end = message.iter().position(|byte| *byte == b'\n');
    let end = end.unwrap_or(message.len());
    let Receive {
        bytes,
        policy,
        hash,
    } = parse(&message[..end])?;
    let first = message.slice((end + 1).min(message.len())..);
    let size = bytes.saturating_add(first.len() as u64);
    let body = Body {
        first,
        stream,
        left: bytes,
        has_place: size > SMALL,
        calls: handed.calls.clone(),
        progress: handed.progress.clone(),
    };
    check_size(Some(size))?;
    handed.progress.is_busy.store(true, Ordering::Relaxed);
    let place = handed.calls.place(size).await?;
    let size = Some(size);
    let staging = Staging { size, policy, hash };
    let staged = handed.calls.stage(body, staging, broken_off).await;
    drop(place);
    staged
}

/// Data of which the first is here, and the rest comes from a socket.
struct Body {
    first: Bytes,
    stream: HandedStream,
    left: u64,
    has_place: bool,
    calls: Arc<SwiftCalls>,
    progress: Arc<BodyProgress>,
}

impl Source for Body {
    type Error = io::Error;

    async fn fill(&mut self, piece: &mut Buffer) -> io::Result<bool> {
        let taken = piece.push(&self.first);
        self.first.advance(taken);
        while self.left > 0 && !piece.is_full() {
            let most = usize::try_from(self.left).unwrap_or(usize::MAX);
            self.progress.is_busy.store(false, Ordering::Relaxed);
            let reading = self.stream.read(piece, most, PATIENCE);
            let read =
                unless_crowded(|| self.has_place && self.calls.places_are_taken(), reading).await;
            let came = read.ok_or(io::ErrorKind::TimedOut)?? as u64;
            self.progress.is_busy.store(true, Ordering::Relaxed);
            if came == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.left -= came;
            self.progress.passed.fetch_add(came, Ordering::Relaxed);
        }
        Ok(self.left == 0 && self.first.is_empty())
    }
}
