//! Asking before data is destroyed: on a terminal a question, elsewhere a refusal that names the
//! option.

use crate::errors::{CommandError, CommandResult, Exit};
use std::io::{IsTerminal, Write};

/// Whether somebody can be asked, and can answer.
fn at_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Goes on only if `yes` was given or somebody at the terminal says so.
pub fn confirm(yes: bool, what_is_lost: &str) -> CommandResult {
    if yes {
        return Ok(());
    }
    let refused = || CommandError::new(Exit::Refused, format_args!("not done: {what_is_lost}"));
    if !at_terminal() {
        return Err(refused().hint("--yes goes on without asking"));
    }
    let mut terminal = std::io::stderr();
    write!(terminal, "{what_is_lost}. Go on? [y/N] ")?;
    terminal.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(refused()),
    }
}

/// Goes on only if `yes` was given, or somebody at the terminal types `name` after having read what is
/// lost.
pub fn confirm_by_name(
    yes: bool,
    option: &str,
    name: &str,
    what_is_lost: &[String],
) -> CommandResult {
    if !yes && !at_terminal() {
        let what = format_args!("not done: everything on {name} would be overwritten");
        let refused = CommandError::new(Exit::Refused, what);
        return Err(refused.hint(format_args!("{option} goes on without asking")));
    }
    let mut terminal = std::io::stderr();
    for line in what_is_lost {
        writeln!(terminal, "{line}")?;
    }
    if yes {
        return Ok(());
    }
    write!(terminal, "Type its name ({name}) to go on: ")?;
    terminal.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() == name {
        return Ok(());
    }
    let what = format_args!("{name}: nothing was overwritten");
    Err(CommandError::new(Exit::Refused, what))
}
