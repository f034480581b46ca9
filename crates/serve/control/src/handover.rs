//! Connections that leave HTTP, over which clients hand sockets of their own to the server (`SCM_RIGHTS`, unix(7)).

use crate::frames::frame;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use objects::{Buffer, Connection};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, Shutdown,
    SocketType, sockopt,
};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::{TcpStream, UnixStream};

/// Sends what there is room for, and raises no SIGPIPE.
const NOW: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
/// Most bytes of a message that comes with a socket: what a client has read of a body already is in it.
const MAX_MESSAGE_BYTES: usize = 256 << 10;

/// A connection over which sockets come, each with a message in one frame.
pub struct Handover(UnixStream);

impl Handover {
    /// Whether the request asks for `protocol`, by the headers `Connection` and `Upgrade`.
    pub fn is_asked(request: &Request, protocol: &str) -> bool {
        let can_upgrade = request.extensions().get::<OnUpgrade>().is_some();
        let asked = request.headers().get(UPGRADE).filter(|_| can_upgrade);
        asked.is_some_and(|asked| asked.as_bytes().eq_ignore_ascii_case(protocol.as_bytes()))
    }

    /// Runs `then` with the connection of this request once the answer is sent that this returns.
    pub fn after<F: Future<Output = ()> + Send + 'static>(
        mut request: Request,
        protocol: &'static str,
        then: impl FnOnce(Self) -> F + Send + 'static,
    ) -> Response<Body> {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let Ok(upgraded) = upgrade.await else { return };
            // Who sends more before the answer would have sockets lost that came with it.
            if let Ok(parts) = downcast::<TokioIo<Connection<UnixStream>>>(upgraded)
                && parts.read_buf.is_empty()
            {
                then(Self(parts.io.into_inner().into_inner())).await;
            }
        });
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = answer.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(protocol));
        answer
    }

    /// The next message and the socket that came with it, if one did; `None` if the client has ended the connection.
    ///
    /// # Errors
    /// The connection is broken, what comes is no frame of at most 256 KiB, or a socket came that
    /// this process has no descriptor for.
    pub async fn receive(&self) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
        let (mut message, mut socket) = (Vec::new(), None);
        loop {
            let mut piece = [0; 4096];
            let come = || received(&self.0, &mut piece);
            let (length, came) = self.0.async_io(Interest::READABLE, come).await?;
            if length == 0 {
                return Ok(None);
            }
            message.extend_from_slice(&piece[..length]);
            socket = socket.or(came);
            let Some((announced, rest)) = message.split_first_chunk() else {
                continue;
            };
            let announced = u32::from_le_bytes(*announced) as usize;
            if announced > MAX_MESSAGE_BYTES || rest.len() > announced {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if rest.len() == announced {
                return Ok(Some((rest.to_vec(), socket)));
            }
        }
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// The connection is broken, or the client took nothing for as long as `patience`.
    pub async fn answer(&mut self, message: &[u8], patience: Duration) -> io::Result<()> {
        let message = frame(message);
        tokio::time::timeout(patience, self.0.write_all(&message)).await?
    }

    /// Completes when the client ends the connection, or sends a message before the last one is answered.
    pub async fn interrupted(&self) {
        let look = || {
            let mut first = [0];
            Ok(rustix::net::recv(&self.0, &mut first, RecvFlags::PEEK)?)
        };
        let _ = self.0.async_io(Interest::READABLE, look).await;
    }
}

fn received(stream: &UnixStream, piece: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(piece)];
    let message = rustix::net::recvmsg(stream, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    if message.flags.contains(ReturnFlags::CTRUNC) {
        // This process has no descriptor free for the socket that came.
        return Err(rustix::io::Errno::MFILE.into());
    }
    let mut sockets = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sockets) => sockets.next(),
        _ => None,
    });
    Ok((message.bytes, sockets.next()))
}

/// A socket that was handed over. It stays open in the process that it came from.
///
/// If it is dropped behind a part of what it should get, it is shut down for both processes, so that nobody takes the part
/// for the whole.
pub struct HandedStream {
    stream: TcpStream,
    has_part: bool,
}

impl HandedStream {
    /// Takes a socket over, which is made non-blocking for both processes.
    ///
    /// # Errors
    /// The descriptor is no socket of a stream.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        if sockopt::socket_type(&socket)? != SocketType::STREAM {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stream = std::net::TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        let stream = TcpStream::from_std(stream)?;
        let has_part = false;
        Ok(Self { stream, has_part })
    }

    /// Writes some of these bytes.
    ///
    /// # Errors
    /// The other side is gone, or took nothing for as long as `patience`.
    pub async fn write(&mut self, bytes: &[u8], patience: Duration) -> io::Result<usize> {
        self.has_part = true;
        let written = tokio::time::timeout(patience, self.write_ready(bytes)).await;
        // A socket is not ready before a third of a buffer is free that may have megabytes; a part of it may be.
        let written = written.unwrap_or_else(|_| Ok(rustix::net::send(&self.stream, bytes, NOW)?));
        match written? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            written => Ok(written),
        }
    }

    async fn write_ready(&self, bytes: &[u8]) -> io::Result<usize> {
        let write = || Ok(rustix::net::send(&self.stream, bytes, NOW)?);
        self.stream.async_io(Interest::WRITABLE, write).await
    }

    /// Reads into the room of `piece`, at most `most` bytes; none if the other side has ended.
    ///
    /// # Errors
    /// The other side is gone, or sent nothing for as long as `patience`.
    pub async fn read(
        &self,
        piece: &mut Buffer,
        most: usize,
        patience: Duration,
    ) -> io::Result<usize> {
        let receive = |room: &mut [u8]| rustix::net::recv(&self.stream, room, RecvFlags::DONTWAIT);
        let read = || Ok(piece.read(most, |room| receive(room).map(|(came, _)| came))?);
        tokio::time::timeout(patience, self.stream.async_io(Interest::READABLE, read)).await?
    }

    /// Everything was written: what waits to fill a packet is sent at once.
    pub fn finish(&mut self) {
        self.has_part = false;
        // A socket of another kind has no such option and needs none.
        let _ = sockopt::set_tcp_cork(&self.stream, false);
    }
}

impl Drop for HandedStream {
    fn drop(&mut self) {
        if self.has_part {
            let _ = rustix::net::shutdown(&self.stream, Shutdown::Both);
        }
    }
}
