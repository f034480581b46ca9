//! The file that holds a model's state between commands.

use crate::model::Model;
use crate::profile::{AnyProfile, ProfileError};
use crate::state::{self, StateError};
use crate::time::Time;
use runtime::LockedFile;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// An open state file, locked for the duration of a command. A file that was created for the command stays empty
/// until the state is [saved](Self::save), and is removed if that does not happen.
pub struct StateFile {
    /// Where the file itself is: a link to it is not replaced.
    path: PathBuf,
    file: LockedFile,
    /// The file is empty, so the drive is new.
    is_new: bool,
    /// The file was created for this command.
    is_created: bool,
}

/// Why the file cannot be used. Nothing was written to it.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// The host's error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// Another process has this drive open.
    #[error("{}: in use", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The state of the model cannot be saved.
    #[error("{}: {source}", path.display())]
    Unsaved {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: StateError,
    },
    /// The file has no state of this drive.
    #[error("{}: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: StateError,
    },
    /// The profile is invalid.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl StateFile {
    /// Whether a file begins like a state file.
    pub fn is_one(path: &Path) -> bool {
        let mut magic = [0; 8];
        // Reading a pipe would wait for its writer.
        let read = path.is_file() && {
            let file = File::open(path);
            file.is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        };
        read && magic == state::MAGIC
    }

    /// Opens and locks the file; creates it if it is missing.
    ///
    /// # Errors
    /// The file cannot be written, is no regular file, or another process has it.
    pub fn open(path: &Path) -> Result<Self, StateFileError> {
        let of_file = |error| failed(path, error);
        let path = &itself(path).map_err(of_file)?;
        let irregular = || StateFileError::State {
            path: path.clone(),
            source: StateError::NotAState,
        };
        // A device is not even opened: it may act on that.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(irregular());
        }
        // Fails here if no file can be created next to it, not after hours of work.
        new_file_beside(path)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let (file, is_created) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (options.open(path).map_err(of_file)?, false)
            }
            Err(error) => return Err(of_file(error)),
        };
        let there = file.metadata().map_err(of_file)?;
        if !there.is_file() {
            return Err(irregular());
        }
        let is_same = |now: std::fs::Metadata| (now.dev(), now.ino()) == (there.dev(), there.ino());
        match LockedFile::exclusive(file) {
            // Another process may have replaced the file between the opening and the lock.
            Ok(file) if std::fs::metadata(path).is_ok_and(is_same) => Ok(Self {
                path: path.clone(),
                file,
                is_new: there.len() == 0,
                is_created,
            }),
            Err(TryLockError::Error(error)) => Err(of_file(error)),
            _ => Err(StateFileError::InUse { path: path.clone() }),
        }
    }

    /// The drive as it was saved, or a new one made with `seed`, and the time of its clock.
    ///
    /// # Errors
    /// The file has no state of this profile's drive.
    pub fn start(
        &self,
        profile: &AnyProfile,
        seed: u64,
    ) -> Result<(Box<dyn Model>, Time), StateFileError> {
        if self.is_new {
            return Ok((profile.model(seed)?, Time::START));
        }
        let mut bytes = Vec::new();
        let read = (&*self.file).read_to_end(&mut bytes);
        read.map_err(|error| failed(&self.path, error))?;
        state::load(profile, &bytes).map_err(|source| StateFileError::State {
            path: self.path.clone(),
            source,
        })
    }

    /// Whether a path leads to the same file.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.file, path)
    }

    /// Replaces the file by one with the state in one step: the new file is durable before it gets the name, and the
    /// name is durable before this returns. Owner and mode stay; where the owner cannot be kept, only the new one can
    /// read the file.
    ///
    /// # Errors
    /// The old content is still there, or the new one, whose name may not be durable.
    pub fn save(
        mut self,
        profile: &AnyProfile,
        model: &dyn Model,
        now: Time,
    ) -> Result<(), StateFileError> {
        let path = &self.path;
        let unsaved = |source| StateFileError::Unsaved {
            path: path.clone(),
            source,
        };
        let bytes = state::save(profile, model, now).map_err(unsaved)?;
        let mut file = new_file_beside(path)?;
        let written = file
            .write_all(&bytes)
            .and_then(|()| keep_owner(&self.file, file.as_file()))
            .and_then(|()| file.as_file().sync_all());
        written.map_err(|error| failed(path, error))?;
        file.persist(path)
            .map_err(|error| failed(path, error.error))?;
        self.is_created = false;
        let named = File::open(folder(&self.path)).and_then(|folder| folder.sync_all());
        named.map_err(|error| failed(&self.path, error))
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if self.is_created {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn failed(path: &Path, source: io::Error) -> StateFileError {
    StateFileError::Io {
        path: path.to_owned(),
        source,
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(other)) => id(own) == id(other),
        _ => false,
    }
}

/// The path of the file itself, past all links. The file may be missing.
fn itself(path: &Path) -> io::Result<PathBuf> {
    let error = match std::fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => error,
        found => return found,
    };
    if let Ok(to) = std::fs::read_link(path) {
        return itself(&folder(path).join(to));
    }
    let name = path.file_name().ok_or(error)?;
    Ok(std::fs::canonicalize(folder(path))?.join(name))
}

fn keep_owner(from: &File, to: &File) -> io::Result<()> {
    let old = from.metadata()?;
    match fchown(to, Some(old.uid()), Some(old.gid())) {
        Ok(()) => to.set_permissions(old.permissions()),
        // The mode of another's file would let others read this one.
        Err(_) => Ok(()),
    }
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent();
    folder
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn new_file_beside(path: &Path) -> Result<NamedTempFile, StateFileError> {
    NamedTempFile::new_in(folder(path)).map_err(|error| failed(path, error))
}
