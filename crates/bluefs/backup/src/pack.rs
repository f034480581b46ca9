//! Packs the files of a file system into an archive.

use crate::error::{Error, Result};
use crate::format::{CHECKSUMS, Contents, Member, PARTIAL, VERIFIED, is_partial};
use crate::summed::Summed;
use crate::tree::{Source, walk};
use bluefs::BlueFs;
use std::io::{self, Read, Write};
use tar::{Builder, EntryType, Header};

/// An archive that is being written; its files may come from any file system.
pub struct Packer<W: Write> {
    builder: Builder<W>,
    contents: Contents,
}

impl<W: Write> Packer<W> {
    /// An empty archive that is written to `target`.
    pub fn new(target: W) -> Self {
        Self {
            builder: Builder::new(target),
            contents: Contents::default(),
        }
    }

    /// Adds a directory by its absolute path; `modified` is Unix time in seconds.
    ///
    /// # Errors
    /// The name is reserved, or the directory cannot be written.
    pub fn directory(&mut self, path: &str, modified: u64) -> Result<()> {
        free(path)?;
        let mut header = Header::new_gnu();
        header.set_mtime(modified);
        header.set_entry_type(EntryType::Directory);
        header.set_mode(0o755);
        header.set_size(0);
        let name = format!("{}/", path.trim_start_matches('/'));
        self.builder.append_data(&mut header, name, io::empty())?;
        self.contents.directories.push(path.to_owned());
        Ok(())
    }

    /// Adds a file of `size` bytes; returns the crc32c of the bytes that `source` returned.
    ///
    /// # Errors
    /// The name is reserved, or the file cannot be read or written.
    pub fn file(&mut self, path: &str, modified: u64, size: u64, source: impl Read) -> Result<u32> {
        free(path)?;
        let name = path.trim_start_matches('/');
        if name == CHECKSUMS {
            let path = path.to_owned();
            return Err(Error::Reserved { path });
        }
        let mut source = Summed::new(source);
        let mut header = Header::new_gnu();
        header.set_mtime(modified);
        header.set_mode(0o644);
        header.set_size(size);
        self.builder.append_data(&mut header, name, &mut source)?;
        let crc32c = source.crc32c();
        self.contents.files.push(Member {
            path: path.to_owned(),
            bytes: size,
            crc32c,
        });
        Ok(crc32c)
    }

    /// Ends the archive with the list of its contents and their checksums.
    ///
    /// # Errors
    /// The list cannot be written.
    pub fn finish(mut self) -> Result<(W, Contents)> {
        let text = self.contents.encode().map_err(io::Error::from)?;
        let mut header = Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(text.len() as u64);
        self.builder
            .append_data(&mut header, CHECKSUMS, &text[..])?;
        Ok((self.builder.into_inner()?, self.contents))
    }
}

/// An error for a name that a restore has no place for.
pub fn free(path: &str) -> Result<()> {
    match is_partial(path) {
        true => Err(Error::Reserved {
            path: path.to_owned(),
        }),
        false => Ok(()),
    }
}

/// Writes all files to `target`, each after it has been verified by its checksums. `progress` gets the total number of
/// bytes of files written so far.
///
/// # Errors
/// Also if a file is damaged, or files of a restore are left. `target` then holds no complete archive.
pub fn pack<W: Write>(
    fs: &BlueFs,
    target: W,
    progress: &mut dyn FnMut(u64),
) -> Result<(W, Contents)> {
    if [PARTIAL, VERIFIED]
        .iter()
        .any(|name| fs.exists(&format!("/{name}")))
    {
        return Err(Error::Unfinished);
    }
    let mut packer = Packer::new(target);
    let mut bytes = 0;
    walk(fs, "/", &mut |path, found| {
        let modified = found.modified_micros / 1_000_000;
        if found.is_directory {
            return packer.directory(path, modified);
        }
        let (source, crc32c) = Source::verified(fs, path)?;
        let size = source.size();
        if packer.file(path, modified, size, source)? != crc32c {
            let path = path.to_owned();
            return Err(Error::Changed { path });
        }
        bytes += size;
        progress(bytes);
        Ok(())
    })?;
    packer.finish()
}
