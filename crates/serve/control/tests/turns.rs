//! A cluster tells a drive whose turn it is, as it does over a socket.
#![allow(clippy::unwrap_used)]

use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode};
use control::DriveCalls;
use device::{Drive, FileDrive, ZonedDevice, profile};
use http_body_util::BodyExt;
use kv_log::KvLog;
use runtime::{Runtime, SimulatedClock};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use store::{MkfsOptions, MountOptions, Store};
use tower::ServiceExt;

const TURN: &str = "/store/cleaner/turn";

struct Calls {
    calls: DriveCalls,
    clock: Arc<SimulatedClock>,
    _folder: tempfile::TempDir,
}

impl Calls {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.zoned");
        let geometry = profile::by_name("test-small").unwrap();
        let geometry = geometry.geometry(64 << 20, None).unwrap();
        drop(FileDrive::create(&path, &geometry, "test-small").unwrap());
        let drive = Arc::new(Drive::open(&path).unwrap());
        let device: Arc<dyn ZonedDevice> = drive.clone();
        Store::mkfs(device.clone(), &MkfsOptions::new(KvLog)).unwrap();
        let clock = Arc::new(SimulatedClock::default());
        let options = MountOptions {
            background: false,
            runtime: Runtime::seeded(1).with_clock(clock.clone()),
            ..MountOptions::new(KvLog)
        };
        let store = Store::mount(device, options).unwrap();
        Self {
            calls: DriveCalls::new(drive, store),
            clock,
            _folder: folder,
        }
    }

    async fn ask(&self, method: Method, path: &str, body: &str) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let answer = self.calls.router().oneshot(request).await.unwrap();
        let status = answer.status();
        let body: Bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn status(&self) -> (u64, u64) {
        let (status, cleaner) = self.ask(Method::GET, "/store/cleaner", "").await;
        assert_eq!(status, StatusCode::OK);
        let seconds = |key: &str| cleaner[key].as_u64().unwrap();
        (seconds("turn_seconds"), seconds("hold_seconds"))
    }
}

#[tokio::test]
async fn what_is_said_counts_until_it_ends_or_something_else_is_said() {
    let calls = Calls::new();
    assert_eq!(calls.status().await, (0, 0));
    let said = json!({"turn_seconds": 20, "hold_seconds": 35}).to_string();
    let (status, cleaner) = calls.ask(Method::POST, TURN, &said).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(cleaner["turn_seconds"], 20);
    assert_eq!(cleaner["waits_for_turn"], false);
    calls.clock.advance(Duration::from_secs(19));
    assert_eq!(calls.status().await, (1, 16));
    calls.clock.advance(Duration::from_secs(16));
    assert_eq!(calls.status().await, (0, 0));
    calls.ask(Method::POST, TURN, &said).await;
    let (status, _) = calls.ask(Method::POST, TURN, "").await;
    assert_eq!((status, calls.status().await), (StatusCode::OK, (0, 0)));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let calls = Calls::new();
    calls
        .ask(Method::POST, TURN, r#"{"hold_seconds": 9}"#)
        .await;
    for bad in [
        r#"{"hold_seconds": 301}"#,
        r#"{"turn_seconds": -1}"#,
        r#"{"turn_seconds": 1.5}"#,
        r#"{"seconds": 5}"#,
        "[1, 2]",
        "{",
    ] {
        let (status, problem) = calls.ask(Method::POST, TURN, bad).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad}");
        assert_eq!(problem["kind"], "invalid");
    }
    let (_, problem) = calls
        .ask(Method::POST, TURN, r#"{"hold_seconds": 301}"#)
        .await;
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("at most 300 seconds"), "{message}");
    assert_eq!(calls.status().await, (0, 9));
}
