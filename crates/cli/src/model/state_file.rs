//! The file that a model's state is kept in between commands.

use crate::args::ModelDrive;
use crate::errors::{CommandError, CommandResult, Exit};
use drive_model::state::{self, StateError};
use drive_model::{AnyProfile, Model, Time};
use std::io::{ErrorKind, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// The drive as it was left, or as it left the factory; and what its clock shows.
pub fn start(
    profile: &AnyProfile,
    arguments: &ModelDrive,
) -> CommandResult<(Box<dyn Model>, Time)> {
    let (mut model, start) = load(profile, arguments)?;
    if arguments.no_write_cache {
        model.set_volatile_cache(false);
    }
    if arguments.no_look_ahead {
        model.set_look_ahead(false);
    }
    Ok((model, start))
}

fn load(profile: &AnyProfile, arguments: &ModelDrive) -> CommandResult<(Box<dyn Model>, Time)> {
    let new = || -> CommandResult<(Box<dyn Model>, Time)> {
        Ok((profile.model(arguments.seed)?, Time::START))
    };
    let Some(path) = &arguments.state else {
        return new();
    };
    match std::fs::read(path) {
        Ok(bytes) => state::load(profile, &bytes).map_err(|error| not_loaded(&error, path)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Said now, not after hours of work.
            new_file_beside(path)?;
            new()
        }
        Err(error) => Err(CommandError::file(path, &error)),
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

fn new_file_beside(path: &Path) -> CommandResult<NamedTempFile> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    NamedTempFile::new_in(folder).map_err(|error| CommandError::file(path, &error))
}

/// Puts the state in place of what was there, in one step.
pub fn save(profile: &AnyProfile, model: &dyn Model, now: Time, path: &Path) -> CommandResult {
    let bytes = state::save(profile, model, now)
        .map_err(|error| CommandError::new(Exit::Failed, error).context(path.display()))?;
    let mut file = new_file_beside(path)?;
    let written = file
        .write_all(&bytes)
        .and_then(|()| file.as_file().sync_all());
    written.map_err(|error| CommandError::file(path, &error))?;
    file.persist(path)
        .map_err(|error| CommandError::file(path, &error.error))?;
    Ok(())
}
