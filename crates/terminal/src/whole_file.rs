//! A file that gets its name only when it is complete, so that failed work does not leave a partial file under that
//! name.

use runtime::descriptor;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{Builder, PathPersistError, TempPath};

/// A host file could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The path as given.
    pub path: PathBuf,
    /// The host's error.
    pub source: io::Error,
}

/// A file that gets its name when it is published; devices and pipes are written directly. A link is followed, and stays.
pub struct WholeFile {
    /// The path as given.
    path: PathBuf,
    /// Where the links at the path lead.
    target: PathBuf,
    /// Temporary name until the file is complete; the file is removed if that does not happen.
    partial: Option<TempPath>,
    file: File,
    /// Whether a file that has the name by then stays.
    is_new: bool,
}

impl WholeFile {
    /// Creates the file under a temporary name, with the permissions of an existing file of its name. The process's
    /// umask applies, as for any new file.
    ///
    /// # Errors
    /// The host cannot create it, or the path names a file that this process has open, as `/dev/stdout` may: this file
    /// would take its place, or be written over what comes by the other way.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        Self::with_mode(path, 0o666)
    }

    /// As [`Self::create`], but only the owner may read a new file.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub fn create_private(path: &Path) -> Result<Self, FileError> {
        Self::with_mode(path, 0o600)
    }

    /// Temporary name of the file; `None` for a device or a pipe.
    pub fn partial(&self) -> Option<&Path> {
        self.partial.as_deref()
    }

    /// Lets a file stay that gets the name before this one does.
    #[must_use]
    pub fn new_only(mut self) -> Self {
        self.is_new = true;
        self
    }

    fn with_mode(path: &Path, mode: u32) -> Result<Self, FileError> {
        let before = fs::metadata(path).ok();
        let known = before
            .as_ref()
            .map(|before| before.permissions().mode() & 0o777);
        let name = path.as_os_str().as_bytes();
        if before.is_none() && (name.ends_with(b"/") || name.ends_with(b"/.")) {
            // No file can get such a name when it is complete.
            return Err(failed(path, io::ErrorKind::IsADirectory.into()));
        }
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let special = before.as_ref().filter(|before| !before.is_file());
        if before.is_some() && special.is_none() && descriptor(path).is_some() {
            let why = "a file that this process has open; name the file";
            return Err(failed(
                path,
                io::Error::new(io::ErrorKind::InvalidInput, why),
            ));
        }
        let opened = if let Some(special) = special {
            let mut options = File::options();
            if special.file_type().is_block_device() {
                // Fails if the device is mounted, or part of another one.
                options.custom_flags(libc::O_EXCL);
            }
            crate::open(path, options.write(true)).map(|file| (file, None))
        } else {
            let mut name = target.file_name().unwrap_or_default().to_owned();
            name.push(".");
            let made = Builder::new()
                .prefix(&name)
                .suffix(".partial")
                .permissions(Permissions::from_mode(known.unwrap_or(mode)))
                .tempfile_in(folder(&target));
            made.map(|made| {
                let (file, partial) = made.into_parts();
                (file, Some(partial))
            })
        };
        // The error names the given path, because the user does not know the temporary one.
        let (file, partial) = opened.map_err(|source| failed(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            target,
            partial,
            file,
            is_new: false,
        })
    }

    /// Makes the content durable, gives the file its name, and makes the name durable.
    ///
    /// # Errors
    /// The host's error. The previous file is still there, unless only the sync of the folder failed.
    pub fn publish_durably(self) -> Result<(), FileError> {
        let (path, target) = (self.path.clone(), self.target.clone());
        let kind = self.file.metadata().map(|found| found.file_type());
        let kind = kind.map_err(|source| failed(&path, source))?;
        // Pipes cannot be synced.
        if kind.is_file() || kind.is_block_device() {
            let synced = self.file.sync_all();
            synced.map_err(|source| failed(&path, source))?;
        }
        if self.partial.is_none() {
            return Ok(());
        }
        self.publish()?;
        let folder = File::open(folder(&target)).and_then(|folder| folder.sync_all());
        folder.map_err(|source| failed(&path, source))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// The host's error. The previous file is still there; of one that is [new only](Self::new_only),
    /// [`io::ErrorKind::AlreadyExists`].
    pub fn publish(self) -> Result<(), FileError> {
        if let Some(partial) = self.partial {
            let named = match self.is_new {
                true => persist_new(partial, &self.target),
                false => partial.persist(&self.target),
            };
            named.map_err(|error| failed(&self.path, error.error))?;
        }
        Ok(())
    }
}

/// Errors are [`FileError`]s within [`io::Error`]s.
impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        written.map_err(|source| io::Error::new(source.kind(), failed(&self.path, source)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives a file a name that no other file has.
fn persist_new(partial: TempPath, path: &Path) -> Result<(), PathPersistError> {
    partial.persist_noclobber(path).or_else(|failed| {
        match failed.error.kind() == io::ErrorKind::AlreadyExists || path.exists() {
            true => Err(failed),
            // The host's file system knows neither such a rename nor links.
            false => failed.path.persist(path),
        }
    })
}

fn failed(path: &Path, source: io::Error) -> FileError {
    FileError {
        path: path.to_owned(),
        source,
    }
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent();
    folder
        .filter(|folder| *folder != Path::new(""))
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.publish_durably().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn a_link_stays_and_what_is_open_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/file"), "old").unwrap();
        std::os::unix::fs::symlink("sub/file", at("link")).unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let mut file = WholeFile::create(&at(name)).unwrap();
            file.write_all(bytes).unwrap();
            file.publish_durably().unwrap();
        };
        write("link", b"new");
        assert!(at("link").is_symlink());
        assert_eq!(fs::read(at("sub/file")).unwrap(), b"new");
        fs::write(at("out"), "old").unwrap();
        let open = File::open(at("out")).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        std::os::unix::fs::symlink(format!("/proc/self/fd/{number}"), at("fd")).unwrap();
        std::os::unix::fs::symlink("fd", at("linked")).unwrap();
        let folders = ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"];
        let given = folders.map(|folder| Path::new(folder).join(number.to_string()));
        for path in given.into_iter().chain([at("fd"), at("linked")]) {
            let error = WholeFile::create(&path).err().unwrap();
            assert_eq!(error.source.kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
        assert!(at("fd").is_symlink() && at("linked").is_symlink());
        assert_eq!(fs::read(at("out")).unwrap(), b"old");
        assert_eq!(names(&at("sub")), ["file"]);
    }

    #[test]
    fn what_has_the_name_of_a_new_one_by_then_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let begun = || {
            let mut file = WholeFile::create_private(&path).unwrap().new_only();
            file.write_all(b"new").unwrap();
            file
        };
        let late = begun();
        begun().publish_durably().unwrap();
        fs::write(&path, "first").unwrap();
        let error = late.publish_durably().unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn what_only_its_owner_reads_stays_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        WholeFile::create(&path).unwrap().publish().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn one_that_is_given_up_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("out.partial"), "mine").unwrap();
        let mut file = WholeFile::create(&folder.path().join("out")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(names(folder.path()), ["out.partial"]);
    }

    #[test]
    fn a_device_is_written_to_and_an_error_has_the_name_that_was_given() {
        let mut file = WholeFile::create(Path::new("/dev/full")).unwrap();
        let error = file.write_all(b"x").unwrap_err();
        let error = error.downcast::<FileError>().unwrap();
        assert_eq!(error.path, Path::new("/dev/full"));
        assert_eq!(error.source.kind(), io::ErrorKind::StorageFull);
        let missing = WholeFile::create(Path::new("/nowhere/x")).err().unwrap();
        assert_eq!(missing.path, Path::new("/nowhere/x"));
        assert_eq!(missing.source.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_name_that_no_file_can_get_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "mine").unwrap();
        for name in ["new/", "new/.", "file/"] {
            let error = WholeFile::create(&folder.path().join(name)).err().unwrap();
            assert_eq!(error.source.kind(), io::ErrorKind::IsADirectory, "{name}");
        }
        assert_eq!(names(folder.path()), ["file"]);
    }
}
