//! From a request's body to the drive, in bounded memory.
//!
//! Bytes are gathered into pieces; while one piece is digested and written by a thread that may
//! block, the next one is gathered. The last piece, the comparison of digests and the commit are
//! one job, so a small object costs one hop. If the client goes away, the writer is dropped and
//! nothing is left of it.

use crate::attributes::Checksum;
use crate::blocking::Blocking;
use crate::body::{BodyState, Framing, decoded_length};
use crate::digest::{Announced, Digester, Digests, hex};
use crate::errors::{of_store, wrong_payload_hash};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::HeaderMap;
use s3s::dto::StreamingBlob;
use s3s::{S3Error, S3Request, S3Result, TrailingHeaders, s3_error};
use store::{ObjectWriter, Store, Written};
use tokio::task::JoinHandle;

/// Bytes gathered before a thread is bothered.
const PIECE: usize = 256 * 1024;
/// The most that one request may store.
pub const MAX_PUT_BYTES: u64 = 5 << 30;

/// What a request says about its body, apart from the body.
pub struct Plan {
    length: u64,
    announced: Announced,
    framing: Framing,
    trailers: Option<TrailingHeaders>,
    state: BodyState,
}

/// A body that is on the drive and is what the client meant to send.
pub struct Received {
    /// Hand it to a transaction.
    pub written: Written,
    /// Its digests.
    pub digests: Digests,
    /// The checksum to keep.
    pub checksum: Option<Checksum>,
}

impl Received {
    /// The entity tag of an object stored in one go.
    pub fn etag(&self) -> String {
        hex(&self.digests.md5)
    }
}

impl Plan {
    /// Reads a request's headers; refuses what is too large before any of it arrives.
    pub fn of<T>(request: &mut S3Request<T>, content_length: Option<i64>) -> S3Result<Self> {
        let framing = Framing::of(&request.headers);
        let length = match framing {
            Framing::Plain => content_length.and_then(|length| u64::try_from(length).ok()),
            _ => decoded_length(&request.headers),
        };
        let Some(length) = length else {
            return Err(s3_error!(
                MissingContentLength,
                "You must provide the Content-Length HTTP header"
            ));
        };
        if length > MAX_PUT_BYTES {
            return Err(s3_error!(
                EntityTooLarge,
                "Your proposed upload exceeds the maximum allowed size of {MAX_PUT_BYTES} bytes"
            ));
        }
        Ok(Self {
            length,
            announced: Announced::of(&request.headers)?,
            framing,
            trailers: request.trailing_headers.take(),
            state: request
                .extensions
                .get::<BodyState>()
                .cloned()
                .unwrap_or_default(),
        })
    }

    /// Which checksum to compute besides those announced.
    pub fn want(&mut self, algorithm: Option<crate::digest::Algorithm>) -> S3Result<()> {
        let Some(algorithm) = algorithm else {
            return Ok(());
        };
        match self.announced.kept() {
            Some(kept) if kept != algorithm => Err(s3_error!(
                InvalidRequest,
                "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum \
                 Type: {}",
                algorithm.name(),
                kept.name()
            )),
            _ => {
                self.announced.wanted = Some(algorithm);
                Ok(())
            }
        }
    }

    fn check(&self, digests: &Digests) -> S3Result<()> {
        if digests.length != self.length {
            return Err(s3_error!(
                IncompleteBody,
                "The request announced {} bytes and sent {}",
                self.length,
                digests.length
            ));
        }
        let trailers: Option<HeaderMap> = self.trailers.as_ref().and_then(TrailingHeaders::take);
        self.announced.verify(digests, trailers.as_ref())
    }

    /// What a broken stream means. Whatever is wrong with the transport has been recorded; the rest
    /// is what the signature verifier found.
    fn stream_error(&self) -> S3Error {
        match (self.state.failure(), self.framing) {
            (Some(failure), _) => failure.to_error(),
            (None, Framing::Plain) => wrong_payload_hash(),
            (None, _) => s3_error!(
                SignatureDoesNotMatch,
                "The signature of a chunk or of the trailers does not match its content"
            ),
        }
    }
}

/// Writer and digests of one body.
struct Sink {
    store: Store,
    expected: u64,
    writer: Option<ObjectWriter>,
    digester: Digester,
}

impl Sink {
    fn write(&mut self, data: &[u8]) -> S3Result<()> {
        self.digester.update(data);
        self.writer()?.write(data).map_err(of_store)
    }

    fn writer(&mut self) -> S3Result<&mut ObjectWriter> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            slot => Ok(slot.insert(self.store.writer(Some(self.expected)).map_err(of_store)?)),
        }
    }

    fn finish(mut self, plan: &Plan) -> S3Result<Received> {
        self.writer()?;
        let Self {
            writer, digester, ..
        } = self;
        let digests = digester.finish();
        plan.check(&digests)?;
        let writer = writer.ok_or_else(|| s3_error!(InternalError))?;
        let written = writer.finish().map_err(of_store)?;
        let checksum = plan.announced.kept().and_then(|algorithm| {
            digests
                .checksum(algorithm)
                .map(|value| Checksum::full(algorithm, value))
        });
        Ok(Received {
            written,
            digests,
            checksum,
        })
    }
}

/// Takes a body, then calls `commit` with it on a thread that may block.
pub async fn receive<T, C>(
    store: &Store,
    blocking: &Blocking,
    body: Option<StreamingBlob>,
    plan: Plan,
    commit: C,
) -> S3Result<T>
where
    T: Send + 'static,
    C: FnOnce(Received) -> S3Result<T> + Send + 'static,
{
    let mut body = body;
    let mut sink = Sink {
        store: store.clone(),
        expected: plan.length,
        writer: None,
        digester: Digester::new(plan.announced.algorithms()),
    };
    // What cannot fit is refused before its body comes; making room may take a while.
    if !store.has_room(plan.length) {
        sink = blocking
            .run(move || {
                sink.writer()?;
                Ok(sink)
            })
            .await?;
    }
    let mut sink = Some(sink);
    let mut writing: Option<JoinHandle<S3Result<Sink>>> = None;
    loop {
        let (piece, last) = gather(&mut body, &plan).await?;
        let current = match writing.take() {
            Some(task) => task.await.map_err(|_| s3_error!(InternalError))??,
            None => sink.take().ok_or_else(|| s3_error!(InternalError))?,
        };
        let mut current = current;
        if last {
            return blocking
                .run(move || {
                    current.write(&piece)?;
                    commit(current.finish(&plan)?)
                })
                .await;
        }
        let blocking = blocking.clone();
        writing = Some(tokio::spawn(async move {
            blocking
                .run(move || {
                    current.write(&piece)?;
                    Ok(current)
                })
                .await
        }));
    }
}

/// The next piece, and whether it is the last one. Copies, so that what is held is what is counted
/// and not the buffers that network packets came in.
async fn gather(body: &mut Option<StreamingBlob>, plan: &Plan) -> S3Result<(Bytes, bool)> {
    let Some(stream) = body else {
        return Ok((Bytes::new(), true));
    };
    let mut piece = BytesMut::new();
    while piece.len() < PIECE {
        match stream.next().await {
            Some(Ok(data)) => {
                if piece.is_empty() {
                    piece.reserve(
                        PIECE
                            .min(plan.length.min(PIECE as u64) as usize)
                            .max(data.len()),
                    );
                }
                piece.extend_from_slice(&data);
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "a body broke off");
                return Err(plan.stream_error());
            }
            None => return Ok((piece.freeze(), true)),
        }
    }
    Ok((piece.freeze(), false))
}
