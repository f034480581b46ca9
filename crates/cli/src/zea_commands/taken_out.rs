//! `zea get|cat|backup` of a ZEAFS: copies files out without a mount. Each file is verified before any of it is
//! output.

use super::file_system;
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::local_file;
use crate::output::{Output, tell};
use backup::Packer;
use device::Drive;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use terminal::{Progress, count, human, shell_word};
use zeafs::{Examined, ExaminedFile};

/// Bytes of one read.
const PIECE: u64 = 1 << 20;

/// A file as a source of bytes.
struct Source<'a> {
    drive: &'a Drive,
    file: &'a ExaminedFile<'a>,
    at: u64,
    /// Bytes that are read and not returned yet.
    rest: io::Cursor<Vec<u8>>,
}

impl<'a> Source<'a> {
    /// A source whose checksums have all been verified.
    fn verified(drive: &'a Drive, file: &'a ExaminedFile<'a>) -> Result<Self, zeafs::Error> {
        match Examined::verify(drive, file).into_iter().next() {
            Some(damage) => Err(damage),
            None => Ok(Self {
                drive,
                file,
                at: 0,
                rest: io::Cursor::default(),
            }),
        }
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.position() == self.rest.get_ref().len() as u64 {
            let read = Examined::read(self.drive, self.file, self.at, PIECE);
            let bytes = read.map_err(io::Error::other)?;
            self.at += bytes.len() as u64;
            self.rest = io::Cursor::new(bytes);
        }
        self.rest.read(buffer)
    }
}

/// Opens a drive and the ZEAFS on it.
fn opened(path: &Path) -> CommandResult<(Drive, Examined)> {
    match file_system(path)? {
        Some(found) => Ok(found),
        None => Err(CommandError::from(zeafs::Error::NotFormatted).context(path.display())),
    }
}

/// The error for a file that does not exist.
pub fn no_such_file(path: &Path, name: &str) -> CommandError {
    let shown = path.display();
    CommandError::new(
        Exit::NotFound,
        format_args!("{shown}: {name}: no such file"),
    )
    .hint(format_args!(
        "`zonestore zea ls {}` shows what there is",
        shell_word(path)
    ))
}

/// `zea get` and `zea cat`.
pub fn get(path: &Path, name: &str, to: &Path, out: &mut Output) -> CommandResult {
    let (drive, examined) = opened(path)?;
    let shown = path.display();
    let Some(file) = examined.file(name) else {
        return match examined.file(&format!("{name}/")) {
            Some(_) => {
                fail!(Usage, "{name}: a directory"; "zonestore zea backup {} packs a whole file system", shell_word(path))
            }
            None => Err(no_such_file(path, name)),
        };
    };
    let mut source = Source::verified(&drive, &file)
        .map_err(|error| CommandError::from(error).context(format_args!("{shown}: {name}")))?;
    let progress = Progress::bytes("reading", Some(file.size));
    let mut destination = local_file::destination(to)?;
    progress.copy(&mut source, local_file::target(&mut destination, out))?;
    drop(progress);
    let Some(destination) = destination else {
        return Ok(());
    };
    destination.publish()?;
    out.line(format_args!("{}: {} read", to.display(), human(file.size)))?;
    out.value(&json!({ "file": to.display().to_string(), "bytes": file.size }))
}

/// `zea backup`.
pub fn backup(path: &Path, archive: &Path, force: bool, out: &mut Output) -> CommandResult {
    let (drive, examined) = opened(path)?;
    let mut target = local_file::new_archive(archive, force)?;
    let mut packer = Packer::new(local_file::target(&mut target, out));
    let progress = Progress::bytes(
        "reading",
        Some(examined.files().map(|file| file.size).sum()),
    );
    let mut left_out = BTreeMap::new();
    for file in examined.files() {
        if let Some(directory) = file.name.strip_suffix('/') {
            packer.directory(directory, 0)?;
            continue;
        }
        match Source::verified(&drive, &file) {
            Ok(source) => _ = packer.file(file.name, 0, file.size, source)?,
            Err(damage) => _ = left_out.insert(file.name, damage.to_string()),
        }
        progress.advance(file.size);
    }
    let (_, contents) = packer.finish()?;
    drop(progress);
    for (name, damage) in &left_out {
        tell(format_args!("zonestore: left out: {name}: {damage}"));
    }
    let (files, bytes) = (contents.files.len() as u64, contents.bytes());
    if let Some(target) = target {
        target.publish_durably()?;
        let shown = archive.display();
        out.line(format_args!(
            "{shown}: {}, {}",
            count(files, "file"),
            human(bytes)
        ))?;
        out.value(&json!({
            "archive": archive.display().to_string(), "files": files, "bytes": bytes, "left_out": left_out,
        }))?;
    }
    match left_out.len() as u64 {
        0 => Ok(()),
        missing => fail!(
            Damaged, "{}: {} left out", path.display(), count(missing, "damaged file");
            "keep a copy of the drive; all others are in the archive"
        ),
    }
}
