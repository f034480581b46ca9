//! Files and directories of a file system, as whoever copies them needs them.

use crate::error::{Error, Result};
use bluefs::{BlueFs, Metadata, Reader};
use serde::Serialize;
use std::io::{self, Read};

/// Bytes moved at once.
pub const CHUNK: usize = 1 << 20;

/// What is in a directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Entry {
    /// Its name there.
    pub name: String,
    /// Whether it is a directory itself.
    pub directory: bool,
    /// Bytes of a file.
    pub size: u64,
    /// When it last changed, Unix time in microseconds.
    pub modified_micros: u64,
}

/// What is in the directory at `path`, or the file there.
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

/// A file of the file system as a source of bytes.
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

    /// Opens the file, all of whose extents are what their checksums say. Answers the crc32c of all of it.
    ///
    /// # Errors
    /// Also that one is not.
    pub fn verified(fs: &BlueFs, path: &str) -> Result<(Self, u32)> {
        // An extent is compared as a whole, and may be larger than what is read at once.
        let verify = || fs.open(path)?.verify();
        let verified = match verify() {
            // Only checksums tell which copy is right.
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

/// Writes everything of `source` into a new file, durably. `each` is told how many bytes were added.
///
/// # Errors
/// Of the source, or of the file system.
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

/// Writes everything of `source` into the file `path`, durably. One that is replaced stays whole until the
/// new one is. Answers how many bytes.
///
/// # Errors
/// Of the source, or of the file system; what was there is still there.
pub fn replace(fs: &BlueFs, path: &str, source: &mut dyn Read, size: Option<u64>) -> Result<u64> {
    let mut names = (0_u32..).map(|number| format!("{path}.partial{number}"));
    let partial = names.find(|name| !fs.exists(name)).unwrap_or_default();
    let stored = write(fs, &partial, source, size, &mut |_| ()).and_then(|bytes| {
        fs.rename(&partial, path)?;
        fs.sync_metadata()?;
        Ok(bytes)
    });
    if stored.is_err() && fs.exists(&partial) {
        fs.delete(&partial)?;
    }
    stored
}

/// Calls `each` for everything below `folder`, with directories in front of what is in them.
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
/// Of the file system.
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

/// What a path stands for: a file, or a directory with all that is below it.
pub struct Tree {
    /// Paths of its files.
    pub files: Vec<String>,
    /// Bytes of these.
    pub bytes: u64,
    folders: Vec<String>,
}

impl Tree {
    /// What is at `path`.
    ///
    /// # Errors
    /// Also that nothing is there.
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

    /// Removes all of it, apart from the root; what is removed is durable.
    ///
    /// # Errors
    /// Of the file system.
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
