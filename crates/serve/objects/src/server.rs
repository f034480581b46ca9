//! The server: listens, keeps the number of connections bounded, and stops with grace.

use crate::connection::{Connection, Unread};
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

/// How long to wait when the system has no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections that wait to be accepted; the system may allow fewer.
const LISTEN_QUEUE: i32 = 4096;
/// A connection's buffers hold at most this; also what a request's head must fit into.
const CONNECTION_BUFFER: usize = 64 * 1024;

type BoxError = Box<dyn StdError + Send + Sync>;

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
    ///
    /// # Errors
    /// It cannot be had.
    pub fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let reserved = Self::reserve(address)?;
        reserved.listen()?;
        Ok(reserved)
    }

    /// The same, but whoever connects is refused until it [listens](Self::listen).
    ///
    /// # Errors
    /// Those of [`bind`](Self::bind).
    pub fn reserve(address: SocketAddr) -> Result<Self, ServeError> {
        let reserve = || {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
            // Connections of a server before this one may still be ending.
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
    /// Somebody else listens there meanwhile.
    pub fn listen(&self) -> Result<(), ServeError> {
        let listening = SockRef::from(&self.socket).listen(LISTEN_QUEUE);
        listening.map_err(|source| refused(self.address, source))
    }

    /// Where it listens; the port is real even if 0 was asked for.
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

/// Bounds on what connections can make a server use.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Open connections of clients, those that were [admitted](Peer::admit).
    pub max_clients: usize,
    /// Open connections of strangers; further ones take the place of those that are there longest.
    pub max_strangers: usize,
    /// Bytes of a request's head.
    pub max_header_bytes: usize,
    /// How long a client may take for a request's head, and a connection may idle between requests.
    pub header_timeout: Duration,
    /// How long an answer may stand still.
    pub idle_timeout: Duration,
    /// How long requests in flight may take when the server stops.
    pub shutdown_timeout: Duration,
}

/// Serves until `shutdown` is there, then finishes requests in flight, within a deadline. `answer` is handed each
/// request, with its [`Peer`] among the extensions, and what has to be told of a body that was left unread. An answer
/// behind which the connection ends says so (`Connection: close`).
/// With `tls`, connections are private. Needs a tokio runtime with I/O and time.
///
/// # Errors
/// The listener is none for tokio.
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
                // Answers are written whole; waiting for more would only delay them.
                let _ = stream.set_nodelay(true);
                let peer = Arc::new(peers.arrive(from.ip()));
                let (answer, stopping) = (answer.clone(), stopping.clone());
                match tls.clone() {
                    None => connections.spawn(converse(stream, peer, answer, bounds, stopping)),
                    Some(tls) => connections.spawn(async move {
                        if let Some(stream) = private(stream, &peer, &tls, bounds).await {
                            converse(stream, peer, answer, bounds, stopping).await;
                        }
                    }),
                };
                // It is looked at before the next comes: of a crowd, no stranger closes a connection whose request is there.
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

/// A connection made private, unless its client is too slow, or a stranger that has to make room.
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

/// Answers the requests of one connection.
async fn converse<S, A, F, B, E>(
    stream: S,
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
    let io = TokioIo::new(Connection::new(stream, bounds.idle_timeout, unread.clone()));
    let asking = peer.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(asking.clone());
        let (asking, unread) = (asking.clone(), unread.clone());
        let answered = answer(request, unread.clone());
        async move {
            let mut response = answered.await?;
            // A client that is not told would send its next request into a connection that ends.
            if unread.is_set() || asking.is_leaving() {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok::<_, E>(response)
        }
    });
    let connection = http1::Builder::new()
        // A client that has said all it has to say may close its side and still gets its answer.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
        .max_buf_size(CONNECTION_BUFFER.max(bounds.max_header_bytes))
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
