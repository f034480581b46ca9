//! Renders a snapshot on a terminal of any size.

use crate::text;
use inspect::{Cell, Owner, Snapshot, ZoneView, cells};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};
use zone::Bytes;

/// Width of the legend, and the least width of a screen that shows it beside the map, in columns.
const LEGEND: u16 = 46;
const BESIDE: u16 = 80;
/// Columns before a row of the map, for the number of the row's first zone.
const LABEL: usize = 8;
/// Most columns of a cell of the map, including a gap.
const CELL: usize = 4;

/// Borders in ASCII.
const ASCII: border::Set<'static> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// The state of the display besides the snapshot.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Number of rows that the list of zones with dead bytes is scrolled by.
    pub scrolled: usize,
    /// Why the snapshot could not be refreshed.
    pub problem: Option<String>,
    /// Whether the map shows owners by letters instead of colours.
    pub letters: bool,
    /// Whether the map takes the whole screen.
    pub map_only: bool,
    /// Whether lines and the map are drawn with ASCII characters only.
    pub ascii: bool,
}

impl View {
    /// Handles one of the keys that the last line lists.
    pub fn press(&mut self, key: KeyCode, snapshot: &Snapshot) {
        match key {
            KeyCode::Down => self.scrolled = self.scrolled.saturating_add(1),
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::Char('l') => self.letters = !self.letters,
            KeyCode::Char('m') => self.map_only = !self.map_only,
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        let last = snapshot.most_dead().len().saturating_sub(1);
        self.scrolled = self.scrolled.min(last);
    }

    /// A frame with these borders.
    fn block(&self, borders: Borders) -> Block<'static> {
        let set = if self.ascii { ASCII } else { border::PLAIN };
        Block::new().borders(borders).border_set(set)
    }
}

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &View) {
    let area = frame.area();
    let notes: Vec<&String> = view.problem.iter().chain(&snapshot.notes).collect();
    let width = usize::from(area.width).max(1);
    let title_text = text::title(snapshot);
    let totals = if view.map_only {
        Vec::new()
    } else {
        text::totals(snapshot)
    };
    let keys = "q leaves, m map only, l letters, arrows scroll, space looks at once";
    let meaning = if view.letters {
        "small letters are more than half dead"
    } else {
        "dim cells are more than half dead"
    };
    let digits = if view.ascii && !view.letters {
        "; digits are eighths that are written"
    } else {
        ""
    };
    let last = format!("{keys}; {meaning}{digits}");
    let beside = area.width >= BESIDE && !view.map_only;
    let most_dead = snapshot.most_dead();
    let dead_zones = u16::try_from(most_dead.len()).unwrap_or(u16::MAX);
    let listed = match (view.map_only, dead_zones) {
        (true, _) => 0,
        (false, zones) => zones.min((area.height / 5).clamp(2, 12)) + 1,
    };
    let owners = legend_entries(snapshot, view, width);
    let below = if beside { 0 } else { owners.len() as u16 };
    let sums_height: u16 = totals.iter().map(|line| lines(line, width)).sum();
    let foot_height: u16 = notes.iter().map(|note| lines(note, width)).sum();
    let [title, sums, map, legend_below, dead, foot] = Layout::vertical([
        Constraint::Length(lines(&title_text, width)),
        Constraint::Length(sums_height),
        Constraint::Min(3),
        Constraint::Length(below),
        Constraint::Length(listed),
        Constraint::Length(foot_height + lines(&last, width)),
    ])
    .areas(area);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title_text = Paragraph::new(Line::styled(title_text, bold));
    frame.render_widget(title_text.wrap(Wrap { trim: true }), title);
    let sums_text: Vec<Line<'_>> = totals.into_iter().map(marked).collect();
    frame.render_widget(Paragraph::new(sums_text).wrap(Wrap { trim: true }), sums);
    if beside {
        let [map, legend] =
            Layout::horizontal([Constraint::Min(8), Constraint::Length(LEGEND)]).areas(map);
        draw_map(frame, snapshot, view, map);
        draw_legend(frame, snapshot, view, legend);
    } else {
        draw_map(frame, snapshot, view, map);
        frame.render_widget(Paragraph::new(owners), legend_below);
    }
    if !view.map_only {
        draw_dead(frame, &most_dead, view, dead);
    }
    let mut lines: Vec<Line<'_>> = notes
        .into_iter()
        .map(|note| Line::styled(note.clone(), Style::new().fg(Color::Yellow)))
        .collect();
    lines.push(Line::styled(last, Style::new().add_modifier(Modifier::DIM)));
    let lines = Paragraph::new(lines).wrap(Wrap { trim: true });
    frame.render_widget(lines, foot);
}

/// Number of lines that a text takes when it is wrapped between words.
fn lines(text: &str, width: usize) -> u16 {
    let mut lines = 1u16;
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            lines = lines.saturating_add(1);
            column = 0;
        }
        column += length + usize::from(column > 0);
        // A word wider than the screen is split.
        lines = lines.saturating_add((column.saturating_sub(1) / width) as u16);
        column = if column > width {
            column % width
        } else {
            column
        };
    }
    lines
}

/// A line of sums, in which the mark of the nearest or binding limit is coloured.
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

fn draw_map(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &View, area: Rect) {
    let block = view.block(Borders::TOP);
    let inside = block.inner(area);
    let (width, height) = (usize::from(inside.width), usize::from(inside.height));
    let label = if width >= 4 * LABEL { LABEL } else { 0 };
    let columns = (width - label).max(1);
    let (per_cell, cells) = cells(&snapshot.zones, columns * height);
    let cell_width = cell_width(cells.len(), columns, height);
    let in_row = (columns / cell_width).max(1);
    let title = format!(" zones, {} ", text::scale(per_cell));
    frame.render_widget(block.title(title), area);
    let lines: Vec<Line<'_>> = cells
        .chunks(in_row)
        .enumerate()
        .map(|(row, cells)| {
            let first = format!("{:>6}  ", row * in_row * per_cell);
            let first = Span::raw(if label == 0 { String::new() } else { first });
            let shown = cells.iter().map(|cell| span(cell, view, cell_width));
            Line::from(std::iter::once(first).chain(shown).collect::<Vec<_>>())
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inside);
}

/// The largest cell width at which all cells fit into the map's area.
fn cell_width(cells: usize, columns: usize, rows: usize) -> usize {
    let fits = |width: &usize| (columns / width).max(1) * rows >= cells;
    (2..=CELL).rev().find(fits).unwrap_or(1)
}

/// Renders a cell; if it is wider than one column, the last column is a gap.
fn span(cell: &Cell, view: &View, width: usize) -> Span<'static> {
    let mut style = Style::new().fg(colour(cell.owner));
    let is_dead = cell.dead > 0.5;
    if is_dead {
        style = style.add_modifier(Modifier::DIM);
    }
    let sign = match (view.letters, is_dead) {
        (true, true) => cell.owner.letter().to_ascii_lowercase(),
        (true, false) => cell.owner.letter(),
        (false, _) => glyph(cell, view.ascii),
    };
    let mut text: String = std::iter::repeat_n(sign, (width - 1).max(1)).collect();
    if width > 1 {
        text.push(' ');
    }
    Span::styled(text, style)
}

/// The sign of an owner in the legend.
fn sign(owner: Owner, view: &View) -> Span<'static> {
    let cell = Cell {
        owner,
        fill: if owner == Owner::Ready { 0.0 } else { 1.0 },
        dead: 0.0,
    };
    span(&cell, view, 1)
}

/// The legend: owners with their numbers of zones, as many in a line as fit.
fn legend_entries(snapshot: &Snapshot, view: &View, width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<(usize, Vec<Span<'static>>)> = Vec::new();
    for (owner, share) in &snapshot.owners {
        let text = format!(" {} {}   ", owner.words(), share.zones);
        let length = text.chars().count() + 1;
        match lines.last_mut() {
            Some((used, line)) if *used + length <= width + 3 => {
                *used += length;
                line.extend([sign(*owner, view), Span::raw(text)]);
            }
            _ => lines.push((length, vec![sign(*owner, view), Span::raw(text)])),
        }
    }
    lines
        .into_iter()
        .map(|(_, line)| Line::from(line))
        .collect()
}

fn draw_legend(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &View, area: Rect) {
    let block = view.block(Borders::TOP | Borders::LEFT);
    let inside = block.inner(area);
    let title = format!("{:<15}{:>6} {:>9} {:>9}", " owner", "zones", "live", "dead");
    frame.render_widget(block.title(title), area);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (owner, share) in &snapshot.owners {
        let bytes = |bytes: Option<u64>| match bytes {
            None | Some(0) => String::new(),
            Some(bytes) => Bytes(bytes).to_string(),
        };
        lines.push(Line::from(vec![
            sign(*owner, view),
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

fn draw_dead(frame: &mut Frame<'_>, zones: &[ZoneView], view: &View, area: Rect) {
    let title = match zones.len() {
        0 => " no zone has dead bytes ".to_owned(),
        n => format!(" most dead bytes, {n} zones "),
    };
    let block = view.block(Borders::TOP).title(title);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    // The list may have become shorter since it was scrolled.
    let skip = view
        .scrolled
        .min(zones.len().saturating_sub(usize::from(inside.height)));
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
                    Bytes(zone.dead_bytes.unwrap_or(0)),
                    Bytes(zone.written_bytes.unwrap_or(0))
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
        Owner::Sst => Color::Blue,
        Owner::SharedSsts => Color::Cyan,
        Owner::OtherFiles => Color::LightMagenta,
        Owner::Unnamed => Color::LightGreen,
        Owner::Objects => Color::Green,
        Owner::GivenUp | Owner::Ready => Color::Gray,
        Owner::Unused | Owner::Conventional => Color::DarkGray,
        Owner::ReadOnly | Owner::Offline => Color::Red,
    }
}

/// The fill level in eighths; a cell with any data shows at least one.
fn glyph(cell: &Cell, ascii: bool) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const DIGITS: [char; 8] = ['1', '2', '3', '4', '5', '6', '7', '8'];
    let (unused, empty, eighths) = if ascii {
        ('.', '_', DIGITS)
    } else {
        ('·', '□', BARS)
    };
    match cell.owner {
        Owner::ReadOnly | Owner::Offline => cell.owner.letter(),
        Owner::Unused => unused,
        _ if cell.fill <= 0.0 => empty,
        _ => eighths[((cell.fill * 8.0).ceil() as usize).clamp(1, 8) - 1],
    }
}

#[cfg(test)]
#[path = "../../inspect/tests/common/mod.rs"]
mod common;

#[cfg(test)]
mod tests {
    use super::common::zone;
    use super::*;

    #[test]
    fn cells_are_as_wide_as_the_map_allows() {
        assert_eq!((cell_width(16, 26, 8), cell_width(2000, 192, 45)), (4, 4));
        assert_eq!((cell_width(2000, 52, 45), cell_width(0, 1, 0)), (1, 4));
    }

    #[test]
    fn a_text_takes_as_many_lines_as_its_words_need() {
        assert_eq!(lines("", 10), 1);
        assert_eq!(lines("four five six", 9), 2);
        assert_eq!(lines("four five six", 13), 1);
        assert_eq!(lines("a word-that-is-wider", 6), 4);
    }

    #[test]
    fn a_byte_shows_and_full_is_full() {
        let shown = |owner, written| glyph(&cells(&[zone(0, owner, written, 0)], 1).1[0], false);
        assert_eq!(shown(Owner::Sst, 1), '▁');
        assert_eq!(shown(Owner::Sst, 1 << 19), '▄');
        assert_eq!(shown(Owner::Sst, 1 << 20), '█');
        assert_eq!(shown(Owner::Ready, 0), '□');
        assert_eq!(shown(Owner::Unused, 0), '·');
        assert_eq!(shown(Owner::Offline, 4096), 'x');
    }
}
