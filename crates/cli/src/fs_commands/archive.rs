//! `fs backup|restore`: all files as one tar archive, which any tar reads.

use super::files::{Source, make_directories, write};
use super::{walk, with_file_system, with_writable};
use crate::args::Tolerance;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::local_file::Destination;
use crate::output::Output;
use crate::progress::Progress;
use crate::size::{count, human};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Component, Path};
use tar::{Archive, Builder, EntryType, Header};

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
        .map_err(|error| io::Error::other(error.message))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `fs backup`.
pub fn backup(drive: &Path, archive: &Path, damage: Tolerance, out: &mut Output) -> CommandResult {
    with_file_system(drive, damage, out, |fs, out| {
        let (mut files, mut bytes) = (0u64, 0u64);
        let to_pipe = archive == Path::new("-");
        let target = if to_pipe {
            Target::Output(out)
        } else {
            Target::File(Destination::create(archive)?)
        };
        let mut builder = Builder::new(target);
        let progress = Progress::bytes("reading", None);
        walk(fs, "/", &mut |path, found| {
            let mut header = Header::new_gnu();
            header.set_mtime(found.modified_micros / 1_000_000);
            let name = path.trim_start_matches('/');
            if found.is_directory {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                header.set_size(0);
                builder.append_data(&mut header, format!("{name}/"), io::empty())?;
                return Ok(());
            }
            let source = Source::open(fs, path)?;
            header.set_mode(0o644);
            header.set_size(source.size());
            bytes += source.size();
            files += 1;
            builder.append_data(&mut header, name, source)?;
            progress.set(bytes);
            Ok(())
        })?;
        let target = builder.into_inner()?;
        drop(progress);
        match target {
            Target::Output(_) => Ok(()),
            Target::File(destination) => {
                destination.publish()?;
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
pub fn restore(drive: &Path, archive: &Path, out: &mut Output) -> CommandResult {
    let source: Box<dyn io::Read> = if archive == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(archive).map_err(|error| CommandError::file(archive, &error))?;
        Box::new(BufReader::new(file))
    };
    with_writable(drive, |fs| {
        if !fs.list("/")?.is_empty() {
            return Err(CommandError::new(
                Exit::Refused,
                format_args!("{}: the file system holds files already", drive.display()),
            )
            .hint("take another drive: zonestore drive create, then zonestore fs mkfs"));
        }
        let not_ours = |what: String| CommandError::new(Exit::Usage, what);
        let progress = Progress::bytes("writing", None);
        let (mut files, mut bytes) = (0u64, 0u64);
        let mut archive = Archive::new(source);
        for entry in archive.entries()? {
            let mut entry = entry?;
            let name = entry.path()?.into_owned();
            let Some(path) = absolute(&name) else {
                return Err(not_ours(format!(
                    "{}: a name that leads out of the archive",
                    name.display()
                )));
            };
            match entry.header().entry_type() {
                EntryType::Directory => make_directories(fs, &path)?,
                EntryType::Regular => {
                    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                    make_directories(fs, folder)?;
                    let size = entry.size();
                    bytes += write(fs, &path, &mut entry, Some(size), |more| {
                        progress.advance(more);
                    })?;
                    files += 1;
                }
                other => {
                    return Err(not_ours(format!(
                        "{}: {other:?}; only files and directories can be restored",
                        name.display()
                    )));
                }
            }
        }
        fs.sync_metadata()?;
        drop(progress);
        let shown = drive.display();
        out.line(format_args!(
            "{shown}: {}, {}",
            count(files, "file"),
            human(bytes)
        ))?;
        out.value(&json!({ "drive": drive, "files": files, "bytes": bytes }))
    })
}

/// A name of the archive as a path of the file system; `None` if it leads elsewhere.
fn absolute(name: &Path) -> Option<String> {
    let mut path = String::new();
    for part in name.components() {
        match part {
            Component::Normal(part) => {
                path.push('/');
                path.push_str(part.to_str()?);
            }
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        assert_eq!(
            absolute(Path::new("db/000001.log")).unwrap(),
            "/db/000001.log"
        );
        assert_eq!(absolute(Path::new("./db//x")).unwrap(), "/db/x");
        assert_eq!(absolute(Path::new("/db/x")).unwrap(), "/db/x");
        assert_eq!(absolute(Path::new("db/../../x")), None);
    }
}
