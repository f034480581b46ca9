//! The file system: names.

use crate::error::{Error, Result};
use crate::format::operation::Operation;
use crate::inner::Inner;
use crate::reader::Reader;
use crate::shared::Shared;
use crate::writer::Writer;
use std::sync::Arc;

/// Bytes of a name, at most.
const MAX_NAME: usize = 4096;

/// A mounted file system. Clones are the same one.
#[derive(Clone, Debug)]
pub struct ZeaFs {
    pub(crate) shared: Arc<Shared>,
}

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Bytes in it.
    pub size: u64,
    /// Its number; never used again.
    pub inode: u64,
}

/// How the zones are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Files.
    pub files: u64,
    /// Bytes of the drive that files have, with padding and metadata of extents.
    pub live_bytes: u64,
    /// Free zones that files may take.
    pub free_zones: u32,
    /// Bytes of these.
    pub free_bytes: u64,
    /// Bytes of files that were moved to gain zones, since the mount.
    pub moved_bytes: u64,
}

impl ZeaFs {
    /// Empty zones that are for cleaning alone: files that find no other one find no space.
    pub const KEPT_FOR_CLEANER: u32 = crate::space::KEPT_FOR_CLEANER;

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> Result<T>) -> Result<T> {
        let mut inner = self.shared.inner.lock();
        inner.check()?;
        change(&mut inner)
    }

    /// A new, empty file; one of the name is replaced.
    pub fn create(&self, name: &str) -> Result<Writer> {
        check_name(name)?;
        let inode = self.change(|inner| {
            let inode = inner.map.next_inode;
            if inode == u64::MAX {
                return Err(Error::UsedUp { what: "inodes" });
            }
            let name = name.to_owned();
            inner.change(Operation::Create { inode, name });
            Ok(inode)
        })?;
        Ok(Writer::new(self.shared.clone(), inode, name.to_owned()))
    }

    /// Opens a file to append to it.
    pub fn reopen(&self, name: &str) -> Result<Writer> {
        let inode = self.change(|inner| inner.inode(name))?;
        Ok(Writer::new(self.shared.clone(), inode, name.to_owned()))
    }

    /// Opens a file for reading.
    pub fn open(&self, name: &str) -> Result<Reader> {
        let mut inner = self.shared.inner.lock();
        let inode = inner.inode(name)?;
        *inner.readers.entry(inode).or_default() += 1;
        drop(inner);
        Ok(Reader::new(self.shared.clone(), inode))
    }

    /// What a name leads to.
    pub fn metadata(&self, name: &str) -> Result<Metadata> {
        let inner = self.shared.inner.lock();
        let inode = inner.inode(name)?;
        let size = inner.size(inode);
        Ok(Metadata { size, inode })
    }

    /// All names that begin with `prefix`, in order. The name space is flat: a directory is a prefix.
    pub fn list(&self, prefix: &str) -> Vec<String> {
        let inner = self.shared.inner.lock();
        let from = inner.map.names.range(prefix.to_owned()..);
        let names = from.take_while(|(name, _)| name.starts_with(prefix));
        names.map(|(name, _)| name.clone()).collect()
    }

    /// Removes a name.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.change(|inner| {
            inner.inode(name)?;
            let name = name.to_owned();
            inner.change(Operation::Remove { name });
            Ok(())
        })
    }

    /// Gives a file another name; one that has it is replaced.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        self.change(|inner| {
            inner.inode(from)?;
            let (from, to) = (from.to_owned(), to.to_owned());
            inner.change(Operation::Rename { from, to });
            Ok(())
        })
    }

    /// Makes names durable, and what was written out of files with them.
    pub fn sync_metadata(&self) -> Result<()> {
        Shared::commit(&mut self.shared.inner.lock())
    }

    /// Takes a lock by name, within the process.
    pub fn lock(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        match self.shared.inner.lock().locks.insert(name.clone()) {
            true => Ok(()),
            false => Err(Error::Locked { name }),
        }
    }

    /// Gives it back.
    pub fn unlock(&self, name: &str) {
        self.shared.inner.lock().locks.remove(name);
    }

    /// How the zones are used.
    pub fn usage(&self) -> Usage {
        let inner = self.shared.inner.lock();
        Usage {
            files: inner.map.names.len() as u64,
            live_bytes: inner.space.live_bytes(),
            free_zones: inner.space.free_for_files(),
            free_bytes: u64::from(inner.space.free_for_files())
                * inner.space.geometry().zone_capacity,
            moved_bytes: inner.moved_bytes,
        }
    }

    /// The file system's identity, as hexadecimal digits.
    pub fn identity(&self) -> String {
        let uuid = self.shared.inner.lock().log.uuid();
        uuid.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Makes everything durable, also what is buffered of files that nobody has synced.
    ///
    /// # Errors
    /// What finds no space stays buffered, and the rest is durable.
    pub fn sync(&self) -> Result<()> {
        let mut inner = self.shared.inner.lock();
        inner.check()?;
        let written = inner.write_all_out();
        Shared::commit(&mut inner).and(written)
    }

    /// Makes everything durable and leaves all zones. Nothing is taken any more.
    ///
    /// # Errors
    /// As [`Self::sync`]; what found no space is gone then.
    pub fn unmount(&self) -> Result<()> {
        self.change(|inner| {
            let written = inner.write_all_out();
            let mut synced = inner.commit().and_then(|()| inner.seal());
            // Either area for metadata may be lost, or go back to what it was once, and nothing goes with that.
            if synced.is_ok() {
                synced = inner.checkpoint();
            }
            let synced = synced.and(written);
            inner.space.leave_all();
            inner.stopped = Some("it was unmounted".to_owned());
            synced
        })
    }
}

fn check_name(name: &str) -> Result<()> {
    match name.len() {
        1..=MAX_NAME => Ok(()),
        _ => Err(Error::BadName { name: name.into() }),
    }
}
