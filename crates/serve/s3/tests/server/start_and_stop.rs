use super::*;

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

/// As an import of a part of it made it.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_without_its_other_collections_is_completed() {
    let store = mount(&drive(128 << 20), true);
    let attributes = [("kind", "bucket"), ("versioning", "enabled")];
    let attributes = attributes.map(|(name, value)| (name.to_owned(), value.into()));
    let mut transaction = Transaction::new();
    transaction.create_collection("bucket", attributes.into());
    store.commit(transaction).unwrap();
    let server = serve(&store, config());
    let begun = server.request("POST", "/bucket/k", "uploads=", b"").await;
    assert_eq!(begun.status, 200);
    for body in [b"1", b"2"] {
        assert_eq!(server.put("/bucket/k", body).await.status, 200);
    }
    for beside in [".uploads/bucket", ".versions/bucket"] {
        assert_eq!(store.list(beside, "", "", 10).unwrap().len(), 1, "{beside}");
    }
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
    let data = body(2 * MIB, None);
    let mut busy = server.begin_put("/bucket/k", data.len()).await;
    busy.write_all(&data[..MIB]).await.unwrap();
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
