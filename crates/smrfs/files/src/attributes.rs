//! Operations on the attributes of an inode, both those of `stat` and extended ones.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::inode::{Attributes, Time};
use crate::record::Record;

/// Bytes of the longest name of an extended attribute.
const MAX_XATTR_NAME: usize = 255;
/// Bytes of the longest value of an extended attribute.
const MAX_XATTR: usize = 64 << 10;
/// Bits of `st_mode` that are permissions.
const PERMISSIONS: u32 = 0o7777;

/// A time to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetTime {
    /// The present.
    Now,
    /// The given time.
    To(Time),
}

/// Attributes to set; those that are `None` keep their value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SetAttributes {
    /// Permission bits; the kind of the inode does not change.
    pub mode: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last change of the content.
    pub mtime: Option<SetTime>,
    /// Time of the last change of anything; `None` sets the present.
    pub ctime: Option<Time>,
}

/// Whether an extended attribute may exist before it is set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SetXattr {
    /// It may exist or not.
    #[default]
    Any,
    /// It must not exist.
    Create,
    /// It must exist.
    Replace,
}

impl Core {
    /// Sets attributes of an inode.
    pub fn set_attributes(&mut self, ino: u64, set: SetAttributes) -> Result<Attributes> {
        self.begin_change()?;
        let now = self.now();
        let time = |set| match set {
            SetTime::Now => now,
            SetTime::To(time) => time,
        };
        let mut attributes = self.inode(ino)?.attributes;
        if let Some(mode) = set.mode {
            attributes.mode = attributes.kind() | mode & PERMISSIONS;
        }
        attributes.uid = set.uid.unwrap_or(attributes.uid);
        attributes.gid = set.gid.unwrap_or(attributes.gid);
        attributes.atime = set.atime.map_or(attributes.atime, time);
        attributes.mtime = set.mtime.map_or(attributes.mtime, time);
        attributes.ctime = set.ctime.unwrap_or(now);
        self.change(&[Record::Inode(attributes)]);
        Ok(attributes)
    }

    fn touch(&self, ino: u64) -> Result<Record> {
        let mut attributes = self.inode(ino)?.attributes;
        attributes.ctime = self.now();
        Ok(Record::Inode(attributes))
    }

    /// Sets an extended attribute.
    pub fn set_xattr(&mut self, ino: u64, name: &[u8], value: &[u8], how: SetXattr) -> Result<()> {
        self.begin_change()?;
        if name.is_empty() {
            return Err(Error::Invalid("an extended attribute has a name"));
        }
        if name.len() > MAX_XATTR_NAME || value.len() > MAX_XATTR {
            return Err(Error::AttributeTooLong);
        }
        let is_there = self.inode(ino)?.xattrs.contains_key(name);
        match how {
            SetXattr::Create if is_there => return Err(Error::Exists),
            SetXattr::Replace if !is_there => return Err(Error::NoAttribute),
            _ => {}
        }
        self.check_metadata(64 + (name.len() + value.len()) as u64)?;
        let touched = self.touch(ino)?;
        self.change(&[
            Record::Xattr {
                ino,
                name: name.into(),
                value: value.into(),
            },
            touched,
        ]);
        Ok(())
    }

    /// Removes an extended attribute.
    pub fn remove_xattr(&mut self, ino: u64, name: &[u8]) -> Result<()> {
        self.begin_change()?;
        if !self.inode(ino)?.xattrs.contains_key(name) {
            return Err(Error::NoAttribute);
        }
        let touched = self.touch(ino)?;
        self.change(&[
            Record::NoXattr {
                ino,
                name: name.into(),
            },
            touched,
        ]);
        Ok(())
    }
}
