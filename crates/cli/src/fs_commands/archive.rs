//! `fs backup|restore`: all files as one tar archive, which any tar reads.

use super::{with_file_system, with_writable};
use crate::args::Tolerance;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::local_file::Destination;
use crate::occupant;
use crate::output::Output;
use crate::progress::Progress;
use crate::size::{count, human};
use backup::{pack, remove_left};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// Where the archive goes to: a file that appears when it is whole, or standard output.
enum Target<'a> {
    File(Destination),
    Output(&'a mut Output),
}

impl Write for Target<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Output(out) => out.bytes(bytes),
        }
        .map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `fs backup`.
pub fn backup(
    drive: &Path,
    archive: &Path,
    force: bool,
    damage: Tolerance,
    out: &mut Output,
) -> CommandResult {
    with_file_system(drive, damage, out, |fs, out| {
        let to_pipe = archive == Path::new("-");
        if !to_pipe {
            // First, for what is one of our drives is not replaced by force either.
            occupant::refuse(archive)?;
        }
        if !to_pipe && !force && std::fs::metadata(archive).is_ok_and(|found| found.is_file()) {
            return Err(CommandError::new(
                Exit::Refused,
                format_args!("{}: exists already", archive.display()),
            )
            .hint("take another name; --force replaces it"));
        }
        let target = if to_pipe {
            Target::Output(out)
        } else {
            Target::File(Destination::create(archive)?)
        };
        let progress = Progress::bytes("reading", None);
        let (target, contents) = pack(fs, target, &mut |bytes| progress.set(bytes))?;
        drop(progress);
        let (files, bytes) = (contents.files.len() as u64, contents.bytes());
        if files == 0 {
            eprintln!("zonestore: warning: the file system has no files; neither has the archive");
        }
        match target {
            Target::Output(_) => Ok(()),
            Target::File(destination) => {
                destination.publish_durably()?;
                let shown = archive.display();
                out.line(format_args!(
                    "{shown}: {}, {}",
                    count(files, "file"),
                    human(bytes)
                ))?;
                out.value(&json!({ "archive": archive, "files": files, "bytes": bytes }))
            }
        }
    })
}

/// `fs restore`.
pub fn restore(drive: &Path, archive: &Path, foreign: bool, out: &mut Output) -> CommandResult {
    let source: Box<dyn Read> = if archive == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(archive).map_err(|error| CommandError::file(archive, &error))?;
        Box::new(BufReader::new(file))
    };
    with_writable(drive, |fs| {
        if remove_left(fs)? {
            eprintln!("zonestore: note: an earlier restore did not end; what it left was removed");
        }
        let progress = Progress::bytes("writing", None);
        let restored = backup::restore(fs, source, foreign, &mut |more| progress.advance(more));
        let contents = restored.map_err(|error| match error {
            backup::Error::NotEmpty => CommandError::from(error).context(drive.display()),
            error => {
                let shown = archive.display();
                CommandError::from(error).context(format_args!("{shown}: nothing was restored"))
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
        out.value(&json!({ "drive": drive, "files": files, "bytes": bytes }))
    })
}

impl From<backup::Error> for CommandError {
    fn from(error: backup::Error) -> Self {
        use backup::Error as E;
        let text = error.to_string();
        match error {
            E::BlueFs(error) => error.into(),
            E::File { path, source } => Self::from(source).context(path),
            E::Io(error) => error.into(),
            E::Reserved { .. } => Self::new(Exit::Usage, text).hint("rename the file"),
            E::NotEmpty => Self::new(Exit::Refused, text)
                .hint("restore into an empty file system, on another drive"),
            E::NoChecksums => Self::new(Exit::Damaged, text)
                .hint("--foreign takes an archive without our checksums"),
            E::LeadsOut { .. } | E::Kind { .. } => Self::new(Exit::Usage, text),
            E::Changed { .. }
            | E::NoTar(_)
            | E::GoesOn
            | E::NoEnd
            | E::Checksums
            | E::CutOff { .. }
            | E::Different { .. } => Self::new(Exit::Damaged, text),
        }
    }
}
