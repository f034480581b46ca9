//! The server: listens, limits the number of connections, and shuts down gracefully.

use crate::connection::{Connection, Unread, reset_at_end};
use crate::peers::{Peer, Peers};
use crate::tls::Tls;
use http::{HeaderValue, Request, Response, header};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, SockRef, Socket, Type};
use std::error::Error as StdError;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

/// Pause when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections that may wait to be accepted; the system may allow fewer.
const LISTEN_QUEUE: i32 = 4096;
/// Bytes of a body that wait for the client before more of the body is asked for. Data in the store's cache comes in units
/// of 64 KiB; the more of them are sent in one call, the more seldom the client is woken.
const SENT_TOGETHER: usize = 1 << 20;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a server cannot listen.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Another program listens on the address.
    #[error("{address} is in use by another program; choose another port")]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

/// A bound address, before there is anything to serve.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds the address and listens; port 0 picks a free one.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let reserved = Self::reserve(address)?;
        reserved.listen()?;
        Ok(reserved)
    }

    /// Binds the address, but clients are refused until [`listen`](Self::listen).
    ///
    /// # Errors
    /// Those of [`bind`](Self::bind).
    pub fn reserve(address: SocketAddr) -> Result<Self, ServeError> {
        let reserve = || {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            // Connections of an earlier server may still be closing.
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.bind(&address.into())?;
            let socket = TcpListener::from(socket);
            let address = socket.local_addr()?;
            Ok(Self { socket, address })
        };
        reserve().map_err(|source| refused(address, source))
    }

    /// Lets clients connect; they wait until the server runs.
    ///
    /// # Errors
    /// Another program has begun to listen on the address.
    pub fn listen(&self) -> Result<(), ServeError> {
        let listening = SockRef::from(&self.socket).listen(LISTEN_QUEUE);
        listening.map_err(|source| refused(self.address, source))
    }

    /// The bound address, with the real port even if 0 was requested.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

fn refused(address: SocketAddr, source: io::Error) -> ServeError {
    match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::AddressInUse { address },
        _ => ServeError::Bind { address, source },
    }
}

/// Limits of what connections can make a server use.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Open connections of clients that were [admitted](Peer::admit).
    pub max_clients: usize,
    /// Open connections that were not admitted; further ones replace the oldest of them.
    pub max_strangers: usize,
    /// Bytes of a request's head.
    pub max_header_bytes: usize,
    /// How long a client may take for a request's head, and a connection may idle between requests.
    pub header_timeout: Duration,
    /// How long an answer may make no progress: the system takes more of it once the client has taken a third of what the system
    /// holds for it, which is at most 4 MiB as Linux is set up (`net.ipv4.tcp_wmem`). Then the connection is reset.
    pub idle_timeout: Duration,
    /// How long running requests may take when the server stops.
    pub shutdown_timeout: Duration,
}

/// Serves until `shutdown` completes, then finishes running requests within [`Bounds::shutdown_timeout`]. `answer`
/// gets each request, with its [`Peer`] among the extensions, and an [`Unread`] to set if it leaves a body unread.
/// The last answer of a connection has `Connection: close`. With `tls`, connections are encrypted. Needs a tokio
/// runtime with I/O and time.
///
/// # Errors
/// Tokio cannot use the listener.
pub async fn serve<A, F, B, E>(
    listener: Listener,
    bounds: Bounds,
    tls: Option<Tls>,
    answer: A,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    A: Fn(Request<Incoming>, Unread) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    E: Into<BoxError> + 'static,
{
    let Listener { socket, address } = listener;
    let listener = tokio::net::TcpListener::from_std(socket)
        .map_err(|source| ServeError::Bind { address, source })?;
    let peers = Peers::new(bounds.max_strangers, bounds.max_clients);
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
                // Answers are written as a whole; waiting for more data would only delay them.
                let _ = stream.set_nodelay(true);
                let peer = Arc::new(peers.arrive(from.ip()));
                let (answer, stopping) = (answer.clone(), stopping.clone());
                match tls.clone() {
                    None => {
                        let talk = converse(stream, reset_at_end, peer, answer, bounds, stopping);
                        connections.spawn(talk)
                    }
                    Some(tls) => connections.spawn(async move {
                        if let Some(stream) = private(stream, &peer, &tls, bounds).await {
                            let reset = |stream: &TlsStream<_>| reset_at_end(stream.get_ref().0);
                            converse(stream, reset, peer, answer, bounds, stopping).await;
                        }
                    }),
                };
                // The connection is polled before the next is accepted, so that in a crowd no connection is closed
                // whose request has arrived.
                tokio::task::yield_now().await;
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
    if tokio::time::timeout(bounds.shutdown_timeout, finish)
        .await
        .is_err()
    {
        tracing::warn!("requests in flight took too long and were cut off");
        connections.shutdown().await;
    }
    Ok(())
}

/// The TLS handshake; `None` if it fails, is too slow, or the connection has to make room for another.
async fn private(
    stream: TcpStream,
    peer: &Peer,
    tls: &Tls,
    bounds: Bounds,
) -> Option<TlsStream<TcpStream>> {
    let accepted = tokio::select! {
        accepted = tls.accept(stream, bounds.header_timeout) => accepted,
        () = peer.closed() => return None,
    };
    accepted
        .map_err(|error| tracing::debug!(%error, "a connection was not made private"))
        .ok()
}

/// Answers the requests of one connection. `at_stall` as in [`Connection::at_stall`].
async fn converse<S, A, F, B, E>(
    stream: S,
    at_stall: fn(&S),
    peer: Arc<Peer>,
    answer: A,
    bounds: Bounds,
    mut stopping: watch::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<Incoming>, Unread) -> F,
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Error: Into<BoxError>> + 'static,
    E: Into<BoxError>,
{
    let unread = Unread::default();
    let stream = Connection::new(stream, bounds.idle_timeout, unread.clone());
    let io = TokioIo::new(stream.at_stall(at_stall));
    let asking = peer.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(asking.clone());
        let (asking, unread) = (asking.clone(), unread.clone());
        let answered = answer(request, unread.clone());
        async move {
            let mut response = answered.await?;
            // Without it, the client would send its next request into a closing connection.
            if unread.is_set() || asking.is_leaving() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok::<_, E>(response)
        }
    });
    let connection = http1::Builder::new()
        // A client may close its side after its request and still gets the answer.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
        .max_buf_size(SENT_TOGETHER.max(bounds.max_header_bytes))
        .max_header_size(bounds.max_header_bytes)
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

#[cfg(test)]
mod tests;
