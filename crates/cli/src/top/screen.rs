//! A snapshot as a picture in a terminal of any size.

use super::map::{Cell, cells, glyph};
use super::plain;
use super::snapshot::{Owner, Snapshot, ZoneView};
use crate::size::human;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

/// Columns of the legend.
const LEGEND: u16 = 46;

/// What is shown besides the snapshot.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// How many of the zones with the most dead bytes are scrolled past.
    pub scrolled: usize,
    /// Why the snapshot is older than it should be.
    pub problem: Option<String>,
}

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &View) {
    let area = frame.area();
    let totals = plain::totals(snapshot);
    let notes: Vec<&String> = view.problem.iter().chain(&snapshot.notes).collect();
    let width = usize::from(area.width).max(1);
    // A word that does not fit goes to the next line, so there may be one more than the letters take.
    let lines = |text: &str| (text.chars().count() * 9 / 8).div_ceil(width).max(1) as u16;
    let notes_height: u16 = notes.iter().map(|note| lines(note)).sum();
    let listed = (area.height / 5).clamp(2, 12);
    let title_text = plain::title(snapshot);
    let wraps = title_text.chars().count() > usize::from(area.width);
    let [title, sums, map, dead, foot] = Layout::vertical([
        Constraint::Length(1 + u16::from(wraps)),
        Constraint::Length(totals.len() as u16),
        Constraint::Min(3),
        Constraint::Length(listed + 1),
        Constraint::Length(notes_height + 1),
    ])
    .areas(area);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title_text = Paragraph::new(Line::styled(title_text, bold));
    frame.render_widget(title_text.wrap(Wrap { trim: true }), title);
    let sums_text: Vec<Line<'_>> = totals.into_iter().map(marked).collect();
    frame.render_widget(Paragraph::new(sums_text), sums);
    let legend_width = LEGEND.min(map.width / 2 + 6);
    let [map, legend] =
        Layout::horizontal([Constraint::Min(8), Constraint::Length(legend_width)]).areas(map);
    draw_map(frame, snapshot, map);
    draw_legend(frame, snapshot, legend);
    draw_dead(frame, &snapshot.most_dead(), view.scrolled, dead);
    let mut lines: Vec<Line<'_>> = notes
        .into_iter()
        .map(|note| Line::styled(note.clone(), Style::new().fg(Color::Yellow)))
        .collect();
    lines.push(Line::styled(
        "q leaves, arrows scroll, space looks at once; dim cells are more than half dead",
        Style::new().add_modifier(Modifier::DIM),
    ));
    let lines = Paragraph::new(lines).wrap(Wrap { trim: true });
    frame.render_widget(lines, foot);
}

/// A line of sums; what binds stands out.
fn marked(text: String) -> Line<'static> {
    for (mark, colour) in [
        ("<- nearest limit", Color::Yellow),
        ("<- binds", Color::Red),
    ] {
        if let Some(at) = text.find(mark) {
            let (front, rest) = text.split_at(at);
            let (mark, behind) = rest.split_at(mark.len());
            let style = Style::new().fg(colour).add_modifier(Modifier::BOLD);
            return Line::from(vec![
                Span::raw(front.to_owned()),
                Span::styled(mark.to_owned(), style),
                Span::raw(behind.to_owned()),
            ]);
        }
    }
    Line::raw(text)
}

fn draw_map(frame: &mut Frame<'_>, snapshot: &Snapshot, area: Rect) {
    let block = Block::new().borders(Borders::TOP);
    let inside = block.inner(area);
    let room = usize::from(inside.width) * usize::from(inside.height);
    let (per_cell, cells) = cells(&snapshot.zones, room);
    let title = format!(" zones, {} ", plain::scale(per_cell));
    frame.render_widget(block.title(title), area);
    let lines: Vec<Line<'_>> = cells
        .chunks(usize::from(inside.width).max(1))
        .map(|row| Line::from(row.iter().map(span).collect::<Vec<_>>()))
        .collect();
    frame.render_widget(Paragraph::new(lines), inside);
}

fn span(cell: &Cell) -> Span<'static> {
    let mut style = Style::new().fg(colour(cell.owner));
    if cell.dead > 0.5 {
        style = style.add_modifier(Modifier::DIM);
    }
    Span::styled(glyph(cell).to_string(), style)
}

fn draw_legend(frame: &mut Frame<'_>, snapshot: &Snapshot, area: Rect) {
    let block = Block::new().borders(Borders::TOP | Borders::LEFT);
    let inside = block.inner(area);
    let title = format!("{:<15}{:>6} {:>9} {:>9}", " owner", "zones", "live", "dead");
    frame.render_widget(block.title(title), area);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (owner, share) in &snapshot.owners {
        let sign = Cell {
            owner: *owner,
            fill: if *owner == Owner::AtHand { 0.0 } else { 1.0 },
            dead: 0.0,
        };
        let bytes = |bytes: u64| match bytes {
            0 => String::new(),
            bytes => human(bytes),
        };
        lines.push(Line::from(vec![
            span(&sign),
            Span::raw(format!(
                " {:<13}{:>6} {:>9} {:>9}",
                owner.words(),
                share.zones,
                bytes(share.live_bytes),
                bytes(share.dead_bytes)
            )),
        ]));
    }
    frame.render_widget(Paragraph::new(lines), inside);
}

fn draw_dead(frame: &mut Frame<'_>, zones: &[ZoneView], scrolled: usize, area: Rect) {
    let title = match zones.len() {
        0 => " no zone has dead bytes ".to_owned(),
        n => format!(" most dead bytes, {n} zones "),
    };
    let block = Block::new().borders(Borders::TOP).title(title);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    // The list can have become shorter.
    let skip = scrolled.min(zones.len().saturating_sub(usize::from(inside.height)));
    let lines: Vec<Line<'_>> = zones
        .iter()
        .skip(skip)
        .take(usize::from(inside.height))
        .map(|zone| {
            Line::from(vec![
                Span::raw(format!("zone {:>6}  ", zone.zone.0)),
                Span::styled(
                    format!("{:<13}", zone.owner.words()),
                    Style::new().fg(colour(zone.owner)),
                ),
                Span::raw(format!(
                    "  {:>9} dead of {:>9} written",
                    human(zone.dead_bytes.unwrap_or(0)),
                    human(zone.written_bytes)
                )),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inside);
}

const fn colour(owner: Owner) -> Color {
    match owner {
        Owner::Superblock => Color::White,
        Owner::Journal => Color::Yellow,
        Owner::Wal => Color::LightRed,
        Owner::Manifest => Color::Magenta,
        Owner::Table => Color::Blue,
        Owner::SharedTables => Color::Cyan,
        Owner::OtherFiles => Color::LightMagenta,
        Owner::Unnamed => Color::LightGreen,
        Owner::Objects => Color::Green,
        Owner::GivenUp | Owner::AtHand => Color::Gray,
        Owner::Empty | Owner::Conventional => Color::DarkGray,
        Owner::ReadOnly | Owner::Offline => Color::Red,
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::tests::{sample, zone};
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(snapshot: &Snapshot, view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, snapshot, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = buffer.content.chunks(usize::from(width));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect())
            .collect()
    }

    #[test]
    fn a_small_terminal_shows_all_parts() {
        let screen = drawn(&sample(), &View::default(), 80, 24);
        let all = screen.join("\n");
        for part in [
            "d.zoned: 16 zones of 1 MiB, 3 files, in use by db_bench (pid 7)",
            "active 3 of 4 <- nearest limit",
            "zones, a zone each",
            "WAL",
            "most dead bytes, 2 zones",
            "q leaves",
        ] {
            assert!(all.contains(part), "{part}\n{all}");
        }
        // Superblocks, a full table, one that is half full and empty zones.
        assert!(all.contains("□□▁▄█▄"), "{all}");
        assert!(all.contains("········"), "{all}");
    }

    #[test]
    fn the_list_of_dead_bytes_begins_with_the_most_and_scrolls() {
        let mut snapshot = sample();
        snapshot.zones = (0..40)
            .map(|n| zone(n, Owner::Table, 1 << 19, 1000))
            .collect();
        for zone in &mut snapshot.zones {
            zone.dead_bytes = Some(u64::from(zone.zone.0) * 1024);
        }
        let top = drawn(&snapshot, &View::default(), 100, 30).join("\n");
        assert!(top.contains("zone     39  one table") && !top.contains("zone     20"));
        let view = View {
            scrolled: 19,
            ..View::default()
        };
        let below = drawn(&snapshot, &view, 100, 30).join("\n");
        assert!(below.contains("zone     20") && !below.contains("zone     39"));
    }

    #[test]
    fn more_zones_than_fit_share_cells_and_that_is_said() {
        let mut snapshot = sample();
        snapshot.zones = (0..60_000).map(|n| zone(n, Owner::Empty, 0, 0)).collect();
        let screen = drawn(&snapshot, &View::default(), 80, 24).join("\n");
        assert!(screen.contains("zones each"), "{screen}");
    }

    #[test]
    fn a_problem_is_shown_and_no_size_is_too_small() {
        let view = View {
            problem: Some("the drive is gone".to_owned()),
            ..View::default()
        };
        let screen = drawn(&sample(), &view, 80, 24).join("\n");
        assert!(screen.contains("the drive is gone"));
        for (width, height) in [(1, 1), (3, 2), (10, 5), (20, 200), (300, 3)] {
            drawn(&sample(), &view, width, height);
        }
    }
}
