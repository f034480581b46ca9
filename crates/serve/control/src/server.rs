//! The daemon's side of the control socket, from its opening to its end.

use crate::calls::{Tell, router};
use crate::daemon::{Daemon, QUESTIONS};
use crate::error::ServerError;
use crate::socket::Place;
use crate::whole_request::read_whole;
use axum::middleware;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::Store;

/// How long connections may take to end when the control socket closes.
const CLOSING: Duration = Duration::from_secs(2);

/// A served control socket. The socket's file goes when this does.
pub struct ControlServer {
    listener: UnixListener,
    place: SocketFile,
    daemon: Arc<Daemon>,
    tell: Option<Tell>,
}

struct SocketFile(Place);

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.0.remove();
    }
}

impl ControlServer {
    /// Opens the control socket of `drive`, whose lock this process holds; nothing is answered before
    /// [`run`](Self::run).
    pub fn open(drive: Arc<device::Drive>, store: Store) -> Result<Self, ServerError> {
        let place = Place::of(drive.path()).map_err(|source| ServerError::Io {
            path: drive.path().to_owned(),
            source,
        })?;
        let listener = place.listen()?;
        Ok(Self {
            listener,
            tell: None,
            place: SocketFile(place),
            daemon: Arc::new(Daemon::new(drive, store)),
        })
    }

    /// Also tells what the status page shows.
    #[must_use]
    pub fn telling(mut self, tell: Tell) -> Self {
        self.tell = Some(tell);
        self
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        self.place.0.path()
    }

    /// Answers until `shutdown` is there. Needs a tokio runtime with I/O and time. Afterwards no store
    /// call runs any more, and the socket is gone.
    pub async fn run(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServerError> {
        let path = self.path().to_owned();
        let failed = |source| ServerError::Io { path, source };
        let listener = match tokio::net::UnixListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return Err(failed(error)),
        };
        let daemon = self.daemon.clone();
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let stops = daemon.stops.clone();
        let shutdown = async move {
            shutdown.await;
            stops.store(true, Ordering::Relaxed);
            let _ = stop.send(true);
        };
        let calls = router(daemon.clone(), self.tell).layer(middleware::from_fn(read_whole));
        let serve = axum::serve(listener, calls).with_graceful_shutdown(shutdown);
        let serve = serve.into_future();
        tokio::pin!(serve);
        let served: io::Result<()> = tokio::select! {
            served = &mut serve => served,
            // A connection that never says anything does not keep the server running.
            () = async { let _ = stopped.wait_for(|stop| *stop).await; tokio::time::sleep(CLOSING).await } => Ok(()),
        };
        // Whoever waits is told that the server stops; whoever is at work ends first.
        drop(daemon.questions.acquire_many(QUESTIONS).await);
        daemon.questions.close();
        drop(daemon.backups.acquire().await);
        daemon.backups.close();
        drop(daemon.cleaning.acquire().await);
        daemon.cleaning.close();
        drop(self.place);
        served.map_err(failed)
    }
}
