//! Confirmation before data is destroyed: a question on a terminal, elsewhere a refusal that names the option.

use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::output::tell;
use terminal::{ask, can_ask};

/// Continues only if `yes` was given or the user agrees at the terminal.
pub fn confirm(yes: bool, what_is_lost: &str) -> CommandResult {
    if yes {
        return Ok(());
    }
    let refused = CommandError::new(Exit::Refused, format_args!("not done: {what_is_lost}"));
    if !can_ask() {
        return Err(refused.hint("--yes goes on without asking"));
    }
    let answer = ask(&format!("{what_is_lost}. Go on? [y/N]"))?;
    match answer.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(refused),
    }
}

/// Continues only if `yes` was given, or the user reads what is lost and types `name` at the terminal.
pub fn confirm_by_name(
    yes: bool,
    option: &str,
    name: &str,
    what_is_lost: &[String],
) -> CommandResult {
    if !yes && !can_ask() {
        return fail!(
            Refused, "not done: everything on {name} would be overwritten";
            "{option} goes on without asking"
        );
    }
    for line in what_is_lost {
        tell(format_args!("{line}"));
    }
    if yes || ask(&format!("Type its name ({name}) to go on:"))? == name {
        return Ok(());
    }
    fail!(Refused, "{name}: nothing was overwritten")
}
