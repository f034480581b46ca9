//! Bodies that are not what was announced.

use super::*;
use http::HeaderValue;
use objects::{Flow, Pace, Unread};
use std::convert::Infallible;
use std::future::poll_fn;
use std::time::Duration;

/// What a client sends.
struct Client(VecDeque<&'static str>);

impl http_body::Body for Client {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self
            .0
            .pop_front()
            .map(|text| Bytes::from_static(text.as_bytes()));
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }
}

const PACE: Pace = Pace {
    idle: Duration::from_secs(10),
    min_bytes_per_second: 2,
};

async fn run(
    pieces: impl IntoIterator<Item = &'static str>,
    headers: &[(&'static str, &str)],
    document: bool,
) -> Result<Vec<u8>, BodyFailure> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    let failed = Failed::default();
    let document = document.then(|| Document {
        announced: Announced::of(&map).unwrap(),
        max_bytes: 20,
    });
    let client = Client(pieces.into_iter().collect());
    let inbound = Inbound::new(client, Flow::default(), PACE, Unread::default());
    let body = Checked::new(inbound, &map, document, failed.clone()).unwrap();
    let mut body = Box::pin(body);
    let mut out = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        match frame {
            Ok(frame) => out.extend_from_slice(&frame.into_data().unwrap()),
            Err(failure) => {
                assert_eq!(failed.failure().as_ref(), Some(&failure));
                return Err(failure);
            }
        }
    }
    assert_eq!(failed.failure(), None);
    Ok(out)
}

#[tokio::test(start_paused = true)]
async fn documents_are_compared_with_their_digests() {
    let document = "<Delete/>";
    let value = |algorithm: Algorithm| algorithm.of(document.as_bytes());
    let md5 = crate::digest::base64(&value(Algorithm::Md5));
    let hash = objects::digest::hex(&value(Algorithm::Sha256));
    let crc = crate::digest::base64(&value(Algorithm::Crc32));
    let good = [
        ("content-md5", md5.as_str()),
        ("x-amz-content-sha256", hash.as_str()),
        ("x-amz-checksum-crc32", crc.as_str()),
    ];
    assert_eq!(
        run([document], &good, true).await.unwrap(),
        document.as_bytes()
    );
    for (name, value) in good {
        let failure = run(["<Delete/ >"], &[(name, value)], true)
            .await
            .unwrap_err();
        let expected = match name {
            "x-amz-content-sha256" => BodyFailure::WrongPayloadHash,
            _ => BodyFailure::BadDigest,
        };
        assert_eq!(failure, expected, "{name}");
        // Object data is digested elsewhere.
        run(["<Delete/ >"], &[(name, value)], false).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn documents_are_looked_into() {
    let failure = run(["<Delete>x</Delete>"], &[], true).await;
    assert!(
        matches!(failure, Err(BodyFailure::Document(_))),
        "{failure:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn documents_are_short() {
    let piece = "          ";
    let steps = || [piece, piece];
    run(steps(), &[], true).await.unwrap();
    let longer = steps().into_iter().chain(["x"]);
    assert_eq!(
        run(longer, &[], true).await,
        Err(BodyFailure::DocumentTooLarge)
    );
    run(steps().into_iter().chain(steps()), &[], false)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn chunks_are_recut_and_counted() {
    let headers = [
        ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        ("x-amz-decoded-content-length", "5"),
    ];
    let steps = ["5\r\nhel", "lo\r\n0\r\na:b\r\n\r\n"];
    assert_eq!(
        run(steps, &headers, false).await.unwrap(),
        b"5\r\nhello\r\n0\r\na:b\r\n\r\n"
    );
    let short = ["4\r\nhell\r\n0\r\n\r\n"];
    let failure = run(short, &headers, false).await.unwrap_err();
    assert_eq!(failure, BodyFailure::Framing(Fault::WrongLength));
    let cut = ["5\r\nhello\r\n"];
    let failure = run(cut, &headers, false).await.unwrap_err();
    assert_eq!(failure, BodyFailure::Framing(Fault::WrongLength));
}

#[test]
fn every_failure_has_a_code_of_its_own() {
    let code = |failure: BodyFailure| failure.to_error().code().as_str().to_owned();
    assert_eq!(code(BodyFailure::Broken(Broken::TooSlow)), "RequestTimeout");
    assert_eq!(
        code(BodyFailure::Broken(Broken::Disconnected)),
        "IncompleteBody"
    );
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
