//! `fs backup|restore`: all files as one tar archive in a common format.

use super::{with_file_system, with_writable};
use crate::args::Tolerance;
use crate::errors::{CommandError, CommandResult, sorted};
use crate::local_file;
use crate::output::{Output, tell};
use backup::{pack, remove_left};
use serde_json::json;
use std::io::BufReader;
use std::path::Path;
use terminal::{Progress, count, human};

/// `fs backup`.
pub fn backup(
    drive: &Path,
    archive: &Path,
    force: bool,
    damage: Tolerance,
    out: &mut Output,
) -> CommandResult {
    with_file_system(drive, damage, out, |fs, out| {
        let mut file = local_file::new_archive(archive, force)?;
        let target = local_file::target(&mut file, out);
        let progress = Progress::bytes("reading", None);
        let (_, contents) = pack(fs, target, &mut |bytes| progress.set(bytes))?;
        drop(progress);
        let (files, bytes) = (contents.files.len() as u64, contents.bytes());
        if files == 0 {
            tell(format_args!(
                "zonestore: warning: the file system has no files; neither has the archive"
            ));
        }
        let Some(file) = file else {
            return Ok(());
        };
        file.publish_durably()?;
        let shown = archive.display();
        out.line(format_args!(
            "{shown}: {}, {}",
            count(files, "file"),
            human(bytes)
        ))?;
        out.value(
            &json!({ "archive": archive.display().to_string(), "files": files, "bytes": bytes }),
        )
    })
}

/// `fs restore`.
pub fn restore(drive: &Path, archive: &Path, foreign: bool, out: &mut Output) -> CommandResult {
    let (source, _) = local_file::source(archive)?;
    let source = BufReader::new(source);
    with_writable(drive, |fs| {
        if remove_left(fs)? {
            tell(format_args!(
                "zonestore: note: an earlier restore did not end; what it left was removed"
            ));
        }
        let progress = Progress::bytes("writing", None);
        let restored = backup::restore(fs, source, foreign, &mut |more| progress.advance(more));
        let contents = restored.map_err(|error| match error {
            backup::Error::NotEmpty => CommandError::from(error).context(drive.display()),
            backup::Error::Placing(_) => CommandError::from(error).context(format_args!(
                "{}: not all files have got their names",
                drive.display()
            )),
            error => {
                let is_too_small =
                    matches!(error, backup::Error::BlueFs(bluefs::Error::NoSpace { .. }));
                let shown = archive.display();
                let made = CommandError::from(error)
                    .context(format_args!("{shown}: nothing was restored"));
                match is_too_small {
                    true => made.hint("take a larger drive"),
                    false => made,
                }
            }
        })?;
        drop(progress);
        let (files, bytes) = (contents.files.len() as u64, contents.bytes());
        let shown = drive.display();
        out.line(format_args!(
            "{shown}: {}, {}",
            count(files, "file"),
            human(bytes)
        ))?;
        out.value(&json!({ "drive": drive.display().to_string(), "files": files, "bytes": bytes }))
    })
}

impl From<backup::Error> for CommandError {
    fn from(error: backup::Error) -> Self {
        use backup::Error as E;
        let error = match error {
            E::BlueFs(error) | E::Placing(error) => return error.into(),
            E::File { path, source } => return Self::from(source).context(path),
            E::Io(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            E::Reserved { .. } => Usage, "`zonestore fs get`, `put` under another name, and `rm` rename it";
            E::Unfinished => Refused,
                "the same `zonestore fs restore` begins again; or remove /.zonestore-restore by `zonestore fs rm -r`";
            E::NotEmpty => Refused, "restore into an empty file system, on another drive";
            E::NoChecksums => Damaged, "--foreign takes an archive without our checksums";
            E::LeadsOut { .. } | E::Kind { .. } => Usage;
            E::Compressed { with } => Usage,
                format!("`{with} -dc ARCHIVE | zonestore fs restore DRIVE -` undoes that on the way");
            _ => Damaged;
        }
    }
}
