//! The document of an answer. It keeps its request's permit until the connection has sent all of it: a listing may have
//! megabytes, and a client may take hours to read them.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use objects::{Flow, Peer, Permit};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Bytes handed to the connection at a time.
const PIECE: usize = 1 << 20;

/// All bytes of a document; dropped with the last piece of it that the connection holds.
struct Held {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of an answer that is a document.
pub struct SentDocument {
    rest: Bytes,
    flow: Flow,
}

impl SentDocument {
    /// While others wait and the client is slow, `peer` is closed.
    pub fn new(bytes: Bytes, permit: Permit, peer: Option<Arc<Peer>>) -> Self {
        permit.close_with(peer);
        Self {
            flow: permit.flow().clone(),
            rest: Bytes::from_owner(Held {
                bytes,
                _permit: permit,
            }),
        }
    }
}

impl Body for SentDocument {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.rest.len().min(PIECE);
        if length == 0 {
            return Poll::Ready(None);
        }
        self.flow.hand_out(length as u64);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
