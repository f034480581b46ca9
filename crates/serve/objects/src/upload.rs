//! Writes a request's body to the drive, in bounded memory.
//!
//! Bytes are gathered into pieces; while a blocking thread digests and writes one piece, the next is gathered. The
//! last piece and the caller's commit are one job, so a small object needs one switch of threads. If the client
//! disconnects, the writer is dropped and its data is discarded.

use crate::blocking::{Blocking, NotRun};
use crate::buffers::{Buffer, Pool};
use crate::digest::{Algorithm, Digester, Digests};
use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use store::{ObjectWriter, Store, WriteHints};
use thiserror::Error;

/// Pieces for a thread to write: large enough that switches of threads cost little, small enough that the first is
/// written while the last arrives. Some of a body's pieces also wait to be digested.
static PIECES: Pool = Pool::new(256 * 1024, 96);
/// Pieces of a body with at least a piece of the writer's to come: they have the writer's own size, so that it does
/// not copy them. As many buffers are kept as bodies arrive at a time.
static LONG_PIECES: Pool = Pool::new(ObjectWriter::PIECE, 32);

/// Properties of a body known before it arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Bytes.
    pub length: u64,
    /// Collection and name of the object that this body will be. The data is placed beside data that lives as long,
    /// judged by objects of this name.
    pub object: (String, String),
    /// Digests to compute.
    pub algorithms: Vec<Algorithm>,
    /// Hints for the writer.
    pub hints: WriteHints,
}

/// A body whose bytes are written. It is staged: it is discarded unless the writer is finished and the result is
/// committed.
pub struct Received {
    /// To be finished if the body is what the client meant to send.
    pub writer: ObjectWriter,
    /// The requested digests and the number of bytes received, which may differ from the expected one.
    pub digests: Digests,
}

/// Why a body was not received; `E` is the error of its stream.
#[derive(Debug, Error)]
pub enum ReceiveError<E> {
    /// The body's stream failed.
    #[error("the body broke off")]
    Body(E),
    /// The store could not write it.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The store call that writes it did not run to its end.
    #[error(transparent)]
    NotRun(#[from] NotRun),
}

/// A body as it arrives.
pub trait Source: Send {
    /// Why it does not arrive.
    type Error;

    /// Fills `piece` with what comes next; returns whether the body ends there.
    fn fill(
        &mut self,
        piece: &mut Buffer,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}

/// A body that comes in pieces of any size. Their data is copied, so that the memory in use is that of the writer's pieces
/// and not the buffers that network packets arrived in.
pub struct Pieces<B> {
    body: Option<B>,
    /// Received bytes that did not fit into the writer's last piece.
    came: Bytes,
}

impl<B> From<Option<B>> for Pieces<B> {
    fn from(body: Option<B>) -> Self {
        let came = Bytes::new();
        Self { body, came }
    }
}

impl<B, E> Source for Pieces<B>
where
    B: Stream<Item = Result<Bytes, E>> + Unpin + Send,
{
    type Error = E;

    async fn fill(&mut self, piece: &mut Buffer) -> Result<bool, E> {
        loop {
            let taken = piece.push(&self.came);
            self.came.advance(taken);
            if !self.came.is_empty() {
                return Ok(false);
            }
            let Some(body) = &mut self.body else {
                return Ok(true);
            };
            match body.next().await.transpose()? {
                Some(data) => self.came = data,
                None => self.body = None,
            }
        }
    }
}

/// Writer and digests of one body.
struct Sink {
    store: Store,
    expected: u64,
    hints: WriteHints,
    object: (String, String),
    writer: Option<ObjectWriter>,
    digester: Digester,
}

impl Sink {
    /// Digests and writes a piece. Afterwards `writer` is set.
    fn write(mut self, data: &Bytes, is_last: bool) -> Result<Self, store::Error> {
        let mut writer = self.take_writer()?;
        self.digester.update_beside(data, || match is_last {
            true => writer.write_last(data),
            false => writer.write(data),
        })?;
        self.writer = Some(writer);
        Ok(self)
    }

    fn take_writer(&mut self) -> Result<ObjectWriter, store::Error> {
        if let Some(writer) = self.writer.take() {
            return Ok(writer);
        }
        let writer = self.store.writer_with(Some(self.expected), self.hints)?;
        let (collection, object) = &self.object;
        Ok(writer.replacing(collection, object))
    }

    fn finish(mut self) -> Result<Received, store::Error> {
        let writer = self.take_writer()?;
        let digests = self.digester.finish();
        Ok(Received { writer, digests })
    }
}

/// Receives a body, then calls `commit` with it on a thread that may block, and returns its result.
///
/// # Errors
/// `commit` was not called.
pub async fn receive<B, T, C>(
    store: &Store,
    blocking: &Blocking,
    mut body: B,
    expected: Expected,
    commit: C,
) -> Result<T, ReceiveError<B::Error>>
where
    B: Source,
    T: Send + 'static,
    C: FnOnce(Received) -> T + Send + 'static,
{
    let Expected {
        length,
        object,
        algorithms,
        hints,
    } = expected;
    let mut sink = Sink {
        store: store.clone(),
        expected: length,
        hints,
        object,
        writer: None,
        digester: Digester::new(algorithms),
    };
    // A body that cannot fit is refused before it arrives; making room may take a while.
    if !store.has_room(length) {
        sink = blocking
            .run(move || sink.write(&Bytes::new(), false))
            .await??;
    }
    let mut left = length;
    let (mut piece, mut is_last) = gather(&mut body, &mut left).await?;
    while !is_last {
        let writing = blocking.begin(move || sink.write(&piece, false)).await?;
        (piece, is_last) = gather(&mut body, &mut left).await?;
        sink = writing.end().await??;
    }
    let finish = move || sink.write(&piece, true)?.finish().map(commit);
    Ok(blocking.run(finish).await??)
}

/// The next piece of a body with `left` bytes still to come, and whether it is the last one.
async fn gather<B: Source>(
    body: &mut B,
    left: &mut u64,
) -> Result<(Bytes, bool), ReceiveError<B::Error>> {
    let wanted = match *left {
        // More bytes arrive than were announced.
        0 => usize::MAX,
        left => usize::try_from(left).unwrap_or(usize::MAX),
    };
    let is_long = *left >= ObjectWriter::PIECE as u64;
    let mut piece = if is_long { &LONG_PIECES } else { &PIECES }.buffer(wanted);
    let is_last = body.fill(&mut piece).await.map_err(ReceiveError::Body)?;
    let piece = piece.freeze();
    *left = left.saturating_sub(piece.len() as u64);
    Ok((piece, is_last))
}
