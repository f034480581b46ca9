//! `store health`: one screen for people, JSON and an exit code for scripts.

use super::{Access, with_view};
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::output::Output;
use control::StoreView;
use serde_json::json;
use std::path::Path;
use terminal::shell_word;

/// `store health`.
pub fn health(path: &Path, out: &mut Output) -> CommandResult {
    let (health, restored) = with_view(path, Access::Read, |store| {
        // A store with half a restore cannot be served.
        let restored = match store {
            StoreView::Here(store) => archive::check_finished(store),
            StoreView::Served(_) => Ok(()),
        };
        Ok((store.health()?, restored))
    })?;
    let mut value = serde_json::to_value(&health)?;
    value["healthy"] = json!(health.is_healthy() && restored.is_ok());
    value["half_restored"] = json!(restored.is_err());
    let mut lines = health.lines();
    if let Err(error) = &restored {
        // No loss is known, but the store is incomplete.
        lines.splice(..usize::from(health.is_healthy()), [error.to_string()]);
    }
    for line in lines {
        out.line(format_args!("{line}"))?;
    }
    out.value(&value)?;
    if let Err(error) = restored {
        let error = CommandError::from(error).context(path.display());
        return Err(CommandError {
            exit: Exit::AtRisk,
            ..error
        });
    }
    if health.is_healthy() {
        return Ok(());
    }
    if !health.metadata.is_empty() {
        let drive = shell_word(path);
        return fail!(
            AtRisk, "{}: {}", path.display(), health.summary();
            "keep a copy of the drive, or of what can still be read; `zonestore store fsck {drive} --repair` puts records in \
             order; if that does not end it, `zonestore store salvage {drive}` says what the data tell without the metadata"
        );
    }
    fail!(
        AtRisk, "{}: {}", path.display(), health.summary();
        "copy what can still be read; remove or store again what cannot"
    )
}
