//! Opens a drive, or connects to the daemon that has it open.

use crate::client::Client;
use crate::error::{ClientError, OpenError};
use device::{Drive, DriveError};
use inspect::User;
use std::path::Path;
use std::time::Duration;

/// How many times a drive is tried that a process without a control socket has open, and the pause between tries.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// An opened drive, or its daemon.
pub enum Opened {
    /// Opened by this process.
    Drive(Drive),
    /// Served by a daemon.
    Served(Client),
}

impl Opened {
    /// Opens a drive, or connects to the daemon that serves it.
    ///
    /// # Errors
    /// Also if a process without a control socket has the drive open.
    pub fn open(path: &Path, writable: bool) -> Result<Self, OpenError> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let source = match opened(path, writable) {
                Ok(drive) => return Ok(Self::Drive(drive)),
                Err(error) if error.is_in_use() => error,
                Err(error) => return Err(error.into()),
            };
            match Client::connect(path)? {
                Some(client) => return Ok(Self::Served(client)),
                // A server that was killed still has the drive open for a moment.
                None if tries > 0 => std::thread::sleep(BETWEEN_TRIES),
                None => return Err(in_use(path, source)),
            }
        }
    }

    /// Opens a drive for this process itself, never through a daemon.
    ///
    /// # Errors
    /// Also if another process has the drive open; the error names it.
    pub fn alone(path: &Path, writable: bool) -> Result<Drive, OpenError> {
        opened(path, writable).map_err(|error| Self::refused(path, error))
    }

    /// Error of a drive that could not be opened: if it is in use, with the process that uses it.
    pub fn refused(path: &Path, error: DriveError) -> OpenError {
        if !error.is_in_use() {
            return error.into();
        }
        let served = |pid, command| OpenError::Served {
            drive: path.to_owned(),
            command,
            // In another PID namespace, this may be the number of another process.
            pid: matches!(User::of(path), User::Process { pid: here, .. } if here == pid)
                .then_some(pid),
        };
        match Client::connect(path) {
            Ok(Some(client)) => served(client.hello().pid, client.hello().command.clone()),
            Err(ClientError::UnknownVersion { pid, command, .. }) => served(pid, command),
            Ok(None) | Err(_) => in_use(path, error),
        }
    }
}

fn opened(path: &Path, writable: bool) -> Result<Drive, DriveError> {
    match writable {
        true => Drive::open(path),
        false => Drive::open_read_only(path),
    }
}

/// Error of a drive that a process without a control socket has open, with that process if the kernel tells it.
fn in_use(path: &Path, error: DriveError) -> OpenError {
    match User::of(path) {
        // A process of another PID namespace has no number here.
        User::Process { pid, name } if pid != 0 => OpenError::InUse {
            drive: path.to_owned(),
            name: name.unwrap_or_else(|| "a process".to_owned()),
            pid,
        },
        _ => error.into(),
    }
}
