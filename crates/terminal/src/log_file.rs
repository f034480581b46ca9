//! A log on standard error, or in a file that can be moved and reopened, as logrotate does.

use crate::lines::{Form, Lines};
use runtime::sync::{Mutex, MutexGuard};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing_subscriber::fmt::MakeWriter;

type Out = Box<dyn Write + Send>;

/// A log destination; a clone refers to the same one.
#[derive(Clone)]
pub struct LogFile {
    /// Path of the file; `None` for standard error.
    path: Option<PathBuf>,
    lines: Arc<Mutex<Lines<Out>>>,
    lost: Arc<AtomicU64>,
}

impl LogFile {
    /// Opens the file, or creates it for its owner and the owner's group.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(path: &Path, form: Form) -> io::Result<Self> {
        let name = path.display().to_string();
        let out: Out = Box::new(open(path)?);
        let mut lines = Lines::new(out, Box::new(io::stderr()), name, form);
        lines.is_torn = is_torn(path);
        Ok(Self::of(Some(path.to_owned()), lines))
    }

    /// A log on standard error. If it cannot be written, the loss is only counted.
    pub(crate) fn standard_error(form: Form) -> Self {
        let name = "standard error".to_owned();
        let out: Out = Box::new(io::stderr());
        Self::of(None, Lines::new(out, Box::new(io::sink()), name, form))
    }

    fn of(path: Option<PathBuf>, lines: Lines<Out>) -> Self {
        Self {
            path,
            lost: lines.lost(),
            lines: Arc::new(Mutex::new(lines)),
        }
    }

    /// Checks that a log file can be opened, without creating it.
    ///
    /// # Errors
    /// The reason why it cannot. A pipe that nobody reads cannot be opened.
    pub fn check(path: &Path) -> io::Result<()> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let made = match path.symlink_metadata() {
            // An unnamed file in the folder shows whether a named one could be created.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| *folder != Path::new(""));
                tempfile::tempfile_in(folder.unwrap_or(Path::new(".")))
            }
            Err(error) => Err(error),
            Ok(_) => append_to(path, &mut OpenOptions::new()),
        };
        made.map(|_| ()).map_err(named)
    }

    /// Opens the file that has the path now. If that fails, lines go to the old file.
    ///
    /// # Errors
    /// The file cannot be opened, or is no regular file: writes to a pipe that is open and not read would wait, and with
    /// them every thread that logs.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let new = open(path)?;
        if !new.metadata()?.is_file() {
            let why = format!("{}: no regular file", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut lines = self.lines.lock();
        lines.out = Box::new(new);
        lines.is_torn = is_torn(path);
        Ok(())
    }

    /// Number of lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Reports unreported losses.
    pub(crate) fn finish(&self) {
        self.lines.lock().finish();
    }
}

fn open(path: &Path) -> io::Result<File> {
    let opened = append_to(path, OpenOptions::new().create(true).mode(0o640));
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    opened.map_err(named)
}

/// Opens a file for appending. A pipe that nobody reads is refused, where an open that blocks would wait for a reader. Writes
/// to a full pipe wait.
fn append_to(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let at_once = OFlags::NONBLOCK.bits() as i32;
    let file = options.append(true).custom_flags(at_once).open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)?.difference(OFlags::NONBLOCK))?;
    Ok(file)
}

/// Whether a file ends within a line, as after a full disk or a crash. A file that cannot be read counts as whole.
fn is_torn(path: &Path) -> bool {
    // Opening a pipe would wait for its other end.
    let length = path.metadata().ok().filter(|file| file.is_file());
    let Some(end) = length.and_then(|file| file.len().checked_sub(1)) else {
        return false;
    };
    let mut last = [0];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut last, end));
    read.is_ok() && last != *b"\n"
}

/// Writer of one line.
pub struct Line<'a>(MutexGuard<'a, Lines<Out>>);

impl Write for Line<'_> {
    /// Takes a whole line, as `tracing` passes it, and never fails: a loss is counted and reported by the log.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.out.flush()
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self.lines.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        let log = LogFile::open(&path, Form::Text).unwrap();
        let say = |text: &str| log.make_writer().write_all(text.as_bytes()).unwrap();
        say("1\n");
        std::fs::rename(&path, &old).unwrap();
        say("2\n");
        log.reopen().unwrap();
        say("3\n");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&old), read(&path)), ("1\n2\n".into(), "3\n".into()));
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert!(log.reopen().is_err());
        say("4\n");
    }

    #[test]
    fn a_line_that_ends_nowhere_gets_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "1\n2").unwrap();
        let say = |log: &LogFile, text: &str| log.make_writer().write_all(text.as_bytes()).unwrap();
        let log = LogFile::open(&path, Form::Text).unwrap();
        say(&log, "3\n");
        std::fs::write(&path, "4").unwrap();
        log.reopen().unwrap();
        say(&log, "5\n");
        log.reopen().unwrap();
        say(&log, "6\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "4\n5\n6\n");
    }

    #[test]
    fn a_pipe_in_the_place_of_a_log_is_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = LogFile::open(&path, Form::Text).unwrap();
        std::fs::remove_file(&path).unwrap();
        mknodat(
            CWD,
            path.as_path(),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        LogFile::check(&path).unwrap_err();
        LogFile::open(&path, Form::Text).map(drop).unwrap_err();
        log.reopen().unwrap_err();
        let mut options = OpenOptions::new();
        let options = options.custom_flags(OFlags::NONBLOCK.bits() as i32);
        let _reader = options.read(true).open(&path).unwrap();
        LogFile::check(&path).unwrap();
        // Opened and not read, a pipe takes 64 KiB.
        log.reopen().unwrap_err();
        for _ in 0..100 {
            log.make_writer().write_all(&[b'a'; 1024]).unwrap();
        }
        let file = append_to(&path, &mut OpenOptions::new()).unwrap();
        assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK));
    }

    #[test]
    fn a_full_device_is_counted() {
        let log = LogFile::open(Path::new("/dev/full"), Form::Text).unwrap();
        for _ in 0..3 {
            log.make_writer().write_all(b"a line\n").unwrap();
        }
        assert_eq!(log.lost(), 3);
    }
}
