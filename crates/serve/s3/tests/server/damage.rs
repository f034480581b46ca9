use super::*;

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
    // A copy for which it is read fails and leaves nothing.
    let source = [
        ("x-amz-copy-source", "/bucket/k"),
        ("x-amz-checksum-algorithm", "SHA256"),
    ];
    let head = server.head_with("PUT", "/bucket/copy", "", 0, &source);
    let mut connection = server.connect().await;
    connection.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut connection).await.code(), "InternalError");
    assert_eq!(server.get("/bucket/copy").await.status, 404);
    server.stop().await;
    store.unmount().unwrap();
}
