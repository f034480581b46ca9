//! The zones of a drive as a picture (SVG): a cell a zone, filled from below as far as it is written,
//! the live part in its owner's colour, the dead part hatched. It follows light and dark displays.

use inspect::{Cell, Owner, Snapshot, cells};
use std::fmt::Write as _;
use zone::Bytes;

const WIDTH: usize = 960;
const MARGIN: usize = 20;
/// Height of the two lines of text above the map.
const HEAD: usize = 62;
const GAP: usize = 2;
const MOST_CELLS: usize = 3_000;
const LEGEND_LINE: usize = 22;
const LEGEND_COLUMNS: usize = 3;

/// Renders a snapshot as an SVG document.
pub fn svg(drive: &Snapshot) -> String {
    let (per_cell, cells) = cells(&drive.zones, MOST_CELLS);
    let columns = columns(cells.len());
    let pitch = (WIDTH - 2 * MARGIN) / columns;
    let (wide, high) = (pitch - GAP, (pitch - GAP) * 3 / 2);
    let rows = cells.len().div_ceil(columns);
    let legend_top = HEAD + rows * (high + GAP) + 30;
    let legend_rows = drive.owners.len().div_ceil(LEGEND_COLUMNS);
    let height = legend_top + legend_rows * LEGEND_LINE + MARGIN / 2;
    let mut out = String::with_capacity(200 * cells.len() + 4_096);
    head(&mut out, drive, per_cell, height);
    for (at, cell) in cells.iter().enumerate() {
        let x = MARGIN + at % columns * pitch;
        let y = HEAD + at / columns * (high + GAP);
        draw(&mut out, cell, [x, y, wide, high].map(|n| n as f64));
    }
    legend(&mut out, drive, legend_top);
    out.push_str("</svg>\n");
    out
}

/// Number of columns that makes the map wider than high.
fn columns(cells: usize) -> usize {
    let wanted = (cells as f64 * 3.0 * 1.5).sqrt().ceil() as usize;
    wanted.clamp(16, (WIDTH - 2 * MARGIN) / (GAP + 4))
}

fn head(out: &mut String, drive: &Snapshot, per_cell: usize, height: usize) {
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" font-size="13">
<style>
text {{ fill: #24292f }} .quiet {{ fill: #57606a }} .cell {{ fill: #eaeef2 }} .sheet {{ fill: #ffffff }}
@media (prefers-color-scheme: dark) {{
text {{ fill: #e6edf3 }} .quiet {{ fill: #9198a1 }} .cell {{ fill: #262c36 }} .sheet {{ fill: #0d1117 }}
}}
</style>
<defs><pattern id="dead" width="4" height="4" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="sheet" width="2" height="4" opacity="0.75"/></pattern></defs>
<rect class="sheet" width="{WIDTH}" height="{height}" rx="8"/>
"#
    );
    let title = format!(
        "{} zones of {}: {} live, {} dead",
        drive.zones.len(),
        Bytes(drive.geometry.zone_size),
        Bytes(drive.totals.live_bytes),
        Bytes(drive.totals.dead_bytes),
    );
    let each = match per_cell {
        1 => "A cell is a zone".to_owned(),
        many => format!("A cell is {many} zones"),
    };
    text(
        out,
        MARGIN,
        26,
        r#" font-weight="600" font-size="16""#,
        &title,
    );
    let reading = format!("{each}, filled as far as it is written; hatched: dead.");
    text(out, MARGIN, 47, r#" class="quiet""#, &reading);
}

fn text(out: &mut String, x: usize, y: usize, attributes: &str, words: &str) {
    let _ = writeln!(out, r#"<text x="{x}" y="{y}"{attributes}>{words}</text>"#);
}

fn draw(out: &mut String, cell: &Cell, [x, y, wide, high]: [f64; 4]) {
    let _ = writeln!(
        out,
        r#"<rect class="cell" x="{x}" y="{y}" width="{wide}" height="{high}" rx="1"/>"#
    );
    let colour = colour(cell.owner);
    // Owned zones without a fill level (kept ready, or conventional without live bytes) are drawn as whole cells.
    let fill = match cell.owner {
        Owner::Unused | Owner::Conventional => return,
        _ if cell.fill <= 0.0 => 1.0,
        _ => cell.fill.max(1.5 / high),
    };
    let (filled, dead) = (high * fill, high * fill * cell.dead);
    let top = y + high - filled;
    let opacity = if cell.fill <= 0.0 { 0.35 } else { 1.0 };
    let _ = writeln!(
        out,
        r#"<rect x="{x}" y="{top:.1}" width="{wide}" height="{filled:.1}" rx="1" fill="{colour}" opacity="{opacity}"/>"#
    );
    if dead >= 0.5 {
        let _ = writeln!(
            out,
            r#"<rect x="{x}" y="{top:.1}" width="{wide}" height="{dead:.1}" fill="url(#dead)"/>"#
        );
    }
}

fn legend(out: &mut String, drive: &Snapshot, top: usize) {
    let column = (WIDTH - 2 * MARGIN) / LEGEND_COLUMNS;
    let rows = drive.owners.len().div_ceil(LEGEND_COLUMNS).max(1);
    for (at, (owner, share)) in drive.owners.iter().enumerate() {
        let x = MARGIN + at / rows * column;
        let y = top + at % rows * LEGEND_LINE;
        let class = match owner {
            Owner::Unused | Owner::Conventional => r#"class="cell""#.to_owned(),
            _ => format!(r#"fill="{}""#, colour(*owner)),
        };
        let box_top = y - 11;
        let _ = writeln!(
            out,
            r#"<rect {class} x="{x}" y="{box_top}" width="13" height="13" rx="2"/>"#
        );
        let mut words = format!("{}, {} zones", owner.words(), share.zones);
        if share.zones == 1 {
            words.pop();
        }
        if let Some(live @ 1..) = share.live_bytes {
            let _ = write!(words, ", {} live", Bytes(live));
        }
        text(out, x + 20, y, "", &words);
    }
}

const fn colour(owner: Owner) -> &'static str {
    match owner {
        Owner::Superblock => "#6e40c9",
        Owner::Journal => "#d4a72c",
        Owner::Wal => "#cf222e",
        Owner::Manifest => "#bf3989",
        Owner::Sst => "#0969da",
        Owner::SharedSsts => "#1b9aaa",
        Owner::OtherFiles => "#e377c2",
        Owner::Unnamed => "#8ddb8c",
        Owner::Objects => "#2da44e",
        Owner::GivenUp | Owner::Ready => "#8c959f",
        Owner::Unused | Owner::Conventional => "none",
        Owner::ReadOnly => "#fb8500",
        Owner::Offline => "#82071e",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_of_any_size_fit_the_sheet() {
        for cells in [1, 16, 384, 3_000] {
            let columns = columns(cells);
            let pitch = (WIDTH - 2 * MARGIN) / columns;
            assert!(
                pitch > GAP + 3 && columns * pitch <= WIDTH - 2 * MARGIN,
                "{cells}"
            );
        }
    }
}
