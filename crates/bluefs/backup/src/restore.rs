//! Restores an archive into an empty file system.

use crate::error::{Error, Result};
use crate::format::{Contents, PARTIAL};
use crate::tree::{Tree, make_directories, write};
use crate::unpack::{Sink, unpack};
use bluefs::BlueFs;
use std::io::Read;

/// Removes the files of an interrupted restore; false if there are none.
///
/// # Errors
/// Of the file system.
pub fn remove_left(fs: &BlueFs) -> Result<bool> {
    let is_left = fs.list("/")? == [PARTIAL];
    if is_left {
        Tree::at(fs, &format!("/{PARTIAL}"))?.remove(fs)?;
    }
    Ok(is_left)
}

/// Restores the files and directories of an archive into an empty file system. `progress` gets the number of bytes
/// added each time; `foreign` as in [`unpack`].
///
/// # Errors
/// Nothing has been restored then, except after [`Error::Placing`].
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
    place(fs, &partial).map_err(Error::Placing)?;
    Ok(contents)
}

/// Moves all files and directories to the root.
fn place(fs: &BlueFs, partial: &str) -> bluefs::Result<()> {
    for name in fs.list(partial)? {
        fs.rename(&format!("{partial}/{name}"), &format!("/{name}"))?;
    }
    fs.remove_directory(partial)?;
    fs.sync_metadata()
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
