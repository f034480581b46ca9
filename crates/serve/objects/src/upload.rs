//! From a request's body to the drive, in bounded memory.
//!
//! Bytes are gathered into pieces; while one piece is digested and written by a thread that may
//! block, the next one is gathered. The last piece and what the caller does with the whole are
//! one job, so a small object costs one hop. If the client goes away, the writer is dropped and
//! nothing is left of it.

use crate::blocking::{Blocking, NotRun};
use crate::digest::{Algorithm, Digester, Digests};
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt};
use store::{ObjectWriter, Store, WriteHints};
use thiserror::Error;
use tokio::task::JoinHandle;

/// Bytes gathered before a thread is bothered.
const PIECE: usize = 256 * 1024;

/// What is known of a body before it comes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Bytes.
    pub length: u64,
    /// Collection and name of the object that will be it, if that is known: the data is placed beside data
    /// that lives as long.
    pub object: Option<(String, String)>,
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
    object: Option<(String, String)>,
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
        Ok(match &self.object {
            Some((collection, object)) => writer.replacing(collection, object),
            None => writer,
        })
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
    mut body: Option<B>,
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
    let (mut sink, mut writing) = (Some(sink), None::<JoinHandle<_>>);
    loop {
        let gathered = gather(&mut body, length).await;
        let (piece, last) = gathered.map_err(ReceiveError::Body)?;
        let current = match (writing.take(), sink.take()) {
            (Some(task), _) => task.await.map_err(|_| NotRun::Panicked)???,
            (None, Some(first)) => first,
            (None, None) => return Err(NotRun::Panicked.into()),
        };
        if last {
            let finish = move || current.write(&piece)?.finish().map(commit);
            return Ok(blocking.run(finish).await??);
        }
        let blocking = blocking.clone();
        writing = Some(tokio::spawn(async move {
            blocking.run(move || current.write(&piece)).await
        }));
    }
}

/// The next piece, and whether it is the last one. Copies, so that what is held is what is counted
/// and not the buffers that network packets came in.
async fn gather<B, E>(body: &mut Option<B>, length: u64) -> Result<(Bytes, bool), E>
where
    B: Stream<Item = Result<Bytes, E>> + Unpin,
{
    let mut piece = BytesMut::new();
    let Some(stream) = body else {
        return Ok((piece.freeze(), true));
    };
    while piece.len() < PIECE {
        let Some(data) = stream.next().await.transpose()? else {
            return Ok((piece.freeze(), true));
        };
        if piece.is_empty() {
            let wanted = usize::try_from(length).unwrap_or(usize::MAX).min(PIECE);
            piece.reserve(wanted.max(data.len()));
        }
        piece.extend_from_slice(&data);
    }
    Ok((piece.freeze(), false))
}
