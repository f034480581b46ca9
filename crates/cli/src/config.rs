//! `zonestore config`: checks a server's configuration, and prints the values that would apply.

use crate::args::ConfigCommand;
use crate::errors::{CommandError, CommandResult, Exit, sorted};
use crate::output::Output;
use crate::plan::Plan;
use daemon::FileError;
use daemon::settings::{self, SECTIONS, Settings, SettingsError};
use serde_json::json;
use std::io;
use std::path::Path;
use terminal::{count, shell_word};

/// Runs one of the commands.
pub fn run(command: &ConfigCommand, out: &mut Output) -> CommandResult {
    match command {
        ConfigCommand::Check { file } => check(file, out),
        ConfigCommand::Example => out.bytes(settings::example().as_bytes()),
    }
}

fn check(path: &Path, out: &mut Output) -> CommandResult {
    let settings = Settings::load(path)?;
    let plan = Plan::of(Some(&settings), Default::default())?;
    let (keys, has_tls) = (plan.keys, plan.tls.is_some());
    let file = &settings.file;
    let sections = [
        ("serve", file.serve.shown()),
        ("drive", file.drive.shown()),
        ("tls", file.tls.shown()),
        ("log", file.log.shown()),
        ("trace", file.trace.shown()),
        ("limits.key", file.limits.key.shown()),
        ("limits.address", file.limits.address.shown()),
    ];
    for (path, fields) in &sections {
        let known = SECTIONS.iter().find(|section| section.path == *path);
        let known = known.map_or(&[][..], |section| section.fields);
        for ((name, value), field) in fields.iter().zip(known) {
            match value {
                Some(value) => out.line(format_args!("{path}.{name} = {value}"))?,
                None if field.default.starts_with("none: ") => {
                    out.line(format_args!("{path}.{name}: {}", field.default))?;
                }
                None => out.line(format_args!("{path}.{name}: {} (default)", field.default))?,
            }
        }
    }
    for key in &file.key {
        let said = key.shown().into_iter();
        let said = said.filter_map(|(name, value)| Some(format!("{name} = {}", value?)));
        out.line(format_args!("key: {}", said.collect::<Vec<_>>().join(", ")))?;
    }
    if keys.is_empty() {
        out.line(format_args!(
            "key: the one beside the drive may do everything (default)"
        ))?;
    }
    let names = keys.iter().map(|key| key.credentials.access_key());
    let names: Vec<&str> = names.collect();
    let path_shown = path.display();
    let lacks = match plan.serve.drive {
        Some(_) => String::new(),
        None => format!(
            "; it names no drive, so one has to be named beside it: zonestore serve DRIVE --config {}",
            shell_word(path)
        ),
    };
    let keys = count(keys.len() as u64, "key");
    out.line(format_args!("{path_shown}: sound; {keys}{lacks}"))?;
    out.value(&json!({ "file": path.display().to_string(), "keys": names, "tls": has_tls, "drive": plan.serve.drive }))
}

impl From<SettingsError> for CommandError {
    fn from(error: SettingsError) -> Self {
        use SettingsError as E;
        match error {
            E::File(error) => error.into(),
            E::Keys(error) => error.into(),
            error => sorted! { error:
                E::Syntax { .. } => Usage, "`zonestore config example` prints every field with an example";
                E::Refused { .. } => Usage, "`zonestore config check` says more";
                E::Key { .. } | E::Value { .. } => Usage, "docs/configuration.md says what goes together";
                E::Tls(_) => Usage, "both are PEM files: the certificate with those that vouch for it, and its key";
                E::File(_) | E::Keys(_) => Failed;
            },
        }
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        match &error {
            FileError::Unread { path, source } if source.kind() == io::ErrorKind::InvalidData => {
                Self::new(
                    Exit::Usage,
                    format_args!("{}: it is no text", path.display()),
                )
            }
            FileError::Unread { path, source } if source.kind() == io::ErrorKind::FileTooLarge => Self::new(
                Exit::Usage,
                format_args!("{}: {source}", path.display()),
            )
            .hint("is it the right file? Configurations, keys and certificates have a few KiB"),
            FileError::Unread { path, source } => Self::file(path, source)
                .hint("paths in a configuration begin in its folder; whoever serves has to be able to read them"),
            FileError::Readable { path, .. } => {
                Self::new(Exit::Refused, &error).hint(format_args!("chmod 600 {}", shell_word(path)))
            }
        }
    }
}
