//! The owner and use of a zone.

use bluefs::ZoneContent;
use serde::Serialize;

/// The owner and use of a zone; for a zone without an owner, its state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// BlueFS: the superblock ring.
    Superblock,
    /// BlueFS: the journal.
    Journal,
    /// BlueFS: write-ahead logs.
    Wal,
    /// BlueFS: manifests.
    Manifest,
    /// BlueFS: one SST.
    Sst,
    /// BlueFS: several files, SSTs among them.
    SharedSsts,
    /// BlueFS: plain files that are no SSTs.
    OtherFiles,
    /// BlueFS: written, but the journal names no file in it, either not yet or no longer.
    Unnamed,
    /// BlueFS: empty and reserved for its next use.
    Ready,
    /// The object store.
    Objects,
    /// No owner, not empty: will be reset.
    GivenUp,
    /// No owner, empty. Zones in the condition empty are these and [`Self::Ready`] ones.
    Unused,
    /// No owner: a conventional zone.
    Conventional,
    /// The zone is read-only.
    ReadOnly,
    /// The zone is offline.
    Offline,
}

impl Owner {
    /// The name for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Superblock => "superblock",
            Self::Journal => "journal",
            Self::Wal => "WAL",
            Self::Manifest => "manifest",
            Self::Sst => "SST",
            Self::SharedSsts => "shared SSTs",
            Self::OtherFiles => "other files",
            Self::Unnamed => "not named",
            Self::Ready => "ready",
            Self::Objects => "objects",
            Self::GivenUp => "given up",
            Self::Unused => "unused",
            Self::Conventional => "conventional",
            Self::ReadOnly => "read-only",
            Self::Offline => "offline",
        }
    }

    /// The letter in a map without colours.
    pub const fn letter(self) -> char {
        match self {
            Self::Superblock => 'S',
            Self::Journal => 'J',
            Self::Wal => 'W',
            Self::Manifest => 'M',
            Self::Sst => 'T',
            Self::SharedSsts => 'H',
            Self::OtherFiles => 'F',
            Self::Unnamed => 'U',
            Self::Ready => 'a',
            Self::Objects => 'O',
            Self::GivenUp => 'g',
            Self::Unused => '.',
            Self::Conventional => 'c',
            Self::ReadOnly => 'r',
            Self::Offline => 'x',
        }
    }

    /// The owner of a zone that BlueFS has with this content, and to which `written_bytes` are written.
    pub(crate) fn of_bluefs(content: ZoneContent, written_bytes: u64) -> Self {
        match content {
            ZoneContent::Superblock => Self::Superblock,
            ZoneContent::Journal => Self::Journal,
            ZoneContent::Wal => Self::Wal,
            ZoneContent::Manifest => Self::Manifest,
            ZoneContent::Sst => Self::Sst,
            ZoneContent::SharedSsts => Self::SharedSsts,
            ZoneContent::OtherFiles => Self::OtherFiles,
            ZoneContent::Unnamed if written_bytes == 0 => Self::Ready,
            ZoneContent::Unnamed => Self::Unnamed,
        }
    }
}
