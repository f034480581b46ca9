//! Adapts a download to the body type of `s3s`.

use bytes::Bytes;
use futures::Stream;
use objects::Download;
use s3s::StdError;
use s3s::stream::{ByteStream, RemainingLength};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of an answer.
pub struct Outbound(pub Download);

impl Stream for Outbound {
    type Item = Result<Bytes, StdError>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StdError>>> {
        let piece = Pin::new(&mut self.0).poll_next(context);
        piece.map(|piece| piece.map(|piece| piece.map_err(Into::into)))
    }
}

impl ByteStream for Outbound {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(usize::try_from(self.0.remaining()).unwrap_or(usize::MAX))
    }
}
