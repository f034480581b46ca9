//! Operations on names: directories, links, and the inodes that are created and removed with them.

use crate::core::Core;
use crate::error::{Error, Result};
use crate::inode::{Attributes, Content, Directory, Entry};
use crate::record::Record;

/// Bytes of the longest name.
const MAX_NAME: usize = 255;
/// Bytes of the longest target of a symbolic link.
const MAX_TARGET: usize = 4095;
/// Most names of an inode, and most directories in one directory.
const MAX_LINKS: u32 = 65_000_000;

/// Attributes of a new inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewInode {
    /// Kind and permissions, as `st_mode`.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group, unless the directory passes on its own.
    pub gid: u32,
    /// Device number of a device file.
    pub rdev: u32,
}

/// Behaviour of a rename if the new name exists.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Rename {
    /// The existing entry is replaced.
    #[default]
    Replace,
    /// The rename is refused.
    NoReplace,
    /// The two names change places.
    Exchange,
}

impl Core {
    fn directory(&self, ino: u64) -> Result<&Directory> {
        match &self.inode(ino)?.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(Error::NotDirectory),
        }
    }

    /// The entry of a name.
    pub fn find(&self, dir: u64, name: &[u8]) -> Result<Entry> {
        check_name(name)?;
        let entry = self.directory(dir)?.entries.get(name).copied();
        entry.ok_or(Error::NotFound)
    }

    /// New attributes of a directory that gains or loses an entry, and `directories` child directories.
    fn changed(&self, dir: u64, directories: i32) -> Result<Attributes> {
        let mut attributes = self.inode(dir)?.attributes;
        let now = self.now();
        attributes.mtime = now;
        attributes.ctime = now;
        attributes.nlink = attributes.nlink.saturating_add_signed(directories);
        if attributes.nlink > MAX_LINKS {
            return Err(Error::TooManyLinks);
        }
        Ok(attributes)
    }

    /// Checks that a name can be added to a directory that still has a name itself.
    fn check_new(&self, dir: u64, name: &[u8]) -> Result<()> {
        check_name(name)?;
        if name == b"." || name == b".." {
            return Err(Error::Exists);
        }
        let directory = self.directory(dir)?;
        if directory.entries.contains_key(name) {
            return Err(Error::Exists);
        }
        // The directory was removed while it was open.
        if self.inode(dir)?.attributes.nlink == 0 {
            return Err(Error::NotFound);
        }
        Ok(())
    }

    /// Creates an inode under a name.
    pub fn create(
        &mut self,
        dir: u64,
        name: &[u8],
        new: NewInode,
        target: Option<&[u8]>,
    ) -> Result<Attributes> {
        self.begin_change()?;
        self.check_new(dir, name)?;
        if target.is_some_and(|target| target.len() > MAX_TARGET) {
            return Err(Error::NameTooLong);
        }
        let size = target.map_or(0, <[u8]>::len) as u64;
        self.check_metadata(256 + name.len() as u64 + size)?;
        // Only a drive with crafted metadata can have used up the numbers.
        if self.state.next() == u64::MAX {
            return Err(Error::NoMetadataSpace);
        }
        let parent = self.inode(dir)?.attributes;
        let (mut mode, mut gid) = (new.mode, new.gid);
        let is_directory = mode & libc::S_IFMT == libc::S_IFDIR;
        if parent.mode & libc::S_ISGID != 0 {
            gid = parent.gid;
            if is_directory {
                mode |= libc::S_ISGID;
            }
        }
        let now = self.now();
        let attributes = Attributes {
            ino: self.state.next(),
            mode,
            uid: new.uid,
            gid,
            rdev: new.rdev,
            nlink: if is_directory { 2 } else { 1 },
            size,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
        };
        let ino = attributes.ino;
        let mut records = vec![Record::Inode(attributes)];
        if let Some(target) = target {
            let target = target.into();
            records.push(Record::Target { ino, target });
        }
        let name = name.into();
        records.push(Record::Name { dir, name, ino });
        let changed = self.changed(dir, i32::from(is_directory))?;
        records.push(Record::Inode(changed));
        self.change(&records);
        Ok(attributes)
    }

    /// Adds a name to an inode.
    pub fn link(&mut self, ino: u64, dir: u64, name: &[u8]) -> Result<Attributes> {
        self.begin_change()?;
        let mut attributes = self.inode(ino)?.attributes;
        if attributes.is_directory() {
            return Err(Error::NotPermitted);
        }
        self.check_new(dir, name)?;
        if attributes.nlink == 0 {
            return Err(Error::NotFound);
        }
        self.check_metadata(64 + name.len() as u64)?;
        attributes.nlink += 1;
        if attributes.nlink > MAX_LINKS {
            return Err(Error::TooManyLinks);
        }
        attributes.ctime = self.now();
        let name = name.into();
        let changed = Record::Inode(self.changed(dir, 0)?);
        self.change(&[
            Record::Inode(attributes),
            Record::Name { dir, name, ino },
            changed,
        ]);
        Ok(attributes)
    }

    /// Adds the records that take one name from an inode, and that remove the inode with its last name unless it is
    /// open. `true` if the inode is removed.
    fn drop_name(&self, ino: u64, records: &mut Vec<Record>) -> Result<bool> {
        let mut attributes = self.inode(ino)?.attributes;
        attributes.nlink = match attributes.is_directory() {
            true => 0,
            false => attributes.nlink.saturating_sub(1),
        };
        attributes.ctime = self.now();
        if attributes.nlink == 0 && !self.opens.lock().contains_key(&ino) {
            records.push(Record::Remove { ino });
            return Ok(true);
        }
        records.push(Record::Inode(attributes));
        Ok(false)
    }

    /// Applies records, and drops the blocks of inode `gone` from the buffer.
    fn change_and_drop(&mut self, records: &[Record], gone: Option<u64>) {
        self.change(records);
        if let Some(ino) = gone {
            self.dirty.cut(ino, 0, u64::MAX);
        }
    }

    /// Removes a name of an inode that is not a directory.
    pub fn unlink(&mut self, dir: u64, name: &[u8]) -> Result<()> {
        self.begin_removal()?;
        let ino = self.find(dir, name)?.ino;
        if self.inode(ino)?.attributes.is_directory() {
            return Err(Error::IsDirectory);
        }
        let mut records = vec![
            Record::Unname {
                dir,
                name: name.into(),
            },
            Record::Inode(self.changed(dir, 0)?),
        ];
        let is_gone = self.drop_name(ino, &mut records)?;
        self.change_and_drop(&records, is_gone.then_some(ino));
        Ok(())
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, dir: u64, name: &[u8]) -> Result<()> {
        self.begin_removal()?;
        if name == b"." {
            return Err(Error::Invalid(
                "a directory is not removed by the name \".\"",
            ));
        }
        if name == b".." {
            return Err(Error::NotEmpty);
        }
        let ino = self.find(dir, name)?.ino;
        if !self.directory(ino)?.entries.is_empty() {
            return Err(Error::NotEmpty);
        }
        let mut records = vec![
            Record::Unname {
                dir,
                name: name.into(),
            },
            Record::Inode(self.changed(dir, -1)?),
        ];
        let is_gone = self.drop_name(ino, &mut records)?;
        self.change_and_drop(&records, is_gone.then_some(ino));
        Ok(())
    }

    /// Whether `ino` is `dir` or lies below it.
    fn is_below(&self, mut ino: u64, dir: u64) -> Result<bool> {
        loop {
            if ino == dir {
                return Ok(true);
            }
            let parent = self.directory(ino)?.parent;
            if parent == ino {
                return Ok(false);
            }
            ino = parent;
        }
    }

    /// Replaces the name of an inode by another name.
    pub fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), how: Rename) -> Result<()> {
        self.begin_change()?;
        for (_, name) in [from, to] {
            if name == b"." || name == b".." {
                return Err(Error::Invalid("\".\" and \"..\" are not renamed"));
            }
        }
        let source = self.find(from.0, from.1)?.ino;
        let target = match self.find(to.0, to.1) {
            Ok(entry) => Some(entry.ino),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        if self.inode(to.0)?.attributes.nlink == 0 {
            return Err(Error::NotFound);
        }
        if how == Rename::NoReplace && target.is_some() {
            return Err(Error::Exists);
        }
        if how == Rename::Exchange && target.is_none() {
            return Err(Error::NotFound);
        }
        if target == Some(source) {
            // Both names are of one inode: POSIX wants no change.
            return Ok(());
        }
        let is_directory = |ino: u64| Ok::<_, Error>(self.inode(ino)?.attributes.is_directory());
        let moves_directory = is_directory(source)?;
        if moves_directory && self.is_below(to.0, source)? {
            return Err(Error::Invalid("a directory does not go into itself"));
        }
        if let (Rename::Exchange, Some(target)) = (how, target) {
            let replaces_directory = is_directory(target)?;
            if replaces_directory && self.is_below(from.0, target)? {
                return Err(Error::Invalid("a directory does not go into itself"));
            }
            return self.exchange(
                (from, source, moves_directory),
                (to, target, replaces_directory),
            );
        }
        let mut records = vec![Record::Unname {
            dir: from.0,
            name: from.1.into(),
        }];
        let (mut gone, mut less) = (None, 0);
        if let Some(target) = target {
            let replaces_directory = is_directory(target)?;
            match (moves_directory, replaces_directory) {
                (true, false) => return Err(Error::NotDirectory),
                (false, true) => return Err(Error::IsDirectory),
                (true, true) if !self.directory(target)?.entries.is_empty() => {
                    return Err(Error::NotEmpty);
                }
                _ => {}
            }
            less = i32::from(replaces_directory);
            gone = self.drop_name(target, &mut records)?.then_some(target);
            // The name has to be removed before its inode can be.
            records.insert(
                0,
                Record::Unname {
                    dir: to.0,
                    name: to.1.into(),
                },
            );
        } else {
            self.check_metadata(64 + to.1.len() as u64)?;
        }
        records.push(Record::Name {
            dir: to.0,
            name: to.1.into(),
            ino: source,
        });
        let more = i32::from(moves_directory);
        if from.0 == to.0 {
            records.push(Record::Inode(self.changed(from.0, -less)?));
        } else {
            records.push(Record::Inode(self.changed(from.0, -more)?));
            records.push(Record::Inode(self.changed(to.0, more - less)?));
        }
        let mut attributes = self.inode(source)?.attributes;
        attributes.ctime = self.now();
        records.push(Record::Inode(attributes));
        self.change_and_drop(&records, gone);
        Ok(())
    }

    fn exchange(
        &mut self,
        (from, source, moves): ((u64, &[u8]), u64, bool),
        (to, target, replaces): ((u64, &[u8]), u64, bool),
    ) -> Result<()> {
        self.check_metadata(64 + from.1.len().max(to.1.len()) as u64)?;
        let name = |(dir, name): (u64, &[u8]), ino| Record::Name {
            dir,
            name: name.into(),
            ino,
        };
        let mut records = vec![name(from, target), name(to, source)];
        for ino in [source, target] {
            let mut attributes = self.inode(ino)?.attributes;
            attributes.ctime = self.now();
            records.push(Record::Inode(attributes));
        }
        let more = i32::from(moves) - i32::from(replaces);
        if from.0 == to.0 {
            records.push(Record::Inode(self.changed(from.0, 0)?));
        } else {
            records.push(Record::Inode(self.changed(from.0, -more)?));
            records.push(Record::Inode(self.changed(to.0, more)?));
        }
        self.change(&records);
        Ok(())
    }

    /// Opens an inode: until [`Self::release`], it stays even without names.
    pub fn open(&self, ino: u64) -> Result<()> {
        self.inode(ino)?;
        *self.opens.lock().entry(ino).or_default() += 1;
        Ok(())
    }

    /// Ends an [`Self::open`]; `true` if it was the last one of an inode without names, which
    /// [`Self::remove_unused`] removes.
    pub fn release(&self, ino: u64) -> bool {
        let mut opens = self.opens.lock();
        if let Some(count) = opens.get_mut(&ino) {
            *count -= 1;
            if *count == 0 {
                opens.remove(&ino);
            }
        }
        drop(opens);
        self.is_unused(ino)
    }

    /// Whether an inode has neither names nor opens.
    fn is_unused(&self, ino: u64) -> bool {
        let inode = self.inode(ino);
        inode.is_ok_and(|inode| inode.attributes.nlink == 0)
            && !self.opens.lock().contains_key(&ino)
    }

    /// Removes an inode that has neither names nor opens. Without write access, the next mount for writing does.
    pub fn remove_unused(&mut self, ino: u64) {
        if self.is_unused(ino) && self.check_writable().is_ok() {
            self.change_and_drop(&[Record::Remove { ino }], Some(ino));
        }
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > MAX_NAME {
        return Err(Error::NameTooLong);
    }
    if name.is_empty() || name.contains(&b'/') || name.contains(&0) {
        return Err(Error::Invalid("a name is not empty and has no \"/\""));
    }
    Ok(())
}
