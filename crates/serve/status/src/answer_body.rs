//! The body of an answer, which counts its bytes and detects its end.

use crate::requests::Answering;
use bytes::Bytes;
use http::{Response, header};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of an answer. Its request ends when the last byte is passed to the connection.
pub struct AnswerBody<B> {
    body: Pin<Box<B>>,
    counts: Counts,
}

enum Counts {
    Nothing,
    /// Counts for this request; and the bytes that remain, if known.
    Sent(Answering, Option<u64>),
}

impl<B: Body<Data = Bytes>> AnswerBody<B> {
    fn new(body: B, counts: Counts) -> Self {
        let body = Box::pin(body);
        Self { body, counts }
    }

    /// An answer with this body, which counts for `answering`.
    pub fn sent(response: Response<B>, answering: Answering) -> Response<Self> {
        answering.answered(response.status().as_u16());
        let length = response.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        response.map(|body| {
            let left = length.or(body.size_hint().exact());
            if body.is_end_stream() {
                answering.over(true);
            }
            Self::new(body, Counts::Sent(answering, left))
        })
    }

    /// An answer that is not counted.
    pub fn uncounted(response: Response<B>) -> Response<Self> {
        response.map(|body| Self::new(body, Counts::Nothing))
    }
}

impl<B: Body<Data = Bytes>> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        let frame = ready!(this.body.as_mut().poll_frame(context));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, |data| data.len() as u64),
            _ => 0,
        };
        match &mut this.counts {
            Counts::Nothing => {}
            Counts::Sent(answering, left) => {
                answering.sent(bytes);
                *left = left.map(|left| left.saturating_sub(bytes));
                match &frame {
                    Some(Err(_)) => answering.over(false),
                    // Before the connection writes it: a client that has the last byte finds the request counted.
                    Some(Ok(_)) if *left != Some(0) && !this.body.is_end_stream() => {}
                    Some(Ok(_)) | None => answering.over(true),
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// If an answer is dropped before its end, the client has disconnected.
impl<B> Drop for AnswerBody<B> {
    fn drop(&mut self) {
        if let Counts::Sent(answering, _) = &self.counts {
            answering.over(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Requests;
    use http_body_util::{BodyExt, Empty, Full};
    use std::sync::Arc;

    fn last(requests: &Requests) -> (u16, bool, u64) {
        let entry = requests.log().remove(0);
        (entry.status, entry.is_whole, entry.sent_bytes)
    }

    #[tokio::test]
    async fn an_answer_is_over_with_its_last_byte() {
        let requests = Arc::<Requests>::default();
        let begin = || requests.begin("GET", String::new());
        let whole = Response::new(Full::from("12345"));
        let mut whole = AnswerBody::sent(whole, begin()).into_body();
        assert_eq!(requests.in_flight(), 1);
        whole.frame().await.unwrap().unwrap();
        assert_eq!((requests.in_flight(), last(&requests)), (0, (200, true, 5)));
        // To a HEAD: there is a length and no body.
        let head = Response::builder().header("content-length", "7");
        let head = head.status(206).body(Empty::<Bytes>::new()).unwrap();
        drop(AnswerBody::sent(head, begin()));
        assert_eq!(last(&requests), (206, true, 0));
        drop(AnswerBody::sent(
            Response::new(Full::from("12345")),
            begin(),
        ));
        assert_eq!(last(&requests), (200, false, 0));
    }
}
