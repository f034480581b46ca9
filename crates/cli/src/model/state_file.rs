//! The file that a model's state is kept in between commands.

use crate::args::ModelDrive;
use crate::errors::{CommandError, CommandResult, Exit};
use drive_model::state::{self, StateError};
use drive_model::{AnyProfile, Model, Time};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Locked from the beginning to the end of a command. One that was made for it is empty until the state
/// is [saved](Self::save), and is gone again if that never happens.
pub struct StateFile {
    path: PathBuf,
    file: File,
    is_new: bool,
}

/// The drive as it was left, or as it left the factory; what its clock shows; and the file to leave it in.
pub fn start(
    profile: &AnyProfile,
    arguments: &ModelDrive,
) -> CommandResult<(Box<dyn Model>, Time, Option<StateFile>)> {
    let file = arguments
        .state
        .as_deref()
        .map(StateFile::open)
        .transpose()?;
    let (mut model, start) = match &file {
        Some(file) if !file.is_new => file.load(profile)?,
        _ => (profile.model(arguments.seed)?, Time::START),
    };
    if arguments.no_write_cache {
        model.set_volatile_cache(false);
    }
    if arguments.no_look_ahead {
        model.set_look_ahead(false);
    }
    Ok((model, start, file))
}

impl StateFile {
    fn open(path: &Path) -> CommandResult<Self> {
        let of_file = |error| CommandError::file(path, &error);
        // Said now, not after hours of work.
        new_file_beside(path)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(of_file)?;
        let there = file.metadata().map_err(of_file)?;
        let is_same = |now: std::fs::Metadata| (now.dev(), now.ino()) == (there.dev(), there.ino());
        match file.try_lock() {
            // Whoever had it before may have put another in its place meanwhile.
            Ok(()) if std::fs::metadata(path).is_ok_and(is_same) => Ok(Self {
                path: path.to_owned(),
                file,
                is_new: there.len() == 0,
            }),
            Err(TryLockError::Error(error)) => Err(of_file(error)),
            _ => Err(
                CommandError::new(Exit::Busy, format_args!("{}: in use", path.display()))
                    .hint("another command goes on with this drive: wait for its end, or stop it"),
            ),
        }
    }

    fn load(&self, profile: &AnyProfile) -> CommandResult<(Box<dyn Model>, Time)> {
        let mut bytes = Vec::new();
        (&self.file)
            .read_to_end(&mut bytes)
            .map_err(|error| CommandError::file(&self.path, &error))?;
        state::load(profile, &bytes).map_err(|error| not_loaded(&error, &self.path))
    }

    /// Whether a path leads to the same file.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.file, path)
    }

    /// Puts the state in place of what was there, in one step: it is on the host's disk before its name is,
    /// and its name before this says so.
    pub fn save(mut self, profile: &AnyProfile, model: &dyn Model, now: Time) -> CommandResult {
        let path = &self.path;
        let bytes = state::save(profile, model, now)
            .map_err(|error| CommandError::new(Exit::Failed, error).context(path.display()))?;
        let mut file = new_file_beside(path)?;
        let written = file
            .write_all(&bytes)
            .and_then(|()| file.as_file().sync_all());
        written.map_err(|error| CommandError::file(path, &error))?;
        file.persist(path)
            .map_err(|error| CommandError::file(path, &error.error))?;
        self.is_new = false;
        let named = File::open(folder(&self.path)).and_then(|folder| folder.sync_all());
        named.map_err(|error| CommandError::file(&self.path, &error))
    }
}

impl Drop for StateFile {
    fn drop(&mut self) {
        if self.is_new {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn not_loaded(error: &StateError, path: &Path) -> CommandError {
    let (exit, hint) = match error {
        StateError::NotAState => (
            Exit::Refused,
            "nothing was written to it; --state names a file of this program's own",
        ),
        StateError::UnsupportedVersion { .. } | StateError::OtherProfile | StateError::NoState => (
            Exit::Refused,
            "nothing was written to it; remove it to begin with a new drive, or name another file",
        ),
        StateError::Damaged { .. } => (
            Exit::Damaged,
            "nothing was written to it; restore it from a copy, or remove it to begin with a new drive",
        ),
    };
    CommandError::new(exit, format_args!("{}: {error}", path.display())).hint(hint)
}

fn is_at(file: &File, path: &Path) -> bool {
    let id = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(other)) => id(own) == id(other),
        _ => false,
    }
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent();
    folder
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn new_file_beside(path: &Path) -> CommandResult<NamedTempFile> {
    NamedTempFile::new_in(folder(path)).map_err(|error| CommandError::file(path, &error))
}
