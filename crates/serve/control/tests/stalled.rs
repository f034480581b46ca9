//! Clients that take nothing of an answer.
#![allow(clippy::unwrap_used)]

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use control::Socket;
use futures::{StreamExt, stream};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn who_takes_nothing_of_an_answer_loses_it_after_two_minutes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    let socket = Socket::at(&path, None).unwrap();
    let held = Arc::new(());
    let endless = {
        let held = held.clone();
        let piece = move |_| {
            (
                Ok::<_, Infallible>(Bytes::from_static(&[7; 65536])),
                held.clone(),
            )
        };
        move || async move {
            Body::from_stream(stream::iter(0..).map(piece).map(|(piece, _held)| piece))
        }
    };
    let router = Router::new().route("/endless", get(endless));
    let never = std::future::pending();
    let serving = tokio::spawn(socket.run(router, Duration::ZERO, never, async {}));
    // The answer has one more.
    let before = Arc::strong_count(&held);
    let mut client = UnixStream::connect(&path).await.unwrap();
    client
        .write_all(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        .await
        .unwrap();
    while Arc::strong_count(&held) == before {
        tokio::task::yield_now().await;
    }
    let begun = Instant::now();
    while Arc::strong_count(&held) > before {
        sleep(Duration::from_secs(1)).await;
        assert!(
            begun.elapsed() < Duration::from_secs(150),
            "the answer waits for ever"
        );
    }
    assert!(begun.elapsed() > Duration::from_secs(100));
    serving.abort();
}
