//! Restores an archive into an empty file system.

use crate::error::{Error, Result};
use crate::format::{Contents, PARTIAL, VERIFIED};
use crate::tree::{Source, Tree, make_directories, write};
use crate::unpack::{Sink, unpack};
use bluefs::{BlueFs, Metadata};
use std::io::{self, Read};

/// What [`end_left`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// There was no restore that had not ended.
    Nothing,
    /// Its archive had not been verified: its files were removed.
    Removed,
    /// Its archive had been verified: all its files have their names now.
    Named,
}

/// Ends a restore that was interrupted.
///
/// # Errors
/// Those of the file system; [`Error::NameTaken`] and [`Error::LeftBesideOthers`] if other files were made since.
pub fn end_left(fs: &BlueFs) -> Result<Left> {
    let names = fs.list("/")?;
    if names.iter().any(|name| name == VERIFIED) {
        place(fs)?;
        return Ok(Left::Named);
    }
    if names == [PARTIAL] {
        Tree::at(fs, &format!("/{PARTIAL}"))?.remove(fs)?;
        return Ok(Left::Removed);
    }
    match names.iter().any(|name| name == PARTIAL) {
        true => Err(Error::LeftBesideOthers),
        false => Ok(Left::Nothing),
    }
}

/// Restores the files and directories of an archive into an empty file system. `progress` gets the number of bytes added each time; `foreign` as in [`unpack`].
///
/// # Errors
/// Nothing has been restored then, except after [`Error::Placing`]: [`end_left`] goes on with it.
pub fn restore(
    fs: &BlueFs,
    archive: impl Read,
    foreign: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Contents> {
    if !fs.list("/")?.is_empty() {
        return Err(Error::NotEmpty);
    }
    let partial = format!("/{PARTIAL}");
    fs.create_directory(&partial)?;
    let mut below = Below { fs, progress };
    let contents = match unpack(archive, foreign, &mut below) {
        Ok(contents) => contents,
        Err(error) => {
            // What cannot be removed now, the next restore removes.
            let _ = Tree::at(fs, &partial).and_then(|tree| tree.remove(fs));
            return Err(error);
        }
    };
    // From here on, the next restore goes on with it.
    fs.rename(&partial, &format!("/{VERIFIED}"))
        .map_err(Error::Placing)?;
    place(fs).map_err(|error| match error {
        Error::BlueFs(error) => Error::Placing(error),
        error => error,
    })?;
    Ok(contents)
}

/// Moves all files and directories of [`VERIFIED`] to the root. The journal keeps the order of these steps.
fn place(fs: &BlueFs) -> Result<()> {
    let verified = format!("/{VERIFIED}");
    for name in fs.list(&verified)? {
        let (from, name) = (format!("{verified}/{name}"), format!("/{name}"));
        if fs.exists(&name) {
            return Err(Error::NameTaken { name });
        }
        fs.rename(&from, &name)?;
    }
    fs.remove_directory(&verified)?;
    Ok(fs.sync_metadata()?)
}

/// Reads an archive, and compares it with the files that an earlier restore has verified and [`end_left`] has named. The
/// arguments are those of [`restore`].
///
/// # Errors
/// Those of [`unpack`] and of the file system; [`Error::NotEmpty`] if the file system has other files.
pub fn compare(
    fs: &BlueFs,
    archive: impl Read,
    foreign: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Contents> {
    let contents = unpack(archive, foreign, &mut Same { fs, progress })?;
    if Tree::at(fs, "/")?.files.len() != contents.files.len() {
        return Err(Error::NotEmpty);
    }
    for file in &contents.files {
        if Source::verified(fs, &file.path)?.1 != file.crc32c {
            return Err(Error::NotEmpty);
        }
    }
    Ok(contents)
}

/// Refuses the first file or directory that the file system has not.
struct Same<'a> {
    fs: &'a BlueFs,
    progress: &'a mut dyn FnMut(u64),
}

impl Same<'_> {
    fn found(&self, path: &str) -> Result<Metadata> {
        match self.fs.metadata(path) {
            Err(bluefs::Error::NotFound { .. }) => Err(Error::NotEmpty),
            found => Ok(found?),
        }
    }
}

impl Sink for Same<'_> {
    fn directory(&mut self, path: &str) -> Result<()> {
        match self.found(path)?.is_directory {
            true => Ok(()),
            false => Err(Error::NotEmpty),
        }
    }

    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> Result<u64> {
        let found = self.found(path)?;
        if found.is_directory || found.size != size {
            return Err(Error::NotEmpty);
        }
        let read = io::copy(content, &mut io::sink())?;
        (self.progress)(read);
        Ok(read)
    }
}

/// Writes files and directories below [`PARTIAL`].
struct Below<'a> {
    fs: &'a BlueFs,
    progress: &'a mut dyn FnMut(u64),
}

impl Sink for Below<'_> {
    fn directory(&mut self, path: &str) -> Result<()> {
        Ok(make_directories(self.fs, &format!("/{PARTIAL}{path}"))?)
    }

    fn file(&mut self, path: &str, size: u64, content: &mut dyn Read) -> Result<u64> {
        let partial = format!("/{PARTIAL}{path}");
        let folder = partial.rsplit_once('/').map_or("", |(folder, _)| folder);
        make_directories(self.fs, folder)?;
        write(self.fs, &partial, content, Some(size), self.progress)
    }
}
