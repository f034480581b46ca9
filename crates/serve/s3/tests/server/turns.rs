use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_told_to_slow_down() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        max_uploads: 1,
        turn_timeout: Duration::from_millis(100),
        ..patient()
    };
    let server = serve(&store, s3::Config { limits, ..config() });
    server.put("/bucket", b"").await;
    let data = body(400_000, None);
    let mut first = server.begin_put("/bucket/first", data.len()).await;
    let found = server.put("/bucket/second", b"x").await;
    assert_eq!((found.status, found.code().as_str()), (503, "SlowDown"));
    // Reading is another turn.
    assert_eq!(server.get("/bucket/none").await.status, 404);
    first.write_all(&data).await.unwrap();
    assert_eq!(answer(&mut first).await.status, 200);
    // The turn ends with the answer or just behind it.
    while server.put("/bucket/second", b"x").await.status != 200 {}
    assert_eq!(server.get("/bucket/first").await.body, data);
    server.stop().await;
    store.unmount().unwrap();
}

/// A page of such keys is longer than what the connection and the system keep of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_nobody_reads_gives_way_to_who_waits() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        max_documents: 1,
        busy_patience: Duration::from_millis(1),
        busy_bytes_per_second: u64::MAX,
        ..patient()
    };
    let server = serve(&store, s3::Config { limits, ..config() });
    server.put("/bucket", b"").await;
    let quotes = "\"".repeat(1020);
    let mut keys = Transaction::new();
    for number in 0..1000 {
        keys.touch("bucket", format!("{number:04}{quotes}"));
    }
    store.commit(keys).unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1 << 14).unwrap();
    let mut first = socket.connect(server.address).await.unwrap();
    let head = server.head("GET", "/bucket", "", 0);
    first.write_all(head.as_bytes()).await.unwrap();
    let mut begun = [0];
    first.peek(&mut begun).await.unwrap();
    let second = server.get("/bucket").await;
    assert_eq!((second.status, second.whole), (200, true));
    assert!(second.body.len() > 6_000_000);
    assert!(!answer(&mut first).await.whole);
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
        ..patient()
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
