//! Copies while their source changes.
#![allow(clippy::unwrap_used)]

use super::common::Running;
use super::*;
use device::changed::{Change, Changed};
use device::{MemoryDrive, ZonedDevice, profile};
use kv_rocksdb::RocksDb;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use store::{MkfsOptions, MountOptions, Store};
use tokio::net::TcpStream;
use zone::{ByteOffset, ZoneResult};

/// The first read of marked data says that it has begun, and goes on when it is told.
struct Meeting(Mutex<Option<(Sender<()>, Receiver<()>)>>);

impl Change<MemoryDrive> for Meeting {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        drive.read(at, buffer)?;
        if buffer.windows(MARK.len()).any(|window| window == MARK)
            && let Some((begun, goes_on)) = self.0.lock().unwrap().take()
        {
            begun.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        Ok(())
    }
}

fn tagging(value: &str) -> String {
    format!("<Tagging><TagSet><Tag><Key>t</Key><Value>{value}</Value></Tag></TagSet></Tagging>")
}

type Met = Arc<Changed<MemoryDrive, Meeting>>;

/// A server with the bucket.
async fn begin() -> (Met, Store, Running) {
    let geometry = profile::by_name("test-small").unwrap();
    let drive = MemoryDrive::new(geometry.geometry(128 << 20, None).unwrap());
    let drive = Arc::new(Changed {
        drive: drive.unwrap(),
        change: Meeting(Mutex::new(None)),
    });
    Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb)).unwrap();
    let store = Store::mount(drive.clone(), MountOptions::new(RocksDb)).unwrap();
    let server = serve(&store, config());
    server.put("/bucket", b"").await;
    (drive, store, server)
}

/// Begins to copy `/bucket/k` onto itself, for another checksum, which needs its bytes. Returns once these are read, with
/// what lets the copy go on.
async fn copy_halfway(
    (drive, server): (&Met, &Running),
    algorithm: &str,
    directive: &str,
) -> (TcpStream, Sender<()>) {
    let (begun, has_begun) = channel();
    let (goes_on, may_go_on) = channel();
    *drive.change.0.lock().unwrap() = Some((begun, may_go_on));
    let mut connection = server.connect().await;
    let headers = [
        ("x-amz-checksum-algorithm", algorithm),
        ("x-amz-copy-source", "bucket/k"),
        ("x-amz-metadata-directive", directive),
    ];
    let head = server.head_with("PUT", "/bucket/k", "", 0, &headers);
    connection.write_all(head.as_bytes()).await.unwrap();
    tokio::task::spawn_blocking(move || has_begun.recv().unwrap())
        .await
        .unwrap();
    (connection, goes_on)
}

/// An object is copied onto itself, for other metadata and another checksum.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_takes_back_no_tags_that_were_set_meanwhile() {
    let (drive, store, server) = begin().await;
    let data = body(200_000, Some(70_000));
    assert_eq!(server.put("/bucket/k", &data).await.status, 200);
    // To tags from none, to others, and to none.
    let all = [
        ("SHA256", Some("first")),
        ("SHA1", Some("second")),
        ("CRC32", None),
    ];
    for (algorithm, tags) in all {
        let (mut connection, goes_on) = copy_halfway((&drive, &server), algorithm, "REPLACE").await;
        let set = match tags {
            Some(tags) => {
                let document = tagging(tags);
                server
                    .request("PUT", "/bucket/k", "tagging=", document.as_bytes())
                    .await
            }
            None => server.request("DELETE", "/bucket/k", "tagging=", b"").await,
        };
        assert!(matches!(set.status, 200 | 204), "{set:?}");
        goes_on.send(()).unwrap();
        assert_eq!(answer(&mut connection).await.status, 200);
        let found = server.request("GET", "/bucket/k", "tagging=", b"").await;
        let found = String::from_utf8(found.body).unwrap();
        match tags {
            Some(tags) => assert!(found.contains(&format!("<Value>{tags}</Value>")), "{found}"),
            None => assert!(!found.contains("<Value>"), "{found}"),
        }
    }
    server.stop().await;
    store.unmount().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_takes_back_no_metadata_that_was_set_meanwhile() {
    let (drive, store, server) = begin().await;
    let data = body(200_000, Some(70_000));
    assert_eq!(server.put("/bucket/k", &data).await.status, 200);
    let (mut halfway, goes_on) = copy_halfway((&drive, &server), "SHA256", "COPY").await;
    let headers = [
        ("content-type", "text/b"),
        ("x-amz-copy-source", "bucket/k"),
        ("x-amz-metadata-directive", "REPLACE"),
    ];
    let head = server.head_with("PUT", "/bucket/k", "", 0, &headers);
    let mut connection = server.connect().await;
    connection.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut connection).await.status, 200);
    goes_on.send(()).unwrap();
    let copied = answer(&mut halfway).await;
    assert_eq!(copied.status, 200);
    let copied = String::from_utf8(copied.body).unwrap();
    assert!(copied.contains("<ChecksumSHA256>"), "{copied}");
    let found = server.get("/bucket/k").await;
    assert_eq!(found.headers["content-type"], "text/b");
    assert!(found.body == data);
    server.stop().await;
    store.unmount().unwrap();
}
