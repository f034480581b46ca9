//! From the drive to a response's body, in pieces, with back pressure.
//!
//! While the network takes one piece, the next one is read; more is never held. A read that fails
//! in the middle ends the stream with an error, which aborts the connection: the client sees a
//! short body, never a wrong one.

use crate::blocking::{Blocking, NotRun};
use crate::buffers::Pool;
use crate::flow::Flow;
use crate::permits::Permit;
use bytes::Bytes;
use futures::Stream;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use store::ObjectReader;
use thiserror::Error;
use tokio::task::JoinHandle;
use tracing::{Instrument, Span};

/// Bytes read at a time.
const PIECE: usize = 1 << 20;
static PIECES: Pool = Pool::new(PIECE, 16);

/// Why an object is not read to its end.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The store does not give its bytes.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// It is shorter than the range that is read.
    #[error("object {object:?} ends at byte {at}")]
    Ends {
        /// Its name.
        object: String,
        /// Its end.
        at: u64,
    },
    /// No thread read it.
    #[error(transparent)]
    NotRun(#[from] NotRun),
}

/// Reads the first piece of a range; call it on a thread that may block.
///
/// # Errors
/// Any but [`ReadError::NotRun`].
pub fn read_piece(reader: &ObjectReader, range: &Range<u64>) -> Result<Bytes, ReadError> {
    let wanted = range.end.saturating_sub(range.start).min(PIECE as u64) as usize;
    let mut buffer = PIECES.buffer(wanted);
    buffer.fill(wanted, |buffer| {
        let mut filled = 0;
        while filled < wanted {
            let at = range.start + filled as u64;
            match reader.read_at(at, &mut buffer[filled..])? {
                0 => {
                    let object = reader.info().name.to_string();
                    return Err(ReadError::Ends { object, at });
                }
                n => filled += n,
            }
        }
        Ok(())
    })?;
    Ok(buffer.freeze())
}

/// An object, or a range of one, on its way out.
pub struct Download {
    reader: Arc<ObjectReader>,
    blocking: Blocking,
    /// What is not being read yet.
    rest: Range<u64>,
    ready: Option<Bytes>,
    reading: Option<JoinHandle<Result<Bytes, ReadError>>>,
    remaining: u64,
    permit: Option<Permit>,
    /// The request's, which later pieces are part of, too.
    span: Span,
}

impl Download {
    /// Goes on behind `first`, which has been read already.
    pub fn new(
        reader: Arc<ObjectReader>,
        blocking: Blocking,
        range: Range<u64>,
        first: Bytes,
        permit: Option<Permit>,
    ) -> Self {
        let remaining = range.end.saturating_sub(range.start);
        let rest = range.start + first.len() as u64..range.end;
        Self {
            reader,
            blocking,
            rest,
            ready: Some(first),
            reading: None,
            remaining,
            permit,
            span: Span::current(),
        }
    }

    /// Bytes that have not been handed out.
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    fn read_ahead(&mut self) {
        if self.rest.is_empty() {
            return;
        }
        let piece = self.rest.start..self.rest.end.min(self.rest.start + PIECE as u64);
        self.rest.start = piece.end;
        let (reader, blocking) = (self.reader.clone(), self.blocking.clone());
        let read = async move { blocking.run(move || read_piece(&reader, &piece)).await? };
        self.reading = Some(tokio::spawn(read.instrument(self.span.clone())));
    }
}

impl Stream for Download {
    type Item = Result<Bytes, ReadError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, ReadError>>> {
        let this = &mut *self;
        let client: Option<&Flow> = this.permit.as_ref().map(Permit::flow);
        if let Some(client) = client {
            // All before is taken; from here on it waits for the drive.
            client.note_waited_for(false);
        }
        let piece = match (this.ready.take(), &mut this.reading) {
            (Some(piece), _) => piece,
            (None, None) => return Poll::Ready(None),
            (None, Some(reading)) => {
                let result = ready!(Pin::new(reading).poll(context));
                this.reading = None;
                match result.unwrap_or(Err(NotRun::Panicked.into())) {
                    Ok(piece) => piece,
                    Err(error) => {
                        tracing::error!(%error, "an object could not be read to its end");
                        this.rest = 0..0;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        };
        if let Some(client) = client {
            client.hand_out(piece.len() as u64);
        }
        this.read_ahead();
        this.remaining = this.remaining.saturating_sub(piece.len() as u64);
        Poll::Ready(Some(Ok(piece)))
    }
}
