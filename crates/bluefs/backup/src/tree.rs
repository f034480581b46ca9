//! Helpers for copying files and directories of a BlueFS.

use crate::error::{Error, Result};
use bluefs::{BlueFs, Metadata, Reader};
use serde::Serialize;
use std::io::{self, Read};

/// Bytes that are read and written at a time.
pub const CHUNK: usize = 1 << 20;

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Entry {
    /// Its name in the directory; from [`entries`] of a file, the path that was given.
    pub name: String,
    /// Whether the entry is a directory.
    pub directory: bool,
    /// Size in bytes; 0 for directories.
    pub size: u64,
    /// Time of the last change, Unix time in microseconds.
    pub modified_micros: u64,
}

/// The entries of the directory at `path`, or one entry for the file there.
///
/// # Errors
/// As [`BlueFs::metadata`].
pub fn entries(fs: &BlueFs, path: &str) -> bluefs::Result<Vec<Entry>> {
    let entry = |name: String, found: Metadata| Entry {
        name,
        directory: found.is_directory,
        size: found.size,
        modified_micros: found.modified_micros,
    };
    let found = fs.metadata(path)?;
    if !found.is_directory {
        return Ok(vec![entry(path.to_owned(), found)]);
    }
    let folder = path.trim_end_matches('/');
    let names = fs.list(path)?.into_iter();
    let entries = names.map(|name| {
        let found = fs.metadata(&format!("{folder}/{name}"))?;
        Ok(entry(name, found))
    });
    entries.collect()
}

/// A file of a BlueFS as a [`Read`], from its start.
pub struct Source {
    reader: Reader,
    at: u64,
}

impl Source {
    /// Opens the file.
    ///
    /// # Errors
    /// As [`BlueFs::open`].
    pub fn open(fs: &BlueFs, path: &str) -> Result<Self> {
        let reader = fs.open(path)?;
        Ok(Self { reader, at: 0 })
    }

    /// Verifies all extents of the file by their checksums, then opens it. Returns it with the crc32c of its content.
    /// If one of two copies is damaged, it is repaired first.
    ///
    /// # Errors
    /// Like [`Self::open`], or an extent does not match its checksum.
    pub fn verified(fs: &BlueFs, path: &str) -> Result<(Self, u32)> {
        // Only a whole extent can be compared with its checksum, and it may be larger than one read here.
        let verify = || fs.open(path)?.verify();
        let verified = match verify() {
            // Only the checksums tell which copy is correct.
            Err(error) if error.is_damage() && fs.info().copies() > 1 => {
                fs.repair_copies()?;
                verify()
            }
            verified => verified,
        };
        let crc32c = verified.map_err(|source| Error::File {
            path: path.to_owned(),
            source,
        })?;
        Ok((Self::open(fs, path)?, crc32c))
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.reader.size()
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read_at(self.at, buffer);
        let read = read.map_err(io::Error::other)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Writes all bytes of `source` into a new file, durably, and returns their number. `each` gets the number of bytes
/// added each time; `size` is a hint.
///
/// # Errors
/// Those of the source and of the file system.
pub fn write(
    fs: &BlueFs,
    path: &str,
    source: &mut dyn Read,
    size: Option<u64>,
    each: &mut dyn FnMut(u64),
) -> Result<u64> {
    let mut writer = fs.create(path)?;
    if let Some(size) = size {
        writer.set_expected_size(size);
    }
    let mut buffer = vec![0; CHUNK];
    let mut total = 0;
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        writer.append(&buffer[..read])?;
        total += read as u64;
        each(read as u64);
    }
    writer.sync()?;
    writer.close()?;
    Ok(total)
}

/// Writes all bytes of `source` into the file `path`, durably, and returns their number. A file that is replaced
/// remains intact until the new one is complete.
///
/// # Errors
/// Those of the source and of the file system; the earlier file is still there.
pub fn replace(fs: &BlueFs, path: &str, source: &mut dyn Read, size: Option<u64>) -> Result<u64> {
    let mut names = (0_u32..).map(|number| format!("{path}.partial{number}"));
    let partial = names.find(|name| !fs.exists(name)).unwrap_or_default();
    let stored = write(fs, &partial, source, size, &mut |_| ()).and_then(|bytes| {
        fs.rename(&partial, path)?;
        fs.sync_metadata()?;
        Ok(bytes)
    });
    if stored.is_err() && fs.exists(&partial) {
        // The first error says why.
        let _ = fs.delete(&partial);
    }
    stored
}

/// Calls `each` for every file and directory below `folder`, a directory before its content.
///
/// # Errors
/// Those of `each`, and of the file system.
pub fn walk<E: From<bluefs::Error>>(
    fs: &BlueFs,
    folder: &str,
    each: &mut dyn FnMut(&str, &Metadata) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    for name in fs.list(folder)? {
        let path = format!("{}/{name}", folder.trim_end_matches('/'));
        let found = fs.metadata(&path)?;
        each(&path, &found)?;
        if found.is_directory {
            walk(fs, &path, each)?;
        }
    }
    Ok(())
}

/// Makes a directory and those above it.
///
/// # Errors
/// Those of the file system.
pub fn make_directories(fs: &BlueFs, path: &str) -> bluefs::Result<()> {
    let mut so_far = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        so_far.push('/');
        so_far.push_str(part);
        if !fs.exists(&so_far) {
            fs.create_directory(&so_far)?;
        }
    }
    Ok(())
}

/// A file, or a directory with everything below it.
pub struct Tree {
    /// Paths of its files.
    pub files: Vec<String>,
    /// Total size of the files in bytes.
    pub bytes: u64,
    folders: Vec<String>,
}

impl Tree {
    /// Lists the file or directory at `path`.
    ///
    /// # Errors
    /// Also if it does not exist.
    pub fn at(fs: &BlueFs, path: &str) -> bluefs::Result<Self> {
        let mut tree = Self {
            files: Vec::new(),
            bytes: 0,
            folders: Vec::new(),
        };
        let found = fs.metadata(path)?;
        tree.add(path, &found);
        if found.is_directory {
            walk::<bluefs::Error>(fs, path, &mut |path, found| {
                tree.add(path, found);
                Ok(())
            })?;
        }
        Ok(tree)
    }

    fn add(&mut self, path: &str, found: &Metadata) {
        if found.is_directory {
            self.folders.push(path.to_owned());
        } else {
            self.bytes += found.size;
            self.files.push(path.to_owned());
        }
    }

    /// Removes the files and directories, except the root; the removal is durable.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self, fs: &BlueFs) -> bluefs::Result<()> {
        for file in &self.files {
            fs.delete(file)?;
        }
        let folders = self.folders.iter().rev();
        for folder in folders.filter(|folder| !folder.trim_matches('/').is_empty()) {
            fs.remove_directory(folder)?;
        }
        fs.sync_metadata()
    }
}
