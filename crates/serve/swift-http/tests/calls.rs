//! The calls, asked as a client asks them.
#![allow(clippy::unwrap_used)]

#[path = "../../swift-drive/tests/support/mod.rs"]
mod support;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::RANGE;
use axum::http::{Method, Request, StatusCode};
use device::faults::{Fault, Faults, Gate, Plan};
use device::{MemoryDrive, ZonedDevice};
use futures::StreamExt;
use http_body_util::BodyExt;
use kv_log::KvLog;
use runtime::{Runtime, SimulatedClock};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;
use store::{MountOptions, Store};
use support::{formatted, mount};
use swift_http::SwiftCalls;
use tower::ServiceExt;
use zone::ZoneId;

const HASH: &str = "0123456789abcdef0123456789abcdef";
/// Bodies at the same time.
const PLACES: usize = 128;
/// Calls that add to the drive at the same time.
const ADDING: usize = 16;
const DATA: &str = "1402464677.04188.data";
const GONE: &str = "1402464677.04189.ts";

struct Calls {
    calls: Arc<SwiftCalls>,
    router: Router,
    clock: Arc<SimulatedClock>,
}

impl Calls {
    async fn new() -> Self {
        Self::on(mount(&formatted())).await
    }

    async fn on(store: Store) -> Self {
        let clock = Arc::new(SimulatedClock::default());
        let runtime = Runtime::seeded(1).with_clock(clock.clone());
        let calls = SwiftCalls::new(store, runtime).unwrap();
        let this = Self {
            router: calls.router(),
            calls,
            clock,
        };
        for (policy, kind) in [(0, "replication"), (1, "erasure_coding")] {
            let kind = json!({ "kind": kind }).to_string();
            let path = format!("/policies/{policy}");
            assert_eq!(this.json(Method::PUT, &path, kind).await, json!({}));
        }
        this
    }

    async fn send(&self, request: Request<Body>) -> (StatusCode, Bytes) {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let status = answer.status();
        (
            status,
            answer.into_body().collect().await.unwrap().to_bytes(),
        )
    }

    async fn ask(&self, method: Method, path: &str, body: impl Into<Body>) -> (StatusCode, Bytes) {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        self.send(request.body(body.into()).unwrap()).await
    }

    /// What a call answers that is done.
    async fn json(&self, method: Method, path: &str, body: impl Into<Body>) -> Value {
        let (status, body) = self.ask(method, path, body).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body:?}");
        serde_json::from_slice(&body).unwrap()
    }

    /// The kind of problem of a call that is not done.
    async fn problem(&self, method: Method, path: &str, body: impl Into<Body>) -> (u16, String) {
        let (status, body) = self.ask(method, path, body).await;
        assert!(!status.is_success(), "{path}: {body:?}");
        let problem: Value = serde_json::from_slice(&body).unwrap();
        (
            status.as_u16(),
            problem["kind"].as_str().unwrap().to_owned(),
        )
    }

    async fn stage(&self, data: Vec<u8>) -> String {
        let staged = self.json(Method::POST, "/staged", data).await;
        staged["staged"].as_str().unwrap().to_owned()
    }

    async fn put(&self, path: &str, body: impl Into<Body>) -> Value {
        self.json(Method::PUT, path, body).await
    }

    /// Head, metadata by name, first bytes.
    async fn open(&self, object: &str, how: Value) -> (Value, Vec<Vec<u8>>, Vec<u8>) {
        let path = format!("{object}/open");
        let (status, body) = self.ask(Method::POST, &path, how.to_string()).await;
        assert_eq!(status, StatusCode::OK, "{body:?}");
        let mut frames = Vec::new();
        let mut rest = &body[..];
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (frame, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
            frames.push(frame.to_vec());
            rest = behind;
        }
        let head: Value = serde_json::from_slice(&frames.remove(0)).unwrap();
        let first = frames.pop().unwrap();
        assert_eq!(head["metadata"].as_array().unwrap().len(), frames.len());
        (head, frames, first)
    }
}

fn object(policy: u32) -> String {
    format!("/{policy}/7/{HASH}")
}

fn file(policy: u32, name: &str) -> String {
    format!("{}/files/{}", object(policy), name.replace('#', "%23"))
}

fn some_data(bytes: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(7);
    std::iter::repeat_with(|| dice.u8(..)).take(bytes).collect()
}

#[tokio::test]
async fn staged_data_becomes_an_object_and_is_read_in_any_pieces() {
    let calls = Calls::new().await;
    let data = some_data(3_000_001);
    let id = calls.stage(data.clone()).await;
    let path = format!("{}?staged={id}", file(0, DATA));
    assert_eq!(calls.put(&path, "meta").await, json!({"put": "done"}));
    // Used up.
    assert_eq!(
        calls.problem(Method::PUT, &path, "meta").await,
        (410, "gone".into())
    );
    let how = json!({"first_bytes": 1000, "hold": true});
    let (head, metadata, first) = calls.open(&object(0), how).await;
    assert_eq!(head["size"], data.len());
    assert_eq!(head["data"], DATA);
    assert_eq!(metadata, [b"meta"]);
    // No part of what has to be asked for anyway.
    assert_eq!(first, [0; 0]);
    let path = file(1, "1402464677.04188#2.data");
    calls
        .put(&format!("{path}?metadata_bytes=0"), data[..1000].to_vec())
        .await;
    for (whole_up_to, there) in [(999, 0), (1000, 1000)] {
        let how = json!({"first_bytes": whole_up_to, "hold": true, "frag_prefs": []});
        let (head, _, first) = calls.open(&object(1), how).await;
        assert_eq!(
            (&*first, head["opened"].is_null()),
            (&data[..there], there > 0)
        );
    }
    // What was opened stays readable when its object goes.
    let (remove, files) = (format!("{}/remove", object(0)), json!({"files": [DATA]}));
    assert_eq!(
        calls.json(Method::POST, &remove, files.to_string()).await,
        json!({"removed": true})
    );
    let opened = format!("/opened/{}", head["opened"].as_str().unwrap());
    for (range, wanted) in [
        ("bytes=0-0", 0..1),
        ("bytes=1000-", 1000..data.len()),
        ("bytes=-5", data.len() - 5..data.len()),
        ("bytes=1048570-2097160", 1_048_570..2_097_161),
    ] {
        let request = Request::builder().uri(&opened).header(RANGE, range);
        let (status, found) = calls.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(status, StatusCode::PARTIAL_CONTENT);
        assert!(found == data[wanted], "{range}");
    }
    for range in ["bytes=3000001-", "bytes=0-1,5-6", "bytes=5-4", "lines=1-2"] {
        let request = Request::builder().uri(&opened).header(RANGE, range);
        let (status, _) = calls.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE, "{range}");
    }
    let (_, found) = calls
        .ask(Method::GET, &format!("{opened}?close=true"), "")
        .await;
    assert!(found == data);
    assert_eq!(
        calls.problem(Method::GET, &opened, "").await,
        (410, "gone".into())
    );
}

#[tokio::test]
async fn sockets_are_taken_by_connections_that_are_made_for_it() {
    let calls = Calls::new().await;
    let refused = calls.problem(Method::GET, "/sending", "").await;
    assert_eq!(refused, (426, "invalid".into()));
}

#[tokio::test]
async fn metadata_and_data_come_in_one_body_however_it_is_cut() {
    let calls = Calls::new().await;
    for (number, cut) in [1usize, 3, 4, 5, 70_000].into_iter().enumerate() {
        let body = [b"meta".to_vec(), some_data(100_000)].concat();
        let pieces: Vec<_> = body
            .chunks(cut)
            .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
            .collect();
        let name = format!("140246467{number}.00000.data");
        let path = format!("{}?metadata_bytes=4", file(0, &name));
        let body = Body::from_stream(futures::stream::iter(pieces));
        assert_eq!(calls.put(&path, body).await, json!({"put": "done"}));
        let (head, metadata, first) = calls
            .open(&object(0), json!({"first_bytes": 1 << 20}))
            .await;
        assert_eq!(
            (&head["data"], &head["opened"]),
            (&json!(name), &json!(null))
        );
        assert_eq!(metadata, [b"meta"]);
        assert!(first == some_data(100_000));
    }
    // As much metadata as there may be, and one byte more.
    let path = file(0, "1402464680.00000.meta");
    assert_eq!(
        calls.put(&path, vec![7; 1_000_000]).await,
        json!({"put": "done"})
    );
    let more = calls.problem(Method::PUT, &path, vec![7; 1_000_001]).await;
    assert_eq!(more, (413, "too_large".into()));
    // Older than what is there.
    let path = format!("{}?metadata_bytes=1", file(0, "1402464000.00000.data"));
    assert_eq!(calls.put(&path, "m").await, json!({"put": "obsolete"}));
    let path = format!("{}?metadata_bytes=5", file(0, "1502464000.00000.data"));
    let cut_off = calls.problem(Method::PUT, &path, "meta").await;
    assert_eq!(cut_off, (400, "invalid".into()));
}

#[tokio::test]
async fn a_body_that_breaks_off_leaves_nothing() {
    let calls = Calls::new().await;
    let pieces = [Ok(vec![0; 100_000]), Err(std::io::Error::other("gone"))];
    for path in [
        "/staged".to_owned(),
        format!("{}?metadata_bytes=5", file(0, DATA)),
        file(0, DATA),
    ] {
        let method = if path == "/staged" {
            Method::POST
        } else {
            Method::PUT
        };
        let pieces = pieces.each_ref().map(|piece| match piece {
            Ok(piece) => Ok(piece.clone()),
            Err(_) => Err(std::io::Error::other("gone")),
        });
        let body = Body::from_stream(futures::stream::iter(pieces));
        assert_eq!(
            calls.problem(method, &path, body).await,
            (400, "broken_off".into())
        );
    }
    let files = calls.json(Method::GET, &object(0), "").await;
    assert_eq!(files, json!({"files": []}));
}

#[tokio::test]
async fn fragments_are_made_durable_and_hashed() {
    let calls = Calls::new().await;
    let names = ["1402464677.04188#0.data", "1402464677.04188#3.data"];
    for name in names {
        let path = format!("{}?metadata_bytes=1", file(1, name));
        assert_eq!(calls.put(&path, "mdata").await, json!({"put": "done"}));
    }
    let durable = format!("{}/durable", file(1, names[1]));
    for _ in 0..2 {
        assert_eq!(calls.json(Method::POST, &durable, "").await, json!({}));
    }
    let (head, _, _) = calls.open(&object(1), json!({"frag_index": 0})).await;
    assert_eq!(head["data"], names[0]);
    assert_eq!(head["durable"], "1402464677.04188");
    let how = json!({"frag_prefs": [{"timestamp": "1402464677.04188", "exclude": [3]}]});
    let (head, _, _) = calls.open(&object(1), how).await;
    assert_eq!(head["data"], names[0]);
    let ages = json!({"commit_window": 1e9}).to_string();
    let hashes = calls.json(Method::POST, "/1/7/hashes", ages).await;
    assert_eq!(hashes["computed"], 1);
    let keys: Vec<&String> = hashes["hashes"]["def"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(keys, ["-", "0", "3"]);
    // A whole object is none of this policy, nor a fragment of the other.
    for path in [file(1, DATA), file(0, names[0])] {
        let path = format!("{path}?metadata_bytes=0");
        assert_eq!(
            calls.problem(Method::PUT, &path, "").await,
            (400, "invalid".into())
        );
    }
}

#[tokio::test]
async fn files_are_removed_together_once_they_are_old_enough() {
    let calls = Calls::new().await;
    let names = [DATA, "1402464678.00000.meta"];
    calls
        .put(&format!("{}?metadata_bytes=0", file(0, DATA)), "")
        .await;
    calls.put(&file(0, names[1]), "").await;
    let path = format!("{}/remove", object(0));
    let remove = async |how: Value| calls.json(Method::POST, &path, how.to_string()).await;
    for (how, removed) in [
        (json!({"files": [DATA]}), false),
        (json!({"files": names, "older_than": 1e9}), false),
        (json!({"files": names, "older_than": null}), true),
        (json!({"files": names}), false),
    ] {
        assert_eq!(remove(how).await, json!({ "removed": removed }));
    }
    assert_eq!(
        calls.json(Method::GET, &object(0), "").await["files"],
        json!([])
    );
    let wrong = json!({"files": ["x.data"]}).to_string();
    assert_eq!(
        calls.problem(Method::POST, &path, wrong).await,
        (400, "invalid".into())
    );
}

#[tokio::test]
async fn listings_name_what_is_there() {
    let calls = Calls::new().await;
    for partition in [3, 7, 70_000] {
        let path = format!("/0/{partition}/{HASH}/files/1402464677.04188.ts");
        calls.put(&path, "").await;
    }
    let get = async |path: &str| calls.json(Method::GET, path, "").await;
    assert_eq!(get("/policies").await[1]["kind"], "erasure_coding");
    assert_eq!(get("/0/partitions").await, json!([3, 7, 70_000]));
    assert_eq!(get("/0/partitions?from=4&limit=1").await, json!([7]));
    assert_eq!(get("/0/7/suffixes").await, json!(["def"]));
    let objects = json!([{"hash": HASH, "files": ["1402464677.04188.ts"]}]);
    assert_eq!(get("/0/7/suffixes/def").await, objects);
    let again = json!({"recalculate": ["def"], "reclaim_age": 1e12}).to_string();
    for computed in [1, 1] {
        let hashes = calls.json(Method::POST, "/0/7/hashes", again.clone()).await;
        assert_eq!(hashes["computed"], computed);
    }
    let kept = calls.json(Method::POST, "/0/7/hashes", "{}").await;
    assert_eq!(kept["computed"], 0);
    // With an age below zero, everything would be old.
    for age in ["reclaim_age", "commit_window"] {
        let hashing = json!({age: -1.0}).to_string();
        let refused = calls.problem(Method::POST, "/0/7/hashes", hashing).await;
        assert_eq!(refused, (400, "invalid".into()));
    }
    let quarantine = format!("{}/quarantine", object(0));
    for (file, status, kind) in [
        ("1402464677.04187.data", 404, "not_found"),
        ("notes.txt", 400, "invalid"),
    ] {
        let named = json!({ "file": file }).to_string();
        let refused = calls.problem(Method::POST, &quarantine, named).await;
        assert_eq!(refused, (status, kind.to_owned()));
    }
    calls.json(Method::POST, &quarantine, "").await;
    assert_eq!(get("/0/quarantined").await[0]["partition"], 7);
    assert_eq!(get("/0/quarantined?limit=0").await, json!([]));
    assert_eq!(
        calls.problem(Method::POST, &quarantine, "").await,
        (404, "not_found".into())
    );
}

#[tokio::test]
async fn what_is_left_alone_is_forgotten() {
    let calls = Calls::new().await;
    let id = calls.stage(some_data(100_000)).await;
    calls.calls.sweep();
    calls.clock.advance(Duration::from_secs(601));
    calls.calls.sweep();
    let path = format!("{}?staged={id}", file(0, DATA));
    assert_eq!(
        calls.problem(Method::PUT, &path, "").await,
        (410, "gone".into())
    );
}

/// Most readers that are open at the same time.
const OPENED: usize = 4096;

#[tokio::test]
async fn nothing_is_held_for_a_client_that_has_gone() {
    let calls = Calls::new().await;
    let path = format!("{}?metadata_bytes=0", file(0, DATA));
    calls.put(&path, "data").await;
    let object = object(0);
    for _ in 0..=OPENED {
        let answered = {
            let opening = calls.open(&object, json!({"hold": true}));
            tokio::pin!(opening);
            std::future::poll_fn(|context| Poll::Ready(opening.as_mut().poll(context))).await
        };
        calls.calls.idle().await;
        // The answer has come before the client has gone.
        if let Poll::Ready((head, _, _)) = answered {
            let opened = format!("/opened/{}", head["opened"].as_str().unwrap());
            calls.json(Method::DELETE, &opened, "").await;
        }
    }
    let (head, _, _) = calls.open(&object, json!({"hold": true})).await;
    assert!(head["opened"].is_string());
}

#[tokio::test]
async fn what_is_read_for_long_is_not_left_alone() {
    let calls = Calls::new().await;
    let path = format!("{}?metadata_bytes=0", file(0, DATA));
    calls.put(&path, some_data(3_000_000)).await;
    let (head, _, _) = calls.open(&object(0), json!({"hold": true})).await;
    let opened = format!("/opened/{}", head["opened"].as_str().unwrap());
    let request = Request::builder().uri(&opened).body(Body::empty()).unwrap();
    let answer = calls.router.clone().oneshot(request).await.unwrap();
    calls.clock.advance(Duration::from_secs(601));
    calls.calls.sweep();
    let found = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(found == some_data(3_000_000));
    calls.clock.advance(Duration::from_secs(599));
    calls.calls.sweep();
    let again = calls.ask(Method::GET, &opened, "").await;
    assert_eq!(again.0, StatusCode::OK);
    calls.clock.advance(Duration::from_secs(601));
    calls.calls.sweep();
    let gone = calls.problem(Method::GET, &opened, "").await;
    assert_eq!(gone, (410, "gone".into()));
}

/// A body that stands still for long is cut while all places are taken: no time passes here.
#[tokio::test(start_paused = true)]
async fn bodies_have_places_by_what_comes_and_not_by_what_is_said() {
    let calls = Arc::new(Calls::new().await);
    let standing = Arc::new(AtomicUsize::new(0));
    let (release, released) = tokio::sync::watch::channel(false);
    let paths = [
        "/staged?size=1".to_owned(),
        file(0, "1402464677.00000.meta"),
    ];
    let some = |path: String, bytes: usize| {
        let (calls, standing, mut released) = (calls.clone(), standing.clone(), released.clone());
        tokio::spawn(async move {
            let end = async move {
                standing.fetch_add(1, Ordering::Relaxed);
                let _ = released.wait_for(|released| *released).await;
                Ok::<_, std::io::Error>(Bytes::new())
            };
            let first = futures::stream::iter([Ok(Bytes::from(vec![0; bytes]))]);
            let body = Body::from_stream(first.chain(futures::stream::once(end)));
            let method = if path.starts_with("/staged") {
                Method::POST
            } else {
                Method::PUT
            };
            calls.ask(method, &path, body).await.0
        })
    };
    let under_way: Vec<_> = (0..PLACES)
        .map(|number| some(paths[number % 2].clone(), 100_000))
        .collect();
    while standing.load(Ordering::Relaxed) < PLACES {
        tokio::task::yield_now().await;
    }
    // No further one is read on, but small ones are.
    let waiting = paths.map(|path| some(path, 100_000));
    let small = some("/staged".to_owned(), 1000);
    while standing.load(Ordering::Relaxed) == PLACES {
        tokio::task::yield_now().await;
    }
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(standing.load(Ordering::Relaxed), PLACES + 1);
    release.send(true).unwrap();
    for body in under_way.into_iter().chain(waiting).chain([small]) {
        assert_eq!(body.await.unwrap(), StatusCode::OK);
    }
}

/// Makes the drive's commands wait in zones that `change` writes to.
async fn stuck_where(drive: &Faults<Arc<MemoryDrive>>, change: impl Future) -> Arc<Gate> {
    let zones = drive.geometry().zone_count;
    let pointers = || drive.report(ZoneId(0), zones).unwrap();
    let before = pointers();
    change.await;
    let after = pointers();
    let gate = Gate::new();
    for (zone, _) in after.iter().zip(&before).filter(|(a, b)| a != b) {
        drive.add(Plan {
            command: None,
            zone: Some(zone.id),
            kth: 1,
            for_ever: true,
            fault: Fault::Stuck(gate.clone()),
        });
    }
    gate
}

/// What `others` answers before the gate opens.
async fn before<T>(gate: &Arc<Gate>, others: impl Future<Output = T>) -> T {
    // Each call under way comes to the drive, or to where it waits for its turn.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let stuck = gate.clone();
    let stuck = tokio::task::spawn_blocking(move || stuck.wait_until_stuck(1));
    stuck.await.unwrap();
    let answered = tokio::time::timeout(Duration::from_mins(10), others).await;
    gate.release();
    answered.unwrap()
}

/// Writers may have to wait for space, and what makes some must not wait for them.
#[tokio::test]
async fn calls_that_add_hold_no_others_up() {
    let drive = Arc::new(Faults::new(formatted()));
    let store = Store::mount(drive.clone(), MountOptions::new(KvLog)).unwrap();
    let calls = Arc::new(Calls::on(store).await);
    calls.put(&file(0, DATA), "").await;
    let gate = stuck_where(&drive, calls.stage(some_data(100_000))).await;
    let bodies: Vec<_> = (0..=ADDING)
        .map(|_| {
            let calls = calls.clone();
            tokio::spawn(async move { calls.stage(some_data(100_000)).await })
        })
        .collect();
    let others = async {
        calls.put(&file(0, GONE), "").await;
        calls.json(Method::GET, &object(0), "").await
    };
    let files = json!({ "files": [GONE] });
    assert_eq!(before(&gate, others).await, files);
    for body in bodies {
        body.await.unwrap();
    }
}

#[tokio::test]
async fn tombstones_of_nothing_hold_no_others_up() {
    let drive = Arc::new(Faults::new(formatted()));
    let store = Store::mount(drive.clone(), MountOptions::new(KvLog)).unwrap();
    let calls = Arc::new(Calls::on(store).await);
    let gone = |number: usize| format!("/0/7/{number:032x}/files/{GONE}");
    let gate = stuck_where(&drive, calls.put(&gone(0), "")).await;
    let tombstones: Vec<_> = (1..=ADDING + 1)
        .map(|number| {
            let (calls, path) = (calls.clone(), gone(number));
            tokio::spawn(async move { calls.put(&path, "").await })
        })
        .collect();
    let path = object(0);
    let found = calls.json(Method::GET, &path, "");
    assert_eq!(before(&gate, found).await, json!({ "files": [] }));
    for tombstone in tombstones {
        tombstone.await.unwrap();
    }
}

#[tokio::test]
async fn staged_data_is_used_up_but_where_there_is_no_room() {
    let calls = Calls::new().await;
    let object = object(0);
    for (put, body, status) in [
        (format!("{object}/files/x.data?"), vec![], 400),
        (format!("{}?", file(0, "1402464677.04188.ts")), vec![], 400),
        (format!("{}?", file(0, DATA)), vec![0; 1_000_001], 413),
        (format!("{}?metadata_bytes=1&", file(0, DATA)), vec![], 400),
    ] {
        let id = calls.stage(some_data(1000)).await;
        let put = format!("{put}staged={id}");
        let refused = calls.problem(Method::PUT, &put, body).await;
        assert_eq!(refused.0, status, "{put}");
        let path = format!("{}?staged={id}", file(0, DATA));
        let again = calls.problem(Method::PUT, &path, "").await;
        assert_eq!(again, (410, "gone".into()), "{put}");
    }
    // A client that is told that there is no room makes some.
    let id = calls.stage(some_data(1000)).await;
    let path = |policy| format!("{}?staged={id}", file(policy, DATA));
    let refused = calls.problem(Method::PUT, &path(9), "").await;
    assert_eq!(refused, (404, "no_policy".into()));
    assert_eq!(calls.put(&path(0), "").await["put"], "done");
    // Nor has it data of its own.
    for name in ["1402464677.04188.ts", "1402464677.04188.meta"] {
        let path = format!("{}?metadata_bytes=1", file(0, name));
        let refused = calls.problem(Method::PUT, &path, "mdata").await;
        assert_eq!(refused, (400, "invalid".into()));
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let calls = Calls::new().await;
    let invalid = (400, "invalid".to_owned());
    let name = file(0, DATA);
    for (method, path, body) in [
        (Method::PUT, format!("/0/7/0123/files/{DATA}"), ""),
        (Method::PUT, format!("/0/-7/{HASH}/files/{DATA}"), ""),
        (
            Method::PUT,
            format!("/0/4294967296/{HASH}/files/{DATA}"),
            "",
        ),
        (Method::PUT, format!("/0/7/{HASH}/files/x.data"), ""),
        (Method::PUT, format!("/0/7/{HASH}/files/%ff.data"), ""),
        (
            Method::PUT,
            format!("{name}?metadata_bytes=1&staged=1"),
            "m",
        ),
        (Method::PUT, format!("{name}?metadata_bytes=x"), "m"),
        (Method::GET, "/0/7/suffixes/xyz".into(), ""),
        (Method::POST, "/0/7/hashes".into(), "[]x"),
        (
            Method::POST,
            "/0/7/hashes".into(),
            r#"{"recalculate": ["x"]}"#,
        ),
        (
            Method::POST,
            format!("{}/open", object(0)),
            r#"{"first_bytes": -1}"#,
        ),
        (
            Method::POST,
            format!("{}/open", object(0)),
            r#"{"frag_prefs": [{"timestamp": "x"}]}"#,
        ),
        (Method::PUT, "/policies/0".into(), "{"),
    ] {
        assert_eq!(calls.problem(method, &path, body).await, invalid, "{path}");
    }
    // Questions are read as a whole.
    let long = json!({"kind": "replication", "files": [], "of": "x".repeat(2 << 20)});
    for (method, path) in [
        (Method::PUT, "/policies/0".into()),
        (Method::POST, "/0/7/hashes".into()),
        (Method::POST, format!("{}/open", object(0))),
        (Method::POST, format!("{}/remove", object(0))),
    ] {
        let (status, body) = calls.ask(method, &path, long.to_string()).await;
        let problem: Value = serde_json::from_slice(&body).unwrap();
        let said = "the request's body has at most 1000000 bytes";
        assert_eq!(
            (status.as_u16(), &problem["kind"]),
            (413, &json!("too_large"))
        );
        assert!(problem.to_string().contains(said), "{path}: {problem}");
    }
    for (method, path, body, problem) in [
        (Method::PUT, file(9, DATA), "", (404, "no_policy")),
        (
            Method::POST,
            format!("{}/open", object(0)),
            "",
            (404, "not_found"),
        ),
        (
            Method::POST,
            format!("{}/durable", file(1, "1402464677.04188#0.data")),
            "",
            (404, "not_found"),
        ),
        (
            Method::PUT,
            "/policies/0".into(),
            r#"{"kind": "erasure_coding"}"#,
            (409, "other_policy"),
        ),
        (
            Method::PUT,
            format!("{name}?metadata_bytes=9999999"),
            "",
            (413, "too_large"),
        ),
        (Method::PUT, format!("{name}?staged=1-1"), "", (410, "gone")),
        (
            Method::GET,
            "/opened/é".replace('é', "%C3%A9"),
            "",
            (410, "gone"),
        ),
    ] {
        let (status, kind) = calls.problem(method, &path, body).await;
        assert_eq!((status, kind.as_str()), problem, "{path}");
    }
}
