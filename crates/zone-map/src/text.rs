//! Renders a snapshot as lines of text.

use inspect::{Limit, Owner, Snapshot, User, ZoneView, cells};
use zone::{Bytes, count};

/// Cells in a line of the map, and most lines.
const COLUMNS: usize = 64;
const LINES: usize = 24;
/// Number of zones in the list of those with the most dead bytes.
const LISTED: usize = 10;

/// The map with a letter for each cell: the number of zones in a cell, and the lines, each with the number of
/// its first zone.
pub fn letters(snapshot: &Snapshot) -> (usize, Vec<(usize, String)>) {
    let (per_cell, cells) = cells(&snapshot.zones, COLUMNS * LINES);
    let lines = cells.chunks(COLUMNS).enumerate().map(|(row, line)| {
        let letters = line.iter().map(|cell| cell.owner.letter()).collect();
        (row * COLUMNS * per_cell, letters)
    });
    (per_cell, lines.collect())
}

/// The drive and the process that has it open.
pub fn title(snapshot: &Snapshot) -> String {
    let g = &snapshot.geometry;
    let user = match &snapshot.user {
        User::Nobody => "used by nobody".to_owned(),
        User::Unknown => "its user cannot be told".to_owned(),
        User::Server { pid } => format!("served by zonestore (pid {pid})"),
        User::Process { pid, name: None } => format!("in use (pid {pid})"),
        User::Process {
            pid,
            name: Some(name),
        } => format!("in use by {name} (pid {pid})"),
    };
    let parts = match g.conventional_parts {
        1 => String::new(),
        parts => format!(", conventional ones in {parts} parts"),
    };
    format!(
        "{}: {} of {}{parts}, {}, {user}",
        snapshot.path,
        count(g.drive_zones().into(), "zone"),
        Bytes(g.zone_capacity),
        count(snapshot.files, "file"),
    )
}

/// The number of zones that a cell of the map stands for, in words.
pub fn scale(per_cell: usize) -> String {
    match per_cell {
        1 => "a zone each".to_owned(),
        several => format!("{several} zones each, by whoever has most of them"),
    }
}

/// The sums in three or four lines.
pub fn totals(snapshot: &Snapshot) -> Vec<String> {
    let (t, g) = (&snapshot.totals, &snapshot.geometry);
    let conditions: Vec<String> = t
        .conditions
        .iter()
        .map(|(condition, zones)| format!("{zones} {}", condition.replace('_', " ")))
        .collect();
    let mark = |limit: Limit| match (t.nearest_limit == Some(limit), t.limit_reached) {
        (false, _) => "",
        (true, false) => " <- nearest limit",
        (true, true) => " <- binds",
    };
    let most = |most: u32| {
        if most == 0 {
            "(no limit)".to_owned()
        } else {
            format!("of {most}")
        }
    };
    let open = match t.open_zones {
        Some(open) => open.to_string(),
        // All active zones may be open.
        None if g.max_open_zones == 0 => format!("up to {}", t.active_zones),
        None => format!("up to {}", t.active_zones.min(g.max_open_zones)),
    };
    let limits = format!(
        "open {open} {}{}, active {} {}{}, empty {} of {}{}",
        most(g.max_open_zones),
        mark(Limit::Open),
        t.active_zones,
        most(g.max_active_zones),
        mark(Limit::Active),
        t.empty_zones,
        t.usable_zones,
        mark(Limit::Empty),
    );
    let at_least = if t.dead_is_complete { "" } else { "at least " };
    let amplification = t
        .space_amplification
        .map_or_else(String::new, |a| format!(", space amplification {a:.3}"));
    let mut lines = vec![
        conditions.join(", "),
        limits,
        format!(
            "{at_least}{} live, {at_least}{} dead, {} not named{amplification}",
            Bytes(t.live_bytes),
            Bytes(t.dead_bytes),
            Bytes(t.unnamed_bytes)
        ),
    ];
    if let Some(rate) = snapshot.written_bytes_per_second {
        lines.push(format!("{}/s written", Bytes(rate as u64)));
    }
    lines
}

/// A table of owners and their sums, with its header in the first row.
pub fn owners(snapshot: &Snapshot) -> Vec<Vec<String>> {
    let head = ["", "zones", "written", "live", "dead"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (owner, share) in &snapshot.owners {
        let has_data = !matches!(owner, Owner::Unused | Owner::Conventional | Owner::Ready);
        let shown = |bytes: Option<u64>| match bytes {
            None | Some(0) if !has_data => String::new(),
            None => "?".to_owned(),
            Some(bytes) => Bytes(bytes).to_string(),
        };
        rows.push(vec![
            format!("{} {}", owner.letter(), owner.words()),
            share.zones.to_string(),
            shown(share.written_bytes),
            shown(share.live_bytes),
            shown(share.dead_bytes),
        ]);
    }
    rows
}

/// The zones with the most dead bytes, one line each.
pub fn most_dead(snapshot: &Snapshot) -> Vec<String> {
    let zones = snapshot.most_dead();
    let line = |zone: &ZoneView| {
        format!(
            "zone {:>6}  {:<13}  {:>9} dead of {:>9} written",
            zone.zone.0,
            zone.owner.words(),
            Bytes(zone.dead_bytes.unwrap_or(0)).to_string(),
            Bytes(zone.written_bytes.unwrap_or(0)).to_string(),
        )
    };
    zones.iter().take(LISTED).map(line).collect()
}
