//! An inode: attributes, extended attributes, and the content that its kind has.

use crate::map::Map;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The inode of the root directory.
pub const ROOT: u64 = 1;

/// A time since the beginning of 1970, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Time {
    /// Whole seconds, rounded down; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nanos: u32,
}

impl Time {
    /// A time from microseconds since 1970.
    pub const fn from_micros(micros: u64) -> Self {
        Self {
            seconds: (micros / 1_000_000) as i64,
            nanos: (micros % 1_000_000) as u32 * 1_000,
        }
    }
}

/// The attributes that `stat` returns.
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
    /// Number of names. Those of a directory are its own and the ".." of each child.
    pub nlink: u32,
    /// Bytes of a file, or of the target of a symbolic link; 0 for other kinds.
    pub size: u64,
    /// Time of the last access, as it was set: reading does not change it.
    pub atime: Time,
    /// Time of the last change of the content.
    pub mtime: Time,
    /// Time of the last change of anything.
    pub ctime: Time,
    /// Time of creation.
    pub btime: Time,
}

impl Attributes {
    /// The kind bits of `mode`, one of `S_IF…`.
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
    /// The inode of the entry.
    pub ino: u64,
    /// Position in listings. It grows with each new entry, so that a listing in parts misses no entry that stays.
    pub cookie: u64,
}

/// The entries of a directory.
#[derive(Clone, Default, Debug)]
pub struct Directory {
    /// Entries by name.
    pub entries: BTreeMap<Arc<[u8]>, Entry>,
    /// Names by position in listings.
    pub order: BTreeMap<u64, Arc<[u8]>>,
    /// The parent directory; the root is its own parent.
    pub parent: u64,
}

/// The content of an inode, by its kind.
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
    /// The attributes that `stat` returns.
    pub attributes: Attributes,
    /// Extended attributes.
    pub xattrs: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// The content.
    pub content: Content,
}

impl Inode {
    /// An inode without content, of the kind that its attributes name; `None` if there is no such kind.
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
