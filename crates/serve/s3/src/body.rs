//! The body of a request: limits, aws-chunked framing, and for documents (XML) digests.
//!
//! A failure here is recorded beside the stream, because the layers between here and the handler wrap errors until a
//! slow client looks like a wrong digest; the recorded failure is what the client is told.

use crate::chunked::{Fault, Rechunker};
use crate::digest::Announced;
use crate::documents;
use crate::errors::{missing_trailer, wrong_payload_hash};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};
use objects::digest::{Algorithm, Digester, parse_hex};
use objects::{BodyFailure as Broken, Inbound};
use s3s::{S3Error, s3_error};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

/// Why a body was not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BodyFailure {
    /// The body did not arrive completely.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The aws-chunked framing is wrong.
    #[error("the chunk framing is wrong")]
    Framing(Fault),
    /// `Content-MD5` or `x-amz-checksum-…` of a document does not match.
    #[error("a digest does not match")]
    BadDigest,
    /// `x-amz-content-sha256` of a document does not match.
    #[error("the payload hash does not match")]
    WrongPayloadHash,
    /// A document is too long.
    #[error("the document is too long")]
    DocumentTooLarge,
    /// An announced trailer did not arrive.
    #[error("a trailer is missing")]
    MissingTrailer,
    /// The document has elements that would be ignored.
    #[error("the document is refused")]
    Document(documents::Fault),
}

impl BodyFailure {
    /// The S3 error that the client gets.
    pub fn to_error(&self) -> S3Error {
        match self {
            Self::Broken(Broken::Disconnected) | Self::Framing(Fault::WrongLength) => s3_error!(
                IncompleteBody,
                "You did not provide the number of bytes specified by the Content-Length or \
                 x-amz-decoded-content-length header"
            ),
            Self::Broken(Broken::TooSlow) => s3_error!(
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
            Self::Broken(Broken::GaveWay) => s3_error!(
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

/// Transfer format of a body, as `x-amz-content-sha256` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// The data itself.
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

/// The first failure of a body, if any; kept in the request's extensions.
#[derive(Clone, Default, Debug)]
pub struct Failed(Arc<OnceLock<BodyFailure>>);

impl Failed {
    /// The recorded failure.
    pub fn failure(&self) -> Option<BodyFailure> {
        self.0.get().cloned()
    }

    fn record(&self, failure: BodyFailure) -> BodyFailure {
        self.0.get_or_init(|| failure).clone()
    }
}

/// What a document's body is checked against.
#[derive(Clone, Debug)]
pub struct Document {
    /// Announced digests.
    pub announced: Announced,
    /// Most bytes.
    pub max_bytes: u64,
}

/// Text and digests of a document, checked at its end.
struct Documented {
    text: Vec<u8>,
    max_bytes: u64,
    digester: Digester,
    announced: Announced,
    payload_hash: Option<[u8; 32]>,
}

/// A body for `s3s`, with its checks.
pub struct Checked<B: http_body::Body> {
    inner: Inbound<B>,
    failed: Failed,
    received: u64,
    /// Total bytes, if known from the head.
    expected: Option<u64>,
    rechunker: Option<Rechunker>,
    output: VecDeque<Bytes>,
    documented: Option<Box<Documented>>,
    ended: bool,
}

impl<B> Checked<B>
where
    B: http_body::Body<Data = Bytes>,
{
    /// Wraps a request's body. Documents (XML) are digested here and compared with what was announced, because no
    /// later code sees their bytes; object data is digested where it is written.
    pub fn new(
        inner: Inbound<B>,
        headers: &HeaderMap,
        document: Option<Document>,
        failed: Failed,
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
            inner,
            failed,
            received: 0,
            rechunker,
            output: VecDeque::new(),
            documented,
            ended: false,
        })
    }

    fn take(&mut self, data: Bytes) -> Result<Bytes, BodyFailure> {
        self.received += data.len() as u64;
        if let Some(documented) = &mut self.documented {
            if self.received > documented.max_bytes {
                return Err(BodyFailure::DocumentTooLarge);
            }
            documented.digester.update(&data);
            documented.text.extend_from_slice(&data);
            if self.expected == Some(self.received) {
                // Before the last bytes are passed on: their receiver may also compare, but would give no reason.
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
            && digests.value(Algorithm::Sha256) != Some(&expected)
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
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                None => {
                    self.ended = true;
                    if let Err(failure) = self.end() {
                        return Poll::Ready(Some(Err(failure)));
                    }
                }
                Some(Err(failure)) => return Poll::Ready(Some(Err(failure.into()))),
                Some(Ok(frame)) => {
                    // Trailers of HTTP are not part of S3, whose own trailers are within the body.
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

impl<B> http_body::Body for Checked<B>
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
                Err(this.failed.record(failure))
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        // A document's digests are compared at its end, which therefore has to be polled for.
        self.documented.is_none() && self.rechunker.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rechunker {
            None => self.inner.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests;
