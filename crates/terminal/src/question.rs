//! Questions to somebody at the terminal.

use std::io::{self, IsTerminal, Write};

/// Whether somebody can be asked, and can answer.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks, and gives what is typed until the line ends.
///
/// # Errors
/// The terminal's.
pub fn ask(question: &str) -> io::Result<String> {
    let mut terminal = io::stderr();
    write!(terminal, "{question} ")?;
    terminal.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_owned())
}
