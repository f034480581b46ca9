//! A log in a file, which can be moved away and opened anew, as logrotate does, or on standard error.

use crate::lines::{Form, Lines};
use runtime::sync::{Mutex, MutexGuard};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing_subscriber::fmt::MakeWriter;

type Out = Box<dyn Write + Send>;

/// What lines are put behind; a copy of it is the same one.
#[derive(Clone)]
pub struct LogFile {
    /// `None`: standard error.
    path: Option<PathBuf>,
    lines: Arc<Mutex<Lines<Out>>>,
    lost: Arc<AtomicU64>,
}

impl LogFile {
    /// Opens it, or makes it for its owner and the owner's group.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(path: &Path, form: Form) -> io::Result<Self> {
        let name = path.display().to_string();
        let mut lines = Lines::new(open(path)?, Box::new(io::stderr()), name, form);
        lines.is_torn = is_torn(path);
        Ok(Self::of(Some(path.to_owned()), lines))
    }

    /// Standard error. If that cannot be written, nobody can be told; but it is counted.
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

    /// Whether a file of this name can be opened; makes none.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(path: &Path) -> io::Result<()> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let made = match path.symlink_metadata() {
            // A file without a name says whether one with a name could be made.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| *folder != Path::new(""));
                tempfile::tempfile_in(folder.unwrap_or(Path::new(".")))
            }
            Err(error) => Err(error),
            Ok(_) => OpenOptions::new().append(true).open(path),
        };
        made.map(|_| ()).map_err(named)
    }

    /// Opens whatever has its name now. If that fails, lines go where they went.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let new = open(path)?;
        let mut lines = self.lines.lock();
        lines.out = new;
        lines.is_torn = is_torn(path);
        Ok(())
    }

    /// Lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Tells what is lost and was not told.
    pub(crate) fn finish(&self) {
        self.lines.lock().finish();
    }
}

fn open(path: &Path) -> io::Result<Out> {
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).mode(0o640).open(path);
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    Ok(Box::new(opened.map_err(named)?))
}

/// Whether a file ends within a line, as a full disk or a crash leaves it. What cannot be read is taken for whole.
fn is_torn(path: &Path) -> bool {
    // A pipe would be waited for.
    let length = path.metadata().ok().filter(|file| file.is_file());
    let Some(end) = length.and_then(|file| file.len().checked_sub(1)) else {
        return false;
    };
    let mut last = [0];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut last, end));
    read.is_ok() && last != *b"\n"
}

/// A line's way there.
pub struct Line<'a>(MutexGuard<'a, Lines<Out>>);

impl Write for Line<'_> {
    /// Takes a line whole, as `tracing` gives it, and fails never: what is lost is told there.
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
    fn a_full_device_is_counted() {
        let log = LogFile::open(Path::new("/dev/full"), Form::Text).unwrap();
        for _ in 0..3 {
            log.make_writer().write_all(b"a line\n").unwrap();
        }
        assert_eq!(log.lost(), 3);
    }
}
