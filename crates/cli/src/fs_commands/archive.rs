//! `fs backup|restore`: all files as one tar archive, which any tar reads.
//!
//! The last file of the archive has the checksums of all others (docs/format/backup.md). A file is compared
//! with the drive's checksums before anything of it goes into the archive, and an archive with its own
//! before anything of it gets its name on the drive.

use super::files::{Source, make_directories, write};
use super::{walk, with_file_system, with_writable};
use crate::args::Tolerance;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::local_file::Destination;
use crate::occupant;
use crate::output::Output;
use crate::progress::Progress;
use crate::size::{count, human};
use bluefs::BlueFs;
use crc_fast::{CrcAlgorithm, Digest};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Component, Path};
use tar::{Archive, Builder, EntryType, Header};

/// The archive's last file.
const CHECKSUMS: &str = ".zonestore-backup";
/// The version of what is in it.
const VERSION: u32 = 1;
/// Where a restore puts everything until it has seen the whole archive.
const PARTIAL: &str = "/.zonestore-restore";

/// What an archive holds.
#[derive(Serialize, Deserialize, Default, Debug, PartialEq, Eq)]
struct Contents {
    version: u32,
    directories: Vec<String>,
    files: Vec<Member>,
}

/// A file in an archive.
#[derive(Serialize, Deserialize, Debug, PartialEq, Eq)]
struct Member {
    path: String,
    bytes: u64,
    crc32c: u32,
}

impl Contents {
    fn encode(&self) -> CommandResult<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        let sum = crc32c(&text);
        writeln!(text, "\n{sum:08x}")?;
        Ok(text)
    }

    /// `None` if it is damaged, or of another version.
    fn decode(text: &[u8]) -> Option<Self> {
        let text = text.strip_suffix(b"\n")?;
        let end = text.iter().rposition(|byte| *byte == b'\n')?;
        let (text, sum) = (&text[..end], std::str::from_utf8(&text[end + 1..]).ok()?);
        let intact = u32::from_str_radix(sum, 16) == Ok(crc32c(text));
        let found: Self = serde_json::from_slice(text).ok().filter(|_| intact)?;
        (found.version == VERSION).then_some(found)
    }
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut sum = Digest::new(CrcAlgorithm::Crc32Iscsi);
    sum.update(bytes);
    sum.finalize() as u32
}

/// Bytes on their way, with their checksum.
struct Summed<R> {
    from: R,
    sum: Digest,
}

impl<R> Summed<R> {
    fn new(from: R) -> Self {
        let sum = Digest::new(CrcAlgorithm::Crc32Iscsi);
        Self { from, sum }
    }

    fn crc32c(&self) -> u32 {
        self.sum.finalize() as u32
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.sum.update(&buffer[..read]);
        Ok(read)
    }
}

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
        let mut builder = Builder::new(target);
        let contents = pack(fs, &mut builder)?;
        let files = contents.files.len() as u64;
        let bytes = contents.files.iter().map(|file| file.bytes).sum();
        let target = builder.into_inner()?;
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

/// Puts all files into the archive, each after it has been compared with its checksums.
fn pack(fs: &BlueFs, builder: &mut Builder<Target<'_>>) -> CommandResult<Contents> {
    let mut contents = Contents {
        version: VERSION,
        ..Contents::default()
    };
    let mut bytes = 0;
    let progress = Progress::bytes("reading", None);
    walk(fs, "/", &mut |path, found| {
        let mut header = Header::new_gnu();
        header.set_mtime(found.modified_micros / 1_000_000);
        let name = path.trim_start_matches('/');
        if name == CHECKSUMS {
            let what = format_args!("{path}: an archive keeps its checksums under this name");
            return Err(CommandError::new(Exit::Usage, what).hint("rename the file"));
        }
        if found.is_directory {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(0o755);
            header.set_size(0);
            builder.append_data(&mut header, format!("{name}/"), io::empty())?;
            contents.directories.push(path.to_owned());
            return Ok(());
        }
        let verified = fs.open(path)?.verify();
        let crc32c = verified.map_err(|error| CommandError::from(error).context(path))?;
        let mut source = Summed::new(Source::open(fs, path)?);
        let size = source.from.size();
        header.set_mode(0o644);
        header.set_size(size);
        builder.append_data(&mut header, name, &mut source)?;
        if source.crc32c() != crc32c {
            let what = format_args!("{path}: the drive gave other bytes the second time");
            return Err(CommandError::new(Exit::Damaged, what));
        }
        bytes += size;
        contents.files.push(Member {
            path: path.to_owned(),
            bytes: size,
            crc32c,
        });
        progress.set(bytes);
        Ok(())
    })?;
    let text = contents.encode()?;
    let mut header = Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(text.len() as u64);
    builder.append_data(&mut header, CHECKSUMS, &text[..])?;
    Ok(contents)
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
        if fs.list("/")? == [&PARTIAL[1..]] {
            eprintln!("zonestore: note: an earlier restore did not end; what it left is removed");
            remove_all(fs, PARTIAL)?;
        }
        if !fs.list("/")?.is_empty() {
            return Err(CommandError::new(
                Exit::Refused,
                format_args!("{}: the file system holds files already", drive.display()),
            )
            .hint("restore into an empty file system, on another drive"));
        }
        fs.create_directory(PARTIAL)?;
        let unpacked = unpack(fs, source, foreign).map_err(|error| {
            error.context(format_args!("{}: nothing was restored", archive.display()))
        });
        let contents = match unpacked {
            Ok(contents) => contents,
            Err(error) => {
                remove_all(fs, PARTIAL)?;
                return Err(error);
            }
        };
        for name in fs.list(PARTIAL)? {
            fs.rename(&format!("{PARTIAL}/{name}"), &format!("/{name}"))?;
        }
        fs.remove_directory(PARTIAL)?;
        fs.sync_metadata()?;
        let files = contents.files.len() as u64;
        let bytes = contents.files.iter().map(|file| file.bytes).sum();
        let shown = drive.display();
        out.line(format_args!(
            "{shown}: {}, {}",
            count(files, "file"),
            human(bytes)
        ))?;
        out.value(&json!({ "drive": drive, "files": files, "bytes": bytes }))
    })
}

fn remove_all(fs: &BlueFs, folder: &str) -> CommandResult {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    walk(fs, folder, &mut |path, found| {
        let list = if found.is_directory {
            &mut folders
        } else {
            &mut files
        };
        list.push(path.to_owned());
        Ok(())
    })?;
    for file in &files {
        fs.delete(file)?;
    }
    for folder in folders.iter().rev() {
        fs.remove_directory(folder)?;
    }
    Ok(fs.sync_metadata()?)
}

fn damaged(what: impl std::fmt::Display) -> CommandError {
    CommandError::new(Exit::Damaged, what)
}

/// Writes what is in the archive below [`PARTIAL`]. Whether the archive is whole, its last file says.
fn unpack(fs: &BlueFs, source: Box<dyn Read>, foreign: bool) -> CommandResult<Contents> {
    let broken = |error: io::Error| damaged(format_args!("the archive is damaged: {error}"));
    let not_ours = |what: String| CommandError::new(Exit::Usage, what);
    let progress = Progress::bytes("writing", None);
    let mut found = Contents {
        version: VERSION,
        ..Contents::default()
    };
    let mut told = None;
    let mut archive = Archive::new(source);
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let name = entry.path().map_err(broken)?.into_owned();
        if told.is_some() {
            return Err(damaged(
                "the archive is damaged: it goes on behind its checksums",
            ));
        }
        if name == Path::new(CHECKSUMS) && !foreign {
            let mut text = Vec::new();
            entry.read_to_end(&mut text).map_err(broken)?;
            let contents = Contents::decode(&text);
            told = Some(contents.ok_or_else(|| damaged("the archive's checksums are damaged"))?);
            continue;
        }
        let Some(path) = absolute(&name) else {
            return Err(not_ours(format!(
                "{}: a name that leads out of the archive",
                name.display()
            )));
        };
        let partial = format!("{PARTIAL}{path}");
        match entry.header().entry_type() {
            EntryType::Directory => {
                make_directories(fs, &partial)?;
                found.directories.push(path);
            }
            EntryType::Regular => {
                let folder = partial.rsplit_once('/').map_or("", |(folder, _)| folder);
                make_directories(fs, folder)?;
                let size = entry.size();
                let mut source = Summed::new(&mut entry);
                let bytes = write(fs, &partial, &mut source, Some(size), |more| {
                    progress.advance(more);
                })?;
                if bytes != size {
                    return Err(damaged(format_args!(
                        "the archive ends in the middle of {path}"
                    )));
                }
                let crc32c = source.crc32c();
                found.files.push(Member {
                    path,
                    bytes,
                    crc32c,
                });
            }
            other => {
                return Err(not_ours(format!(
                    "{}: {other:?}; only files and directories can be restored",
                    name.display()
                )));
            }
        }
    }
    match told {
        None if foreign => Ok(found),
        None => Err(
            damaged("the archive is cut off, or another program made it")
                .hint("--foreign takes an archive without our checksums"),
        ),
        Some(told) if told == found => Ok(found),
        Some(told) => {
            let wrong = told.files.iter().find(|file| !found.files.contains(file));
            let wrong = wrong.map_or("its list of files", |file| &file.path);
            Err(damaged(format_args!(
                "the archive is damaged: {wrong} is not what was packed"
            )))
        }
    }
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

    #[test]
    fn every_changed_byte_of_the_checksums_is_noticed() {
        let file = Member {
            path: "/db/a \n b".to_owned(),
            bytes: 7,
            crc32c: 9,
        };
        let contents = Contents {
            version: VERSION,
            directories: vec!["/db".to_owned()],
            files: vec![file],
        };
        let text = contents.encode().unwrap();
        assert_eq!(Contents::decode(&text), Some(contents));
        for at in 0..text.len() {
            let mut bad = text.clone();
            bad[at] ^= 1;
            assert_eq!(Contents::decode(&bad), None, "{at}");
            assert_eq!(Contents::decode(&text[..at]), None, "{at}");
        }
    }
}
