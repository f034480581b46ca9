//! `store health`: one screen for people, JSON and an exit code for scripts.

use super::{Access, with_view};
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use serde_json::json;
use std::path::Path;
use store::{Health, SetAside, Waiting};
use terminal::{count, human};

/// Most names that fit on the screen with everything else; `--json` has more.
const MAX_NAMES: usize = 10;

/// `store health`.
pub fn health(path: &Path, out: &mut Output) -> CommandResult {
    let health = with_view(path, Access::Read, |store| Ok(store.health()?))?;
    let mut value = serde_json::to_value(&health)?;
    value["healthy"] = json!(health.is_healthy());
    say(&health, out)?;
    out.value(&value)?;
    if health.is_healthy() {
        return Ok(());
    }
    Err(CommandError::new(
        Exit::AtRisk,
        format_args!("{}: {}", path.display(), summary(&health)),
    )
    .hint("copy what can still be read; remove or store again what cannot"))
}

fn say(health: &Health, out: &mut Output) -> CommandResult {
    if health.is_healthy() {
        out.line(format_args!(
            "healthy: nothing is known to be lost or at risk"
        ))?;
    }
    if let Some(reason) = &health.failure {
        out.line(format_args!(
            "nothing can be written until the drive is mounted again: {reason}"
        ))?;
    }
    waiting(&health.waiting, out)?;
    for zone in &health.zones {
        let what = match zone.why {
            SetAside::Unreadable => "cannot be read",
            SetAside::ReadOnly => "can only be read",
        };
        out.line(format_args!(
            "zone {} {what}, {} of objects in it: {}",
            zone.zone,
            human(zone.live_bytes),
            zone.error
        ))?;
    }
    if health.set_aside_bytes > 0 {
        out.line(format_args!(
            "{} of these zones cannot be used before the objects in them are removed",
            human(health.set_aside_bytes)
        ))?;
    }
    if let Some(objects) = health.objects.filter(|objects| *objects > 0) {
        out.line(format_args!(
            "{} with data in these zones:",
            count(objects, "object")
        ))?;
        names(&health.object_names, objects, out)?;
    }
    if !health.metadata.is_empty() {
        out.line(format_args!("metadata:"))?;
        names(&health.metadata, health.metadata.len() as u64, out)?;
    }
    if health.unusable_zones > 0 {
        let zones = count(health.unusable_zones.into(), "zone");
        out.line(format_args!("{zones} out of use, with nothing in them"))?;
    }
    Ok(())
}

fn names(names: &[String], all: u64, out: &mut Output) -> CommandResult {
    for name in names.iter().take(MAX_NAMES) {
        out.line(format_args!("  {}", name.escape_debug()))?;
    }
    let more = all.saturating_sub(MAX_NAMES as u64);
    if more > 0 {
        out.line(format_args!("  and {more} more"))?;
    }
    Ok(())
}

/// Says which commands the drive has not answered.
pub fn waiting(waiting: &[Waiting], out: &mut Output) -> CommandResult {
    for command in waiting {
        let zone = command.zone.map(|zone| format!(" in zone {zone}"));
        out.line(format_args!(
            "waiting for the drive: {}{}, for {} s",
            command.command,
            zone.unwrap_or_default(),
            command.seconds
        ))?;
    }
    Ok(())
}

fn summary(health: &Health) -> String {
    let mut parts = Vec::new();
    if health.failure.is_some() {
        parts.push("nothing can be written".to_owned());
    }
    if !health.waiting.is_empty() {
        let commands = count(health.waiting.len() as u64, "command");
        parts.push(format!("{commands} not answered"));
    }
    if !health.zones.is_empty() {
        let zones = count(health.zones.len() as u64, "zone");
        let objects = health
            .objects
            .map(|n| format!(" with data of {}", count(n, "object")));
        parts.push(format!("{zones} at risk{}", objects.unwrap_or_default()));
    }
    if !health.metadata.is_empty() {
        parts.push("damaged metadata".to_owned());
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_everything_that_is_wrong() {
        assert_eq!(summary(&Health::default()), "");
        let health = Health {
            failure: Some("flush".into()),
            waiting: vec![Waiting {
                command: zone::ZoneCommand::Reset,
                zone: Some(zone::ZoneId(4)),
                seconds: 12,
            }],
            metadata: vec!["/db/1.sst".into()],
            ..Health::default()
        };
        assert_eq!(
            summary(&health),
            "nothing can be written, 1 command not answered, damaged metadata"
        );
    }
}
