//! `fs cat|get|put|rm`: reads, writes and removes files.

use super::{with_file_system, with_writable};
use crate::args::Tolerance;
use crate::errors::{CommandResult, fail};
use crate::local_file;
use crate::output::{Output, tell};
use crate::question;
use backup::tree::{Source, Tree, make_directories, replace};
use bluefs::Error;
use serde_json::json;
use std::path::Path;
use terminal::{Progress, count, human};

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
            return fail!(Usage, "{path}: a directory"; "zonestore fs backup packs a whole file system");
        }
        let (mut source, _) = Source::verified(fs, path)?;
        let progress = Progress::bytes("reading", Some(source.size()));
        let mut destination = local_file::destination(file)?;
        progress.copy(&mut source, local_file::target(&mut destination, out))?;
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
        out.value(&json!({ "file": file.display().to_string(), "bytes": source.size() }))
    })
}

/// `fs put`.
pub fn put(drive: &Path, file: &Path, path: &str, out: &mut Output) -> CommandResult {
    let (mut source, size) = local_file::source(file)?;
    with_writable(drive, |fs| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let folder = path.strip_suffix(name).unwrap_or_default();
        if name.is_empty() || fs.metadata(path).is_ok_and(|found| found.is_directory) {
            return fail!(Usage, "{path:?} is a directory"; "name the file that it becomes there");
        }
        make_directories(fs, folder)?;
        let progress = Progress::bytes("storing", size);
        let bytes = replace(fs, path, &mut progress.reading(&mut source), size)?;
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
            return fail!(Usage, "{path}: a directory"; "-r removes it with all it holds");
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
        match fs.unmount() {
            // Data of a killed program. It stays in the file next to the drive; the removal itself has succeeded.
            Err(Error::NoSpace { .. }) => tell(format_args!(
                "zonestore: warning: {}.unsynced keeps what still finds no room on the drive: remove more",
                drive.display()
            )),
            unmounted => unmounted?,
        }
        let removed = tree.files.len() as u64;
        out.line(format_args!(
            "{}: {} removed",
            out.name(path),
            count(removed, "file")
        ))?;
        out.value(&json!({ "path": path, "files_removed": removed }))
    })
}
