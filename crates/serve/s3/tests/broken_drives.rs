//! Drives that fail a command, or every one from some time on, under clients that go on: what was
//! acknowledged reads back byte for byte when the drive works again, and every request is answered.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Answer, Running, config, serve};
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use kv_rocksdb::RocksDb;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use store::{MkfsOptions, MountOptions, Store};
use zone::{Geometry, ZoneCommand, ZoneKind};

/// What a key may hold: several where a request has failed, `None` for no object.
type Contents = BTreeMap<String, Vec<Option<Vec<u8>>>>;

fn drive() -> Arc<Faults<MemoryDrive>> {
    let geometry = Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 48,
        conventional_zones: 4,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 14,
        max_active_zones: 14,
        max_append_bytes: 0,
    };
    Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()))
}

fn mount(drive: &Arc<Faults<MemoryDrive>>) -> Store {
    let device: Arc<dyn ZonedDevice> = drive.clone();
    Store::mount(device, MountOptions::new(RocksDb)).unwrap()
}

fn bytes(seed: usize) -> Vec<u8> {
    let length = seed * 7919 % 600_000;
    (0..length).map(|i| (i * 31 + seed * 17) as u8).collect()
}

/// Whether it was carried out; an error has a code, a reason and a status that says whose it is.
fn done(answer: &Answer, what: &str) -> bool {
    if answer.status < 300 {
        return true;
    }
    let text = String::from_utf8_lossy(&answer.body);
    assert!(
        matches!(answer.status, 500 | 503 | 507),
        "{what}: {} {text}",
        answer.status
    );
    assert!(
        text.contains("<Code>") && text.contains("<Message>"),
        "{what}: {text}"
    );
    false
}

/// Puts one part and completes it.
async fn upload(server: &Running, path: &str, data: &[u8]) -> bool {
    let begun = server.request("POST", path, "uploads=", b"").await;
    if !done(&begun, "begin") {
        return false;
    }
    let text = String::from_utf8(begun.body).unwrap();
    let id = text.split("<UploadId>").nth(1).unwrap();
    let id = id.split('<').next().unwrap();
    let query = format!("partNumber=1&uploadId={id}");
    let part = server.request("PUT", path, &query, data).await;
    if !done(&part, "part") {
        return false;
    }
    let tag = &part.headers["etag"];
    let order = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let query = format!("uploadId={id}");
    let answer = server.request("POST", path, &query, order.as_bytes());
    done(&answer.await, "complete")
}

/// One client's day, on keys that it has for itself.
async fn work(server: &Running, client: usize, contents: &mut Contents) {
    for step in 0..60 {
        let key = format!("/bucket/{client}-{}", step % 5);
        let may = contents.entry(key.clone()).or_insert_with(|| vec![None]);
        let data = bytes(client * 1000 + step);
        let (new, succeeded) = match step % 6 {
            3 => {
                let answer = server.request("DELETE", &key, "", b"").await;
                (None, done(&answer, "delete"))
            }
            4 => (Some(data.clone()), upload(server, &key, &data).await),
            _ => {
                let answer = server.put(&key, &data).await;
                (Some(data), done(&answer, "put"))
            }
        };
        if succeeded {
            may.clear();
        }
        may.push(new);
        let answer = server.get(&key).await;
        let found = match answer.status {
            404 => None,
            200 if answer.whole => Some(answer.body),
            200 => continue,
            _ => {
                done(&answer, "get");
                continue;
            }
        };
        assert!(may.contains(&found), "{key} at step {step}");
    }
}

/// How often the plan struck.
async fn run(plan: Plan) -> u64 {
    let drive = drive();
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let options = MkfsOptions {
        uuid: [1; 16],
        ..MkfsOptions::new(RocksDb)
    };
    Store::mkfs(device, &options).unwrap();
    let store = mount(&drive);
    let server = serve(&store, config());
    assert_eq!(server.request("PUT", "/bucket", "", b"").await.status, 200);
    let mut contents = Contents::new();
    let mut other = Contents::new();
    work(&server, 0, &mut contents).await;
    drive.add(plan.clone());
    tokio::join!(
        work(&server, 1, &mut contents),
        work(&server, 2, &mut other)
    );
    contents.extend(other);
    server.stop().await;
    drop(store);
    drive.clear();
    let store = mount(&drive);
    let server = serve(&store, config());
    for (key, may) in contents {
        let answer = server.get(&key).await;
        let found = (answer.status == 200).then_some(answer.body);
        assert!(answer.whole && matches!(answer.status, 200 | 404), "{key}");
        assert!(may.contains(&found), "{key} after {plan:?}");
    }
    server.stop().await;
    drive.struck()
}

async fn fail(command: ZoneCommand) {
    let mut struck = 0;
    for kth in [1, 2, 5, 11] {
        struck += run(Plan::at(command, kth, Fault::Io(io::ErrorKind::Other))).await;
    }
    struck += run(Plan::from(command, 3, Fault::Io(io::ErrorKind::Other))).await;
    assert!(struck > 1, "{command:?} was not needed");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_fail() {
    fail(ZoneCommand::Write).await;
    for kth in [1, 4, 9, 20] {
        run(Plan::at(
            ZoneCommand::Write,
            kth,
            Fault::Torn { bytes: 4096 },
        ))
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_fail() {
    fail(ZoneCommand::Read).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flushes_that_fail() {
    fail(ZoneCommand::Flush).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_that_fail() {
    fail(ZoneCommand::Reset).await;
}
