//! Object Lock, by a clock that is set, by keys with some rights, and on attributes that no client can make.
#![allow(clippy::unwrap_used)]

use super::common::{Answer, Running};
use super::*;
use s3::{Clock, Config, Credentials, Grant, Key, Keyring, Right, Rights};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::Store;

const LOCK: &[(&str, &str)] = &[("x-amz-bucket-object-lock-enabled", "true")];
const BYPASS: &[(&str, &str)] = &[("x-amz-bypass-governance-retention", "true")];
/// The first second of 2030, in Unix microseconds.
const START: u64 = 1_893_456_000_000_000;
const NOON: &str = "2030-01-01T12:00:00Z";
const NOON_MICROS: u64 = START + 12 * 3600 * 1_000_000;

/// A server on a clock that stands still, and the hand of the clock.
fn locked(store: &Store) -> (Running, Arc<AtomicU64>, Keyring) {
    let hand = Arc::new(AtomicU64::new(START));
    let read = hand.clone();
    let clock: Clock = Arc::new(move || read.load(Ordering::SeqCst));
    let config = Config { clock, ..config() };
    let keys = config.keys.clone();
    (serve(store, config), hand, keys)
}

async fn send(
    server: &Running,
    method: &str,
    (path, query): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let head = server.head_with(method, path, query, body.len(), headers);
    let mut connection = server.connect().await;
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(body.as_bytes()).await.unwrap();
    answer(&mut connection).await
}

fn is(answer: &Answer, status: u16, code: &str) {
    let text = String::from_utf8_lossy(&answer.body);
    assert_eq!((answer.status, &*answer.code()), (status, code), "{text}");
}

/// Makes the bucket whose versions can be locked.
async fn make_bucket(server: &Running) {
    let made = send(server, "PUT", ("/papers", ""), LOCK, "").await;
    is(&made, 200, "");
}

/// Puts an object with these headers; answers the query that names its version.
async fn put(server: &Running, path: &str, headers: &[(&str, &str)]) -> String {
    let made = send(server, "PUT", (path, ""), headers, "bytes").await;
    is(&made, 200, "");
    format!("versionId={}", made.headers["x-amz-version-id"])
}

fn retention(mode: &str, until: &str) -> String {
    format!("<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>")
}

fn until_noon(mode: &'static str) -> [(&'static str, &'static str); 2] {
    [
        ("x-amz-object-lock-mode", mode),
        ("x-amz-object-lock-retain-until-date", NOON),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retention_ends_at_its_moment() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let (server, hand, _) = locked(&store);
    make_bucket(&server).await;
    let version = put(&server, "/papers/k", &until_noon("COMPLIANCE")).await;
    let delete = async || send(&server, "DELETE", ("/papers/k", &version), BYPASS, "").await;
    for before in [START, NOON_MICROS - 1] {
        hand.store(before, Ordering::SeqCst);
        is(&delete().await, 403, "AccessDenied");
    }
    let shorter = retention("COMPLIANCE", "2030-01-01T11:59:59Z");
    hand.store(START, Ordering::SeqCst);
    let query = format!("retention=&{version}");
    let put_retention =
        async |body: &str| send(&server, "PUT", ("/papers/k", &query), BYPASS, body).await;
    is(&put_retention(&shorter).await, 403, "AccessDenied");
    is(&put_retention("<Retention/>").await, 403, "AccessDenied");
    is(
        &put_retention(&retention("COMPLIANCE", NOON)).await,
        200,
        "",
    );
    hand.store(NOON_MICROS, Ordering::SeqCst);
    // It is over, and still told.
    let told = send(&server, "GET", ("/papers/k", &version), &[], "").await;
    assert_eq!(
        told.headers["x-amz-object-lock-retain-until-date"],
        "2030-01-01T12:00:00.000Z"
    );
    is(&delete().await, 204, "");
    // A default begins when a version is made.
    let years = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
                 <Mode>GOVERNANCE</Mode><Years>1</Years></DefaultRetention></Rule></ObjectLockConfiguration>";
    is(
        &send(&server, "PUT", ("/papers", "object-lock="), &[], years).await,
        200,
        "",
    );
    put(&server, "/papers/k", &[]).await;
    let told = send(&server, "GET", ("/papers/k", ""), &[], "").await;
    assert_eq!(
        (
            &*told.headers["x-amz-object-lock-mode"],
            &*told.headers["x-amz-object-lock-retain-until-date"]
        ),
        ("GOVERNANCE", "2031-01-01T12:00:00.000Z")
    );
    server.stop().await;
    store.unmount().unwrap();
}

fn key(may: &[Right]) -> Key {
    Key {
        credentials: Credentials::new("key", "secret"),
        rights: Rights::Granted(vec![Grant {
            buckets: "papers".parse().unwrap(),
            may: may.iter().copied().collect(),
        }]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_makes_locks_and_who_administers_weakens_them() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let (server, _, keys) = locked(&store);
    make_bucket(&server).await;
    keys.replace([key(&[Right::Write])]);
    let version = put(&server, "/papers/k", &until_noon("GOVERNANCE")).await;
    let query = format!("retention=&{version}");
    let longer = retention("GOVERNANCE", "2030-01-02T00:00:00Z");
    let put_retention =
        async |body: &str| send(&server, "PUT", ("/papers/k", &query), BYPASS, body).await;
    let put_hold = async |status: &str| {
        let (query, body) = (
            format!("legal-hold=&{version}"),
            format!("<LegalHold><Status>{status}</Status></LegalHold>"),
        );
        send(&server, "PUT", ("/papers/k", &query), &[], &body).await
    };
    let delete = async |bypass| send(&server, "DELETE", ("/papers/k", &version), bypass, "").await;
    let noon = retention("GOVERNANCE", NOON);
    is(&put_retention(&longer).await, 200, "");
    for refused in [
        put_retention(&noon).await,
        put_retention("<Retention/>").await,
        delete(BYPASS).await,
    ] {
        is(&refused, 403, "AccessDenied");
    }
    is(&put_hold("ON").await, 200, "");
    is(&put_hold("OFF").await, 403, "AccessDenied");
    // Only to administer is not enough: these are writes.
    keys.replace([key(&[Right::Admin])]);
    for refused in [
        put_retention(&noon).await,
        put_hold("OFF").await,
        delete(BYPASS).await,
    ] {
        is(&refused, 403, "AccessDenied");
    }
    keys.replace([key(&[Right::Write, Right::Admin])]);
    is(&put_retention(&noon).await, 200, "");
    // A hold is nothing that a bypass bypasses.
    is(&delete(BYPASS).await, 403, "AccessDenied");
    is(&put_hold("OFF").await, 200, "");
    is(&delete(&[]).await, 403, "AccessDenied");
    is(&delete(BYPASS).await, 204, "");
    server.stop().await;
    store.unmount().unwrap();
}

fn set(store: &Store, collection: &str, name: &str, attributes: &[(&str, &str)]) {
    let attributes = attributes
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
    let mut transaction = Transaction::new();
    transaction.update_attributes(collection, name, attributes.collect(), &[]);
    store.commit(transaction).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_counts_as_locked() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let (server, _, _) = locked(&store);
    make_bucket(&server).await;
    for (name, attributes) in [
        (
            "mode",
            &[("lock-mode", "ETERNAL"), ("lock-until", NOON)][..],
        ),
        (
            "until",
            &[("lock-mode", "GOVERNANCE"), ("lock-until", "x")][..],
        ),
        ("half", &[("lock-mode", "GOVERNANCE")][..]),
        ("hold", &[("legal-hold", "PERHAPS")][..]),
    ] {
        let path = format!("/papers/{name}");
        let version = put(&server, &path, &[]).await;
        set(&store, "papers", name, attributes);
        let refused = send(&server, "DELETE", (&path, &version), BYPASS, "").await;
        is(&refused, 403, "AccessDenied");
        let text = String::from_utf8_lossy(&refused.body).into_owned();
        assert!(text.contains("cannot be read"), "{text}");
        let (query, headers, others) = match name {
            // One that is put on could be taken off.
            "hold" => {
                let hold = |on| format!("<LegalHold><Status>{on}</Status></LegalHold>");
                ("legal-hold=", &[][..], vec![hold("ON"), hold("OFF")])
            }
            _ => ("retention=", BYPASS, vec![retention("COMPLIANCE", NOON)]),
        };
        for other in others {
            let refused = send(&server, "PUT", (&path, query), headers, &other).await;
            is(&refused, 403, "AccessDenied");
        }
        let told = send(&server, "GET", (&path, query), &[], "").await;
        is(&told, 500, "InternalError");
        // The object itself is read, and may have a newer version.
        is(&server.get(&path).await, 200, "");
        put(&server, &path, &[]).await;
        let refused = send(&server, "DELETE", (&path, &version), BYPASS, "").await;
        is(&refused, 403, "AccessDenied");
    }
    // So does a bucket's: it keeps its versions, and no version comes without the retention that it should have.
    let mut attributes = store.collection("papers").unwrap().unwrap().attributes;
    attributes.insert("object-lock".to_owned(), b"HALF-HEARTED 1 days".to_vec());
    let mut transaction = Transaction::new();
    transaction.set_collection_attributes("papers", attributes);
    store.commit(transaction).unwrap();
    let suspend = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    is(
        &send(&server, "PUT", ("/papers", "versioning="), &[], suspend).await,
        409,
        "InvalidBucketState",
    );
    is(&server.put("/papers/new", b"").await, 403, "AccessDenied");
    put(&server, "/papers/new", &until_noon("COMPLIANCE")).await;
    is(
        &send(&server, "GET", ("/papers", "object-lock="), &[], "").await,
        500,
        "InternalError",
    );
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lifecycle_rules_leave_what_is_locked() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let (server, _, _) = locked(&store);
    make_bucket(&server).await;
    let free = put(&server, "/papers/a", &[]).await;
    let held = put(&server, "/papers/b", &until_noon("COMPLIANCE")).await;
    for path in ["/papers/a", "/papers/b"] {
        put(&server, path, &[]).await;
    }
    // By the clock, both were replaced years ago.
    let rules = "<LifecycleConfiguration><Rule><Filter/><Status>Enabled</Status><NoncurrentVersionExpiration>\
                 <NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration></Rule></LifecycleConfiguration>";
    is(
        &send(&server, "PUT", ("/papers", "lifecycle="), &[], rules).await,
        200,
        "",
    );
    let status =
        async |path, version: &str| send(&server, "GET", (path, version), &[], "").await.status;
    // A batch goes from its end to its beginning.
    while status("/papers/a", &free).await != 404 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(status("/papers/b", &held).await, 200);
    server.stop().await;
    store.unmount().unwrap();
}

/// Archives and salvage bring locked objects to buckets that keep no versions.
#[tokio::test(flavor = "multi_thread")]
async fn a_locked_object_stays_where_no_versions_are_kept() {
    let drive = drive(128 << 20);
    let store = mount(&drive, true);
    let (server, hand, _) = locked(&store);
    let lock = [("lock-mode", "COMPLIANCE"), ("lock-until", NOON)];
    let suspend = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
    for versioning in ["never", "suspended", "earlier"] {
        hand.store(START, Ordering::SeqCst);
        let bucket = format!("/{versioning}");
        let key = format!("{bucket}/k");
        is(&server.put(&bucket, b"").await, 200, "");
        is(&server.put(&key, b"kept").await, 200, "");
        is(&server.put(&format!("{bucket}/free"), b"").await, 200, "");
        set(&store, versioning, "k", &lock);
        let switch = async |document: &str| {
            send(&server, "PUT", (&bucket, "versioning="), &[], document).await
        };
        if versioning == "earlier" {
            // The version without an id lies beside the bucket.
            is(
                &switch(&suspend.replace("Suspended", "Enabled")).await,
                200,
                "",
            );
            put(&server, &key, &[]).await;
        }
        if versioning != "never" {
            is(&switch(suspend).await, 200, "");
        }
        let upload = send(&server, "POST", (&key, "uploads="), &[], "").await;
        let upload = String::from_utf8(upload.body).unwrap();
        let upload = upload.split("UploadId>").nth(1).unwrap();
        let id = upload.split('<').next().unwrap();
        let query = format!("partNumber=1&uploadId={id}");
        let part = send(&server, "PUT", (&key, &query), &[], "part").await;
        let etag = &part.headers["etag"];
        let complete = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
            etag.replace('"', "&quot;")
        );
        let query = format!("uploadId={id}");
        let source = format!("{bucket}/free");
        let copy = [("x-amz-copy-source", source.as_str())];
        let itself = [
            ("x-amz-copy-source", key.as_str()),
            ("x-amz-metadata-directive", "REPLACE"),
        ];
        let null = "versionId=null";
        for (method, query, headers, body) in [
            ("PUT", "", &[][..], "other"),
            ("PUT", "", &copy[..], ""),
            ("PUT", "", &itself[..], ""),
            ("POST", &*query, &[][..], &*complete),
            ("DELETE", "", BYPASS, ""),
            ("DELETE", null, BYPASS, ""),
        ] {
            let refused = send(&server, method, (&key, query), headers, body).await;
            is(&refused, 403, "AccessDenied");
        }
        let many = "<Delete><Object><Key>k</Key></Object><Object><Key>free</Key></Object>\
                    <Object><Key>k</Key><VersionId>null</VersionId></Object></Delete>";
        let done = send(&server, "POST", (&bucket, "delete="), BYPASS, many).await;
        let text = String::from_utf8_lossy(&done.body).into_owned();
        assert_eq!(text.matches("AccessDenied").count(), 2, "{text}");
        assert_eq!(text.matches("<Deleted>").count(), 1, "{text}");
        let there = send(&server, "GET", (&key, null), &[], "").await;
        assert_eq!((there.status, &*there.body), (200, &b"kept"[..]));
        // Tags are no part of what is kept; they take no lock away.
        let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
        let tagged = send(
            &server,
            "PUT",
            (&key, &format!("tagging=&{null}")),
            &[],
            tags,
        )
        .await;
        is(&tagged, 200, "");
        is(
            &send(&server, "DELETE", (&key, null), &[], "").await,
            403,
            "AccessDenied",
        );
        hand.store(NOON_MICROS, Ordering::SeqCst);
        is(&server.put(&key, b"new").await, 200, "");
    }
    server.stop().await;
    store.unmount().unwrap();
}
