//! `fs cat|get|put|rm`: files in and out.

use super::{with_file_system, with_writable};
use crate::args::Tolerance;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::local_file::{self, Destination};
use crate::output::Output;
use crate::progress::Progress;
use crate::question;
use crate::size::{count, human};
use backup::tree::{CHUNK, Source, Tree, make_directories, write};
use serde_json::json;
use std::io::Read;
use std::path::Path;

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
        let (mut source, _) = Source::verified(fs, path)?;
        let progress = Progress::bytes("reading", Some(source.size()));
        let to_pipe = file == Path::new("-");
        let mut destination = (!to_pipe).then(|| Destination::create(file)).transpose()?;
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = source.read(&mut buffer).map_err(backup::Error::from)?;
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
        if name.is_empty() || fs.metadata(path).is_ok_and(|found| found.is_directory) {
            let error = format_args!("{path:?} is a directory");
            return Err(
                CommandError::new(Exit::Usage, error).hint("name the file that it becomes there")
            );
        }
        make_directories(fs, folder)?;
        let progress = Progress::bytes("storing", size);
        // Under another name first: a file that is replaced stays whole until the new one is.
        let mut names = (0_u32..).map(|number| format!("{path}.partial{number}"));
        let partial = names.find(|name| !fs.exists(name)).unwrap_or_default();
        let written = write(fs, &partial, &mut *source, size, &mut |bytes| {
            progress.advance(bytes)
        });
        let stored = written.and_then(|bytes| {
            fs.rename(&partial, path)?;
            fs.sync_metadata()?;
            Ok(bytes)
        });
        let bytes = match stored {
            Ok(bytes) => bytes,
            Err(error) => {
                if fs.exists(&partial) {
                    fs.delete(&partial)?;
                }
                return Err(error.into());
            }
        };
        drop(progress);
        out.line(format_args!("{}: {} stored", out.name(path), human(bytes)))?;
        out.value(&json!({ "path": path, "bytes": bytes }))
    })
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
        let is_directory = fs.metadata(path)?.is_directory;
        if is_directory && !recursive {
            return Err(
                CommandError::new(Exit::Usage, format_args!("{path}: a directory"))
                    .hint("-r removes it with all it holds"),
            );
        }
        let tree = Tree::at(fs, path)?;
        if is_directory && !tree.files.is_empty() {
            let lost = format!(
                "removing {} from {} destroys {}, {}",
                out.name(path),
                drive.display(),
                count(tree.files.len() as u64, "file"),
                human(tree.bytes)
            );
            question::confirm(yes, &lost)?;
        }
        tree.remove(fs)?;
        let removed = tree.files.len() as u64;
        out.line(format_args!(
            "{}: {} removed",
            out.name(path),
            count(removed, "file")
        ))?;
        out.value(&json!({ "path": path, "files_removed": removed }))
    })
}
