//! Listening sockets of an export: a Unix socket, which only its owner may use, or a TCP port.

use runtime::SocketFile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_keepalive;
use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// How long clients wait for the next attempt where one cannot be accepted: a tenth of a second.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Address to listen at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String),
}

/// The text is not an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "write the path of a socket, or HOST:PORT with a port up to 65535 (a path with a colon: ./a:b)"
)]
pub struct NoAddress;

impl Address {
    /// Parses a path if there is a slash in the text or no colon, otherwise `HOST:PORT`.
    ///
    /// # Errors
    /// `NoAddress`: the text is empty, or ends in no port.
    pub fn parse(text: &str) -> Result<Self, NoAddress> {
        match text.rsplit_once(':') {
            _ if text.is_empty() => Err(NoAddress),
            Some((host, port)) if !text.contains('/') => {
                let port = port.parse::<u16>().ok().filter(|_| !host.is_empty());
                port.map(|_| Self::Tcp(text.to_owned())).ok_or(NoAddress)
            }
            _ => Ok(Self::Unix(text.into())),
        }
    }
}

/// A listening socket. Dropping it removes a Unix socket's file.
#[derive(Debug)]
pub enum Listener {
    /// A Unix socket with its file.
    Unix(UnixListener, SocketFile),
    /// A TCP socket.
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at an address. A stale socket file, without a listener, is replaced.
    ///
    /// # Errors
    /// `AddrInUse` if another process listens there; `AlreadyExists` if the path is no socket that a killed process left.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let listener = match address {
            Address::Tcp(text) => {
                let addresses: Vec<SocketAddr> = text.to_socket_addrs()?.collect();
                Self::Tcp(TcpListener::bind(&*addresses)?)
            }
            Address::Unix(path) => {
                let (socket, file) = SocketFile::listen(path)?;
                Self::Unix(socket, file)
            }
        };
        match &listener {
            Self::Unix(socket, _) => socket.set_nonblocking(true)?,
            Self::Tcp(socket) => socket.set_nonblocking(true)?,
        }
        Ok(listener)
    }

    /// Waits for the next client; `None` once `stop` can be read from. A client that cannot be accepted, for example
    /// because no descriptor is free, waits as well.
    ///
    /// # Errors
    /// The host cannot wait.
    pub fn accept(&self, stop: BorrowedFd<'_>) -> io::Result<Option<Stream>> {
        let mut warned = false;
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(stop, PollFlags::IN),
                PollFd::from_borrowed_fd(self.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !fds[0].revents().is_empty() {
                return Ok(None);
            }
            let accepted = match self {
                Self::Unix(socket, _) => socket.accept().map(|(stream, _)| Stream::Unix(stream)),
                Self::Tcp(socket) => socket.accept().map(|(stream, _)| Stream::Tcp(stream)),
            };
            match accepted {
                Ok(stream) => match stream.prepared() {
                    Ok(stream) => return Ok(Some(stream)),
                    Err(error) => tracing::warn!(%error, "a client was turned away"),
                },
                // The client left before it was accepted.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock
                            | io::ErrorKind::Interrupted
                            | io::ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    if !std::mem::replace(&mut warned, true) {
                        tracing::warn!(%error, "clients have to wait");
                    }
                    let _ = poll(&mut fds[..1], Some(&PAUSE));
                }
            }
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket, _) => socket.as_fd(),
            Self::Tcp(socket) => socket.as_fd(),
        }
    }
}

/// The URI for clients of libnbd.
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(_, file) => {
                f.write_str("nbd+unix:///?socket=")?;
                let mut bytes = file.path().as_os_str().as_bytes().iter();
                bytes.try_for_each(|byte| match byte {
                    b'/' | b'-' | b'.' | b'_' | b'~' => write!(f, "{}", char::from(*byte)),
                    byte if byte.is_ascii_alphanumeric() => write!(f, "{}", char::from(*byte)),
                    byte => write!(f, "%{byte:02X}"),
                })
            }
            Self::Tcp(socket) => match socket.local_addr() {
                Ok(address) => write!(f, "nbd://{address}"),
                Err(_) => f.write_str("nbd://?"),
            },
        }
    }
}

/// Connection of a client.
#[derive(Debug)]
pub enum Stream {
    /// At a Unix socket.
    Unix(UnixStream),
    /// At a TCP port.
    Tcp(TcpStream),
}

impl Stream {
    fn prepared(self) -> io::Result<Self> {
        match &self {
            Self::Unix(stream) => stream.set_nonblocking(false)?,
            Self::Tcp(stream) => {
                stream.set_nonblocking(false)?;
                // Replies are sent when they are due, not gathered.
                stream.set_nodelay(true)?;
                // A client whose host has died takes nobody's place for ever.
                set_socket_keepalive(stream, true)?;
            }
        }
        Ok(self)
    }

    /// Another handle of the same stream.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    /// Limits how long a read or a write may wait; `None` for no limit.
    pub(crate) fn limit(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream
                .set_read_timeout(limit)
                .and_then(|()| stream.set_write_timeout(limit)),
            Self::Tcp(stream) => stream
                .set_read_timeout(limit)
                .and_then(|()| stream.set_write_timeout(limit)),
        }
    }

    /// Ends the stream in both directions: a blocked read finds its end.
    pub fn shut_down(&self) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(buffer),
            Self::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write_vectored(parts),
            Self::Tcp(stream) => stream.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
