//! A Unix socket at a path, on which one process at a time listens.
//!
//! The process holds `flock` on a file beside the socket from before it checks that the path is unused until it has
//! removed the socket. So of two processes that start at once, neither takes the socket of the other for one that a
//! killed process left, and removes it.

use rustix::fs::{Mode, OFlags, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Connections that may wait to be accepted; `net.core.somaxconn` may lower it.
const BACKLOG: i32 = 4096;

/// The file of a listening socket. Dropping it removes the file, unless another one has taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
    _lock: Lock,
}

impl SocketFile {
    /// Listens at `path`; only the owner may connect. A stale socket file, without a listener, is replaced.
    ///
    /// # Errors
    /// `AddrInUse` if another process listens there or is about to; `AlreadyExists` if the path is not a socket, or one
    /// that somebody else may use, or `PATH.lock` is a file with content.
    pub fn listen(path: &Path) -> io::Result<(UnixListener, Self)> {
        let lock = Lock::take(path)?;
        clear(path)?;
        let listener = bind(path)?;
        let file = Self {
            path: path.to_owned(),
            id: id(&fs::symlink_metadata(path)?),
            _lock: lock,
        };
        Ok((listener, file))
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|there| id(&there) == self.id) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// An empty file beside a socket, `PATH.lock`, locked by the process that listens on the socket or is about to.
/// Dropping it removes the file.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    /// Unlocked when it is closed, after the file has been removed.
    _file: File,
}

impl Lock {
    fn take(socket: &Path) -> io::Result<Self> {
        let mut path = socket.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        loop {
            let file = options.open(&path)?;
            file.try_lock().map_err(|error| match error {
                TryLockError::WouldBlock => io::ErrorKind::AddrInUse.into(),
                TryLockError::Error(error) => error,
            })?;
            let locked = file.metadata()?;
            if locked.len() > 0 {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            // Its last owner may have removed it between open and lock, so that another process locks a new one.
            if fs::symlink_metadata(&path).is_ok_and(|there| id(&there) == id(&locked)) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes a socket that a killed process left.
fn clear(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.file_type().is_socket() => match UnixStream::connect(path) {
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
            // Of another type, or not to be connected to: whoever uses it may be alive.
            Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
        },
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(()),
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // Linux gives the file the mode of the socket, so that other users can connect at no time.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    fn refused(path: &Path) -> io::ErrorKind {
        SocketFile::listen(path).unwrap_err().kind()
    }

    /// Between its bind and its listen, a socket looks as if a killed process had left it.
    #[test]
    fn one_that_is_about_to_listen_keeps_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let first = Lock::take(&path).unwrap();
        drop(bind(&path).unwrap());
        assert_eq!(refused(&path), io::ErrorKind::AddrInUse);
        assert!(path.exists());
        drop(first);
        drop(SocketFile::listen(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_live_socket_of_another_type_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let other = UnixDatagram::bind(&path).unwrap();
        assert_eq!(refused(&path), io::ErrorKind::AlreadyExists);
        let sender = UnixDatagram::unbound().unwrap();
        sender.send_to(b"x", &path).unwrap();
        assert_eq!(other.recv(&mut [0]).unwrap(), 1);
        drop(other);
        SocketFile::listen(&path).unwrap();
    }

    #[test]
    fn only_ones_own_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (_listener, first) = SocketFile::listen(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(first);
        UnixStream::connect(&path).unwrap();
        let lock = folder.path().join("socket.lock");
        fs::write(&lock, "mine").unwrap();
        assert_eq!(refused(&path), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&lock).unwrap(), b"mine");
    }
}
