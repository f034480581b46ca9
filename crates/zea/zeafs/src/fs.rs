//! The mounted file system and its operations on names.

use crate::error::{Error, Result};
use crate::format::operation::Operation;
use crate::inner::Inner;
use crate::reader::Reader;
use crate::shared::Shared;
use crate::writer::Writer;
use std::sync::Arc;

/// Most bytes of a name.
const MAX_NAME: usize = 4096;

/// Bytes of metadata of an empty file, without its name.
const CREATE: u64 = 11;

/// A mounted file system. Clones share it.
#[derive(Clone, Debug)]
pub struct ZeaFs {
    pub(crate) shared: Arc<Shared>,
}

/// Size and inode of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// Size in bytes.
    pub size: u64,
    /// Inode number; not reused within a mount.
    pub inode: u64,
}

/// The use of the zones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Number of files.
    pub files: u64,
    /// Bytes that files take on the drive, including padding and metadata of extents.
    pub live_bytes: u64,
    /// Free zones that files may take.
    pub free_zones: u32,
    /// Bytes of the free zones.
    pub free_bytes: u64,
    /// Bytes of files that were moved to free zones since the mount.
    pub moved_bytes: u64,
}

impl ZeaFs {
    /// Empty zones that only cleaning may use: if no other zone is free, files get no space.
    pub const KEPT_FOR_CLEANER: u32 = crate::space::KEPT_FOR_CLEANER;

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> Result<T>) -> Result<T> {
        let mut inner = self.shared.inner.lock();
        inner.check()?;
        change(&mut inner)
    }

    /// Creates an empty file; an existing one is replaced.
    pub fn create(&self, name: &str) -> Result<Writer> {
        check_name(name)?;
        let inode = self.change(|inner| {
            let inode = inner.map.next_inode;
            if inode == u64::MAX {
                return Err(Error::UsedUp { what: "inodes" });
            }
            if !inner.map.names.contains_key(name) {
                inner.may_grow(CREATE + name.len() as u64)?;
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

    /// Size and inode of the file of this name.
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

    /// Removes a file's name.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.change(|inner| {
            inner.inode(name)?;
            let name = name.to_owned();
            inner.change(Operation::Remove { name });
            Ok(())
        })
    }

    /// Renames a file; an existing one of the new name is replaced.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        self.change(|inner| {
            inner.inode(from)?;
            if to.len() > from.len() && !inner.map.names.contains_key(to) {
                inner.may_grow((to.len() - from.len()) as u64)?;
            }
            let (from, to) = (from.to_owned(), to.to_owned());
            inner.change(Operation::Rename { from, to });
            Ok(())
        })
    }

    /// Makes names durable, and the data that was written out before.
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

    /// Releases a lock.
    pub fn unlock(&self, name: &str) {
        self.shared.inner.lock().locks.remove(name);
    }

    /// The use of the zones.
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

    /// Makes everything durable, including buffered data of files that were not synced.
    ///
    /// # Errors
    /// Data that finds no space stays buffered; everything else is durable.
    pub fn sync(&self) -> Result<()> {
        let mut inner = self.shared.inner.lock();
        inner.check()?;
        let written = inner.write_all_out();
        Shared::commit(&mut inner).and(written)
    }

    /// Makes everything durable and finishes all zones in use. All later changes are refused.
    ///
    /// # Errors
    /// As [`Self::sync`], but data that found no space is lost.
    pub fn unmount(&self) -> Result<()> {
        self.change(|inner| {
            let written = inner.write_all_out();
            let mut synced = inner.commit().and_then(|()| inner.seal());
            // A later mount has to work if either metadata area is lost or goes back to an earlier state, so
            // both get a checkpoint of this state.
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
