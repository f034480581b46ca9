//! Who has a zone.

use bluefs::ZoneContent;
use serde::Serialize;

/// Who has a zone and for what; of an unusable or unowned one, what it is.
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
    /// BlueFS: written, and nothing in it has a name in the journal, yet or any more.
    Unnamed,
    /// BlueFS: empty, kept for its next use.
    Ready,
    /// The object store.
    Objects,
    /// Nobody, and not empty: to be reset.
    GivenUp,
    /// Nobody: empty. Zones in the condition empty are these and those that BlueFS keeps ready.
    Unused,
    /// Nobody: a conventional zone.
    Conventional,
    /// It can only be read.
    ReadOnly,
    /// It cannot be used at all.
    Offline,
}

impl Owner {
    /// For people.
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

    /// In a map without colours.
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

    /// BlueFS has the zone, and this many bytes are written to it.
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
