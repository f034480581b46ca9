//! `fs cat|get|put|rm`: files in and out.

use super::{walk, with_file_system, with_writable};
use crate::args::Tolerance;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::local_file::{self, Destination};
use crate::output::Output;
use crate::progress::Progress;
use crate::question;
use crate::size::{count, human};
use bluefs::{BlueFs, Reader};
use serde_json::json;
use std::io::{self, Read};
use std::path::Path;

/// Bytes moved at once.
const CHUNK: usize = 1 << 20;

/// A file of the file system as a source of bytes.
pub struct Source {
    reader: Reader,
    at: u64,
}

impl Source {
    pub fn open(fs: &BlueFs, path: &str) -> CommandResult<Self> {
        let reader = fs.open(path)?;
        Ok(Self { reader, at: 0 })
    }

    pub fn size(&self) -> u64 {
        self.reader.size()
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self
            .reader
            .read_at(self.at, buffer)
            .map_err(|error| io::Error::other(CommandError::from(error)))?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Writes everything of `source` into a new file, durably.
pub fn write(
    fs: &BlueFs,
    path: &str,
    source: &mut dyn Read,
    size: Option<u64>,
    mut each: impl FnMut(u64),
) -> CommandResult<u64> {
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

/// `fs get` and `fs cat`.
pub fn get(
    drive: &Path,
    path: &str,
    file: &Path,
    damage: Tolerance,
    out: &mut Output,
) -> CommandResult {
    with_file_system(drive, damage, out, |fs, out| {
        if fs.metadata(path)?.is_directory {
            return Err(
                CommandError::new(Exit::Usage, format_args!("{path}: a directory"))
                    .hint("zonestore fs backup packs a whole file system"),
            );
        }
        // An extent is compared as a whole, and may be larger than what is read at once.
        let verified = fs.open(path)?.verify();
        verified.map_err(|error| CommandError::from(error).context(path))?;
        let mut source = Source::open(fs, path)?;
        let progress = Progress::bytes("reading", Some(source.size()));
        let to_pipe = file == Path::new("-");
        let mut destination = (!to_pipe).then(|| Destination::create(file)).transpose()?;
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = source.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            match &mut destination {
                Some(destination) => destination.write(&buffer[..read])?,
                None => out.bytes(&buffer[..read])?,
            }
            progress.advance(read as u64);
        }
        drop(progress);
        let Some(destination) = destination else {
            return Ok(());
        };
        destination.publish()?;
        out.line(format_args!(
            "{}: {} read",
            file.display(),
            human(source.size())
        ))?;
        out.value(&json!({ "file": file, "bytes": source.size() }))
    })
}

/// `fs put`.
pub fn put(drive: &Path, file: &Path, path: &str, out: &mut Output) -> CommandResult {
    let (mut source, size) = local_file::source(file)?;
    with_writable(drive, |fs| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let folder = path.strip_suffix(name).unwrap_or_default();
        make_directories(fs, folder)?;
        let progress = Progress::bytes("storing", size);
        // Under another name first: a file that is replaced stays whole until the new one is.
        let partial = format!("{path}.partial");
        let written = write(fs, &partial, &mut *source, size, |bytes| {
            progress.advance(bytes)
        });
        let bytes = match written {
            Ok(bytes) => bytes,
            Err(error) => {
                if fs.exists(&partial) {
                    fs.delete(&partial)?;
                }
                return Err(error);
            }
        };
        fs.rename(&partial, path)?;
        fs.sync_metadata()?;
        drop(progress);
        out.line(format_args!("{}: {} stored", out.name(path), human(bytes)))?;
        out.value(&json!({ "path": path, "bytes": bytes }))
    })
}

/// Makes a directory and those above it.
pub fn make_directories(fs: &BlueFs, path: &str) -> CommandResult {
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

/// `fs rm`.
pub fn remove(
    drive: &Path,
    path: &str,
    recursive: bool,
    yes: bool,
    out: &mut Output,
) -> CommandResult {
    with_writable(drive, |fs| {
        let mut files = Vec::new();
        let mut bytes = 0;
        let mut folders = Vec::new();
        if fs.metadata(path)?.is_directory {
            if !recursive {
                return Err(
                    CommandError::new(Exit::Usage, format_args!("{path}: a directory"))
                        .hint("-r removes it with all it holds"),
                );
            }
            folders.push(path.to_owned());
            walk(fs, path, &mut |path, found| {
                let list = if found.is_directory {
                    &mut folders
                } else {
                    bytes += found.size;
                    &mut files
                };
                list.push(path.to_owned());
                Ok(())
            })?;
            if !files.is_empty() {
                let lost = format!(
                    "removing {} from {} destroys {}, {}",
                    out.name(path),
                    drive.display(),
                    count(files.len() as u64, "file"),
                    human(bytes)
                );
                question::confirm(yes, &lost)?;
            }
        } else {
            files.push(path.to_owned());
        }
        for file in &files {
            fs.delete(file)?;
        }
        for folder in folders
            .iter()
            .rev()
            .filter(|f| !f.trim_matches('/').is_empty())
        {
            fs.remove_directory(folder)?;
        }
        fs.sync_metadata()?;
        let removed = files.len() as u64;
        out.line(format_args!(
            "{}: {} removed",
            out.name(path),
            count(removed, "file")
        ))?;
        out.value(&json!({ "path": path, "files_removed": removed }))
    })
}
