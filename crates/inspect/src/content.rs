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
    /// Files of LevelDB programs on extents.
    #[serde(rename = "zeafs")]
    ZeaFs,
    /// Extents that somebody else knows of.
    Zea,
    /// Nothing.
    Empty,
    /// Something without a superblock that can be read, in words.
    Unknown(String),
}

/// What is known by another head than BlueFS's. A superblock of BlueFS is newer than those where both are: it erases
/// less.
fn other(drive: &dyn ZonedDevice) -> Option<Content> {
    if smrfs::is_there(drive).unwrap_or_default() {
        Some(Content::Smrfs)
    } else if zeafs::Examined::is_there(drive).unwrap_or_default() {
        Some(Content::ZeaFs)
    } else if zea::is_there(drive).unwrap_or_default() {
        Some(Content::Zea)
    } else {
        None
    }
}

impl Content {
    /// Of a drive that this process can read.
    pub fn of(drive: &dyn ZonedDevice) -> Self {
        let of_bluefs = match BlueFs::contents(drive) {
            Ok(contents) if contents.is_empty() => Self::Empty,
            Ok(contents) => match contents.superblock.as_ref().map(|found| found.role) {
                Some(Role::Shared) => return Self::Store,
                Some(Role::Alone) => return Self::BlueFs,
                None => Self::Unknown(contents.to_string()),
            },
            Err(error) => Self::Unknown(format!("something that cannot be read: {error}")),
        };
        other(drive).unwrap_or(of_bluefs)
    }

    /// For people.
    pub fn words(&self) -> String {
        match self {
            Self::Store => "an object store".to_owned(),
            Self::BlueFs => "BlueFS, files of RocksDB or LevelDB programs".to_owned(),
            Self::Smrfs => "a POSIX file system (smrfs)".to_owned(),
            Self::ZeaFs => "ZEAFS, files of LevelDB programs".to_owned(),
            Self::Zea => "extents (ZEA)".to_owned(),
            Self::Empty => "nothing: it is empty".to_owned(),
            Self::Unknown(what) => what.clone(),
        }
    }
}
