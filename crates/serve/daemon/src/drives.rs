//! Drives of one node of OpenStack Swift, served by one process.

use crate::fullness;
use crate::notify::{self, Change};
use crate::signals::Signals;
use axum::extract::Path as InPath;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{any, get};
use axum::{Json, Router};
use control::api::{DAEMON, Kind};
use control::{ControlServer, DriveCalls, Failure, ServerError, Socket};
use device::Drive;
use runtime::Runtime;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use store::Store;
use swift_http::SwiftCalls;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long running requests may take when the server stops.
const CLOSING: Duration = Duration::from_secs(30);
/// Interval at which staged data and open handles that clients have abandoned are dropped.
const SWEEP: Duration = Duration::from_secs(30);
/// Most threads for what may block beside Swift's calls.
const OTHER_THREADS: usize = 512;
/// Description of the calls, in OpenAPI.
const OPENAPI: &str = include_str!("../../../../docs/daemon.yaml");

/// A drive with a store, of which this process holds the lock.
#[derive(Clone)]
pub struct ServedDrive {
    /// The device's name in Swift's ring: letters, digits, dots, `_` and `-`.
    pub name: String,
    /// The drive.
    pub drive: Arc<Drive>,
    /// The store on it.
    pub store: Store,
}

/// Serves several drives on one socket, and each drive's own calls on the socket beside it.
pub struct DriveServer {
    socket: Socket,
    devices: Vec<Device>,
}

struct Device {
    served: ServedDrive,
    calls: Arc<DriveCalls>,
    swift: Arc<SwiftCalls>,
    is_full: Arc<AtomicBool>,
}

/// A device in the answer of `GET /v1/drives`.
#[derive(Clone, Serialize)]
struct Listed {
    device: String,
    drive: String,
    full: bool,
}

impl DriveServer {
    /// A server of these drives.
    ///
    /// # Errors
    /// The host has no random numbers.
    pub fn new(socket: Socket, drives: &[ServedDrive]) -> io::Result<Self> {
        let devices = drives.iter().map(|served| {
            let store = served.store.clone();
            Ok(Device {
                calls: Arc::new(DriveCalls::new(served.drive.clone(), store.clone())),
                swift: SwiftCalls::new(store, Runtime::system())?,
                served: served.clone(),
                is_full: Arc::default(),
            })
        });
        Ok(Self {
            socket,
            devices: devices.collect::<io::Result<_>>()?,
        })
    }

    /// Serves until a signal comes. The stores stay mounted. `ready` is called with the socket's path before the
    /// first request is answered, and may end the server with an error.
    ///
    /// # Errors
    /// Those of `ready`, of the socket, and of the host.
    pub fn run<E: From<io::Error> + From<ServerError>>(
        self,
        ready: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let threads = SwiftCalls::THREADS * self.devices.len() + OTHER_THREADS;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .max_blocking_threads(threads)
            .enable_all()
            .build()?;
        runtime.block_on(async {
            // Before the socket is reported: the process that reads it may send a signal at once.
            let mut signals = Signals::listen_or_hangup()?;
            let (stop, stopped) = watch::channel(false);
            let beside = self.serve_beside(&stopped);
            ready(self.socket.path())?;
            notify::tell(Change::Ready);
            for swift in self.swift() {
                tokio::spawn(swift.find_suffixes());
            }
            let sweeping = tokio::spawn(sweep(self.swift()));
            let watching = self.devices.iter().map(|device| {
                let (store, is_full) = (device.served.store.clone(), device.is_full.clone());
                tokio::spawn(fullness::watch(store, is_full))
            });
            let watching: Vec<_> = watching.collect();
            let begins = Arc::new(OnceLock::new());
            let began = begins.clone();
            let shutdown = async move {
                signals.next().await;
                let _ = begins.set(Instant::now());
                notify::tell(Change::Stopping);
                tracing::info!(
                    "stopping after the requests in hand; a second signal stops at once"
                );
                let _ = stop.send(true);
                // When a terminal is closed, the terminal sends SIGHUP and so does the shell in it; a second one must
                // not end the process.
                if let Ok(mut again) = Signals::listen() {
                    tokio::spawn(async move {
                        again.next().await;
                        std::process::exit(1);
                    });
                }
            };
            let router = self.router();
            let devices = self.devices;
            let close = async {
                let until = *began.get_or_init(Instant::now) + CLOSING;
                devices.iter().for_each(|device| device.swift.stop());
                for device in &devices {
                    device.swift.bodies_done(until).await;
                    device.calls.close().await;
                    device.swift.idle().await;
                }
            };
            let served = self.socket.run(router, CLOSING, shutdown, close).await;
            devices.iter().for_each(|device| device.swift.stop());
            sweeping.abort();
            watching.iter().for_each(JoinHandle::abort);
            for control in beside {
                if let Err(error) = control.await {
                    tracing::error!(%error, "a socket beside a drive");
                }
            }
            Ok(served?)
        })
    }

    /// Serves the socket beside each drive, where other commands look for it without knowing of this server.
    fn serve_beside(&self, stopped: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
        let mut running = Vec::new();
        for device in &self.devices {
            let drive = device.served.drive.path().to_owned();
            let server = match Socket::beside(&drive) {
                Ok(socket) => ControlServer::at(socket.of(DAEMON), device.calls.clone()),
                Err(error) => {
                    tracing::warn!(%error, "other commands cannot ask this server");
                    continue;
                }
            };
            let mut stopped = stopped.clone();
            running.push(tokio::spawn(async move {
                let shutdown = async move {
                    let _ = stopped.wait_for(|stop| *stop).await;
                };
                if let Err(error) = server.run(shutdown).await {
                    tracing::warn!(%error, "a socket beside a drive");
                }
            }));
        }
        running
    }

    fn swift(&self) -> Vec<Arc<SwiftCalls>> {
        self.devices
            .iter()
            .map(|device| device.swift.clone())
            .collect()
    }

    fn router(&self) -> Router {
        let listed = self.devices.iter().map(|device| Listed {
            device: device.served.name.clone(),
            drive: device.served.drive.path().display().to_string(),
            full: false,
        });
        let listed: Vec<Listed> = listed.collect();
        let full: Vec<_> = self.devices.iter().map(|one| one.is_full.clone()).collect();
        let names: Arc<[String]> = listed.iter().map(|one| one.device.clone()).collect();
        let other = async move |InPath(parts): InPath<Vec<(String, String)>>| {
            let device = parts.first().map_or("", |(_, device)| device);
            match names.iter().any(|name| name == device) {
                true => Failure::unknown_call(),
                false => no_drive(device),
            }
        };
        let drives = async move || {
            let mut listed = listed.clone();
            for (one, is_full) in listed.iter_mut().zip(&full) {
                one.full = is_full.load(Ordering::Relaxed);
            }
            Json(listed)
        };
        let mut router = Router::new()
            .route("/v1/drives", get(drives))
            .route("/v1/openapi.yaml", get(openapi))
            .route("/v1/drives/{device}", any(other.clone()))
            .route("/v1/drives/{device}/{*call}", any(other));
        for device in &self.devices {
            let calls = device.calls.router().nest("/swift", device.swift.router());
            router = router.nest(&format!("/v1/drives/{}", device.served.name), calls);
        }
        router
    }
}

async fn openapi() -> ([(axum::http::HeaderName, &'static str); 1], &'static str) {
    ([(CONTENT_TYPE, "application/yaml")], OPENAPI)
}

fn no_drive(device: &str) -> Failure {
    let message =
        format!("there is no device {device} here; GET /v1/drives lists those that there are");
    Failure::new(StatusCode::NOT_FOUND, Kind::NoDrive, message)
}

async fn sweep(devices: Vec<Arc<SwiftCalls>>) {
    let mut looks = tokio::time::interval(SWEEP);
    loop {
        looks.tick().await;
        devices.iter().for_each(|device| device.sweep());
    }
}
