//! From a request's body to the drive, in bounded memory.
//!
//! Bytes are gathered into pieces; while one piece is digested and written by a thread that may
//! block, the next one is gathered. The last piece and what the caller does with the whole are
//! one job, so a small object costs one hop. If the client goes away, the writer is dropped and
//! nothing is left of it.

use crate::blocking::{Blocking, NotRun};
use crate::buffers::Pool;
use crate::digest::{Algorithm, Digester, Digests};
use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use store::{ObjectWriter, Store, WriteHints};
use thiserror::Error;

/// Bytes gathered before a thread is bothered: so much that hops between threads cost little, and so little that
/// the first are written while the last arrive. Of a body, some wait to be digested.
static PIECES: Pool = Pool::new(256 * 1024, 96);
/// As long as more is to come. What is as long as the writer's own pieces is not copied into one of these. As many bodies
/// arrive at a time as buffers are kept.
static LONG_PIECES: Pool = Pool::new(ObjectWriter::PIECE, 32);

/// What is known of a body before it comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Bytes.
    pub length: u64,
    /// A collection, and a name in it that comes again with what replaces this body: the data is placed beside
    /// data that lives as long.
    pub object: (String, String),
    /// Digests to compute.
    pub algorithms: Vec<Algorithm>,
    /// How it is written.
    pub hints: WriteHints,
}

/// A body whose bytes are written. It is staged: nothing is left of it unless the writer is finished and what
/// that answers is committed.
pub struct Received {
    /// Finish it if the body is what the client meant to send.
    pub writer: ObjectWriter,
    /// The digests asked for, and how much came, which need not be what was expected.
    pub digests: Digests,
}

/// Why a body was not received; `E` is what its stream says.
#[derive(Debug, Error)]
pub enum ReceiveError<E> {
    /// The body broke off.
    #[error("the body broke off")]
    Body(E),
    /// The store cannot take it.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// No thread wrote it.
    #[error(transparent)]
    NotRun(#[from] NotRun),
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
    /// Digests and writes a piece; there is a writer afterwards.
    fn write(mut self, data: &Bytes) -> Result<Self, store::Error> {
        let mut writer = self.take_writer()?;
        self.digester.update_beside(data, || writer.write(data))?;
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

/// Takes a body, then calls `commit` with it on a thread that may block, which gives the answer.
///
/// # Errors
/// `commit` was not called.
pub async fn receive<B, E, T, C>(
    store: &Store,
    blocking: &Blocking,
    body: Option<B>,
    expected: Expected,
    commit: C,
) -> Result<T, ReceiveError<E>>
where
    B: Stream<Item = Result<Bytes, E>> + Unpin,
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
    // What cannot fit is refused before its body comes; making room may take a while.
    if !store.has_room(length) {
        sink = blocking.run(move || sink.write(&Bytes::new())).await??;
    }
    let mut body = Gathering {
        body,
        came: Bytes::new(),
        left: length,
    };
    let (mut piece, mut is_last) = body.gather().await.map_err(ReceiveError::Body)?;
    while !is_last {
        let writing = blocking.begin(move || sink.write(&piece)).await?;
        (piece, is_last) = body.gather().await.map_err(ReceiveError::Body)?;
        sink = writing.end().await??;
    }
    let finish = move || sink.write(&piece)?.finish().map(commit);
    Ok(blocking.run(finish).await??)
}

/// A body that is cut into pieces. Copies, so that what is held is what is counted and not the buffers that
/// network packets came in.
struct Gathering<B> {
    body: Option<B>,
    /// What did not go into the last piece.
    came: Bytes,
    /// Bytes that are expected.
    left: u64,
}

impl<B, E> Gathering<B>
where
    B: Stream<Item = Result<Bytes, E>> + Unpin,
{
    /// The next piece, and whether it is the last one.
    async fn gather(&mut self) -> Result<(Bytes, bool), E> {
        let wanted = match self.left {
            // More than was announced.
            0 => usize::MAX,
            left => usize::try_from(left).unwrap_or(usize::MAX),
        };
        let is_long = self.left > ObjectWriter::PIECE as u64;
        let mut piece = if is_long { &LONG_PIECES } else { &PIECES }.buffer(wanted);
        loop {
            let taken = piece.push(&self.came);
            self.came.advance(taken);
            self.left = self.left.saturating_sub(taken as u64);
            if !self.came.is_empty() {
                return Ok((piece.freeze(), false));
            }
            let Some(stream) = &mut self.body else {
                return Ok((piece.freeze(), true));
            };
            match stream.next().await.transpose()? {
                Some(data) => self.came = data,
                None => self.body = None,
            }
        }
    }
}
