//! Files of the host that data comes from and goes to.

use crate::errors::{CommandError, CommandResult, Exit};
use crate::occupant;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Opens what is to be stored: a file, or `-` for standard input, and its size if that is known.
pub fn source(path: &Path) -> CommandResult<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |error: io::Error| CommandError::file(path, &error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(CommandError::new(
            Exit::Usage,
            format_args!(
                "{}: a directory; one file at a time is stored",
                path.display()
            ),
        )
        .hint(format_args!(
            "tar c {} packs it into one; - takes standard input",
            path.display()
        )));
    }
    let size = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(file), size))
}

/// A file that appears under its name only when it is whole, so that a damaged object never leaves
/// half a file that looks like one. Devices and pipes are written to directly.
pub struct Destination {
    path: PathBuf,
    partial: Option<PathBuf>,
    file: File,
}

impl Destination {
    /// Begins the file. A drive or a saved model is not replaced.
    pub fn create(path: &Path) -> CommandResult<Self> {
        occupant::refuse(path)?;
        let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let opened = if special {
            let file = File::options().write(true).open(path);
            file.map(|file| (file, None))
        } else {
            create_beside(path).map(|(file, partial)| (file, Some(partial)))
        };
        // By the name that was given: nobody has heard of the other.
        let (file, partial) = opened.map_err(|error| CommandError::file(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            partial,
            file,
        })
    }

    /// Appends to it.
    pub fn write(&mut self, bytes: &[u8]) -> CommandResult {
        self.file
            .write_all(bytes)
            .map_err(|error| CommandError::file(&self.path, &error))
    }

    /// Gives it its name once it is durable, and makes that durable too.
    pub fn publish_durably(self) -> CommandResult {
        let path = self.path.clone();
        let failed = |error: io::Error| CommandError::file(&path, &error);
        if self.partial.is_none() {
            return self.publish();
        }
        self.file.sync_all().map_err(failed)?;
        self.publish()?;
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let folder = File::open(folder.unwrap_or(Path::new(".")));
        folder.and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// Gives it its name.
    pub fn publish(mut self) -> CommandResult {
        if let Some(partial) = self.partial.take() {
            fs::rename(&partial, &self.path).map_err(|e| CommandError::file(&self.path, &e))?;
        }
        Ok(())
    }
}

/// A new file beside `path`: what is there already is somebody's.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 0_u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        if number > 0 {
            name.push(number.to_string());
        }
        match File::create_new(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            file => return Ok((file?, name.into())),
        }
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = fs::remove_file(partial);
        }
    }
}
