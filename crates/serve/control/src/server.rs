//! The daemon's side of the control socket: listens, checks each peer's user, answers, and shuts down gracefully.

use crate::api::{DAEMON, SERVE};
use crate::calls::{hello, no_method, unknown};
use crate::drained::drain;
use crate::drive_calls::DriveCalls;
use crate::error::ServerError;
use crate::socket::Place;
use axum::routing::get;
use axum::serve::Listener;
use axum::{Router, middleware};
use objects::{Connection, Unread};
use runtime::SocketFile;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;

/// How long connections may take to end when the control socket closes.
const CLOSING: Duration = Duration::from_secs(2);
/// How long a client of a daemon's socket may take nothing of an answer, as long as its own body may stand still.
const PATIENCE: Duration = Duration::from_secs(120);

/// A listening Unix socket. Dropping it removes its file.
pub struct Socket {
    listener: UnixListener,
    file: SocketFile,
    /// After the file, whose path may lead through its open directory.
    place: Place,
    /// A user who may connect besides root and the one who runs this process.
    user: Option<u32>,
    /// Command that `GET /` names.
    command: &'static str,
    /// How long a client may take nothing of an answer.
    patience: Duration,
}

impl Socket {
    /// A daemon's socket at `path`. Only root, the user of this process, and `user`, who becomes the owner of the
    /// socket's file, can connect.
    pub fn at(path: &Path, user: Option<u32>) -> Result<Self, ServerError> {
        let place = Place::at(path).map_err(|source| ServerError::Io {
            path: path.to_owned(),
            source,
        })?;
        let socket = Self::listening(place, user, DAEMON, PATIENCE)?;
        if let Some(user) = user {
            let given = std::os::unix::fs::chown(socket.place.address(), Some(user), None);
            given.map_err(|source| ServerError::Io {
                path: socket.path().to_owned(),
                source,
            })?;
        }
        Ok(socket)
    }

    /// A server's socket beside a drive whose lock this process holds. Clients that connect wait until
    /// [`run`](Self::run).
    pub fn beside(drive: &Path) -> Result<Self, ServerError> {
        let place = Place::of(drive).map_err(|source| ServerError::Io {
            path: drive.to_owned(),
            source,
        })?;
        // A backup may be piped into what a person has stopped for a while.
        Self::listening(place, None, SERVE, Duration::MAX)
    }

    fn listening(
        place: Place,
        user: Option<u32>,
        command: &'static str,
        patience: Duration,
    ) -> Result<Self, ServerError> {
        let (listener, file) = place.listen()?;
        Ok(Self {
            listener,
            file,
            place,
            user,
            command,
            patience,
        })
    }

    /// Names another command than [`SERVE`] in `GET /`.
    #[must_use]
    pub fn of(self, command: &'static str) -> Self {
        Self { command, ..self }
    }

    /// Path of the socket's file.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Answers calls until `shutdown` completes; running calls then have `closing` to end. Unknown calls are answered
    /// as such, and `GET /` identifies the server. Then waits for `close` and removes the socket. Needs a tokio
    /// runtime with I/O and time.
    pub async fn run(
        self,
        calls: Router,
        closing: Duration,
        shutdown: impl Future<Output = ()> + Send + 'static,
        close: impl Future<Output = ()>,
    ) -> Result<(), ServerError> {
        let path = self.path().to_owned();
        let command = self.command;
        let failed = |source| ServerError::Io { path, source };
        let listener = match tokio::net::UnixListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return Err(failed(error)),
        };
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let shutdown = async move {
            shutdown.await;
            let _ = stop.send(true);
        };
        let listener = Checked {
            listener,
            users: [
                Some(0),
                Some(rustix::process::geteuid().as_raw()),
                self.user,
            ],
            patience: self.patience,
        };
        let calls = calls
            .route("/", get(async move || hello(command)))
            .method_not_allowed_fallback(no_method)
            .fallback(unknown)
            .layer(middleware::from_fn(drain));
        let serve = axum::serve(listener, calls).with_graceful_shutdown(shutdown);
        let serve = serve.into_future();
        tokio::pin!(serve);
        let served: io::Result<()> = tokio::select! {
            served = &mut serve => served,
            // A client that connects and sends nothing does not keep the server running.
            () = async { let _ = stopped.wait_for(|stop| *stop).await; tokio::time::sleep(closing).await } => Ok(()),
        };
        close.await;
        drop((self.file, self.place));
        served.map_err(failed)
    }
}

/// Accepts connections of these users only. The file's mode keeps others out already, unless it was changed.
struct Checked {
    listener: tokio::net::UnixListener,
    users: [Option<u32>; 3],
    patience: Duration,
}

impl Listener for Checked {
    type Io = Connection<UnixStream>;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            match stream.peer_cred().map(|peer| peer.uid()) {
                Ok(uid) if self.users.contains(&Some(uid)) => {
                    let stream = Connection::new(stream, self.patience, Unread::default());
                    return (stream, address);
                }
                Ok(uid) => tracing::warn!(uid, "a connection of a user who may not connect"),
                Err(error) => tracing::warn!(%error, "a connection of nobody knows whom"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// The control socket of a drive, with its calls.
pub struct ControlServer {
    socket: Socket,
    calls: Arc<DriveCalls>,
}

impl ControlServer {
    /// Serves `calls` on `socket`; nothing is answered before [`run`](Self::run).
    pub fn at(socket: Socket, calls: Arc<DriveCalls>) -> Self {
        Self { socket, calls }
    }

    /// Path of the socket's file.
    pub fn path(&self) -> &Path {
        self.socket.path()
    }

    /// Answers until `shutdown` completes. Needs a tokio runtime with I/O and time. Once this returns, no store call
    /// is running and the socket is removed.
    pub async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServerError> {
        let Self { socket, calls } = self;
        let router = Router::new().nest("/v1", calls.router());
        let stops = calls.clone();
        let shutdown = async move {
            shutdown.await;
            stops.stop();
        };
        socket.run(router, CLOSING, shutdown, calls.close()).await
    }
}
