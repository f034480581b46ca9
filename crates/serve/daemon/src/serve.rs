//! Serves a drive until a signal comes.
//!
//! The first signal lets running requests finish; a second one ends the process at once, which is no worse than a
//! crash.

use crate::live::Live;
use crate::notify::{self, Change};
use crate::signals::{self, Signals};
use control::{ControlServer, DriveCalls, Socket, Tell};
use device::{Drive, ZonedDevice};
use s3::{AUDIT, ServeError, Server};
use status::Status;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::MissedTickBehavior;

/// Interval of checks whether writes still work.
const FAILURE_LOOK: Duration = Duration::from_millis(200);
/// Fewest free bytes of the host's disk with which it has room again.
const LEAST_ROOM: u64 = 16 << 20;
/// With fewer free bytes, the host's disk is full.
const FULL: u64 = 1 << 20;
/// Interval of checks whether the configuration has changed.
const CONFIGURATION_LOOK: Duration = Duration::from_secs(2);

/// Why a server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A signal came.
    Asked,
    /// Nothing can be written any more, for the reason that the store gives, and [`Daemon::stops_on_failure`] is set.
    Failed,
    /// Nothing can be written any more, since the host's disk was full or read-only, and it is so no longer. What a restart
    /// would do lets writes go on.
    Mended,
}

/// The parts of a served drive.
pub struct Daemon {
    /// The drive, whose lock this process holds.
    pub drive: Arc<Drive>,
    /// The store on it.
    pub store: Store,
    /// The control socket, if there is one. It listens before the endpoint's port does, so that a client that reaches
    /// the endpoint can also reach the control socket.
    pub control: Option<Socket>,
    /// Its S3 endpoint.
    pub server: Server,
    /// Configuration that is reloaded while the server runs.
    pub live: Live,
    /// Reopens the log files, which may have been moved away.
    pub reopen_logs: Box<dyn Fn() -> io::Result<()> + Send>,
    /// Whether the server stops when writes fail for good.
    pub stops_on_failure: bool,
    /// Whether another server could begin: its configuration may be about to be changed.
    pub may_begin: Box<dyn Fn() -> bool + Send>,
}

/// Serves until a signal comes, or until writes fail and there is something to do about it ([`Ended`]). The store stays
/// mounted. `ready` is called with the endpoint's address before the
/// first request is answered, and may end the server with an error.
///
/// # Errors
/// Those of `ready`, of the endpoint, and of the host. A failing control socket does not stop the endpoint.
pub fn serve<E: From<io::Error> + From<ServeError>>(
    daemon: Daemon,
    ready: impl FnOnce(SocketAddr) -> Result<(), E>,
) -> Result<Ended, E> {
    let Daemon {
        drive,
        store,
        control,
        server,
        live,
        reopen_logs,
        stops_on_failure,
        may_begin,
    } = daemon;
    let mut calls = DriveCalls::new(drive.clone(), store.clone());
    if let Some(status) = server.status() {
        calls = calls.telling(told_by(status));
    }
    let control = control.map(|socket| ControlServer::at(socket, Arc::new(calls)));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // Before the address is reported: the process that reads it may send a signal at once.
        let mut signals = Signals::listen()?;
        let hangup = signal(SignalKind::hangup())?;
        ready(server.local_addr())?;
        // The port is bound: connections wait only until the following lines have run.
        notify::tell(Change::Ready);
        tracing::info!(drive = %drive.path().display(), address = %server.local_addr(), "serving");
        tracing::info!(target: AUDIT, drive = %drive.path().display(), "started");
        let reading = tokio::spawn(keep_reading(live, reopen_logs, hangup));
        let mut ended = Ended::Asked;
        let end = &mut ended;
        let failed = until_failed(store, drive.clone(), stops_on_failure, may_begin);
        let stop = async move {
            if signals::noted() != Some(true) {
                tokio::select! {
                    () = signals.next() => {}
                    why = failed => *end = why,
                }
            }
            if *end == Ended::Mended {
                // For whoever supervises this process, it goes on.
                tracing::info!(
                    "the host's disk takes writes again: starting anew after the requests in hand"
                );
                return;
            }
            notify::tell(Change::Stopping);
            tracing::info!("stopping after the requests in hand; a second signal stops at once");
            if signals::noted().is_none() {
                tokio::spawn(async move {
                    signals.next().await;
                    std::process::exit(1);
                });
            }
        };
        let (close, closed) = oneshot::channel::<()>();
        let control = control.map(|control| {
            tokio::spawn(control.run(async {
                let _ = closed.await;
            }))
        });
        let served = server.run(stop).await;
        reading.abort();
        tracing::info!(target: AUDIT, drive = %drive.path().display(), "stopped");
        // The control socket is served as long as requests are running.
        drop(close);
        if let Some(control) = control {
            match control.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the socket"),
                Err(error) => tracing::error!(%error, "the socket"),
            }
        }
        served?;
        Ok(ended)
    })
}

/// Gives the document that the status page is made of.
fn told_by(status: Arc<Status>) -> Tell {
    Arc::new(move || {
        let status = status.clone();
        Box::pin(async move {
            // The document has only numbers and text, so this does not fail.
            serde_json::to_value(status.document().await).unwrap_or_default()
        })
    })
}

/// Reloads the configuration when one of its files has changed, and after SIGHUP, which also reopens the logs.
async fn keep_reading(
    mut live: Live,
    reopen_logs: Box<dyn Fn() -> io::Result<()> + Send>,
    mut hangup: Signal,
) {
    let mut looks = tokio::time::interval(CONFIGURATION_LOOK);
    // A name that cannot be resolved may take longer to say so.
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let asked = tokio::select! {
            _ = looks.tick() => false,
            _ = hangup.recv() => true,
        };
        if asked && let Err(error) = reopen_logs() {
            tracing::error!(%error, "a log cannot be opened anew; it goes on where it was");
        }
        // This may access the drive, and resolve a host name.
        if let Err(error) = tokio::task::block_in_place(|| live.look(asked)) {
            tracing::error!(%error, "the configuration stays as it was");
        }
    }
}

/// Completes when writes fail for good, if the server `stops` then; otherwise once the host's disk takes writes again that
/// was full or read-only when they failed.
async fn until_failed(
    store: Store,
    drive: Arc<Drive>,
    stops: bool,
    may_begin: Box<dyn Fn() -> bool + Send>,
) -> Ended {
    let mut looks = tokio::time::interval(FAILURE_LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while store.failure().is_none() {
        looks.tick().await;
    }
    if stops {
        return Ended::Failed;
    }
    let room = store.statfs().host_kept_bytes.max(LEAST_ROOM);
    let mut host_is_to_blame = false;
    loop {
        looks.tick().await;
        let host = drive.clone();
        // A host that does not answer holds no signal up.
        let look = move || (host.host_takes_writes(FULL), host.host_takes_writes(room));
        let (takes, takes_all) = tokio::task::spawn_blocking(look)
            .await
            .unwrap_or((true, false));
        host_is_to_blame |= !takes || store.was_stopped_by_host();
        if !host_is_to_blame || !takes_all || !tokio::task::block_in_place(&may_begin) {
            continue;
        }
        let host = drive.clone();
        let flushed = tokio::task::spawn_blocking(move || host.flush()).await;
        if !matches!(flushed, Ok(Ok(()))) || signals::note().is_err() {
            // The host may return what is not on its disk: somebody has to look after it.
            return std::future::pending().await;
        }
        return Ended::Mended;
    }
}
