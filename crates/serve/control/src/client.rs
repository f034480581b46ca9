//! The client's side of the control socket: blocking calls for a command line.
//!
//! Each call has a connection of its own, so there is none that could grow stale. Whatever answers is
//! bounded in time (but for cleaning, which takes what it takes) and in size.

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

/// Most bytes of an answer; a page of objects with the longest names is well below.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often, and how long after each other, a server that breaks the first connection is asked.
const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A daemon that answers.
pub struct Client {
    place: Place,
    runtime: Runtime,
    hello: Box<Hello>,
}

impl Client {
    /// The daemon that serves `drive`; `None` if nobody listens at its socket.
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
                // A server that ends: nobody listens in a moment.
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

    /// Who answers.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// What the drive is.
    pub fn drive(&self) -> Result<DriveDescription, ClientError> {
        self.get("/v1/drive", &())
    }

    /// Zones from `first` on, `count` at most.
    pub fn zones(&self, first: u32, count: u32) -> Result<Vec<ZoneDescriptor>, ClientError> {
        self.get("/v1/drive/zones", &Zones { first, count })
    }

    /// How the space is used.
    pub fn space(&self) -> Result<Statfs, ClientError> {
        self.get("/v1/store/space", &())
    }

    /// What is kept in memory of what was read.
    pub fn caches(&self) -> Result<Caches, ClientError> {
        self.get("/v1/store/caches", &())
    }

    /// What the drive has not answered for a while.
    pub fn waiting(&self) -> Result<Vec<Waiting>, ClientError> {
        self.get("/v1/store/waiting", &())
    }

    /// What is lost or at risk.
    pub fn health(&self) -> Result<Health, ClientError> {
        self.get("/v1/store/health", &())
    }

    /// All that a served drive tells of itself, as its status page shows it.
    pub fn status(&self) -> Result<serde_json::Value, ClientError> {
        self.get("/v1/store/status", &())
    }

    /// Zones with object data among the `count` from `first` on.
    pub fn store_zones(&self, first: u32, count: u32) -> Result<Vec<ZoneUse>, ClientError> {
        self.get("/v1/store/zones", &Zones { first, count })
    }

    /// All collections.
    pub fn collections(&self) -> Result<Vec<Collection>, ClientError> {
        self.get("/v1/store/collections", &())
    }

    /// Objects in the collection's order.
    pub fn objects(&self, which: &Objects) -> Result<Vec<Object>, ClientError> {
        self.get("/v1/store/objects", which)
    }

    /// What the cleaner does and has done.
    pub fn cleaner(&self) -> Result<CleanerStatus, ClientError> {
        self.get("/v1/store/cleaner", &())
    }

    /// Gives the cleaner an order, for a job of an earlier status or for one that begins now.
    pub fn clean(&self, action: Action, job: Option<CleaningJob>) -> Result<Cleaned, ClientError> {
        let order = serde_json::to_vec(&Order { action, job }).map_err(|_| self.not_a_server())?;
        let patience = match action {
            Action::One | Action::Seal => None,
            Action::Start | Action::Stop => Some(PATIENCE),
        };
        self.call(Method::POST, "/v1/store/cleaner", order, patience)
    }

    /// Holds the cleaner to something else from now on.
    pub fn change_cleaner(&self, change: &CleanerChange) -> Result<CleanerStatus, ClientError> {
        let change = serde_json::to_vec(change).map_err(|_| self.not_a_server())?;
        let path = "/v1/store/cleaner";
        self.call(Method::PATCH, path, change, Some(PATIENCE))
    }

    /// What the scrub does and has done.
    pub fn scrub(&self) -> Result<ScrubStatus, ClientError> {
        self.get("/v1/store/scrub", &())
    }

    /// Gives the scrub an order.
    pub fn order_scrub(&self, order: Scrub) -> Result<ScrubStatus, ClientError> {
        let order = serde_json::to_vec(&order).map_err(|_| self.not_a_server())?;
        let path = "/v1/store/scrub";
        self.call(Method::POST, path, order, Some(PATIENCE))
    }

    /// Has a backup made, which is written to `to`.
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
        made.map_err(|Problem { kind, message }| ClientError::Answered { kind, message })
    }

    fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, ClientError> {
        let query = serde_urlencoded::to_string(query).map_err(|_| self.not_a_server())?;
        let path = format!("{path}?{query}");
        self.call(Method::GET, &path, Vec::new(), Some(PATIENCE))
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
        let Problem { kind, message } =
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
            // It had answered before.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                if self.hello.service == SERVICE =>
            {
                self.gone()
            }
            _ => ClientError::Io { socket, source },
        }
    }

    /// A connection that broke, or an answer that is none.
    fn broken(&self, error: &hyper::Error) -> ClientError {
        match error.is_parse() {
            true => self.not_a_server(),
            false => self.gone(),
        }
    }

    /// The daemon has ended, if there was one.
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
