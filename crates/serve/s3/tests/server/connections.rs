use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        header_timeout: Duration::from_millis(100),
        ..patient()
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
async fn strangers_keep_no_client_out() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let limits = Limits {
        max_connections: 2,
        max_strangers: 3,
        turn_timeout: Duration::from_millis(100),
        ..patient()
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
async fn an_answer_behind_which_the_connection_ends_says_so() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    // It goes out at once: the server reads on for a short time only.
    let endless = "x".repeat(4 * s3::Limits::default().max_header_bytes);
    let endless = format!("GET / HTTP/1.1\r\nhost: x\r\na: {endless}\r\n");
    let strange = "NO SUCH THING\r\n\r\n".to_owned();
    let asked_for = server.head_with("GET", "/", "", 0, &[("connection", "close")]);
    let unread = "PUT /bucket/k HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n".to_owned();
    let of_the_page = "PUT /-/ready HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n".to_owned();
    for (head, status) in [
        (endless, 431),
        (strange, 400),
        (asked_for, 200),
        (unread, 403),
        (of_the_page, 405),
    ] {
        let mut connection = server.connect().await;
        // Of a head that is too long it may read a part only.
        let _ = connection.write_all(head.as_bytes()).await;
        let found = answer(&mut connection).await;
        let said = found.headers.get("connection").map(String::as_str);
        assert_eq!((found.status, said), (status, Some("close")));
    }
    // A put under way while the server stops.
    let mut busy = server.begin_put("/bucket/k", 9).await;
    let mut idle = server.connect().await;
    idle.write_all(server.head("GET", "/", "", 0).as_bytes())
        .await
        .unwrap();
    let found = answer(&mut idle).await;
    assert_eq!((found.status, found.headers.get("connection")), (200, None));
    let stopping = tokio::spawn(server.stop());
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap_or(0), 0);
    busy.write_all(b"nine byte").await.unwrap();
    let found = answer(&mut busy).await;
    let said = found.headers.get("connection").map(String::as_str);
    assert_eq!((found.status, said), (200, Some("close")));
    stopping.await.unwrap();
    store.unmount().unwrap();
}
