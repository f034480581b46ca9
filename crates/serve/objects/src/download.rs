//! Reads an object for a response's body, in pieces, with back pressure.
//!
//! While the connection holds up to two pieces that the client has yet to take (`server.rs`), the next one is read; no
//! more is held. Data in the store's cache is sent without a copy. A read that fails in the middle ends the stream with an
//! error, which aborts the connection: the client gets a short body, never a wrong one.

use crate::blocking::{Blocking, NotRun};
use crate::buffers::Pool;
use crate::flow::Flow;
use crate::permits::Permit;
use bytes::Bytes;
use futures::Stream;
use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use store::{ObjectReader, Taken};
use thiserror::Error;
use tokio::task::JoinHandle;
use tracing::{Instrument, Span};

/// Bytes read at a time.
const PIECE: usize = 1 << 20;
/// What a buffer's length is a multiple of, so that the store need not copy what ends within a block of the drive.
const BLOCK: usize = 4096;
static PIECES: Pool = Pool::new(PIECE, 16);

/// Why an object is not read to its end.
#[derive(Debug, Error)]
pub enum ReadError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The object is shorter than the range that is read.
    #[error("object {object:?} ends at byte {at}")]
    Ends {
        /// The object's name.
        object: String,
        /// Offset of its end, in bytes.
        at: u64,
    },
    /// The store call that reads it did not run to its end.
    #[error(transparent)]
    NotRun(#[from] NotRun),
}

/// The first piece of a range, in parts that may be shared with the store's cache; call it on a thread that may
/// block.
///
/// # Errors
/// Any but [`ReadError::NotRun`].
pub fn take_piece(reader: &ObjectReader, range: &Range<u64>) -> Result<VecDeque<Bytes>, ReadError> {
    let wanted = wanted(range);
    let mut buffer = PIECES.buffer(wanted.next_multiple_of(BLOCK));
    let mut shared = Vec::new();
    buffer.fill(wanted, |room| {
        match reader.take_into(range.start, wanted, room)? {
            Taken::Read(n) => {
                read_all(reader, range.start + n as u64, wanted - n, &mut room[n..])?;
            }
            Taken::Shared(parts) => shared = parts,
        }
        Ok::<_, ReadError>(())
    })?;
    if shared.is_empty() {
        shared.push(buffer.freeze());
    }
    Ok(shared.into())
}

/// The first piece of a range, copied into one buffer; call it on a thread that may block.
///
/// # Errors
/// Any but [`ReadError::NotRun`].
pub fn read_piece(reader: &ObjectReader, range: &Range<u64>) -> Result<Bytes, ReadError> {
    let wanted = wanted(range);
    let mut buffer = PIECES.buffer(wanted.next_multiple_of(BLOCK));
    buffer.fill(wanted, |room| read_all(reader, range.start, wanted, room))?;
    Ok(buffer.freeze())
}

fn wanted(range: &Range<u64>) -> usize {
    range.end.saturating_sub(range.start).min(PIECE as u64) as usize
}

fn length(parts: &VecDeque<Bytes>) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

fn read_all(
    reader: &ObjectReader,
    start: u64,
    wanted: usize,
    room: &mut [u8],
) -> Result<(), ReadError> {
    let mut filled = 0;
    while filled < wanted {
        let at = start + filled as u64;
        match reader.read_into(at, wanted - filled, &mut room[filled..])? {
            0 => {
                let object = reader.info().name.to_string();
                return Err(ReadError::Ends { object, at });
            }
            n => filled += n,
        }
    }
    Ok(())
}

/// The body of a response: an object, or a range of one.
pub struct Download {
    reader: Arc<ObjectReader>,
    blocking: Blocking,
    /// The part of the range that is not read yet.
    rest: Range<u64>,
    /// Parts of the current piece that are not sent yet.
    ready: VecDeque<Bytes>,
    /// No part of the current piece was sent yet.
    is_new: bool,
    reading: Option<JoinHandle<Result<VecDeque<Bytes>, ReadError>>>,
    remaining: u64,
    permit: Option<Permit>,
    /// The request's span, which reads of later pieces belong to.
    span: Span,
}

impl Download {
    /// Continues after `first`, which was read already.
    pub fn new(
        reader: Arc<ObjectReader>,
        blocking: Blocking,
        range: Range<u64>,
        first: VecDeque<Bytes>,
        permit: Option<Permit>,
    ) -> Self {
        let remaining = range.end.saturating_sub(range.start);
        let rest = range.start + length(&first)..range.end;
        Self {
            reader,
            blocking,
            rest,
            ready: first,
            is_new: true,
            reading: None,
            remaining,
            permit,
            span: Span::current(),
        }
    }

    /// Bytes that were not handed out yet.
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    fn read_ahead(&mut self) {
        if self.reading.is_some() || self.rest.is_empty() {
            return;
        }
        let piece = self.rest.clone();
        let (reader, blocking) = (self.reader.clone(), self.blocking.clone());
        let read = async move { blocking.run(move || take_piece(&reader, &piece)).await? };
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
        if let Some(client) = client.filter(|_| this.ready.is_empty()) {
            // The client has taken all before but what the connection holds; from here on the body waits for the drive.
            client.note_waited_for(false);
        }
        if let (true, Some(reading)) = (this.ready.is_empty(), &mut this.reading) {
            let result = ready!(Pin::new(reading).poll(context));
            this.reading = None;
            match result.unwrap_or(Err(NotRun::Panicked.into())) {
                Ok(piece) => {
                    this.rest.start += length(&piece);
                    this.ready = piece;
                    this.is_new = true;
                }
                Err(error) => {
                    tracing::error!(%error, "an object could not be read to its end");
                    this.rest = 0..0;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        if let Some(client) = client.filter(|_| this.is_new) {
            client.hand_out(length(&this.ready));
        }
        this.is_new = false;
        let Some(part) = this.ready.pop_front() else {
            return Poll::Ready(None);
        };
        this.read_ahead();
        this.remaining = this.remaining.saturating_sub(part.len() as u64);
        Poll::Ready(Some(Ok(part)))
    }
}
