//! Host files as sources and destinations of data.

use crate::errors::{CommandError, CommandResult, fail};
use crate::occupant;
use crate::output::Output;
use runtime::Runtime;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use terminal::{WholeFile, ending_signals, human, shell_word};

/// Whether standard input and standard output were closed when this process began. Rust's runtime opens `/dev/null` in
/// their places before `main`: an object would be empty, or its data taken and not kept.
static CLOSED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// The C library calls this before Rust's runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look_for_streams;

extern "C" fn look_for_streams() {
    for (number, closed) in (0..).zip(&CLOSED) {
        // SAFETY: The call only asks whether the number stands for an open file.
        let is_open = unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
        closed.store(!is_open, Ordering::Relaxed);
    }
}

fn standard_input() -> CommandResult<io::Stdin> {
    match CLOSED[0].load(Ordering::Relaxed) {
        true => fail!(Usage, "standard input is closed"; "name a file, or leave it open"),
        false => Ok(io::stdin()),
    }
}

/// Whether the path is `-`, or one of the host's names for standard output (`/dev/stdout`). What is said of the result
/// would be mixed with the data there.
pub fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-") || runtime::descriptor(path) == Some(1)
}

/// Standard output as a destination: no file.
fn standard_output() -> CommandResult<Option<WholeFile>> {
    match CLOSED[1].load(Ordering::Relaxed) {
        true => fail!(Usage, "standard output is closed"; "name a file, or leave it open"),
        false => Ok(None),
    }
}

/// Opens a source: a file, or `-` for standard input. Also returns its size if known.
pub fn source(path: &Path) -> CommandResult<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(standard_input()?), None));
    }
    let failed = |error: io::Error| CommandError::file(path, &error);
    let file = terminal::open(path, File::options().read(true)).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        let shown = path.display();
        return fail!(
            Usage, "{shown}: a directory; one file at a time is stored";
            "tar c {} packs it into one; - takes standard input", shell_word(path)
        );
    }
    let size = metadata.is_file().then_some(metadata.len());
    Ok((Box::new(file), size))
}

/// Opens a file that is read from other places than its beginning, too. A pipe would be waited for in vain.
///
/// # Errors
/// There is no file, or it cannot be read.
pub fn regular(path: &Path) -> CommandResult<File> {
    let failed = |error: io::Error| CommandError::file(path, &error);
    if !path.metadata().map_err(failed)?.is_file() {
        let shown = path.display();
        return fail!(Usage, "{shown}: a directory, pipe or device, and no file"; "name a file");
    }
    File::open(path).map_err(failed)
}

/// Reads the text of a file or pipe that is kept in memory: a profile, a list of sizes or times.
///
/// # Errors
/// The file cannot be read, is not UTF-8, or is longer than 128 MiB.
pub fn text(path: &Path) -> CommandResult<String> {
    const MOST: u64 = 128 << 20;
    let failed = |error: io::Error| CommandError::file(path, &error);
    let mut text = String::new();
    let file = terminal::open(path, File::options().read(true)).map_err(failed)?;
    file.take(MOST + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > MOST {
        let (shown, most) = (path.display(), human(MOST));
        return fail!(Usage, "{shown}: more than {most}, which no such file has"; "name a file of text");
    }
    Ok(text)
}

/// Creates a file. An existing drive or saved model is not replaced.
pub fn create(path: &Path) -> CommandResult<WholeFile> {
    occupant::refuse(path)?;
    Ok(WholeFile::create(path)?)
}

/// Creates an archive file; `None` for standard output. An existing file is replaced, and a block device written to, only
/// with `force`.
pub fn new_archive(path: &Path, force: bool) -> CommandResult<Option<WholeFile>> {
    if is_standard_output(path) {
        return standard_output();
    }
    // This check comes first: a drive is not replaced even with `force`.
    occupant::refuse(path)?;
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if !force && found.is_file() => {
            return fail!(Refused, "{shown}: exists already"; "take another name; --force replaces it");
        }
        // A link to nothing has the name, too, and the archive would not get it hours later.
        Err(_) if !force && path.is_symlink() => {
            return fail!(Refused, "{shown}: exists already"; "take another name; --force replaces it");
        }
        Ok(found) if !force && found.file_type().is_block_device() => {
            return fail!(Refused, "{shown}: a block device"; "name a file; --force writes over what is on it");
        }
        _ => {}
    }
    // The archive has the data of all users, so only its owner may read it.
    let mut file = WholeFile::create_private(path)?;
    if !force {
        file = file.new_only();
    }
    remove_at_signals(&file)?;
    Ok(Some(file))
}

/// Creates a file for the end of long work that no signal interrupts: a signal ends the process, and no partial file
/// is left.
pub fn create_for_later(path: &Path) -> CommandResult<WholeFile> {
    let file = create(path)?;
    remove_at_signals(&file)?;
    Ok(file)
}

/// Removes a partial file if a signal ends this process. Once the file has its name, there is nothing to remove.
fn remove_at_signals(file: &WholeFile) -> CommandResult {
    let Some(partial) = file.partial().map(Path::to_owned) else {
        return Ok(());
    };
    let mut signals = Signals::new(ending_signals())?;
    let remove = move || {
        if let Some(signal) = signals.forever().next() {
            let _ = std::fs::remove_file(partial);
            let _ = emulate_default_handler(signal);
        }
    };
    let started = Runtime::system().spawn("signals", remove);
    started
        .map(drop)
        .map_err(|error| CommandError::thread(&error))
}

/// Creates a file; `None` for standard output.
pub fn destination(path: &Path) -> CommandResult<Option<WholeFile>> {
    if is_standard_output(path) {
        return standard_output();
    }
    create_for_later(path).map(Some)
}

/// The destination of bytes: the file, or standard output.
pub fn target<'a>(file: &'a mut Option<WholeFile>, out: &'a mut Output) -> &'a mut dyn Write {
    match file {
        Some(file) => file,
        None => out,
    }
}

/// Writes a small file.
pub fn write(path: &Path, text: &str) -> CommandResult {
    let mut file = create(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file.publish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::BufRead;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    /// Set in the process that has a destination open until a signal ends it.
    const PATH: &str = "ZONESTORE_TEST_DESTINATION";

    #[test]
    fn a_signal_leaves_nothing_of_a_destination() {
        if let Some(path) = std::env::var_os(PATH) {
            let mut file = destination(Path::new(&path)).unwrap().unwrap();
            file.write_all(b"half").unwrap();
            // Past the harness, which keeps what is printed.
            writeln!(io::stderr(), "ready").unwrap();
            io::stdin().read_to_end(&mut Vec::new()).unwrap();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let this = "local_file::tests::a_signal_leaves_nothing_of_a_destination";
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", this, "--nocapture"])
            .env(PATH, folder.path().join("out"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Kept open: at its end, the process would end by itself.
        let _stdin = process.stdin.take();
        let said = io::BufReader::new(process.stderr.take().unwrap());
        let mut lines = said.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.ends_with("ready")));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // SIGINT may be ignored by whoever runs this, and stays so.
        kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
        assert_eq!(process.wait().unwrap().signal(), Some(libc::SIGTERM));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
