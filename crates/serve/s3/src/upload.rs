//! The body of a put: receives it, and checks it against what the headers announced.

use crate::attributes::Checksum;
use crate::body::{Failed, Framing, decoded_length};
use crate::compressible;
use crate::digest::Announced;
use crate::errors::{malformed_trailer, not_run, of_store, wrong_payload_hash};
use crate::gateway::Gateway;
use http::HeaderMap;
use objects::digest::{Algorithm, Digests};
use objects::{Expected, Pieces, ReceiveError};
use s3s::dto::StreamingBlob;
use s3s::{S3Error, S3Request, S3Result, TrailingHeaders, s3_error};
use store::{WriteHints, Written};

/// Most bytes that one request may store.
pub const MAX_PUT_BYTES: u64 = 5 << 30;

/// What a request's headers say about its body.
pub struct Plan {
    length: u64,
    announced: Announced,
    hints: WriteHints,
    framing: Framing,
    trailers: Option<TrailingHeaders>,
    failed: Failed,
}

/// Data that is written and matches what the client announced.
pub struct Received {
    /// To be put by a transaction.
    pub written: Written,
    /// Entity tag (MD5) of an object stored in one request.
    pub etag: String,
    /// The checksum that the object keeps.
    pub checksum: Option<Checksum>,
}

impl Plan {
    /// Reads a request's headers; refuses bodies that are too large before any of it arrives.
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
            hints: WriteHints {
                compressible: compressible::by_headers(&request.headers),
                ..WriteHints::default()
            },
            framing,
            trailers: request.trailing_headers.take(),
            failed: request
                .extensions
                .get::<Failed>()
                .cloned()
                .unwrap_or_default(),
        })
    }

    /// Sets the checksum to compute besides those announced; fails if the client announced another one to keep.
    pub fn want(&mut self, algorithm: Option<Algorithm>) -> S3Result<()> {
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

    /// Finishes the data, if it matches what was announced.
    fn accept(&self, received: objects::Received) -> S3Result<Received> {
        let objects::Received { writer, digests } = received;
        self.check(&digests)?;
        let checksum = self.announced.kept().and_then(|algorithm| {
            digests
                .value(algorithm)
                .map(|value| Checksum::full(algorithm, value))
        });
        Ok(Received {
            written: writer.finish().map_err(of_store)?,
            etag: digests.hex(Algorithm::Md5),
            checksum,
        })
    }
}

/// Receives the body of the future `object`, a bucket and a name in it. If it matches what the client announced,
/// `commit` is called with it on a thread that may block.
pub async fn receive<T, C>(
    gateway: &Gateway,
    object: (String, String),
    body: Option<StreamingBlob>,
    plan: Plan,
    commit: C,
) -> S3Result<T>
where
    T: Send + 'static,
    C: FnOnce(Received) -> S3Result<T> + Send + 'static,
{
    let (failed, framing) = (plan.failed.clone(), plan.framing);
    let expected = Expected {
        length: plan.length,
        object,
        algorithms: plan
            .announced
            .algorithms()
            .chain([Algorithm::Md5])
            .collect(),
        hints: plan.hints,
    };
    let accept = move |received| commit(plan.accept(received)?);
    let Gateway {
        store, blocking, ..
    } = gateway;
    match objects::receive(store, blocking, Pieces::from(body), expected, accept).await {
        Ok(answer) => answer,
        Err(ReceiveError::Store(error)) => Err(of_store(error)),
        Err(ReceiveError::NotRun(why)) => Err(not_run(why)),
        Err(ReceiveError::Body(error)) => {
            tracing::debug!(%error, "a body broke off");
            Err(stream_error(&failed, framing))
        }
    }
}

/// The error for a broken stream. Failures of the transport were recorded; all others were found by the signature
/// verifier.
fn stream_error(failed: &Failed, framing: Framing) -> S3Error {
    match (failed.failure(), framing) {
        (Some(failure), _) => failure.to_error(),
        (None, Framing::Plain) => wrong_payload_hash(),
        (None, Framing::UnsignedChunks) => malformed_trailer(),
        (None, Framing::SignedChunks) => s3_error!(
            SignatureDoesNotMatch,
            "The signature of a chunk or of the trailers does not match its content"
        ),
    }
}
