//! Directories, as the environment of LevelDB asks for them, on a flat name space: a directory is an empty file whose
//! name ends with a slash. LevelDB keeps a database in one of them, so what is below is found by the name's beginning.

use crate::error::{Error, Result};
use crate::fs::{Metadata, ZeaFs};
use crate::reader::Reader;
use crate::writer::Writer;
use runtime::sync::Mutex;

/// A file system by paths.
#[derive(Debug)]
pub struct Directories {
    fs: ZeaFs,
    /// What is looked up stays so until it is changed.
    changing: Mutex<()>,
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// A file.
    File(Metadata),
    /// A directory.
    Directory,
}

/// A path without repeated slashes, `.` and `..`, and a slash at the end; the root is empty.
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

/// Whether LevelDB takes what it can read of a file of that name for all of it, and goes on: of logs, of descriptors. Of a
/// damaged table it tells its readers, and its text log nobody reads.
pub fn is_taken_for_whole(name: &str) -> bool {
    let ends = [".ldb", ".sst", "/LOG", "/LOG.old", "/"];
    !ends.iter().any(|end| name.ends_with(end))
}

impl Directories {
    /// Of a mounted file system.
    pub const fn new(fs: ZeaFs) -> Self {
        let changing = Mutex::new(());
        Self { fs, changing }
    }

    /// The file system.
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

    /// A new, empty file; one of that name is replaced.
    pub fn create(&self, path: &str) -> Result<Writer> {
        let path = normal(path)?;
        let _changing = self.changing.lock();
        self.require_file(&path)?;
        self.require_parent(&path)?;
        self.fs.create(&path)
    }

    /// Opens a file to append behind what it has; makes it if it is missing.
    pub fn reopen(&self, path: &str) -> Result<Writer> {
        let normal = normal(path)?;
        let changing = self.changing.lock();
        self.require_file(&normal)?;
        match self.fs.reopen(&normal) {
            Err(Error::NotFound { .. }) => {
                drop(changing);
                self.create(path)
            }
            opened => opened,
        }
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &str) -> Result<Reader> {
        self.fs.open(&normal(path)?)
    }

    /// What a path leads to.
    pub fn entry(&self, path: &str) -> Result<Entry> {
        let path = normal(path)?;
        match self.is_directory(&path) {
            true => Ok(Entry::Directory),
            false => Ok(Entry::File(self.fs.metadata(&path)?)),
        }
    }

    /// Names of what is in a directory, in order.
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
        // `a.b` lies between `a` and `a/`.
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// Makes a directory.
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

    /// Gives a file another name; a file that has it is replaced. Directories are not renamed: their name is in that of
    /// every file below.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (normal(from)?, normal(to)?);
        let _changing = self.changing.lock();
        self.require_file(&from)?;
        self.require_file(&to)?;
        self.require_parent(&to)?;
        self.fs.rename(&from, &to)
    }

    /// Takes a lock by name, within the process. Whoever opens a database locks it first, in its directory: one that has a
    /// damaged file of those that are [taken for whole](is_taken_for_whole) is not locked, and no other one is concerned.
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

    /// Gives it back.
    pub fn unlock(&self, path: &str) {
        if let Ok(path) = normal(path) {
            self.fs.unlock(&path);
        }
    }
}
