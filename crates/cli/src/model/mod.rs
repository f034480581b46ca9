//! `zonestore model …`: the drive models, and a block device of each for everybody.

mod data;
mod export;
mod requests;
mod run;
mod session;
mod state_file;
mod statistics;
mod stretches;

use crate::args::ModelCommand;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use drive_model::profile::{ProfileError, all_names};
use drive_model::{AnyProfile, BLOCK_BYTES};
use serde_json::json;
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
    let mut rows = vec![["name", "class", "export", ""].map(str::to_owned).to_vec()];
    let mut models = Vec::new();
    for name in all_names() {
        let profile = AnyProfile::named(name)?;
        let class = profile.class();
        let exported = class.takes_any_write();
        rows.push(vec![
            name.to_owned(),
            class.name().to_owned(),
            if exported { "yes" } else { "no" }.to_owned(),
            profile.description().to_owned(),
        ]);
        models.push(json!({
            "name": name, "class": class.name(), "exported": exported,
            "description": profile.description(),
            "bytes": profile.model(1)?.blocks() * BLOCK_BYTES,
        }));
    }
    out.table(&[0, 1, 2, 3], &rows)?;
    out.value(&json!({ "models": models }))
}

/// A profile by its name, or by the path of a file.
fn find(text: &str) -> CommandResult<AnyProfile> {
    let path = Path::new(text);
    if !text.contains('/') && path.extension().is_none_or(|ending| ending != "toml") {
        return Ok(AnyProfile::named(text)?);
    }
    let toml = std::fs::read_to_string(path).map_err(|error| CommandError::file(path, &error))?;
    AnyProfile::parse(toml).map_err(|error| CommandError::from(error).context(path.display()))
}

impl From<ProfileError> for CommandError {
    fn from(error: ProfileError) -> Self {
        match error {
            ProfileError::Unknown { .. } => Self::new(Exit::NotFound, error)
                .hint("`zonestore model list` describes them; the path of a profile of your own works too"),
            _ => Self::new(Exit::Usage, error)
                .hint("`zonestore model show NAME` prints one that is right, with what its numbers mean"),
        }
    }
}
