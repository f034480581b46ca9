//! A drive that this process can have, or the daemon that has it.

use crate::client::Client;
use crate::error::{ClientError, OpenError};
use device::{Drive, DriveError};
use inspect::User;
use std::path::Path;
use std::time::Duration;

/// How often, and how long after each other, a drive is tried that somebody has who does not answer for it.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A drive, or who has it.
pub enum Opened {
    /// Nobody else has it.
    Drive(Drive),
    /// A daemon that answers for it.
    Served(Client),
}

impl Opened {
    /// Opens a drive, or finds the daemon that has it.
    ///
    /// # Errors
    /// Also that somebody has the drive who does not answer for it.
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
                // A server that was killed still has the drive for a moment.
                None if tries > 0 => std::thread::sleep(BETWEEN_TRIES),
                None => return Err(in_use(path, source)),
            }
        }
    }

    /// Opens a drive that is needed for this process itself.
    ///
    /// # Errors
    /// Who has the drive, if somebody has.
    pub fn alone(path: &Path, writable: bool) -> Result<Drive, OpenError> {
        opened(path, writable).map_err(|error| Self::refused(path, error))
    }

    /// Why a drive could not be opened: if it is in use, by whom.
    pub fn refused(path: &Path, error: DriveError) -> OpenError {
        if !error.is_in_use() {
            return error.into();
        }
        let served = |pid, command| OpenError::Served {
            drive: path.to_owned(),
            command,
            pid,
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

/// A drive that somebody has who does not answer for it: who, as far as the kernel tells.
fn in_use(path: &Path, error: DriveError) -> OpenError {
    match User::of(path) {
        // Of another process namespace there is no number.
        User::Process { pid, name } if pid != 0 => OpenError::InUse {
            drive: path.to_owned(),
            name: name.unwrap_or_else(|| "a process".to_owned()),
            pid,
        },
        _ => error.into(),
    }
}
