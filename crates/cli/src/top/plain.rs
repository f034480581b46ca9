//! A snapshot as plain text.

use crate::errors::CommandResult;
use crate::output::Output;
use inspect::Snapshot;
use zone_map::{letters, most_dead, owners, scale, title, totals};

/// Prints a snapshot.
pub fn print(snapshot: &Snapshot, out: &mut Output) -> CommandResult {
    out.line(format_args!("{}", title(snapshot)))?;
    for line in totals(snapshot) {
        out.line(format_args!("{line}"))?;
    }
    let (per_cell, lines) = letters(snapshot);
    out.line(format_args!("\nzones, {}:", scale(per_cell)))?;
    for (first, letters) in lines {
        out.line(format_args!("{first:>8}  {letters}"))?;
    }
    out.line(format_args!(""))?;
    out.table(&[0], &owners(snapshot))?;
    let dead = most_dead(snapshot);
    if !dead.is_empty() {
        out.line(format_args!("\nmost dead bytes:"))?;
    }
    let notes = snapshot.notes.iter().map(|note| format!("note: {note}"));
    dead.into_iter()
        .chain(notes)
        .try_for_each(|line| out.line(format_args!("{line}")))
}
