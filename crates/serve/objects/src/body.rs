//! A request's body as it arrives: limits its pace and counts its bytes.

use crate::connection::Unread;
use crate::flow::Flow;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Why a body did not arrive completely.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BodyFailure {
    /// The connection broke.
    #[error("the client went away")]
    Disconnected,
    /// The client made no progress, or was slower than allowed.
    #[error("the client was too slow")]
    TooSlow,
    /// The client was slow while others waited for its turn.
    #[error("others waited for the turn of a slow client")]
    GaveWay,
}

/// Required pace of a body.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Longest time without progress, and grace before `min_bytes_per_second` applies.
    pub idle: Duration,
    /// Lowest average rate.
    pub min_bytes_per_second: u64,
}

/// A body that arrives from a client.
pub struct Inbound<B: Body> {
    inner: Pin<Box<B>>,
    flow: Flow,
    pace: Pace,
    /// Since when the body waits for the client, if it does; the server's own delays do not count.
    waiting: Option<Instant>,
    waited: Duration,
    timer: Pin<Box<Sleep>>,
    received: u64,
    /// Total bytes, if known from the head.
    expected: Option<u64>,
    ended: bool,
    drained: bool,
    unread: Unread,
}

impl<B: Body<Data = Bytes>> Inbound<B> {
    /// Wraps a request's body. If it is dropped before its end, `unread` is set.
    pub fn new(inner: B, flow: Flow, pace: Pace, unread: Unread) -> Self {
        Self {
            expected: inner.size_hint().exact(),
            inner: Box::pin(inner),
            flow,
            pace,
            waiting: None,
            waited: Duration::ZERO,
            timer: Box::pin(tokio::time::sleep(pace.idle)),
            received: 0,
            ended: false,
            drained: false,
            unread,
        }
    }

    /// Counts received bytes; an error if they arrived too slowly.
    fn count(&mut self, bytes: u64) -> Result<(), BodyFailure> {
        self.received += bytes;
        self.flow.note_received(bytes);
        let earned = self
            .received
            .checked_div(self.pace.min_bytes_per_second)
            .unwrap_or(u64::MAX);
        let deadline = self.pace.idle.saturating_add(Duration::from_secs(earned));
        if self.waited > deadline {
            return Err(BodyFailure::TooSlow);
        }
        Ok(())
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailure>>> {
        let Poll::Ready(frame) = self.inner.as_mut().poll_frame(context) else {
            if self.waiting.is_none() {
                let now = Instant::now();
                self.waiting = Some(now);
                self.timer.as_mut().reset(now + self.pace.idle);
            }
            self.flow.note_waited_for(true);
            self.flow.wake(context.waker());
            if self.flow.must_give_way() {
                return Poll::Ready(Some(Err(BodyFailure::GaveWay)));
            }
            ready!(self.timer.as_mut().poll(context));
            return Poll::Ready(Some(Err(BodyFailure::TooSlow)));
        };
        if let Some(since) = self.waiting.take() {
            self.waited += since.elapsed();
            self.flow.note_waited_for(false);
        }
        let Some(frame) = frame else {
            self.ended = true;
            self.drained = true;
            return Poll::Ready(None);
        };
        Poll::Ready(Some(frame.map_err(|_| BodyFailure::Disconnected).and_then(
            |frame| {
                self.count(frame.data_ref().map_or(0, |data| data.len() as u64))?;
                Ok(frame)
            },
        )))
    }
}

impl<B: Body<Data = Bytes>> Body for Inbound<B> {
    type Data = Bytes;
    type Error = BodyFailure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFailure>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = ready!(self.poll(context));
        self.ended |= matches!(frame, Some(Err(_)));
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B: Body> Drop for Inbound<B> {
    fn drop(&mut self) {
        let complete =
            self.drained || self.expected == Some(self.received) || self.inner.is_end_stream();
        if !complete {
            self.unread.set();
        }
    }
}

#[cfg(test)]
mod tests;
