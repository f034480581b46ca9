//! Reads an archive and passes its files to a [`Sink`]. The archive's last file tells whether it is complete.

use crate::error::{Error, Result};
use crate::format::{CHECKSUMS, Contents, Member, absolute};
use crate::pack::free;
use crate::summed::Summed;
use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use tar::{Archive, Entry, EntryType};

/// Block size of a tar archive in bytes.
const BLOCK: u64 = 512;

/// First bytes of compressed files, with the program that decompresses them. A tar archive begins with a file name,
/// which never begins like this.
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh91AY&SY", "bzip2"),
];

/// The program that decompresses data beginning with `first`, with `-dc`; `None` if it is not compressed.
pub fn compressed_by(first: &[u8]) -> Option<&'static str> {
    let found = COMPRESSED
        .iter()
        .find(|(magic, _)| first.starts_with(magic));
    found.map(|(_, with)| *with)
}

/// Counts the bytes that are read.
struct Counted<R> {
    source: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buffer)?;
        self.read.set(self.read.get() + got as u64);
        Ok(got)
    }
}

/// Receives the content of an archive.
pub trait Sink {
    /// Receives a directory.
    ///
    /// # Errors
    /// Ends the reading.
    fn directory(&mut self, path: &str) -> Result<()>;
    /// Receives a file of `size` bytes; returns how many bytes `content` had.
    ///
    /// # Errors
    /// Ends the reading.
    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> Result<u64>;
}

/// Passes every file and directory to `sink`, and returns what the archive contained. A `foreign` archive need not have
/// checksums; if it has, they are verified, in whatever order the files are.
///
/// # Errors
/// The archive is damaged or cannot be used. What `sink` has received must be discarded.
pub fn unpack(mut source: impl Read, foreign: bool, sink: &mut dyn Sink) -> Result<Contents> {
    let mut found = Contents::default();
    let mut told = None;
    let mut first = Vec::new();
    let mut start = source.by_ref().take(BLOCK);
    start.read_to_end(&mut first).map_err(Error::NoTar)?;
    if let Some(with) = compressed_by(&first) {
        return Err(Error::Compressed { with });
    }
    let source = io::Cursor::new(first).chain(source);
    let read = Rc::new(Cell::new(0));
    let mut archive = Archive::new(Counted {
        source,
        read: read.clone(),
    });
    // Position after the last file and its padding.
    let mut end = 0;
    for entry in archive.entries().map_err(Error::NoTar)? {
        let mut entry = entry.map_err(Error::NoTar)?;
        let name = entry.path().map_err(Error::NoTar)?.into_owned();
        end = entry.raw_file_position() + entry.size().next_multiple_of(BLOCK);
        let kind = entry.header().entry_type();
        let shown = || name.display().to_string();
        let path = absolute(&name).ok_or_else(|| Error::LeadsOut { name: shown() })?;
        // A directory may have this name.
        let is_list = path.strip_prefix('/') == Some(CHECKSUMS) && kind == EntryType::Regular;
        // Other programs put the files in an order of their own.
        if told.is_some() && (is_list || !foreign) {
            return Err(Error::GoesOn);
        }
        if is_list {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(Error::NoTar)?;
            told = Some(Contents::decode(&text).ok_or(Error::Checksums)?);
            continue;
        }
        free(&path)?;
        if is_sparse(&mut entry)? {
            return Err(Error::Kind {
                name: shown(),
                kind: "a sparse file".to_owned(),
            });
        }
        match kind {
            // The root, which is there.
            EntryType::Directory if path.is_empty() => {}
            EntryType::Directory => {
                sink.directory(&path)?;
                found.directories.push(path);
            }
            EntryType::Regular => {
                let size = entry.size();
                let mut content = Summed::new(&mut entry);
                if sink.file(&path, size, &mut content)? != size {
                    return Err(Error::CutOff { path });
                }
                let crc32c = content.crc32c();
                found.files.push(Member {
                    path,
                    bytes: size,
                    crc32c,
                });
            }
            other => {
                return Err(Error::Kind {
                    name: shown(),
                    kind: format!("{other:?}"),
                });
            }
        }
    }
    if foreign {
        let lists = told.iter_mut().chain([&mut found]);
        lists.for_each(Contents::sort);
    }
    match told {
        // tar ends an archive with blocks of zeros.
        None if read.get() < end + BLOCK => Err(Error::NoEnd),
        None if foreign => Ok(found),
        None => Err(Error::NoChecksums),
        Some(told) if told == found => Ok(found),
        Some(told) => {
            let wrong = told
                .files
                .into_iter()
                .find(|file| !found.files.contains(file));
            let wrong = wrong.map_or_else(|| "its list of files".to_owned(), |file| file.path);
            Err(Error::Different { wrong })
        }
    }
}

/// Whether the content of an entry is a map and the file's data without its holes, and the name one that stands in for
/// the file's.
fn is_sparse(entry: &mut Entry<'_, impl Read>) -> Result<bool> {
    let extensions = entry.pax_extensions().map_err(Error::NoTar)?;
    // The library does not read all values that there may be, such as attributes of two lines.
    let known = extensions.into_iter().flatten().flatten();
    let is_sparse = known
        .map(|one| one.key_bytes().starts_with(b"GNU.sparse."))
        .fold(false, |any, one| any | one);
    Ok(is_sparse)
}
