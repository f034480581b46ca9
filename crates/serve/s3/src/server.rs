//! The server: listens, keeps the number of connections bounded, and stops with grace.

use crate::auth::{Gate, Keys};
use crate::blocking::Blocking;
use crate::body::Unread;
use crate::config::{Config, Limits};
use crate::connection::Connection;
use crate::front::Front;
use crate::gateway::Gateway;
use crate::hosts::Hosts;
use crate::multipart;
use crate::peers::{Peer, Peers};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long to wait when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections that wait to be accepted; the system may allow fewer.
const LISTEN_QUEUE: i32 = 4096;
/// A connection's buffers hold at most this; also what a request's head must fit into.
const CONNECTION_BUFFER: usize = 64 * 1024;

/// Why a server does not serve.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Another program listens there.
    #[error("{address} is in use by another program; choose another port")]
    AddressInUse {
        /// Where.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// An address to listen on, taken before there is anything to serve.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes the address; port 0 picks a free one.
    pub fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let socket = TcpListener::bind(address).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::AddressInUse { address },
            _ => ServeError::Bind { address, source },
        })?;
        let bound = socket
            .set_nonblocking(true)
            .and_then(|()| socket2::SockRef::from(&socket).listen(LISTEN_QUEUE))
            .and_then(|()| socket.local_addr())
            .map_err(|source| ServeError::Bind { address, source })?;
        Ok(Self {
            socket,
            address: bound,
        })
    }
}

/// A server that has its address.
pub struct Server {
    listener: Listener,
    limits: Limits,
    front: Arc<Front>,
    gateway: Gateway,
}

impl Server {
    /// Takes the address; nothing is answered before [`run`](Self::run).
    pub fn bind(config: Config, store: Store) -> Result<Self, ServeError> {
        Ok(Self::new(Listener::bind(config.address)?, config, store))
    }

    /// A server of `store` at an address that was taken before, whatever `config` says of one.
    pub fn new(listener: Listener, config: Config, store: Store) -> Self {
        let limits = config.limits;
        let gateway = Gateway {
            store,
            blocking: Blocking::new(limits.max_blocking),
            region: config.region,
            random: config.random,
        };
        let mut service = S3ServiceBuilder::new(gateway.clone());
        let hosts = Hosts::new(config.domain.as_deref());
        service.set_host(hosts.clone());
        service.set_auth(Keys(config.credentials));
        service.set_access(Gate::new(&limits));
        let mut bounds = S3Config::default();
        bounds.xml_max_body_size = limits.max_document_bytes;
        service.set_config(Arc::new(StaticConfigProvider::new(Arc::new(bounds))));
        let mut run = [0; 4];
        (gateway.random)(&mut run);
        let front = Arc::new(Front::new(
            service.build(),
            &limits,
            gateway.region.clone(),
            hosts,
            run,
        ));
        Self {
            listener,
            limits,
            front,
            gateway,
        }
    }

    /// Where it listens; the port is real even if 0 was asked for.
    pub fn local_addr(&self) -> SocketAddr {
        self.listener.address
    }

    /// Serves until `shutdown` is there, then finishes requests in flight, within a deadline.
    /// Needs a tokio runtime with I/O and time. Afterwards no store call runs any more.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self {
            listener: Listener { socket, address },
            limits,
            front,
            gateway,
        } = self;
        let listener = tokio::net::TcpListener::from_std(socket)
            .map_err(|source| ServeError::Bind { address, source })?;
        if let Err(error) = gateway.call(multipart::sweep).await {
            tracing::warn!(%error, "parts of ended uploads could not be swept away");
        }
        let peers = Peers::new(limits.max_strangers, limits.max_connections);
        let (stop, stopping) = watch::channel(());
        let mut connections = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, from)) => {
                    let peer = Arc::new(peers.arrive(from.ip()));
                    let (front, limits) = (front.clone(), limits.clone());
                    let stopping = stopping.clone();
                    connections.spawn(async move {
                        converse(stream, peer, front, &limits, stopping).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        drop(stop);
        let finish = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(limits.shutdown_timeout, finish)
            .await
            .is_err()
        {
            tracing::warn!("requests in flight took too long and were cut off");
            connections.shutdown().await;
        }
        gateway.blocking.idle().await;
        Ok(())
    }
}

/// Answers the requests of one connection.
async fn converse(
    stream: TcpStream,
    peer: Arc<Peer>,
    front: Arc<Front>,
    limits: &Limits,
    mut stopping: watch::Receiver<()>,
) {
    // Answers are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let unread = Unread::default();
    let io = TokioIo::new(Connection::new(stream, limits.idle_timeout, unread.clone()));
    let asking = peer.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (front, unread) = (front.clone(), unread.clone());
        request.extensions_mut().insert(asking.clone());
        async move { front.handle(request, unread).await }
    });
    let connection = http1::Builder::new()
        // A client that has said all it has to say may close its side and still gets its answer.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(CONNECTION_BUFFER.max(limits.max_header_bytes))
        .max_header_size(limits.max_header_bytes)
        .serve_connection(io, service);
    tokio::pin!(connection);
    let mut stop = false;
    loop {
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(%error, "a connection ended");
                }
                return;
            }
            () = peer.closed() => {
                tracing::debug!("a connection made room for another");
                return;
            }
            () = peer.finish(), if !stop => {
                stop = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = stopping.changed(), if !stop => {
                stop = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
