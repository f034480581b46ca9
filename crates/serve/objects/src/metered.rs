//! A body whose bytes are counted as they pass, in either direction.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Counts bytes; called each time that some have passed.
pub trait Meter {
    /// `bytes` more have passed.
    fn pass(&self, bytes: u64);
}

/// A body with a meter, which is dropped with the body.
pub struct Metered<B, M> {
    inner: Pin<Box<B>>,
    meter: M,
}

impl<B, M> Metered<B, M> {
    /// Counts the bytes of `inner`.
    pub fn new(inner: B, meter: M) -> Self {
        let inner = Box::pin(inner);
        Self { inner, meter }
    }
}

impl<B: Body<Data = Bytes>, M: Meter + Unpin> Body for Metered<B, M> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = self.inner.as_mut().poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.meter.pass(data.len() as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
