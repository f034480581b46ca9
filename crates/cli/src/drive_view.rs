//! A drive to look at: its file, or through the control socket of the server that has it open.

use crate::drive_file::{self, Opened};
use crate::errors::{CommandError, CommandResult};
use bluefs::{BlueFs, Role};
use control::{Client, api};
use device::{Drive, ZonedDevice};
use serde::Serialize;
use std::path::Path;
use zone::{Geometry, ZoneDescriptor, ZoneId};

/// What is on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// An object store, whose metadata is in a BlueFS.
    Store,
    /// BlueFS alone, for programs.
    #[serde(rename = "bluefs")]
    BlueFs,
    /// Nothing.
    Empty,
    /// Something without a superblock that can be read, in words.
    Unknown(String),
}

impl Content {
    /// Of a drive that this process can read.
    fn of(drive: &dyn ZonedDevice) -> Self {
        match BlueFs::contents(drive) {
            Ok(contents) if contents.is_empty() => Self::Empty,
            Ok(contents) => match contents.superblock.as_ref().map(|found| found.role) {
                Some(Role::Shared) => Self::Store,
                Some(Role::Alone) => Self::BlueFs,
                None => Self::Unknown(contents.to_string()),
            },
            Err(error) => Self::Unknown(format!("something that cannot be read: {error}")),
        }
    }

    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Store => "an object store".to_owned(),
            Self::BlueFs => "BlueFS, files of RocksDB or LevelDB programs".to_owned(),
            Self::Empty => "nothing: it is empty".to_owned(),
            Self::Unknown(what) => what.clone(),
        }
    }
}

/// A drive to look at.
pub enum DriveView {
    /// Opened by this process, for reading.
    File(Drive),
    /// Served by another one.
    Served(Client, api::Drive),
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
