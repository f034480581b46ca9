//! Notifications of the service manager by the protocol of sd_notify(3): a datagram to the socket in `NOTIFY_SOCKET`.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

const VARIABLE: &str = "NOTIFY_SOCKET";

/// States of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Requests are accepted.
    Ready,
    /// No new requests are accepted; running ones are finished.
    Stopping,
}

impl Change {
    const fn message(self) -> &'static [u8] {
        match self {
            Self::Ready => b"READY=1",
            Self::Stopping => b"STOPPING=1",
        }
    }
}

/// Notifies the service manager, if it has started this process. A failure is only logged.
pub(crate) fn tell(change: Change) {
    let socket = std::env::var_os(VARIABLE).filter(|socket| !socket.is_empty());
    if let Some(socket) = socket
        && let Err(error) = send(&socket, change)
    {
        tracing::warn!(%error, ?socket, ?change, "the service manager cannot be told");
    }
}

/// A name that begins with `@` is in the abstract namespace.
fn send(socket: &OsStr, change: Change) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    let sender = UnixDatagram::unbound()?;
    // A manager whose queue is full must not block the server.
    sender.set_nonblocking(true)?;
    sender.send_to_addr(change.message(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(listener: &UnixDatagram) -> Vec<u8> {
        let mut message = [0; 64];
        let length = listener.recv(&mut message).unwrap();
        message[..length].to_vec()
    }

    #[test]
    fn each_change_is_a_datagram() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("notify");
        let listener = UnixDatagram::bind(&socket).unwrap();
        for (change, message) in [(Change::Ready, "READY=1"), (Change::Stopping, "STOPPING=1")] {
            send(socket.as_os_str(), change).unwrap();
            assert_eq!(received(&listener), message.as_bytes());
        }
    }

    #[test]
    fn a_socket_may_have_an_abstract_name() {
        let name = format!("zonestore-notify-{}", std::process::id());
        let listener =
            UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        send(OsStr::new(&format!("@{name}")), Change::Ready).unwrap();
        assert_eq!(received(&listener), b"READY=1");
    }

    #[test]
    fn nobody_there_is_an_error_and_no_panic() {
        for socket in ["/nowhere/notify", "relative", "@", "@zonestore-nobody"] {
            assert!(send(OsStr::new(socket), Change::Ready).is_err(), "{socket}");
        }
    }
}
