use super::*;

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
        ..patient()
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
    let strange = server.head("PUT", "/bucket/k", "acl=", 3);
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
        let head = expecting(&head);
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
async fn an_object_of_another_program_has_one_entity_tag() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    let mut transaction = Transaction::new();
    transaction.touch("bucket", "k");
    store.commit(transaction).unwrap();
    let found = server.get("/bucket/k").await;
    let tag = found.headers["etag"].trim_matches('"');
    for query in ["", "list-type=2", "versions="] {
        let listed = server.request("GET", "/bucket", query, b"").await;
        let listed = String::from_utf8(listed.body).unwrap();
        assert!(listed.contains(tag), "{query}: {listed}");
    }
    server.stop().await;
    store.unmount().unwrap();
}
