//! Reading an archive, whatever becomes of its files. Whether it is whole, its last file says.

use crate::error::{Error, Result};
use crate::format::{CHECKSUMS, Contents, Member, absolute};
use crate::summed::Summed;
use std::io::Read;
use std::path::Path;
use tar::{Archive, EntryType};

/// Who takes what is in an archive.
pub trait Sink {
    /// A directory.
    ///
    /// # Errors
    /// Ends the reading.
    fn directory(&mut self, path: &str) -> Result<()>;
    /// A file of so many bytes; answers how many there were.
    ///
    /// # Errors
    /// Ends the reading.
    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> Result<u64>;
}

/// Hands everything to `sink`, and answers what that was. A `foreign` archive has no checksums.
///
/// # Errors
/// What `sink` was given is not what was packed, and must not be used.
pub fn unpack(source: impl Read, foreign: bool, sink: &mut dyn Sink) -> Result<Contents> {
    let mut found = Contents::default();
    let mut told = None;
    let mut archive = Archive::new(source);
    for entry in archive.entries().map_err(Error::NoTar)? {
        let mut entry = entry.map_err(Error::NoTar)?;
        let name = entry.path().map_err(Error::NoTar)?.into_owned();
        if told.is_some() {
            return Err(Error::GoesOn);
        }
        if name == Path::new(CHECKSUMS) && !foreign {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(Error::NoTar)?;
            told = Some(Contents::decode(&text).ok_or(Error::Checksums)?);
            continue;
        }
        let shown = || name.display().to_string();
        let path = absolute(&name).ok_or_else(|| Error::LeadsOut { name: shown() })?;
        match entry.header().entry_type() {
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
    match told {
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
