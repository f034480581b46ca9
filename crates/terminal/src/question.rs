//! Questions to the user at the terminal.

use std::io::{self, IsTerminal, Write};

/// Whether the user can see a question and answer it.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question, and returns the line that is typed.
///
/// # Errors
/// The terminal's error.
pub fn ask(question: &str) -> io::Result<String> {
    let mut terminal = io::stderr();
    write!(terminal, "{question} ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}
