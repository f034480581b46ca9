//! A request's body on its way in: timed, counted, re-cut, and for small documents digested.
//!
//! What goes wrong here is recorded beside the stream, because the layers between here and the
//! handler wrap errors until nobody can tell a slow client from a wrong digest; the recorded
//! failure is what the client is told.

use crate::chunked::{Fault, Rechunker};
use crate::digest::{Algorithm, Announced, Digester, parse_hex};
use crate::documents;
use crate::errors::{missing_trailer, wrong_payload_hash};
use bytes::Bytes;
use futures::task::AtomicWaker;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use s3s::{S3Error, s3_error};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Why a body could not be taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BodyFailure {
    /// The connection broke.
    #[error("the client went away")]
    Disconnected,
    /// The client stood still or crawled.
    #[error("the client was too slow")]
    TooSlow,
    /// The aws-chunked framing is wrong.
    #[error("the chunk framing is wrong")]
    Framing(Fault),
    /// Content-MD5 or x-amz-checksum-… of a document.
    #[error("a digest does not match")]
    BadDigest,
    /// x-amz-content-sha256 of a document.
    #[error("the payload hash does not match")]
    WrongPayloadHash,
    /// A document is too long.
    #[error("the document is too long")]
    DocumentTooLarge,
    /// A trailer that was announced did not come.
    #[error("a trailer is missing")]
    MissingTrailer,
    /// Slow, while others waited for its turn.
    #[error("others waited for the turn of a slow client")]
    GaveWay,
    /// The document has something that would be left out.
    #[error("the document is refused")]
    Document(documents::Fault),
}

impl BodyFailure {
    /// As the client hears it.
    pub fn to_error(&self) -> S3Error {
        match self {
            Self::Disconnected | Self::Framing(Fault::WrongLength) => s3_error!(
                IncompleteBody,
                "You did not provide the number of bytes specified by the Content-Length or \
                 x-amz-decoded-content-length header"
            ),
            Self::TooSlow => s3_error!(
                RequestTimeout,
                "Your socket connection to the server was not read from or written to within the \
                 timeout period"
            ),
            Self::Framing(Fault::Malformed) => {
                s3_error!(InvalidRequest, "The aws-chunked body is malformed")
            }
            Self::Framing(Fault::ChunkTooLarge) => s3_error!(
                InvalidRequest,
                "Signed chunks may be at most {} bytes",
                crate::chunked::MAX_SIGNED_CHUNK
            ),
            Self::BadDigest => {
                s3_error!(
                    BadDigest,
                    "The digest you specified did not match what we received"
                )
            }
            Self::DocumentTooLarge => {
                s3_error!(MaxMessageLengthExceeded, "Your request was too big")
            }
            Self::WrongPayloadHash => wrong_payload_hash(),
            Self::MissingTrailer => missing_trailer(),
            Self::GaveWay => s3_error!(
                SlowDown,
                "The server is busy, and your body came too slowly; please try again"
            ),
            Self::Document(documents::Fault::Malformed(why)) => s3_error!(MalformedXML, "{why}"),
            Self::Document(documents::Fault::NotImplemented(why)) => {
                s3_error!(NotImplemented, "{why}")
            }
        }
    }
}

/// How the body travels, by `x-amz-content-sha256`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// As it is.
    Plain,
    /// aws-chunked, every chunk signed.
    SignedChunks,
    /// aws-chunked, unsigned.
    UnsignedChunks,
}

impl Framing {
    /// Reads a request's headers.
    pub fn of(headers: &HeaderMap) -> Self {
        let value = headers
            .get("x-amz-content-sha256")
            .map(|v| v.as_bytes())
            .unwrap_or_default();
        match value {
            b"STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Self::UnsignedChunks,
            _ if value.starts_with(b"STREAMING-") => Self::SignedChunks,
            _ => Self::Plain,
        }
    }
}

/// The decoded length of an aws-chunked body.
pub fn decoded_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get("x-amz-decoded-content-length")?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// What is known about a body beside its bytes; travels in the request's extensions.
#[derive(Clone, Default, Debug)]
pub struct BodyState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    failure: OnceLock<BodyFailure>,
    /// Since when how much has moved.
    moved: Mutex<(Instant, u64)>,
    waited_for: AtomicBool,
    give_way: AtomicBool,
    waker: AtomicWaker,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            failure: OnceLock::new(),
            moved: Mutex::new((Instant::now(), 0)),
            waited_for: AtomicBool::default(),
            give_way: AtomicBool::default(),
            waker: AtomicWaker::new(),
        }
    }
}

impl BodyState {
    /// What went wrong, if anything.
    pub fn failure(&self) -> Option<BodyFailure> {
        self.0.failure.get().cloned()
    }

    fn fail(&self, failure: BodyFailure) -> BodyFailure {
        self.0.failure.get_or_init(|| failure).clone()
    }

    /// Bytes a second that its client takes or sends, and for how long they were counted.
    pub fn rate(&self) -> (u64, Duration) {
        let (since, bytes) = *self.0.moved.lock();
        let elapsed = since.elapsed();
        let rate = u128::from(bytes) * 1_000_000 / elapsed.as_micros().max(1);
        (u64::try_from(rate).unwrap_or(u64::MAX), elapsed)
    }

    /// It has its turn: from now on it is counted.
    pub fn begin(&self) {
        *self.0.moved.lock() = (Instant::now(), 0);
    }

    /// Its client was given so much, and all before that has been taken.
    pub fn hand_out(&self, bytes: u64) {
        *self.0.moved.lock() = (Instant::now(), bytes);
        self.note_waited_for(true);
    }

    /// Whether the server waits for the client to send more.
    pub fn is_waited_for(&self) -> bool {
        self.0.waited_for.load(Ordering::Relaxed)
    }

    /// Ends the body the next time that its client is waited for, or now if it is.
    pub fn give_way(&self) {
        self.0.give_way.store(true, Ordering::SeqCst);
        self.0.waker.wake();
    }

    /// Whether it has to.
    pub fn must_give_way(&self) -> bool {
        self.0.give_way.load(Ordering::SeqCst)
    }

    /// More has come.
    pub fn note_received(&self, bytes: u64) {
        self.0.moved.lock().1 += bytes;
    }

    pub fn note_waited_for(&self, waited_for: bool) {
        self.0.waited_for.store(waited_for, Ordering::Relaxed);
    }
}

/// Set when a body was dropped before its end: there may be more of it on the way.
#[derive(Clone, Default, Debug)]
pub struct Unread(Arc<AtomicBool>);

impl Unread {
    /// Whether a body was left unread.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// A body was left unread.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How fast a body has to be.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Longest standstill, and grace before `min_bytes_per_second` applies.
    pub idle: Duration,
    /// Slowest average.
    pub min_bytes_per_second: u64,
}

/// What is to be checked of a document.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its digests.
    pub announced: Announced,
    /// It may be at most this long.
    pub max_bytes: u64,
}

/// Digests of a document, compared when it ends.
struct Documented {
    text: Vec<u8>,
    max_bytes: u64,
    digester: Digester,
    announced: Announced,
    payload_hash: Option<[u8; 32]>,
}

/// A body on its way in.
pub struct Inbound<B: http_body::Body> {
    inner: Pin<Box<B>>,
    state: BodyState,
    pace: Pace,
    /// Since when the client has been waited for, if it is; the server's own delays do not count.
    waiting: Option<Instant>,
    waited: Duration,
    timer: Pin<Box<Sleep>>,
    received: u64,
    rechunker: Option<Rechunker>,
    output: VecDeque<Bytes>,
    documented: Option<Box<Documented>>,
    /// Bytes there will be, if that is known.
    expected: Option<u64>,
    ended: bool,
    drained: bool,
    unread: Unread,
}

impl<B> Inbound<B>
where
    B: http_body::Body<Data = Bytes>,
{
    /// Wraps a request's body. Documents (XML) are digested here and compared with what was
    /// announced, because nobody sees their bytes later; object data is digested where it is
    /// written.
    pub fn new(
        inner: B,
        headers: &HeaderMap,
        document: Option<Document>,
        state: BodyState,
        pace: Pace,
        unread: Unread,
    ) -> Result<Self, S3Error> {
        let length = decoded_length(headers);
        let expected = inner.size_hint().exact();
        let rechunker = match (Framing::of(headers), length) {
            (Framing::Plain, length) if length.is_some_and(|length| expected != Some(length)) => {
                return Err(s3_error!(
                    InvalidRequest,
                    "x-amz-decoded-content-length is not the length of the body, and \
                     x-amz-content-sha256 does not say that it comes in chunks"
                ));
            }
            (Framing::Plain, _) => None,
            _ if document.is_some() => {
                return Err(s3_error!(
                    NotImplemented,
                    "Only the data of objects and parts may come in chunks"
                ));
            }
            (framing, Some(length)) => {
                Some(Rechunker::new(framing == Framing::SignedChunks, length))
            }
            (_, None) => {
                return Err(s3_error!(
                    MissingContentLength,
                    "You must provide the x-amz-decoded-content-length header"
                ));
            }
        };
        let documented = document.map(|document| {
            let Document {
                announced,
                max_bytes,
            } = document;
            let hash = headers
                .get("x-amz-content-sha256")
                .and_then(|value| value.to_str().ok());
            Box::new(Documented {
                digester: Digester::new(announced.algorithms().chain([Algorithm::Sha256])),
                announced,
                max_bytes,
                payload_hash: hash.and_then(parse_hex::<32>),
                text: Vec::new(),
            })
        });
        Ok(Self {
            expected,
            inner: Box::pin(inner),
            state,
            pace,
            waiting: None,
            waited: Duration::ZERO,
            timer: Box::pin(tokio::time::sleep(pace.idle)),
            received: 0,
            rechunker,
            output: VecDeque::new(),
            documented,
            ended: false,
            drained: false,
            unread,
        })
    }

    fn take(&mut self, data: Bytes) -> Result<Bytes, BodyFailure> {
        self.received += data.len() as u64;
        self.state.note_received(data.len() as u64);
        let earned = self
            .received
            .checked_div(self.pace.min_bytes_per_second)
            .unwrap_or(u64::MAX);
        let deadline = self.pace.idle.saturating_add(Duration::from_secs(earned));
        if self.waited > deadline {
            return Err(BodyFailure::TooSlow);
        }
        if let Some(documented) = &mut self.documented {
            if self.received > documented.max_bytes {
                return Err(BodyFailure::DocumentTooLarge);
            }
            documented.digester.update(&data);
            documented.text.extend_from_slice(&data);
            if self.expected == Some(self.received) {
                // Before the last bytes are handed on: who gets them may compare, too, and would
                // not say what was wrong.
                self.check_document()?;
            }
        }
        match &mut self.rechunker {
            None => Ok(data),
            Some(rechunker) => {
                rechunker
                    .push(data, &mut self.output)
                    .map_err(BodyFailure::Framing)?;
                Ok(self.output.pop_front().unwrap_or_default())
            }
        }
    }

    fn end(&mut self) -> Result<(), BodyFailure> {
        if let Some(rechunker) = &self.rechunker {
            rechunker.finish().map_err(BodyFailure::Framing)?;
        }
        self.check_document()
    }

    fn check_document(&mut self) -> Result<(), BodyFailure> {
        let Some(documented) = self.documented.take() else {
            return Ok(());
        };
        let digests = documented.digester.finish();
        if let Some(expected) = documented.payload_hash
            && digests.checksum(Algorithm::Sha256) != Some(&expected)
        {
            return Err(BodyFailure::WrongPayloadHash);
        }
        match documented.announced.verify(&digests, None) {
            Ok(()) => documents::check(&documented.text).map_err(BodyFailure::Document),
            Err(_) if documented.announced.trailer.is_some() => Err(BodyFailure::MissingTrailer),
            Err(_) => Err(BodyFailure::BadDigest),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyFailure>>> {
        loop {
            if let Some(piece) = self.output.pop_front() {
                return Poll::Ready(Some(Ok(piece)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            let Poll::Ready(frame) = self.inner.as_mut().poll_frame(context) else {
                if self.waiting.is_none() {
                    let now = Instant::now();
                    self.waiting = Some(now);
                    self.timer.as_mut().reset(now + self.pace.idle);
                }
                self.state.note_waited_for(true);
                self.state.0.waker.register(context.waker());
                if self.state.must_give_way() {
                    return Poll::Ready(Some(Err(BodyFailure::GaveWay)));
                }
                ready!(self.timer.as_mut().poll(context));
                return Poll::Ready(Some(Err(BodyFailure::TooSlow)));
            };
            if let Some(since) = self.waiting.take() {
                self.waited += since.elapsed();
                self.state.note_waited_for(false);
            }
            match frame {
                None => {
                    self.ended = true;
                    self.drained = true;
                    if let Err(failure) = self.end() {
                        return Poll::Ready(Some(Err(failure)));
                    }
                }
                Some(Err(_)) => return Poll::Ready(Some(Err(BodyFailure::Disconnected))),
                Some(Ok(frame)) => {
                    // HTTP trailers are not part of S3; its trailers are within the body.
                    let Ok(data) = frame.into_data() else {
                        continue;
                    };
                    match self.take(data) {
                        Ok(piece) if piece.is_empty() => {}
                        result => return Poll::Ready(Some(result)),
                    }
                }
            }
        }
    }
}

impl<B> http_body::Body for Inbound<B>
where
    B: http_body::Body<Data = Bytes>,
{
    type Data = Bytes;
    type Error = BodyFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailure>>> {
        let this = &mut *self;
        let result = ready!(this.poll(context));
        Poll::Ready(result.map(|result| match result {
            Ok(data) => Ok(Frame::data(data)),
            Err(failure) => {
                this.ended = true;
                this.output.clear();
                Err(this.state.fail(failure))
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        // A document's digests are compared at its end, so the end has to be polled for.
        self.documented.is_none() && self.rechunker.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rechunker {
            None => self.inner.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

impl<B: http_body::Body> Drop for Inbound<B> {
    fn drop(&mut self) {
        let complete =
            self.drained || self.expected == Some(self.received) || self.inner.is_end_stream();
        if !complete {
            self.unread.set();
        }
    }
}

#[cfg(test)]
mod tests;
