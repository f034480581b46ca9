//! `fs backup|restore`: all files as one tar archive in a common format.

use super::{with_file_system, with_writable};
use crate::args::Tolerance;
use crate::errors::{CommandError, CommandResult, sorted};
use crate::local_file;
use crate::output::{Output, tell};
use backup::format::{PARTIAL, VERIFIED};
use backup::{Left, end_left, pack};
use serde_json::json;
use std::io::BufReader;
use std::path::Path;
use terminal::{Progress, count, human, shell_text, shell_word};

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
        let word = shell_word(drive);
        let left = end_left(fs).map_err(|error| {
            let hint = match &error {
                backup::Error::NameTaken { name } => Some(format!(
                    "`zonestore fs rm -r {word} {}` or `zonestore fs rm -r {word} {}` removes the one that is not wanted; then \
                     the same restore goes on",
                    shell_text(name.as_bytes()),
                    shell_text(format!("/{VERIFIED}{name}").as_bytes())
                )),
                backup::Error::LeftBesideOthers => Some(format!(
                    "`zonestore fs rm -r {word} /{PARTIAL}` removes what is left of it; a restore wants an empty file system"
                )),
                _ => None,
            };
            let made = CommandError::from(error).context(drive.display());
            match hint {
                Some(hint) => made.hint(hint),
                None => made,
            }
        })?;
        match left {
            Left::Nothing => {}
            Left::Removed => tell(format_args!(
                "zonestore: note: an earlier restore did not end; what it left was removed"
            )),
            Left::Named => tell(format_args!(
                "zonestore: note: an earlier restore had verified its archive and was naming its files; they have their names \
                 now, and are compared with this archive"
            )),
        }
        let doing = if left == Left::Named {
            "comparing"
        } else {
            "writing"
        };
        let progress = Progress::bytes(doing, None);
        let advance = &mut |more| progress.advance(more);
        let restored = match left {
            Left::Named => backup::compare(fs, source, foreign, advance),
            Left::Nothing | Left::Removed => backup::restore(fs, source, foreign, advance),
        };
        let contents = restored.map_err(|error| match error {
            backup::Error::NotEmpty if left == Left::Named => CommandError::from(error)
                .context(drive.display())
                .hint("they are those of the earlier restore, from another archive; restore this one into an empty file system"),
            backup::Error::NotEmpty => CommandError::from(error)
                .context(drive.display())
                .hint("restore into an empty file system, on another drive; if an earlier restore said that its files have their names, they are all here"),
            error if left == Left::Named => CommandError::from(error).context(format_args!(
                "{}: the files of the earlier restore have their names, and could not be compared with {}",
                drive.display(),
                archive.display()
            )),
            backup::Error::Placing(_) => CommandError::from(error).context(format_args!(
                "{}: not all files have got their names, and the same command goes on",
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
                "the same `zonestore fs restore` goes on or begins again; or remove what is left by `zonestore fs rm -r`: \
                 /.zonestore-restore, /.zonestore-restored";
            E::NameTaken { .. } | E::LeftBesideOthers => Refused;
            E::NotEmpty => Refused, "restore into an empty file system, on another drive";
            E::NoChecksums => Damaged, "--foreign takes an archive without our checksums";
            E::LeadsOut { .. } | E::Kind { .. } => Usage;
            E::Compressed { with } => Usage,
                format!("`{with} -dc ARCHIVE | zonestore fs restore DRIVE -` undoes that on the way");
            _ => Damaged;
        }
    }
}
