//! `zonestore completions` and `zonestore man`: shell completions and manual pages, generated from the definition of
//! the command line.

use crate::args::Arguments;
use crate::errors::{CommandError, CommandResult};
use crate::output::Output;
use clap_complete::Shell;
use serde_json::json;
use std::path::Path;
use terminal::{count, shell_word};

/// Prints the completion script of a shell.
pub fn completions(shell: Shell, out: &mut Output) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::described(), "zonestore", &mut script);
    out.bytes(&script)
}

/// Writes a manual page for the program and for each of its commands.
pub fn pages(directory: &Path, out: &mut Output) -> CommandResult {
    let failed = |error| CommandError::folder(directory, &error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Arguments::described(), directory).map_err(failed)?;
    let pages = count_pages(&Arguments::described());
    out.line(format_args!(
        "{}: {}; man -l {} shows the first",
        directory.display(),
        count(pages, "page"),
        shell_word(&directory.join("zonestore.1"))
    ))?;
    out.value(&json!({ "directory": directory.display().to_string(), "pages": pages }))
}

/// Number of manual pages of a command and its subcommands.
fn count_pages(command: &clap::Command) -> u64 {
    1 + command.get_subcommands().map(count_pages).sum::<u64>()
}
