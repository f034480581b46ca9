//! A snapshot as plain text.

use crate::errors::CommandResult;
use crate::output::Output;
use inspect::{Owner, Snapshot};
use terminal::human;
use zone_map::{letters, scale, title, totals};

/// Zones that are listed by their dead bytes.
const LISTED: usize = 10;

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
    let mut rows = vec![
        ["", "zones", "written", "live", "dead"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (owner, share) in &snapshot.owners {
        let has_data = !matches!(owner, Owner::Empty | Owner::Conventional | Owner::Ready);
        let shown = |bytes: u64| match bytes {
            0 if !has_data => String::new(),
            bytes => human(bytes),
        };
        rows.push(vec![
            format!("{} {}", owner.letter(), owner.words()),
            share.zones.to_string(),
            shown(share.written_bytes),
            shown(share.live_bytes),
            shown(share.dead_bytes),
        ]);
    }
    out.line(format_args!(""))?;
    out.table(&[0], &rows)?;
    let dead = snapshot.most_dead();
    if !dead.is_empty() {
        out.line(format_args!("\nmost dead bytes:"))?;
    }
    for zone in dead.iter().take(LISTED) {
        out.line(format_args!(
            "zone {:>6}  {:<13}  {:>9} dead of {:>9} written",
            zone.zone.0,
            zone.owner.words(),
            human(zone.dead_bytes.unwrap_or(0)),
            human(zone.written_bytes),
        ))?;
    }
    for note in &snapshot.notes {
        out.line(format_args!("note: {note}"))?;
    }
    Ok(())
}
