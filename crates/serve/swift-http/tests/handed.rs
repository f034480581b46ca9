//! Sockets that are handed over: those that take nothing, and what is taken from them.
#![allow(clippy::unwrap_used)]

#[path = "../../swift-drive/tests/support/mod.rs"]
mod support;

use axum::Router;
use control::{Socket, frame};
use runtime::Runtime;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::{Value, json};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::Duration;
use support::{formatted, mount};
use swift_http::SwiftCalls;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const DATA: usize = 8 << 20;
const SOCKET: &str = "daemon.sock";
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

fn hand_over(client: &UnixStream, line: Value, beside: &[u8], socket: &impl AsFd) {
    let message = [line.to_string().as_bytes(), b"\n", beside].concat();
    let sockets = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&sockets)));
    let message = frame(&message);
    let parts = [IoSlice::new(&message)];
    sendmsg(client, &parts, &mut ancillary, SendFlags::empty()).unwrap();
}

/// A server, which lives as long as the task and the folder, and a connection to it.
async fn served() -> (UnixStream, JoinHandle<()>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let socket = Socket::at(&folder.path().join(SOCKET), None).unwrap();
    let calls = SwiftCalls::new(mount(&formatted()), Runtime::seeded(1)).unwrap();
    let router: Router = calls.router();
    let never = std::future::pending();
    let serving = tokio::spawn(async move {
        let _ = socket.run(router, Duration::ZERO, never, async {}).await;
    });
    let mut client = connect(&folder).await;
    let policy = br#"{"kind": "replication"}"#;
    ask(&mut client, "PUT", "/policies/0", policy).await;
    (client, serving, folder)
}

async fn connect(folder: &TempDir) -> UnixStream {
    UnixStream::connect(folder.path().join(SOCKET))
        .await
        .unwrap()
}

/// Opens the object; returns the head of the answer.
async fn open(client: &mut UnixStream) -> Value {
    let path = format!("{OBJECT}/open");
    let opened = ask(client, "POST", &path, br#"{"hold": true}"#).await;
    let (length, rest) = opened.split_first_chunk().unwrap();
    let head = &rest[..u32::from_le_bytes(*length) as usize];
    serde_json::from_slice(head).unwrap()
}

async fn upgrade(client: &mut UnixStream, call: &str) {
    let head = format!(
        "GET /{call} HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: zonestore-{call}\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    assert!(head_of(client).await.starts_with("HTTP/1.1 101"));
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_takes_nothing_for_a_minute_is_cut() {
    let (mut client, serving, _folder) = served().await;
    let file = format!("{OBJECT}/files/1402464677.04188.data?metadata_bytes=0");
    ask(&mut client, "PUT", &file, &vec![7; DATA]).await;
    let head = open(&mut client).await;
    upgrade(&mut client, "sending").await;

    let (to, mut from) = std::os::unix::net::UnixStream::pair().unwrap();
    let begun = Instant::now();
    hand_over(&client, json!({"opened": head["opened"]}), b"", &to);
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
    hand_over(&client, json!({"opened": head["opened"]}), b"", &to);
    assert_eq!(answer(&mut client).await["kind"], "gone");
    client.write_all(&frame(b"{}")).await.unwrap();
    assert_eq!(answer(&mut client).await["kind"], "invalid");
    serving.abort();
}

#[tokio::test]
async fn a_body_and_nothing_behind_it_is_taken_from_a_socket() {
    let (mut client, serving, _folder) = served().await;
    upgrade(&mut client, "receiving").await;
    let (mut from, to) = std::os::unix::net::UnixStream::pair().unwrap();
    for (length, first) in [(0, 70_000), (1, 0), (65_537, 3), (3 << 20, 8192)] {
        hand_over(&client, json!({"bytes": length}), &vec![1; first], &from);
        let mut writing = to.try_clone().unwrap();
        let written = std::thread::spawn(move || writing.write_all(&vec![2; length + 5]).unwrap());
        let staged = answer(&mut client).await;
        assert_eq!(staged["size"], length + first, "{staged}");
        let mut behind = [0; 5];
        // For both processes now.
        from.set_nonblocking(false).unwrap();
        from.read_exact(&mut behind).unwrap();
        assert_eq!(behind, [2; 5]);
        written.join().unwrap();
    }
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn what_does_not_come_is_told_with_what_came() {
    let (mut client, serving, _folder) = served().await;
    upgrade(&mut client, "receiving").await;
    let (from, mut to) = std::os::unix::net::UnixStream::pair().unwrap();
    // One that brings nothing any more, one that ends, and a message that says nothing.
    let part = 100_000;
    to.write_all(&vec![2; part]).unwrap();
    let begun = Instant::now();
    for end in [false, true] {
        if end {
            to.shutdown(std::net::Shutdown::Write).unwrap();
        }
        hand_over(&client, json!({"bytes": 1 << 20}), b"abc", &from);
        let mut told = answer(&mut client).await;
        let passed = if end { 0 } else { part };
        while told["kind"] == Value::Null {
            assert_eq!(told["passed"], passed);
            told = answer(&mut client).await;
        }
        assert_eq!(told["kind"], "broken_off", "{told}");
        assert_eq!(told["passed"], passed);
    }
    assert!(begun.elapsed() >= Duration::from_secs(120));
    for (message, kind) in [
        (json!("no bytes"), "invalid"),
        (json!({"bytes": u64::MAX}), "too_large"),
    ] {
        hand_over(&client, message, b"abc", &from);
        let told = answer(&mut client).await;
        assert_eq!((&told["kind"], &told["passed"]), (&json!(kind), &json!(0)));
    }
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn who_leaves_in_the_middle_holds_nothing() {
    let (mut client, serving, folder) = served().await;
    // More than there are places for.
    for _ in 0..200 {
        upgrade(&mut client, "receiving").await;
        let (from, mut to) = std::os::unix::net::UnixStream::pair().unwrap();
        to.write_all(&vec![2; 100_000]).unwrap();
        hand_over(&client, json!({"bytes": 1 << 20}), b"abc", &from);
        assert_eq!(answer(&mut client).await["busy"], false);
        client = UnixStream::connect(folder.path().join("daemon.sock"))
            .await
            .unwrap();
        drop((from, to));
    }
    serving.abort();
}

/// Swift's proxy gives up a drive that lets it wait 10 seconds.
#[tokio::test(start_paused = true)]
async fn bodies_that_stand_still_keep_nobody_waiting() {
    let (mut client, serving, folder) = served().await;
    upgrade(&mut client, "receiving").await;
    let (from, mut to) = std::os::unix::net::UnixStream::pair().unwrap();
    to.write_all(&vec![2; 100_000]).unwrap();
    let mut still = Vec::new();
    for number in 0..128 {
        let mut one = connect(&folder).await;
        let (from, to) = std::os::unix::net::UnixStream::pair().unwrap();
        if number % 2 == 0 {
            upgrade(&mut one, "receiving").await;
            hand_over(&one, json!({"bytes": 1 << 20}), b"abc", &from);
        } else {
            let file = format!("{OBJECT}/files/14024646{number:02}.04188.data?metadata_bytes=0");
            let head =
                format!("PUT {file} HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\nabc");
            one.write_all(head.as_bytes()).await.unwrap();
        }
        still.push((one, from, to));
    }
    // A beat later, all of them have begun.
    answer(&mut still[126].0).await;
    let begun = Instant::now();
    hand_over(&client, json!({"bytes": 100_000}), b"abc", &from);
    let mut told = answer(&mut client).await;
    while told["kind"] == Value::Null && told["staged"] == Value::Null {
        told = answer(&mut client).await;
    }
    assert_eq!(told["size"], 100_003, "{told}");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    // Those that find a place free may stand still for longer.
    assert_eq!(answer(&mut still[0].0).await["kind"], "broken_off");
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn downloads_that_nobody_takes_keep_nobody_waiting() {
    let (mut client, serving, folder) = served().await;
    let file = format!("{OBJECT}/files/1402464677.04188.data?metadata_bytes=0");
    ask(&mut client, "PUT", &file, &vec![7; DATA]).await;
    let mut still = Vec::new();
    for _ in 0..128 {
        let head = open(&mut client).await;
        let opened = head["opened"].as_str().unwrap();
        let mut one = connect(&folder).await;
        let head = format!(
            "GET /opened/{opened}?close=true HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        );
        one.write_all(head.as_bytes()).await.unwrap();
        // It has its place.
        assert!(head_of(&mut one).await.starts_with("HTTP/1.1 200"));
        still.push(one);
    }
    let begun = Instant::now();
    ask(&mut client, "POST", "/staged", &[2; 100_000]).await;
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    // One that was given up ends before all of it has come.
    let mut has_broken_off = false;
    for mut one in still {
        let mut got = Vec::new();
        let _ = one.read_to_end(&mut got).await;
        has_broken_off |= got.len() < DATA;
        if has_broken_off {
            break;
        }
    }
    assert!(has_broken_off);
    serving.abort();
}
