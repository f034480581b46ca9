//! Directories as the environment of LevelDB needs them, on a flat name space.
//!
//! A directory is an empty file whose name ends with a slash. LevelDB keeps a database in one directory, so its
//! contents are found by name prefix.

use crate::error::{Error, Result};
use crate::fs::{Metadata, ZeaFs};
use crate::reader::Reader;
use crate::writer::Writer;
use runtime::sync::Mutex;

/// A file system that is addressed by paths.
#[derive(Debug)]
pub struct Directories {
    fs: ZeaFs,
    /// Held over each change, so that the checks before it stay valid.
    changing: Mutex<()>,
}

/// The kind of a path's target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A file.
    File(Metadata),
    /// A directory.
    Directory,
}

/// Normalizes a path: removes repeated slashes, `.`, `..` and a slash at the end. The root is the empty string.
fn normal(path: &str) -> Result<String> {
    let bad = || Error::BadName { name: path.into() };
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part if part.contains('\0') => return Err(bad()),
            part => parts.push(part),
        }
    }
    Ok(parts.iter().flat_map(|part| ["/", part]).collect())
}

fn as_directory(path: &str) -> String {
    format!("{path}/")
}

/// Whether LevelDB would take the readable part of a damaged file of this name for all of it, and go on.
///
/// True for logs and descriptors. It reports a damaged SST to its readers, and its text log is not read.
pub fn is_taken_for_whole(name: &str) -> bool {
    let ends = [".ldb", ".sst", "/LOG", "/LOG.old", "/"];
    !ends.iter().any(|end| name.ends_with(end))
}

impl Directories {
    /// Directories on a mounted file system.
    pub const fn new(fs: ZeaFs) -> Self {
        let changing = Mutex::new(());
        Self { fs, changing }
    }

    /// The file system below.
    pub const fn fs(&self) -> &ZeaFs {
        &self.fs
    }

    fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || self.fs.metadata(&as_directory(path)).is_ok()
    }

    fn require_parent(&self, path: &str) -> Result<()> {
        let parent = path.rfind('/').map_or("", |at| &path[..at]);
        match self.is_directory(parent) {
            true => Ok(()),
            false => Err(Error::NotFound { name: path.into() }),
        }
    }

    fn require_file(&self, path: &str) -> Result<()> {
        match self.is_directory(path) {
            true => Err(Error::IsDirectory { name: path.into() }),
            false => Ok(()),
        }
    }

    /// Creates an empty file; an existing one is replaced.
    pub fn create(&self, path: &str) -> Result<Writer> {
        let path = normal(path)?;
        let _changing = self.changing.lock();
        self.require_file(&path)?;
        self.create_in_parent(&path)
    }

    /// Creates a file in an existing directory; the caller holds [`Self::changing`].
    fn create_in_parent(&self, path: &str) -> Result<Writer> {
        self.require_parent(path)?;
        self.fs.create(path)
    }

    /// Opens a file to append to it; creates it if it is missing.
    pub fn reopen(&self, path: &str) -> Result<Writer> {
        let path = normal(path)?;
        let _changing = self.changing.lock();
        self.require_file(&path)?;
        match self.fs.reopen(&path) {
            Err(Error::NotFound { .. }) => self.create_in_parent(&path),
            opened => opened,
        }
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &str) -> Result<Reader> {
        self.fs.open(&normal(path)?)
    }

    /// The kind of a path's target, with the metadata of a file.
    pub fn entry(&self, path: &str) -> Result<Entry> {
        let path = normal(path)?;
        match self.is_directory(&path) {
            true => Ok(Entry::Directory),
            false => Ok(Entry::File(self.fs.metadata(&path)?)),
        }
    }

    /// Names of the entries of a directory, in order.
    pub fn list(&self, path: &str) -> Result<Vec<String>> {
        let path = normal(path)?;
        if !self.is_directory(&path) {
            return Err(Error::NotFound { name: path });
        }
        let prefix = as_directory(&path);
        let mut names: Vec<String> = Vec::new();
        for name in self.fs.list(&prefix) {
            let rest = name.strip_prefix(&prefix).unwrap_or_default();
            let first = rest.split('/').next().unwrap_or_default();
            if !first.is_empty() && names.last().is_none_or(|last| last != first) {
                names.push(first.to_owned());
            }
        }
        // In the name space, `a.b` is between `a` and `a/`.
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Creates a directory.
    pub fn create_directory(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let _changing = self.changing.lock();
        if self.is_directory(&path) || self.fs.metadata(&path).is_ok() {
            return Err(Error::Exists { name: path });
        }
        self.require_parent(&path)?;
        self.fs.create(&as_directory(&path)).map(drop)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let _changing = self.changing.lock();
        let directory = as_directory(&path);
        match self.fs.list(&directory).len() {
            0 => Err(Error::NotFound { name: path }),
            1 if !path.is_empty() => self.fs.delete(&directory),
            _ => Err(Error::NotEmptyDirectory { name: path }),
        }
    }

    /// Removes a file.
    pub fn delete(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        let _changing = self.changing.lock();
        self.require_file(&path)?;
        self.fs.delete(&path)
    }

    /// Renames a file; an existing file of the new name is replaced. Directories cannot be renamed, because the
    /// name of each file below contains theirs.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (normal(from)?, normal(to)?);
        let _changing = self.changing.lock();
        self.require_file(&from)?;
        self.require_file(&to)?;
        self.require_parent(&to)?;
        self.fs.rename(&from, &to)
    }

    /// Takes a lock by name, within the process.
    ///
    /// LevelDB locks a file in the database's directory before it opens the database. The lock is refused if
    /// the directory has a damaged file of those that are [taken for whole](is_taken_for_whole); other
    /// databases are not affected.
    pub fn lock(&self, path: &str) -> Result<()> {
        let path = normal(path)?;
        self.fs.lock(&path)?;
        let directory = path.rfind('/').map_or("", |at| &path[..at]);
        let verified = self.verify_database(directory);
        if verified.is_err() {
            self.fs.unlock(&path);
        }
        verified
    }

    fn verify_database(&self, directory: &str) -> Result<()> {
        let prefix = as_directory(directory);
        let names = self.fs.list(&prefix).into_iter();
        let here = names.filter(|name| !name[prefix.len()..].contains('/'));
        here.filter(|name| is_taken_for_whole(name))
            .try_for_each(|name| {
                let verified = self.fs.open(&name).and_then(|file| file.verify());
                verified.map_err(|damage| Error::DamagedFile {
                    name,
                    damage: Box::new(damage),
                })
            })
    }

    /// Releases a lock.
    pub fn unlock(&self, path: &str) {
        if let Ok(path) = normal(path) {
            self.fs.unlock(&path);
        }
    }
}
