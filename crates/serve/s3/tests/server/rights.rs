//! What a key may do, and what becomes of the rest.
#![allow(clippy::unwrap_used)]

use super::*;
use s3::{Credentials, Grant, Key, Keyring, Right, Rights};

/// The key that requests are signed with, with these rights.
fn key(grants: &[(&str, &[Right])]) -> Key {
    let grant = |(buckets, may): &(&str, &[Right])| Grant {
        buckets: buckets.parse().unwrap(),
        may: may.iter().copied().collect(),
    };
    Key {
        credentials: Credentials::new("key", "secret"),
        rights: Rights::Granted(grants.iter().map(grant).collect()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_key_may_not_do_is_refused_and_changes_nothing() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let config = config();
    let keys = config.keys.clone();
    let server = serve(&store, config);
    for path in ["/from", "/into", "/from/object"] {
        assert_eq!(server.put(path, b"").await.status, 200);
    }
    keys.replace([key(&[
        ("into", &[Right::Write]),
        ("read-*", &[Right::Read]),
    ])]);
    let copy = async |from: &str| {
        let more = [("x-amz-copy-source", from)];
        let head = server.head_with("PUT", "/into/copy", "", 0, &more);
        let mut connection = server.connect().await;
        connection.write_all(head.as_bytes()).await.unwrap();
        answer(&mut connection).await
    };
    let refused = [
        server.get("/from/object").await,
        server.put("/from/object", b"x").await,
        server.request("DELETE", "/from/object", "", b"").await,
        server.request("DELETE", "/into", "", b"").await,
        server.put("/made", b"").await,
        server.get("/into").await,
        copy("from/object").await,
        copy("/from/object").await,
        copy("%66rom/object").await,
        copy("from").await,
    ];
    for answer in refused {
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "AccessDenied")
        );
    }
    assert_eq!(server.put("/into/object", b"x").await.status, 200);
    keys.replace([]);
    let revoked = server.put("/into/object", b"y").await;
    assert_eq!(
        (revoked.status, revoked.code().as_str()),
        (403, "InvalidAccessKeyId")
    );
    server.stop().await;
    let names = |bucket| {
        let found = store.list(bucket, "", "", 10).unwrap();
        found
            .iter()
            .map(|one| one.name.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names("from"), names("into")),
        (vec!["object".into()], vec!["object".into()])
    );
    assert_eq!(store.open("into", "object").unwrap().info().size, 1);
    assert!(store.collection("made").unwrap().is_none());
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_buckets_that_a_key_may_know_are_listed() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let config = config();
    let keys: Keyring = config.keys.clone();
    let server = serve(&store, config);
    for path in ["/mine", "/yours"] {
        assert_eq!(server.put(path, b"").await.status, 200);
    }
    keys.replace([key(&[("mine", &[Right::List])])]);
    let shown = String::from_utf8(server.get("/").await.body).unwrap();
    assert!(
        shown.contains("mine") && !shown.contains("yours"),
        "{shown}"
    );
    server.stop().await;
    store.unmount().unwrap();
}
