//! An inode: attributes, extended attributes, and what it holds by its kind.

use crate::map::Map;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The inode of the root directory.
pub const ROOT: u64 = 1;

/// A moment since the beginning of 1970, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Time {
    /// Whole seconds, rounded down: negative before 1970.
    pub seconds: i64,
    /// Below 1,000,000,000.
    pub nanos: u32,
}

impl Time {
    /// A moment in microseconds since 1970.
    pub const fn from_micros(micros: u64) -> Self {
        Self {
            seconds: (micros / 1_000_000) as i64,
            nanos: (micros % 1_000_000) as u32 * 1_000,
        }
    }
}

/// What `stat` answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// The inode's number.
    pub ino: u64,
    /// Kind and permissions, as `st_mode`.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Device number of a device file.
    pub rdev: u32,
    /// How many names it has; a directory's own and its children's ".." count.
    pub nlink: u32,
    /// Bytes of a file, or of a link's target; 0 for all else.
    pub size: u64,
    /// Last access, as it was set: reading does not change it.
    pub atime: Time,
    /// Last change of the content.
    pub mtime: Time,
    /// Last change of anything.
    pub ctime: Time,
    /// When it was made.
    pub btime: Time,
}

impl Attributes {
    /// The kind of `mode`, one of `S_IF…`.
    pub const fn kind(&self) -> u32 {
        self.mode & libc::S_IFMT
    }

    /// Whether it is a directory.
    pub const fn is_directory(&self) -> bool {
        self.kind() == libc::S_IFDIR
    }

    /// Whether it is a regular file.
    pub const fn is_file(&self) -> bool {
        self.kind() == libc::S_IFREG
    }
}

/// An entry of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The inode it leads to.
    pub ino: u64,
    /// Its place in listings: grows with each new entry, so that a listing in parts misses nothing that stays.
    pub cookie: u64,
}

/// The entries of a directory.
#[derive(Clone, Default, Debug)]
pub struct Directory {
    /// By name.
    pub entries: BTreeMap<Arc<[u8]>, Entry>,
    /// By place in listings.
    pub order: BTreeMap<u64, Arc<[u8]>>,
    /// The directory it lies in; its own inode for the root.
    pub parent: u64,
}

/// What an inode holds.
#[derive(Clone, Debug)]
pub enum Content {
    /// A regular file.
    File(Map),
    /// A directory.
    Directory(Directory),
    /// A symbolic link.
    Link(Box<[u8]>),
    /// A pipe, a socket or a device file.
    Nothing,
}

/// An inode.
#[derive(Clone, Debug)]
pub struct Inode {
    /// What `stat` answers.
    pub attributes: Attributes,
    /// Extended attributes.
    pub xattrs: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// What it holds.
    pub content: Content,
}

impl Inode {
    /// An empty one, of the kind that its attributes name; `None` if there is no such kind.
    pub fn new(attributes: Attributes) -> Option<Self> {
        let content = match attributes.kind() {
            libc::S_IFREG => Content::File(Map::default()),
            libc::S_IFDIR => Content::Directory(Directory {
                parent: attributes.ino,
                ..Directory::default()
            }),
            libc::S_IFLNK => Content::Link(Box::default()),
            libc::S_IFIFO | libc::S_IFSOCK | libc::S_IFCHR | libc::S_IFBLK => Content::Nothing,
            _ => return None,
        };
        Some(Self {
            attributes,
            xattrs: BTreeMap::new(),
            content,
        })
    }
}
