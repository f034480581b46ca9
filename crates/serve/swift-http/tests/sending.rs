//! Sockets that are handed over and then take nothing.
#![allow(clippy::unwrap_used)]

#[path = "../../swift-drive/tests/support/mod.rs"]
mod support;

use axum::Router;
use control::{Socket, frame};
use runtime::Runtime;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Duration;
use support::{formatted, mount};
use swift_http::SwiftCalls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;

const DATA: usize = 8 << 20;
const OBJECT: &str = "/0/7/0123456789abcdef0123456789abcdef";

/// The body of an answer of known length.
async fn ask(client: &mut UnixStream, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(body).await.unwrap();
    let head = head_of(client).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let (_, length) = head.split_once("content-length: ").unwrap();
    let length = length.split("\r\n").next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    client.read_exact(&mut body).await.unwrap();
    body
}

async fn head_of(client: &mut UnixStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// The message that is not empty.
async fn answer(client: &mut UnixStream) -> Value {
    loop {
        let length = client.read_u32_le().await.unwrap() as usize;
        let mut message = vec![0; length];
        client.read_exact(&mut message).await.unwrap();
        if length > 0 {
            return serde_json::from_slice(&message).unwrap();
        }
    }
}

fn hand_over(client: &UnixStream, message: &Value, socket: &impl AsFd) {
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(beside.push(SendAncillaryMessage::ScmRights(&sockets)));
    let message = frame(message.to_string().as_bytes());
    let parts = [IoSlice::new(&message)];
    sendmsg(client, &parts, &mut beside, SendFlags::empty()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_takes_nothing_for_a_minute_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("daemon.sock");
    let socket = Socket::at(&path, None).unwrap();
    let calls = SwiftCalls::new(mount(&formatted()), Runtime::seeded(1)).unwrap();
    let router: Router = calls.router();
    let never = std::future::pending();
    let serving = tokio::spawn(socket.run(router, Duration::ZERO, never, async {}));
    let mut client = UnixStream::connect(&path).await.unwrap();
    ask(
        &mut client,
        "PUT",
        "/policies/0",
        br#"{"kind": "replication"}"#,
    )
    .await;
    let file = format!("{OBJECT}/files/1402464677.04188.data?metadata_bytes=0");
    ask(&mut client, "PUT", &file, &vec![7; DATA]).await;
    let opened = ask(
        &mut client,
        "POST",
        &format!("{OBJECT}/open"),
        br#"{"hold": true}"#,
    )
    .await;
    let (length, rest) = opened.split_first_chunk().unwrap();
    let head = &rest[..u32::from_le_bytes(*length) as usize];
    let head: Value = serde_json::from_slice(head).unwrap();
    let upgrade = "GET /sending HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: zonestore-sending\r\n\r\n";
    client.write_all(upgrade.as_bytes()).await.unwrap();
    assert!(head_of(&mut client).await.starts_with("HTTP/1.1 101"));

    let (to, mut from) = std::os::unix::net::UnixStream::pair().unwrap();
    let begun = Instant::now();
    hand_over(&client, &json!({"opened": head["opened"]}), &to);
    let sent = answer(&mut client).await["sent"].as_u64().unwrap() as usize;
    assert!(sent > 0 && sent < DATA, "{sent}");
    assert!(begun.elapsed() >= Duration::from_secs(60));
    // What was sent has come, and then the end, though `to` is open here.
    let mut got = Vec::new();
    from.read_to_end(&mut got).unwrap();
    assert_eq!(got, vec![7; sent]);
    drop(to);

    // The connection goes on. The handle has gone.
    let (to, _from) = std::os::unix::net::UnixStream::pair().unwrap();
    hand_over(&client, &json!({"opened": head["opened"]}), &to);
    assert_eq!(answer(&mut client).await["kind"], "gone");
    client.write_all(&frame(b"{}")).await.unwrap();
    assert_eq!(answer(&mut client).await["kind"], "invalid");
    serving.abort();
}
