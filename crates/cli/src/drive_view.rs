//! A drive to look at: its file, or through the control socket of the server that has it open.

use crate::drive_file::{self, Opened};
use crate::errors::{CommandError, CommandResult};
use control::{Client, api};
use device::{Drive, ZonedDevice};
use inspect::Content;
use std::path::Path;
use zone::{Geometry, ZoneDescriptor, ZoneId};

/// A drive to look at.
pub enum DriveView {
    /// Opened by this process, for reading.
    File(Drive),
    /// Served by another one.
    Served(Client, api::DriveDescription),
}

impl DriveView {
    /// Opens the drive, or asks who has it open.
    pub fn open(path: &Path) -> CommandResult<Self> {
        Ok(match drive_file::open_or_ask(path, false)? {
            Opened::Drive(drive) => Self::File(drive),
            Opened::Served(client) => {
                let drive = client.drive()?;
                Self::Served(client, drive)
            }
        })
    }

    /// Its shape.
    pub fn geometry(&self) -> &Geometry {
        match self {
            Self::File(drive) => drive.geometry(),
            Self::Served(_, drive) => &drive.geometry,
        }
    }

    /// The profile it was made from.
    pub fn profile(&self) -> &str {
        match self {
            Self::File(drive) => drive.profile_name(),
            Self::Served(_, drive) => &drive.profile,
        }
    }

    /// What distinguishes it from all others.
    pub fn uuid(&self) -> String {
        match self {
            Self::File(drive) => drive.identity(),
            Self::Served(_, drive) => drive.uuid.clone(),
        }
    }

    /// Bytes that its file takes on the host.
    pub fn host_bytes(&self) -> CommandResult<u64> {
        match self {
            Self::File(drive) => drive
                .host_bytes()
                .map_err(|e| CommandError::file(drive.path(), &e)),
            Self::Served(_, drive) => Ok(drive.host_bytes),
        }
    }

    /// What is on it.
    pub fn content(&self) -> Content {
        match self {
            Self::File(drive) => Content::of(drive),
            // Nothing else is served.
            Self::Served(..) => Content::Store,
        }
    }

    /// Zones from `first` on, `count` at most.
    pub fn zones(&self, first: u32, count: u32) -> CommandResult<Vec<ZoneDescriptor>> {
        match self {
            Self::File(drive) => Ok(drive.report(ZoneId(first), count)?),
            Self::Served(client, _) => Ok(client.zones(first, count)?),
        }
    }
}
