//! A response's body whose data frames are as large as possible, for one system call each.
//!
//! Data in the store's cache comes in units of 64 KiB. hyper writes as soon as it holds the bytes of its read buffer's
//! limit, which would be each unit by itself. Each write wakes the client.

use bytes::{Buf, Bytes};
use bytes_utils::SegmentedBuf;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Bytes from which on a frame takes no further part.
const ENOUGH: usize = 1 << 20;
/// Most parts of a frame: as many as hyper hands to one call.
const MOST_PARTS: usize = 64;

type Polled<B> = Option<Result<Frame<Bytes>, <B as Body>::Error>>;

/// The body `B`, with those of its data frames put together that are there at the same time.
pub struct Gathered<B: Body<Data = Bytes>> {
    body: B,
    /// What came behind the data of the last frame and is none.
    next: Option<Polled<B>>,
}

impl<B: Body<Data = Bytes>> Gathered<B> {
    /// The body, from its begin.
    pub const fn new(body: B) -> Self {
        Self { body, next: None }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Gathered<B> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Polled<B>> {
        match self.next.take() {
            Some(next) => Poll::Ready(next),
            None => Pin::new(&mut self.body).poll_frame(context),
        }
    }
}

/// Nothing in it is pinned.
impl<B: Body<Data = Bytes> + Unpin> Unpin for Gathered<B> {}

impl<B: Body<Data = Bytes> + Unpin> Body for Gathered<B> {
    type Data = SegmentedBuf<Bytes>;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.get_mut();
        let mut next = ready!(this.poll_next(context));
        let mut data = SegmentedBuf::new();
        loop {
            match next {
                Some(Ok(frame)) if frame.is_data() => {
                    data.push(frame.into_data().unwrap_or_default());
                }
                other if data.segments() == 0 => {
                    let no_data = |frame: Frame<Bytes>| frame.map_data(|_| SegmentedBuf::new());
                    return Poll::Ready(other.map(|frame| frame.map(no_data)));
                }
                other => {
                    this.next = Some(other);
                    break;
                }
            }
            if data.remaining() >= ENOUGH || data.segments() >= MOST_PARTS {
                break;
            }
            match this.poll_next(context) {
                Poll::Ready(more) => next = more,
                Poll::Pending => break,
            }
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.next {
            None => self.body.is_end_stream(),
            Some(next) => next.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
