//! What is on a drive.

use bluefs::{BlueFs, Role};
use device::ZonedDevice;
use serde::Serialize;

/// What is on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// An object store, whose metadata is in a BlueFS.
    Store,
    /// BlueFS alone, for programs.
    #[serde(rename = "bluefs")]
    BlueFs,
    /// A POSIX file system.
    Smrfs,
    /// Nothing.
    Empty,
    /// Something without a superblock that can be read, in words.
    Unknown(String),
}

/// Whether a head of it is there. A superblock of BlueFS is newer than that where both are: it erases less.
fn is_smrfs(drive: &dyn ZonedDevice) -> bool {
    smrfs::is_there(drive).unwrap_or_default()
}

impl Content {
    /// Of a drive that this process can read.
    pub fn of(drive: &dyn ZonedDevice) -> Self {
        match BlueFs::contents(drive) {
            Ok(contents) if contents.is_empty() && is_smrfs(drive) => Self::Smrfs,
            Ok(contents) if contents.is_empty() => Self::Empty,
            Ok(contents) => match contents.superblock.as_ref().map(|found| found.role) {
                Some(Role::Shared) => Self::Store,
                Some(Role::Alone) => Self::BlueFs,
                None if is_smrfs(drive) => Self::Smrfs,
                None => Self::Unknown(contents.to_string()),
            },
            Err(_) if is_smrfs(drive) => Self::Smrfs,
            Err(error) => Self::Unknown(format!("something that cannot be read: {error}")),
        }
    }

    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Store => "an object store".to_owned(),
            Self::BlueFs => "BlueFS, files of RocksDB or LevelDB programs".to_owned(),
            Self::Smrfs => "a POSIX file system (smrfs)".to_owned(),
            Self::Empty => "nothing: it is empty".to_owned(),
            Self::Unknown(what) => what.clone(),
        }
    }
}
