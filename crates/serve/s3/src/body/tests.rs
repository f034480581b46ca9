//! Bodies that are slow, broken, or not what was announced.

use super::*;
use http::HeaderValue;
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

impl http_body::Body for Client {
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

async fn run(
    steps: impl IntoIterator<Item = Step>,
    headers: &[(&'static str, &str)],
    document: bool,
) -> Result<Vec<u8>, BodyFailure> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    let state = BodyState::default();
    let document = document.then(|| Document {
        announced: Announced::of(&map).unwrap(),
        max_bytes: 20,
    });
    let unread = Unread::default();
    let body = Inbound::new(client(steps), &map, document, state.clone(), PACE, unread).unwrap();
    let mut body = Box::pin(body);
    let mut out = Vec::new();
    while let Some(frame) = poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx)).await {
        match frame {
            Ok(frame) => out.extend_from_slice(&frame.into_data().unwrap()),
            Err(failure) => {
                assert_eq!(state.failure().as_ref(), Some(&failure));
                return Err(failure);
            }
        }
    }
    assert_eq!(state.failure(), None);
    Ok(out)
}

const fn seconds(n: u64) -> Step {
    Step::Pause(Duration::from_secs(n))
}

#[tokio::test(start_paused = true)]
async fn bytes_pass() {
    let steps = [Step::Send(b"hel"), seconds(5), Step::Send(b"lo")];
    assert_eq!(run(steps, &[], false).await.unwrap(), b"hello");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stands_still_is_cut_off() {
    let steps = [Step::Send(b"hello"), seconds(11), Step::Send(b"x")];
    assert_eq!(run(steps, &[], false).await, Err(BodyFailure::TooSlow));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_crawls_is_cut_off() {
    // One byte every nine seconds never stands still for ten, and never gets anywhere either.
    let steps = (0..100).flat_map(|_| [Step::Send(b"x"), seconds(9)]);
    assert_eq!(run(steps, &[], false).await, Err(BodyFailure::TooSlow));
}

#[tokio::test(start_paused = true)]
async fn a_steady_client_may_take_long() {
    let steps = (0..100).flat_map(|_| [Step::Send(b"0123456789012345678"), seconds(9)]);
    assert_eq!(run(steps, &[], false).await.unwrap().len(), 1900);
}

#[tokio::test(start_paused = true)]
async fn delays_of_the_server_are_not_the_clients() {
    let headers = HeaderMap::new();
    let body = client([Step::Send(b"a"), seconds(3), Step::Send(b"b")]);
    let state = BodyState::default();
    let body = Inbound::new(body, &headers, None, state, PACE, Unread::default()).unwrap();
    let mut body = Box::pin(body);
    for expected in [Some(b"a"), Some(b"b"), None] {
        // Nobody asks for more for a long time.
        tokio::time::sleep(Duration::from_secs(1000)).await;
        let frame = poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx)).await;
        let data = frame.map(|frame| frame.unwrap().into_data().unwrap());
        assert_eq!(data.as_deref(), expected.map(|text| text.as_slice()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_told() {
    let steps = [Step::Send(b"hello"), Step::Break];
    assert_eq!(run(steps, &[], false).await, Err(BodyFailure::Disconnected));
}

#[tokio::test(start_paused = true)]
async fn documents_are_compared_with_their_digests() {
    let document = b"<Delete/>";
    let digests = {
        let mut digester = Digester::new(crate::digest::Algorithm::ALL);
        digester.update(document);
        digester.finish()
    };
    let md5 = crate::digest::base64(&digests.md5);
    let sha256 = digests.checksum(crate::digest::Algorithm::Sha256).unwrap();
    let hash = crate::digest::hex(sha256);
    let crc = crate::digest::base64(digests.checksum(crate::digest::Algorithm::Crc32).unwrap());
    let good = [
        ("content-md5", md5.as_str()),
        ("x-amz-content-sha256", hash.as_str()),
        ("x-amz-checksum-crc32", crc.as_str()),
    ];
    assert_eq!(
        run([Step::Send(document)], &good, true).await.unwrap(),
        document
    );
    for (name, value) in good {
        let failure = run([Step::Send(b"<Delete/ >")], &[(name, value)], true)
            .await
            .unwrap_err();
        let expected = match name {
            "x-amz-content-sha256" => BodyFailure::WrongPayloadHash,
            _ => BodyFailure::BadDigest,
        };
        assert_eq!(failure, expected, "{name}");
        // Object data is digested elsewhere.
        run([Step::Send(b"<Delete/ >")], &[(name, value)], false)
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn documents_are_looked_into() {
    let failure = run([Step::Send(b"<Delete>x</Delete>")], &[], true).await;
    assert!(
        matches!(failure, Err(BodyFailure::Document(_))),
        "{failure:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn documents_are_short() {
    let piece = b"          ";
    let steps = || [Step::Send(piece), Step::Send(piece)];
    run(steps(), &[], true).await.unwrap();
    let longer = steps().into_iter().chain([Step::Send(b"x")]);
    assert_eq!(
        run(longer, &[], true).await,
        Err(BodyFailure::DocumentTooLarge)
    );
    run(steps().into_iter().chain(steps()), &[], false)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_left_unread_is_told() {
    let headers = HeaderMap::new();
    for (reads, left) in [(0, true), (1, true), (3, false)] {
        let (state, unread) = (BodyState::default(), Unread::default());
        let body = client([Step::Send(b"a"), Step::Send(b"b")]);
        let body = Inbound::new(body, &headers, None, state, PACE, unread.clone()).unwrap();
        let mut body = Box::pin(body);
        for _ in 0..reads {
            poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx)).await;
        }
        drop(body);
        assert_eq!(unread.is_set(), left, "{reads}");
    }
}

#[tokio::test(start_paused = true)]
async fn chunks_are_recut_and_counted() {
    let headers = [
        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ("x-amz-decoded-content-length", "5"),
    ];
    let steps = [
        Step::Send(b"5\r\nhel"),
        Step::Send(b"lo\r\n0\r\na:b\r\n\r\n"),
    ];
    assert_eq!(
        run(steps, &headers, false).await.unwrap(),
        b"5\r\nhello\r\n0\r\na:b\r\n\r\n"
    );
    let short = [Step::Send(b"4\r\nhell\r\n0\r\n\r\n")];
    let failure = run(short, &headers, false).await.unwrap_err();
    assert_eq!(failure, BodyFailure::Framing(Fault::WrongLength));
    let cut = [Step::Send(b"5\r\nhello\r\n")];
    let failure = run(cut, &headers, false).await.unwrap_err();
    assert_eq!(failure, BodyFailure::Framing(Fault::WrongLength));
}

#[test]
fn every_failure_has_a_code_of_its_own() {
    let code = |failure: BodyFailure| failure.to_error().code().as_str().to_owned();
    assert_eq!(code(BodyFailure::TooSlow), "RequestTimeout");
    assert_eq!(code(BodyFailure::Disconnected), "IncompleteBody");
    assert_eq!(code(BodyFailure::BadDigest), "BadDigest");
    assert_eq!(
        code(BodyFailure::WrongPayloadHash),
        "XAmzContentSHA256Mismatch"
    );
    assert_eq!(code(BodyFailure::MissingTrailer), "MalformedTrailerError");
    assert_eq!(
        code(BodyFailure::Framing(Fault::ChunkTooLarge)),
        "InvalidRequest"
    );
}
