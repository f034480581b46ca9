//! `zonestore model …`: runs the drive models, and exports them as block devices.

mod export;
mod report;
mod run;

use crate::args::{ModelCommand, ModelDrive};
use crate::errors::{CommandError, CommandResult, sorted};
use crate::local_file;
use crate::output::Output;
use drive_model::profile::{ModelKind, ProfileError, models};
use drive_model::state::StateError;
use drive_model::{AnyProfile, Model, StateFile, StateFileError, Time};
use serde_json::json;
use std::ffi::OsStr;
use std::path::Path;

/// Runs `zonestore model …`.
pub fn run(command: ModelCommand, out: &mut Output) -> CommandResult {
    match command {
        ModelCommand::List => list(out),
        ModelCommand::Show { profile } => {
            let profile = find(&profile)?;
            out.line(format_args!("{}", profile.text().trim_end()))?;
            out.value(&json!({
                "name": profile.name(), "class": profile.class().name(),
                "exported": profile.class().takes_any_write(), "profile": profile.text(),
            }))
        }
        ModelCommand::Run(arguments) => run::run(&arguments, out),
        ModelCommand::Export(arguments) => export::run(&arguments, out),
    }
}

fn list(out: &mut Output) -> CommandResult {
    let models = models()?;
    out.table(&[0, 1, 2, 3], &ModelKind::rows(&models))?;
    out.value(&json!({ "models": models }))
}

/// A profile by its built-in name, or by the path of a file, which need not be UTF-8.
pub fn find(text: &OsStr) -> CommandResult<AnyProfile> {
    let path = Path::new(text);
    let is_path = text.as_encoded_bytes().contains(&b'/');
    if !is_path && path.extension().is_none_or(|ending| ending != "toml") {
        return Ok(AnyProfile::named(&text.to_string_lossy())?);
    }
    AnyProfile::parse(local_file::text(path)?)
        .map_err(|error| CommandError::from(error).context(path.display()))
}

/// The drive in its saved state, or a new one; the time of its clock; and the file to save its state in.
fn start(
    profile: &AnyProfile,
    arguments: &ModelDrive,
) -> CommandResult<(Box<dyn Model>, Time, Option<StateFile>)> {
    let file = arguments.state.as_deref().map(StateFile::open);
    let file = file.transpose()?;
    let (mut model, start) = match &file {
        Some(file) => file.start(profile, arguments.seed)?,
        None => (profile.model(arguments.seed)?, Time::START),
    };
    // The switches are the command's, not the state's.
    model.set_volatile_cache(!arguments.no_write_cache);
    model.set_look_ahead(!arguments.no_look_ahead);
    Ok((model, start, file))
}

impl From<StateFileError> for CommandError {
    fn from(error: StateFileError) -> Self {
        use StateFileError as E;
        let error = match error {
            E::Io { path, source } => return Self::file(&path, &source),
            E::Profile(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            E::InUse { .. } => Busy,
                "another command goes on with this drive: wait for its end, or stop it";
            E::State { source: StateError::NotAState, .. } => Refused,
                "nothing was written to it; --state names a file of this program's own";
            E::State { source: StateError::Damaged { .. }, .. } => Damaged,
                "nothing was written to it; restore it from a copy, or remove it to begin with a new drive";
            E::State { .. } => Refused,
                "nothing was written to it; remove it to begin with a new drive, or name another file";
            _ => Failed;
        }
    }
}

impl From<ProfileError> for CommandError {
    fn from(error: ProfileError) -> Self {
        sorted! { error:
            ProfileError::Unknown { .. } => NotFound,
                "`zonestore model list` describes them; the path of a profile of your own works too";
            _ => Usage, "`zonestore model show NAME` prints one that is right, with what its numbers mean";
        }
    }
}
