//! Bodies that are slow or broken.

use super::*;
use std::collections::VecDeque;
use std::future::poll_fn;

/// Steps of a client.
enum Step {
    Send(&'static [u8]),
    Pause(Duration),
    Break,
}

struct Client {
    steps: VecDeque<Step>,
    pause: Option<Pin<Box<Sleep>>>,
}

fn client(steps: impl IntoIterator<Item = Step>) -> Client {
    Client {
        steps: steps.into_iter().collect(),
        pause: None,
    }
}

impl Body for Client {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match self.steps.pop_front() {
                None => return Poll::Ready(None),
                Some(Step::Send(data)) => {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(data)))));
                }
                Some(Step::Break) => {
                    return Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())));
                }
                Some(Step::Pause(time)) => self.pause = Some(Box::pin(tokio::time::sleep(time))),
            }
        }
    }
}

const PACE: Pace = Pace {
    idle: Duration::from_secs(10),
    min_bytes_per_second: 2,
};

fn inbound(client: Client, unread: &Unread) -> Pin<Box<Inbound<Client>>> {
    let flow = Flow::default();
    Box::pin(Inbound::new(client, flow, PACE, unread.clone()))
}

async fn run(steps: impl IntoIterator<Item = Step>) -> Result<Vec<u8>, BodyFailure> {
    let mut body = inbound(client(steps), &Unread::default());
    let mut out = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        out.extend_from_slice(&frame?.into_data().unwrap());
    }
    Ok(out)
}

const fn seconds(n: u64) -> Step {
    Step::Pause(Duration::from_secs(n))
}

#[tokio::test(start_paused = true)]
async fn bytes_pass() {
    let steps = [Step::Send(b"hel"), seconds(5), Step::Send(b"lo")];
    assert_eq!(run(steps).await.unwrap(), b"hello");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stands_still_is_cut_off() {
    let steps = [Step::Send(b"hello"), seconds(11), Step::Send(b"x")];
    assert_eq!(run(steps).await, Err(BodyFailure::TooSlow));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_crawls_is_cut_off() {
    // One byte every nine seconds never stands still for ten, and never gets anywhere either.
    let steps = (0..100).flat_map(|_| [Step::Send(b"x"), seconds(9)]);
    assert_eq!(run(steps).await, Err(BodyFailure::TooSlow));
}

#[tokio::test(start_paused = true)]
async fn a_steady_client_may_take_long() {
    let steps = (0..100).flat_map(|_| [Step::Send(b"0123456789012345678"), seconds(9)]);
    assert_eq!(run(steps).await.unwrap().len(), 1900);
}

#[tokio::test(start_paused = true)]
async fn delays_of_the_server_are_not_the_clients() {
    let body = client([Step::Send(b"a"), seconds(3), Step::Send(b"b")]);
    let mut body = inbound(body, &Unread::default());
    for expected in [Some(b"a"), Some(b"b"), None] {
        // Nobody asks for more for a long time.
        tokio::time::sleep(Duration::from_secs(1000)).await;
        let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
        let data = frame.map(|frame| frame.unwrap().into_data().unwrap());
        assert_eq!(data.as_deref(), expected.map(|text| text.as_slice()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_told() {
    let steps = [Step::Send(b"hello"), Step::Break];
    assert_eq!(run(steps).await, Err(BodyFailure::Disconnected));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_unread_is_told() {
    for (reads, left) in [(0, true), (1, true), (3, false)] {
        let unread = Unread::default();
        let mut body = inbound(client([Step::Send(b"a"), Step::Send(b"b")]), &unread);
        for _ in 0..reads {
            poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
        }
        drop(body);
        assert_eq!(unread.is_set(), left, "{reads}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_has_to_give_way_ends_when_its_client_is_waited_for() {
    let flow = Flow::default();
    let steps = [Step::Send(b"a"), seconds(5), Step::Send(b"b")];
    let mut body = Box::pin(Inbound::new(
        client(steps),
        flow.clone(),
        PACE,
        Unread::default(),
    ));
    flow.give_way();
    let first = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
    assert!(first.unwrap().is_ok());
    let second = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
    assert_eq!(second.unwrap().unwrap_err(), BodyFailure::GaveWay);
    assert!(poll_fn(|cx| body.as_mut().poll_frame(cx)).await.is_none());
}
