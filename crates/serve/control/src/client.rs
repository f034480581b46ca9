//! The client's side of the control socket: blocking calls for a command line.
//!
//! Each call has a connection of its own, so that none can become stale. Answers are limited in size, and in time except
//! for cleaning, backups and health: the objects of a damaged drive may take long to find, and each call looks anew.

use crate::api::{
    API_VERSION, Action, Backup, Cleaned, Collection, DriveDescription, Hello, Kind, Object,
    Objects, Order, Problem, SERVICE, Scrub, Zones,
};
use crate::error::ClientError;
use crate::frames::Frames;
use crate::socket::Place;
use archive::Packed;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use store::{
    Caches, CleanerChange, CleanerStatus, CleaningJob, Health, ScrubStatus, Statfs, Waiting,
    ZoneUse,
};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use zone::ZoneDescriptor;

/// Most bytes of an answer; a page of objects with the longest names is far smaller.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// See [`Client::patience`].
const PATIENCE: Duration = Duration::from_secs(60);

/// How many times a server that resets the first connection is tried, and the pause between tries.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A daemon that answered `GET /`, for further calls.
pub struct Client {
    place: Place,
    runtime: Runtime,
    hello: Box<Hello>,
    /// Time limit of an answer.
    patience: Duration,
}

impl Client {
    /// Connects to the daemon that serves `drive`; `None` if no process listens on its socket.
    pub fn connect(drive: &Path) -> Result<Option<Self>, ClientError> {
        let failed = |source| ClientError::Io {
            socket: drive.to_owned(),
            source,
        };
        let place = match Place::of(drive) {
            Ok(place) => place,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let nobody = Hello {
            service: String::new(),
            api_versions: Vec::new(),
            program_version: String::new(),
            pid: 0,
            command: String::new(),
        };
        let mut client = Self {
            place,
            runtime,
            hello: Box::new(nobody),
            patience: PATIENCE,
        };
        let mut tries = TRIES;
        let hello: Hello = loop {
            tries -= 1;
            let error = match client.get("/", &()) {
                Ok(hello) => break hello,
                Err(ClientError::Answered { .. }) => return Err(client.not_a_server()),
                Err(error) => error,
            };
            match error.kind() {
                Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                    return Ok(None);
                }
                // A server that is ending: in a moment no process listens.
                Some(io::ErrorKind::ConnectionReset) if tries > 0 => {
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Some(io::ErrorKind::ConnectionReset) => return Err(client.not_a_server()),
                _ => return Err(error),
            }
        };
        if hello.service != SERVICE {
            return Err(client.not_a_server());
        }
        if !hello.api_versions.contains(&API_VERSION) {
            return Err(ClientError::UnknownVersion {
                socket: client.place.path().to_owned(),
                found: hello.api_versions,
                program_version: hello.program_version,
                pid: hello.pid,
                command: hello.command,
            });
        }
        client.hello = Box::new(hello);
        Ok(Some(client))
    }

    /// The daemon's answer to `GET /`.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The drive's identity and geometry.
    pub fn drive(&self) -> Result<DriveDescription, ClientError> {
        self.get("/v1/drive", &())
    }

    /// Descriptors of at most `count` zones from `first` on.
    pub fn zones(&self, first: u32, count: u32) -> Result<Vec<ZoneDescriptor>, ClientError> {
        self.get("/v1/drive/zones", &Zones { first, count })
    }

    /// Used and free space of the store.
    pub fn space(&self) -> Result<Statfs, ClientError> {
        self.get("/v1/store/space", &())
    }

    /// Statistics of the server's read caches.
    pub fn caches(&self) -> Result<Caches, ClientError> {
        self.get("/v1/store/caches", &())
    }

    /// Requests that the drive has not answered for ten seconds or more.
    pub fn waiting(&self) -> Result<Vec<Waiting>, ClientError> {
        self.get("/v1/store/waiting", &())
    }

    /// Losses of data, and risks to it.
    pub fn health(&self) -> Result<Health, ClientError> {
        self.call(Method::GET, "/v1/store/health", Vec::new(), None)
    }

    /// Content of the status page, as JSON.
    pub fn status(&self) -> Result<serde_json::Value, ClientError> {
        self.get("/v1/store/status", &())
    }

    /// Those of the `count` zones from `first` on that have object data.
    pub fn store_zones(&self, first: u32, count: u32) -> Result<Vec<ZoneUse>, ClientError> {
        self.get("/v1/store/zones", &Zones { first, count })
    }

    /// All collections.
    pub fn collections(&self) -> Result<Vec<Collection>, ClientError> {
        self.get("/v1/store/collections", &())
    }

    /// A page of objects, in the collection's order.
    pub fn objects(&self, which: &Objects) -> Result<Vec<Object>, ClientError> {
        self.get("/v1/store/objects", which)
    }

    /// State and counters of the cleaner.
    pub fn cleaner(&self) -> Result<CleanerStatus, ClientError> {
        self.get("/v1/store/cleaner", &())
    }

    /// Gives the cleaner an order, for a job from an earlier status or for one that begins now.
    pub fn clean(&self, action: Action, job: Option<CleaningJob>) -> Result<Cleaned, ClientError> {
        let order = serde_json::to_vec(&Order { action, job }).map_err(|_| self.not_a_server())?;
        let patience = match action {
            Action::One | Action::Seal => None,
            Action::Start | Action::Stop => Some(self.patience),
        };
        self.call(Method::POST, "/v1/store/cleaner", order, patience)
    }

    /// Changes the cleaner's settings.
    pub fn change_cleaner(&self, change: &CleanerChange) -> Result<CleanerStatus, ClientError> {
        let change = serde_json::to_vec(change).map_err(|_| self.not_a_server())?;
        let path = "/v1/store/cleaner";
        self.call(Method::PATCH, path, change, Some(self.patience))
    }

    /// State and counters of the scrub.
    pub fn scrub(&self) -> Result<ScrubStatus, ClientError> {
        self.get("/v1/store/scrub", &())
    }

    /// Gives the scrub an order.
    pub fn order_scrub(&self, order: Scrub) -> Result<ScrubStatus, ClientError> {
        let order = serde_json::to_vec(&order).map_err(|_| self.not_a_server())?;
        let path = "/v1/store/scrub";
        self.call(Method::POST, path, order, Some(self.patience))
    }

    /// Orders a backup and writes it to `to`; `progress` is called with the bytes received so far.
    pub fn backup(
        &self,
        what: &Backup,
        to: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Packed, ClientError> {
        let body = serde_json::to_vec(what).map_err(|_| self.not_a_server())?;
        let made: Option<Result<Packed, Problem>> = self.runtime.block_on(async {
            let response = self.ask(Method::POST, "/v1/store/backup", body).await?;
            let status = response.status();
            let mut body = response.into_body();
            let (mut frames, mut bytes) = (Frames::new(to), 0);
            let mut refused = Vec::new();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| self.broken(&error))?;
                let data = frame.data_ref().map_or(&[][..], |data| data);
                if status != StatusCode::OK {
                    refused.extend_from_slice(data);
                    continue;
                }
                let taken = frames.take(data);
                taken.map_err(|source| ClientError::Written { source })?;
                bytes += data.len() as u64;
                progress(bytes);
            }
            Ok(match status {
                StatusCode::OK => frames.end(),
                _ => serde_json::from_slice(&refused).ok().map(Err),
            })
        })?;
        let made = made.ok_or_else(|| self.gone())?;
        made.map_err(|Problem { kind, message, .. }| ClientError::Answered { kind, message })
    }

    fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, ClientError> {
        let query = serde_urlencoded::to_string(query).map_err(|_| self.not_a_server())?;
        let path = format!("{path}?{query}");
        self.call(Method::GET, &path, Vec::new(), Some(self.patience))
    }

    fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        patience: Option<Duration>,
    ) -> Result<T, ClientError> {
        let exchange = self.exchange(method, path, body);
        let (status, answer) = self.runtime.block_on(async {
            match patience {
                Some(patience) => tokio::time::timeout(patience, exchange)
                    .await
                    .unwrap_or_else(|_| {
                        Err(ClientError::TimedOut {
                            socket: self.place.path().to_owned(),
                        })
                    }),
                None => exchange.await,
            }
        })?;
        if status == StatusCode::OK {
            return serde_json::from_slice(&answer).map_err(|_| self.not_a_server());
        }
        let Problem { kind, message, .. } =
            serde_json::from_slice(&answer).map_err(|_| self.not_a_server())?;
        Err(ClientError::Answered { kind, message })
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let response = self.ask(method, path, body).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES);
        let body = body.collect().await.map_err(|error| {
            let broken = error.downcast_ref::<hyper::Error>();
            broken.map_or_else(|| self.not_a_server(), |error| self.broken(error))
        })?;
        Ok((status, body.to_bytes()))
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Response<Incoming>, ClientError> {
        let stream = UnixStream::connect(self.place.address())
            .await
            .map_err(|error| self.no_connection(error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|_| self.not_a_server())?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", SERVICE)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| self.not_a_server())?;
        let response = sender.send_request(request).await;
        response.map_err(|error| self.broken(&error))
    }

    fn no_connection(&self, source: io::Error) -> ClientError {
        let socket = self.place.path().to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => ClientError::PermissionDenied { socket },
            // The server had answered before, so it has ended since.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                if self.hello.service == SERVICE =>
            {
                self.gone()
            }
            _ => ClientError::Io { socket, source },
        }
    }

    /// Error of a connection that broke, or of an answer that is not HTTP.
    fn broken(&self, error: &hyper::Error) -> ClientError {
        match error.is_parse() {
            true => self.not_a_server(),
            false => self.gone(),
        }
    }

    /// Error of a broken connection: [`Kind::Stopping`] if the daemon had answered `GET /`.
    fn gone(&self) -> ClientError {
        if self.hello.service != SERVICE {
            let socket = self.place.path().to_owned();
            let source = io::ErrorKind::ConnectionReset.into();
            return ClientError::Io { socket, source };
        }
        ClientError::Answered {
            kind: Kind::Stopping,
            message: "the server ended before it answered".to_owned(),
        }
    }

    fn not_a_server(&self) -> ClientError {
        ClientError::NotAServer {
            socket: self.place.path().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Socket;
    use axum::routing::get;
    use axum::{Json, Router};
    use std::sync::mpsc;

    const LIMIT: Duration = Duration::from_millis(500);

    async fn late() -> Json<Health> {
        tokio::time::sleep(3 * LIMIT).await;
        Json(Health::default())
    }

    #[test]
    fn only_health_may_take_any_time() {
        let folder = tempfile::tempdir().unwrap();
        let drive = folder.path().join("d.zoned");
        std::fs::write(&drive, "").unwrap();
        let socket = Socket::beside(&drive).unwrap();
        let calls = Router::new().route("/v1/store/health", get(late)).route(
            "/v1/store/status",
            get(std::future::pending::<Json<Health>>),
        );
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let shutdown = async move {
                let _ = stopped.await;
            };
            let run = socket.run(calls, Duration::ZERO, shutdown, async {});
            ended.send(runtime.block_on(run)).unwrap();
        });
        let mut client = Client::connect(&drive).unwrap().unwrap();
        client.patience = LIMIT;
        let status = client.status();
        assert!(matches!(status, Err(ClientError::TimedOut { .. })));
        assert_eq!(client.health().unwrap(), Health::default());
        stop.send(()).unwrap();
        end.recv().unwrap().unwrap();
    }
}
