//! Identifies the store or file system on a drive.

use bluefs::{BlueFs, Role};
use device::ZonedDevice;
use serde::Serialize;

/// The store or file system on a drive.
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
    /// Extents of ZEA without a file system of ours.
    Zea,
    /// The drive is empty.
    Empty,
    /// Data without a readable superblock; a description in words.
    Unknown(String),
}

/// The content if it is identified by another head than BlueFS's. If there is also a superblock of BlueFS, that
/// one is newer, because BlueFS erases less of the drive.
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
    /// Identifies the content of a drive that this process can read.
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

    /// A description for people.
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
