//! The path of a drive's socket: beside the drive, however long the path is.
//!
//! An address of a Unix socket holds 107 bytes. A longer path is addressed by an open descriptor of the directory
//! (`/proc/self/fd/N/NAME`); a name too long even for that is replaced by the drive's inode number. So nothing
//! depends on a temporary directory or on the environment, which may differ between client and server.

use crate::error::ServerError;
use runtime::SocketFile;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Most bytes of an address (`sun_path` without its terminating zero).
const MAX_ADDRESS_BYTES: usize = 107;
/// Most bytes of a socket's name that still fit after `/proc/self/fd/N/`.
const MAX_NAME_BYTES: usize = 72;

/// Path of a socket, with its directory open.
pub struct Place {
    path: PathBuf,
    directory: OwnedFd,
    name: OsString,
}

impl Place {
    /// The socket of the drive at `drive`, whether the socket exists or not.
    pub fn of(drive: &Path) -> io::Result<Self> {
        // Clients that use links or relative paths have to find the same socket.
        let drive = fs::canonicalize(drive)?;
        let (Some(folder), Some(name)) = (drive.parent(), drive.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut socket = name.to_owned();
        socket.push(".sock");
        if socket.len() > MAX_NAME_BYTES {
            let inode = fs::metadata(&drive)?.ino();
            socket = format!(".zonestore-{inode:x}.sock").into();
        }
        Self::within(folder, socket)
    }

    /// A socket at this path, whose directory exists.
    pub fn at(path: &Path) -> io::Result<Self> {
        let name = path.file_name().filter(|name| name.len() <= MAX_NAME_BYTES);
        let name = name.ok_or(io::ErrorKind::InvalidFilename)?;
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")))?;
        Self::within(&folder, name.to_owned())
    }

    fn within(folder: &Path, socket: OsString) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(folder, flags, Mode::empty())?;
        Ok(Self {
            path: folder.join(&socket),
            directory,
            name: socket,
        })
    }

    /// The path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path to bind or connect to, at most [`MAX_ADDRESS_BYTES`] long.
    pub fn address(&self) -> PathBuf {
        if self.path.as_os_str().len() <= MAX_ADDRESS_BYTES {
            return self.path.clone();
        }
        let directory = PathBuf::from(format!("/proc/self/fd/{}", self.directory.as_raw_fd()));
        directory.join(&self.name)
    }

    /// Listens on the socket. One that a killed process left is replaced.
    pub fn listen(&self) -> Result<(UnixListener, SocketFile), ServerError> {
        let failed = |source: io::Error| {
            let path = self.path.clone();
            match source.kind() {
                io::ErrorKind::AddrInUse => ServerError::InUse { path },
                io::ErrorKind::AlreadyExists => ServerError::NotASocket { path },
                _ => ServerError::Io { path, source },
            }
        };
        let (listener, file) = SocketFile::listen(&self.address()).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok((listener, file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn paths_and_names_of_any_length_have_a_socket_beside_the_drive() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(200));
        fs::create_dir(&deep).unwrap();
        for drive in [
            folder.path().join("d.zoned"),
            deep.join("d.zoned"),
            deep.join("n".repeat(255)),
        ] {
            fs::write(&drive, "").unwrap();
            let place = Place::of(&drive).unwrap();
            assert!(place.address().as_os_str().len() <= MAX_ADDRESS_BYTES);
            assert_eq!(
                place.path().parent(),
                drive.canonicalize().unwrap().parent()
            );
            let (listener, file) = place.listen().unwrap();
            let mode = fs::metadata(place.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            UnixStream::connect(Place::of(&drive).unwrap().address()).unwrap();
            let refused = place.listen().unwrap_err();
            assert!(matches!(refused, ServerError::InUse { .. }), "{refused}");
            drop((listener, file));
            assert!(!place.path().exists());
        }
    }

    #[test]
    fn many_connect_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::at(&folder.path().join("s")).unwrap();
        let _listener = place.listen().unwrap();
        let address = SocketAddrUnix::new(place.address()).unwrap();
        let allowed = fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let count = 300.min(allowed.trim().parse().unwrap());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let connected = (0..count).map(|_| {
            let socket =
                rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            rustix::net::connect(&socket, &address)?;
            Ok(socket)
        });
        connected
            .collect::<rustix::io::Result<Vec<OwnedFd>>>()
            .unwrap();
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let drive = folder.path().join("d.zoned");
        fs::write(&drive, "").unwrap();
        let place = Place::of(&drive).unwrap();
        fs::write(place.path(), "mine").unwrap();
        let refused = place.listen().unwrap_err();
        assert!(
            matches!(refused, ServerError::NotASocket { .. }),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(place.path()).unwrap(), "mine");
    }
}
