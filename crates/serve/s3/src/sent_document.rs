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
    /// Bytes of the piece before, which the connection may still hold.
    before: usize,
    flow: Flow,
}

impl SentDocument {
    /// While others wait and the client is slow, `peer` is closed.
    pub fn new(bytes: Bytes, permit: Permit, peer: Option<Arc<Peer>>) -> Self {
        permit.close_with(peer);
        Self {
            before: 0,
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
        // The permit is held until all is sent, so the piece before has to be counted again.
        self.flow.hand_out((self.before + length) as u64);
        self.before = length;
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::task::noop_waker_ref;
    use objects::{Line, Pressure};
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn what_the_connection_holds_counts_for_the_client() {
        let pressure = Pressure {
            turn_timeout: Duration::from_secs(1),
            patience: Duration::from_secs(1),
            min_bytes_per_second: 1,
        };
        let line = Line::new(1, pressure);
        let take = line.take(Ipv4Addr::LOCALHOST.into(), Flow::default(), None);
        let permit = take.await.unwrap();
        let flow = permit.flow().clone();
        let rest = 10 << 10;
        let mut body = SentDocument::new(vec![0; PIECE + rest].into(), permit, None);
        let mut context = Context::from_waker(noop_waker_ref());
        for counted in [PIECE, PIECE + rest] {
            let frame = Pin::new(&mut body).poll_frame(&mut context);
            assert!(matches!(frame, Poll::Ready(Some(Ok(_)))));
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(flow.rate(), (counted as u64, Duration::from_secs(1)));
        }
    }
}
