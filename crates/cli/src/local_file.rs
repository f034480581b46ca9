//! Files of the host that data comes from and goes to.

use crate::errors::{CommandError, CommandResult, fail};
use crate::occupant;
use crate::output::Output;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use terminal::{WholeFile, ending_signals, human};

/// Opens what is to be stored: a file, or `-` for standard input, and its size if that is known.
pub fn source(path: &Path) -> CommandResult<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |error: io::Error| CommandError::file(path, &error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        let shown = path.display();
        return fail!(
            Usage, "{shown}: a directory; one file at a time is stored";
            "tar c {shown} packs it into one; - takes standard input"
        );
    }
    let size = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(file), size))
}

/// The text of a file, or of a pipe, for what is kept in memory whole: a profile, a list of sizes or times.
///
/// # Errors
/// It cannot be read, is no text, or does not end in 128 MiB.
pub fn text(path: &Path) -> CommandResult<String> {
    const MOST: u64 = 128 << 20;
    let failed = |error: io::Error| CommandError::file(path, &error);
    let mut text = String::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MOST + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > MOST {
        let (shown, most) = (path.display(), human(MOST));
        return fail!(Usage, "{shown}: more than {most}, which no such file has"; "name a file of text");
    }
    Ok(text)
}

/// Begins a file. A drive or a saved model is not replaced.
pub fn create(path: &Path) -> CommandResult<WholeFile> {
    occupant::refuse(path)?;
    Ok(WholeFile::create(path)?)
}

/// Begins an archive, or none for `-`. A file of that name is replaced by force only.
pub fn new_archive(path: &Path, force: bool) -> CommandResult<Option<WholeFile>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    // First, for what is one of our drives is not replaced by force either.
    occupant::refuse(path)?;
    if !force && std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
        let shown = path.display();
        return fail!(Refused, "{shown}: exists already"; "take another name; --force replaces it");
    }
    // It has everybody's data.
    let file = WholeFile::create_private(path)?;
    if let Some(partial) = file.partial() {
        remove_at_signals(partial.to_owned())?;
    }
    Ok(Some(file))
}

/// Lets nothing of a file stay when a signal ends this process. Once it has its name, there is nothing to remove.
fn remove_at_signals(partial: PathBuf) -> io::Result<()> {
    let mut signals = Signals::new(ending_signals())?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _ = std::fs::remove_file(partial);
            let _ = emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Begins a file, or none for `-`, which is standard output.
pub fn destination(path: &Path) -> CommandResult<Option<WholeFile>> {
    (path != Path::new("-")).then(|| create(path)).transpose()
}

/// Where bytes go to.
pub fn target<'a>(file: &'a mut Option<WholeFile>, out: &'a mut Output) -> &'a mut dyn Write {
    match file {
        Some(file) => file,
        None => out,
    }
}

/// Writes a small one at once.
pub fn write(path: &Path, text: &str) -> CommandResult {
    let mut file = create(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.publish()?)
}
