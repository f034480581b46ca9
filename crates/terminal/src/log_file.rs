//! A log in a file, which can be moved away and opened anew, as logrotate does.

use runtime::sync::{Mutex, MutexGuard};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing_subscriber::fmt::MakeWriter;

/// A file that lines are put behind; a copy of it is the same one.
#[derive(Clone)]
pub struct LogFile {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl LogFile {
    /// Opens it, or makes it for its owner and the owner's group.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = Arc::new(Mutex::new(open(path)?));
        let path = path.to_owned();
        Ok(Self { path, file })
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
    pub fn reopen(&self) -> io::Result<()> {
        let new = open(&self.path)?;
        *self.lock() = new;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, File> {
        self.file.lock()
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).mode(0o640).open(path);
    opened.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// A line's way into the file.
pub struct Line<'a>(MutexGuard<'a, File>);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        let log = LogFile::open(&path).unwrap();
        let say = |text: &str| log.make_writer().write_all(text.as_bytes()).unwrap();
        say("1");
        std::fs::rename(&path, &old).unwrap();
        say("2");
        log.reopen().unwrap();
        say("3");
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&old), read(&path)), ("12".into(), "3".into()));
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert!(log.reopen().is_err());
        say("4");
    }
}
