//! The server on a drive in memory: what clients cannot provoke from outside.

mod common;

use common::{MARK, answer, config, drive, mount, serve, spoil};
use s3::{Limits, ServeError, Server};
use std::time::Duration;
use store::{Attributes, Transaction};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MIB: usize = 1 << 20;

fn body(size: usize, mark_at: Option<usize>) -> Vec<u8> {
    let mut body: Vec<u8> = (0..size).map(|n| (n * 31 % 253) as u8).collect();
    if let Some(at) = mark_at {
        body[at..at + MARK.len()].copy_from_slice(&MARK);
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_at_the_start_is_said_in_words() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    assert_eq!(server.put("/bucket", b"").await.status, 200);
    assert_eq!(
        server
            .put("/bucket/k", &body(200_000, Some(70_000)))
            .await
            .status,
        200
    );
    assert_eq!(server.get("/bucket/k").await.status, 200);
    spoil(&drive);
    let found = server.get("/bucket/k").await;
    assert_eq!(
        (found.status, found.code().as_str()),
        (500, "InternalError")
    );
    let text = String::from_utf8(found.body).unwrap();
    // The damaged chunk of 64 KiB begins there.
    assert!(text.contains("bucket") && text.contains("65536"), "{text}");
    // What is not damaged can still be read.
    let head = server.head_with("GET", "/bucket/k", "", 0, &[("range", "bytes=0-9")]);
    let mut connection = server.connect().await;
    connection.write_all(head.as_bytes()).await.unwrap();
    let found = answer(&mut connection).await;
    assert_eq!((found.status, found.body), (206, body(10, None)));
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_in_the_middle_cuts_the_answer_short() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    let data = body(6 * MIB, Some(4 * MIB + 12_345));
    assert_eq!(server.put("/bucket/k", &data).await.status, 200);
    spoil(&drive);
    let found = server.get("/bucket/k").await;
    assert_eq!(found.status, 200);
    assert_eq!(found.headers["content-length"], (6 * MIB).to_string());
    assert!(
        !found.whole && found.body.len() <= 4 * MIB + 12_345,
        "{}",
        found.body.len()
    );
    assert!(data.starts_with(&found.body));
    // A copy of it fails and leaves nothing.
    let source = [("x-amz-copy-source", "/bucket/k")];
    let head = server.head_with("PUT", "/bucket/copy", "", 0, &source);
    let mut connection = server.connect().await;
    connection.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut connection).await.code(), "InternalError");
    assert_eq!(server.get("/bucket/copy").await.status, 404);
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_put_leaves_nothing() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    let before = store.statfs().live_bytes;
    let mut connection = server.connect().await;
    let head = server.head("PUT", "/bucket/k", "", 4 * MIB);
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&body(3 * MIB, None)).await.unwrap();
    drop(connection);
    // Stopping waits for everything that is still running.
    server.stop().await;
    assert!(store.list("bucket", "", "", 10).unwrap().is_empty());
    assert_eq!(store.statfs().live_bytes, before);
    store.unmount().unwrap();
    let store = mount(&drive, false);
    assert!(store.fsck(true, &mut |_, _| {}).unwrap().errors.is_empty());
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stands_still_is_told() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        idle_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    // What is to arrive goes to a server that waits, for this machine may stand still, too.
    let patient = serve(&store, config());
    patient.put("/bucket", b"").await;
    let big = body(30 * MIB, None);
    assert_eq!(patient.put("/bucket/big", &big).await.status, 200);
    patient.stop().await;
    let server = serve(&store, s3::Config { limits, ..config() });
    let mut connection = server.connect().await;
    let head = server.head("PUT", "/bucket/k", "", 1000);
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(b"not a thousand").await.unwrap();
    let found = answer(&mut connection).await;
    assert_eq!(
        (found.status, found.code().as_str()),
        (400, "RequestTimeout")
    );
    // A reader that stands still loses its connection.
    let mut connection = server.connect().await;
    let head = server.head("GET", "/bucket/big", "", 0);
    connection.write_all(head.as_bytes()).await.unwrap();
    // Until the server has given up on us: then, and only then, a stop does not wait for it.
    server.stop().await;
    let mut rest = Vec::new();
    let _ = connection.read_to_end(&mut rest).await;
    assert!(rest.len() < 30 * MIB);
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_wanted_ends_the_connection() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    server.put("/bucket/k", b"one").await;
    // Refused by the handler, by the gate, and by the signature.
    let conditional = server.head_with("PUT", "/bucket/k", "", 3, &[("if-none-match", "*")]);
    let missing = server.head("PUT", "/nowhere/k", "", 3);
    let strange = server.head("PUT", "/bucket/k", "tagging=", 3);
    let forged = server
        .head("PUT", "/bucket/k", "", 3)
        .replace("/bucket/k", "/bucket/j");
    for (head, status) in [
        (conditional, 412),
        (missing, 404),
        (strange, 501),
        (forged, 403),
    ] {
        let mut connection = server.connect().await;
        let head = head.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
        connection.write_all(head.as_bytes()).await.unwrap();
        let found = answer(&mut connection).await;
        assert_eq!(found.status, status);
        assert_eq!(
            found.headers.get("connection").map(String::as_str),
            Some("close")
        );
        // A request behind it is not taken for the body, nor for anything else.
        let _ = connection
            .write_all(server.head("DELETE", "/bucket/k", "", 0).as_bytes())
            .await;
        let mut rest = Vec::new();
        let _ = connection.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{:?}", String::from_utf8_lossy(&rest));
    }
    assert_eq!(server.get("/bucket/k").await.body, b"one");
    // What is wanted leaves the connection open.
    let mut connection = server.connect().await;
    for _ in 0..2 {
        let head = server.head("PUT", "/bucket/k", "", 3);
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(b"two").await.unwrap();
        assert_eq!(answer(&mut connection).await.status, 200);
    }
    drop(connection);
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        header_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = serve(&store, s3::Config { limits, ..config() });
    let mut unused = server.connect().await;
    let mut begun = server.connect().await;
    begun.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
    // On a machine that stands still, a head may come too late.
    let mut used = loop {
        let mut used = server.connect().await;
        let head = server.head("GET", "/", "", 0);
        let _ = used.write_all(head.as_bytes()).await;
        if used.peek(&mut [0; 1]).await.unwrap_or(0) > 0 {
            assert_eq!(answer(&mut used).await.status, 200);
            break used;
        }
    };
    for connection in [&mut unused, &mut begun, &mut used] {
        let mut rest = Vec::new();
        let _ = connection.read_to_end(&mut rest).await;
    }
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_told_to_slow_down() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        max_uploads: 1,
        turn_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = serve(&store, s3::Config { limits, ..config() });
    server.put("/bucket", b"").await;
    let mut first = server.connect().await;
    let data = body(400_000, None);
    let head = server.head("PUT", "/bucket/first", "", data.len());
    first.write_all(head.as_bytes()).await.unwrap();
    first.write_all(&data[..1000]).await.unwrap();
    // The first has its turn as soon as somebody else does not get one.
    let found = loop {
        let found = server.put("/bucket/second", b"x").await;
        if found.status != 200 {
            break found;
        }
    };
    assert_eq!((found.status, found.code().as_str()), (503, "SlowDown"));
    // Reading is another turn.
    assert_eq!(server.get("/bucket/none").await.status, 404);
    first.write_all(&data[1000..]).await.unwrap();
    assert_eq!(answer(&mut first).await.status, 200);
    // The turn ends with the answer or just behind it.
    while server.put("/bucket/second", b"x").await.status != 200 {}
    assert_eq!(server.get("/bucket/first").await.body, data);
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_keep_no_client_out() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        max_connections: 2,
        max_strangers: 3,
        turn_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = serve(&store, s3::Config { limits, ..config() });
    let head = server.head("GET", "/", "", 0);
    let mut client = server.connect().await;
    client.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut client).await.status, 200);
    // Far more than there are slots: some say nothing, some say half of it, some are refused.
    let mut strangers = Vec::new();
    for number in 0..60 {
        let mut stranger = server.connect().await;
        let text: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET / HTTP/1.1\r\nhost:",
            _ => b"PUT /bucket/k HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n",
        };
        // The server may have closed it already.
        let _ = stranger.write_all(text).await;
        strangers.push(stranger);
    }
    // The client's connection is still there, and another one finds a place.
    client.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut client).await.status, 200);
    let mut another = server.connect().await;
    another.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut another).await.status, 200);
    // The first strangers have made room.
    let mut rest = Vec::new();
    let _ = strangers[0].read_to_end(&mut rest).await;
    assert!(rest.is_empty());
    // Clients are not without limit; who is one too many waits, and is told so.
    let mut third = server.connect().await;
    third.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut third).await.code(), "SlowDown");
    drop((client, another, third, strangers));
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_body_gives_way_to_who_waits() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        max_uploads: 2,
        busy_patience: Duration::from_millis(1),
        ..Limits::default()
    };
    let server = serve(&store, s3::Config { limits, ..config() });
    server.put("/bucket", b"").await;
    let mut slow = Vec::new();
    for number in 0..4 {
        let mut connection = server.connect().await;
        let head = server.head("PUT", &format!("/bucket/slow-{number}"), "", 400_000);
        connection.write_all(head.as_bytes()).await.unwrap();
        connection.write_all(b"and no more").await.unwrap();
        slow.push(connection);
    }
    // All that keep it waiting are slow, and it waits for none of them to end by itself.
    assert_eq!(server.put("/bucket/k", b"data").await.status, 200);
    drop(slow);
    server.stop().await;
    assert_eq!(store.list("bucket", "", "", 10).unwrap().len(), 1);
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_its_side_gets_its_answer() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    let data = body(3 * MIB, None);
    let mut connection = server.connect().await;
    let head = server.head("PUT", "/bucket/k", "", data.len());
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&data).await.unwrap();
    connection.shutdown().await.unwrap();
    assert_eq!(answer(&mut connection).await.status, 200);
    let mut connection = server.connect().await;
    let head = server.head("GET", "/bucket/k", "", 0);
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.shutdown().await.unwrap();
    assert_eq!(answer(&mut connection).await.body, data);
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_uploads_left_is_swept_away() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    let begun = server.request("POST", "/bucket/k", "uploads=", b"").await;
    assert_eq!(begun.status, 200);
    server.stop().await;
    let uploads = ".uploads/bucket";
    let live = store.list(uploads, "", "", 10).unwrap();
    assert_eq!(live.len(), 1);
    // As if the server had died between an abort and its sweep.
    for number in 1..=3 {
        let mut writer = store.writer(None).unwrap();
        writer.write(&body(100_000, None)).unwrap();
        let written = writer.finish().unwrap();
        let name = format!("00000000000000000000000000000000/{number:05}");
        let mut transaction = Transaction::new();
        transaction.put(uploads, &name, written, Attributes::new());
        store.commit(transaction).unwrap();
    }
    let server = serve(&store, config());
    assert_eq!(server.get("/bucket").await.status, 200);
    assert_eq!(store.list(uploads, "", "", 10).unwrap(), live);
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_said_so() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let first = Server::bind(config(), store.clone()).unwrap();
    let address = first.local_addr();
    let again = Server::bind(
        s3::Config {
            address,
            ..config()
        },
        store.clone(),
    );
    assert!(matches!(again, Err(ServeError::AddressInUse { address: found }) if found == address));
    let elsewhere = ([192, 0, 2, 1], 9).into();
    let nowhere = Server::bind(
        s3::Config {
            address: elsewhere,
            ..config()
        },
        store.clone(),
    );
    assert!(matches!(nowhere, Err(ServeError::Bind { .. })));
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_finishes_what_has_begun_and_nothing_else() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    // An idle connection that has been used, one that never was, and a put under way.
    let mut idle = server.connect().await;
    let head = server.head("GET", "/", "", 0);
    idle.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut idle).await.status, 200);
    let mut unused = server.connect().await;
    let mut busy = server.connect().await;
    let data = body(2 * MIB, None);
    let head = server.head("PUT", "/bucket/k", "", data.len());
    busy.write_all(head.as_bytes()).await.unwrap();
    busy.write_all(&data[..MIB]).await.unwrap();
    // Once a later request has been answered, the earlier one has been taken up.
    assert_eq!(server.get("/bucket").await.status, 200);
    let stopping = tokio::spawn(server.stop());
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert_eq!(unused.read(&mut [0; 1]).await.unwrap_or(0), 0);
    busy.write_all(&data[MIB..]).await.unwrap();
    assert_eq!(answer(&mut busy).await.status, 200);
    stopping.await.unwrap();
    assert_eq!(
        store.stat("bucket", "k").unwrap().unwrap().size,
        data.len() as u64
    );
    store.unmount().unwrap();
}
