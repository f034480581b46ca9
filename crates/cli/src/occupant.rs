//! What must not be overwritten for being in the way: drives, and saved models.

use crate::errors::{CommandResult, fail};
use drive_model::StateFile;
use std::path::Path;

/// Says what is at `path` if it is of ours. `None` for everything else, and where nothing is.
pub fn describe(path: &Path) -> Option<String> {
    let state = || StateFile::is_one(path).then(|| "the saved state of a model".to_owned());
    inspect::drive_at(path).or_else(state)
}

/// Refuses to write over a drive or a saved model.
pub fn refuse(path: &Path) -> CommandResult {
    let Some(what) = describe(path) else {
        return Ok(());
    };
    let shown = path.display();
    fail!(Refused, "{shown}: {what}; it is not overwritten"; "name another file")
}
