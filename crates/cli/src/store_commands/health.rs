//! `store health`: one screen for people, JSON and an exit code for scripts.

use super::{Access, with_view};
use crate::errors::{CommandResult, fail};
use crate::output::Output;
use serde_json::json;
use std::path::Path;

/// `store health`.
pub fn health(path: &Path, out: &mut Output) -> CommandResult {
    let health = with_view(path, Access::Read, |store| Ok(store.health()?))?;
    let mut value = serde_json::to_value(&health)?;
    value["healthy"] = json!(health.is_healthy());
    for line in health.lines() {
        out.line(format_args!("{line}"))?;
    }
    out.value(&value)?;
    if health.is_healthy() {
        return Ok(());
    }
    fail!(
        AtRisk, "{}: {}", path.display(), health.summary();
        "copy what can still be read; remove or store again what cannot"
    )
}
