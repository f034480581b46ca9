//! The zones as cells of a map: one each, or as many to a cell as it takes to fit.

use super::snapshot::{Owner, ZoneView};
use std::collections::BTreeMap;

/// What is drawn in one place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Who has most of its zones; empty ones count only if there are no others.
    pub owner: Owner,
    /// How much of its capacity is written, 0 to 1.
    pub fill: f64,
    /// How much of what is written is dead, 0 to 1.
    pub dead: f64,
}

/// Cells for `zones`, at most `most` of them, and how many zones are in each.
pub fn cells(zones: &[ZoneView], most: usize) -> (usize, Vec<Cell>) {
    let per_cell = zones.len().div_ceil(most.max(1)).max(1);
    (per_cell, zones.chunks(per_cell).map(cell).collect())
}

fn cell(zones: &[ZoneView]) -> Cell {
    let mut owners: BTreeMap<Owner, usize> = BTreeMap::new();
    for zone in zones {
        *owners.entry(zone.owner).or_default() += 1;
    }
    let used = owners
        .iter()
        .filter(|(owner, _)| !matches!(owner, Owner::Empty | Owner::Conventional))
        // Of equals the one that is listed first.
        .reduce(|a, b| if b.1 > a.1 { b } else { a });
    let owner = used.or(owners.iter().next()).map(|(owner, _)| *owner);
    let sum = |of: &dyn Fn(&ZoneView) -> u64| zones.iter().map(of).sum::<u64>();
    let written = sum(&|z| z.written_bytes);
    let share = |part: u64, whole: u64| {
        if whole == 0 {
            0.0
        } else {
            (part as f64 / whole as f64).min(1.0)
        }
    };
    Cell {
        owner: owner.unwrap_or(Owner::Empty),
        fill: share(written, sum(&|z| z.capacity)),
        dead: share(sum(&|z| z.dead_bytes.unwrap_or(0)), written),
    }
}

/// How full, in eighths; something is never nothing.
pub fn glyph(cell: &Cell) -> char {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    match cell.owner {
        Owner::ReadOnly | Owner::Offline => cell.owner.letter(),
        Owner::Empty => '·',
        _ if cell.fill <= 0.0 => '□',
        _ => EIGHTHS[((cell.fill * 8.0).ceil() as usize).clamp(1, 8) - 1],
    }
}

#[cfg(test)]
mod tests {
    use super::super::snapshot::tests::zone;
    use super::*;

    #[test]
    fn every_zone_is_in_a_cell_and_they_fit() {
        for (count, most) in [(0, 10), (1, 10), (10, 10), (11, 10), (60_000, 1920), (5, 0)] {
            let zones: Vec<_> = (0..count).map(|n| zone(n, Owner::Empty, 0, 0)).collect();
            let (per_cell, cells) = cells(&zones, most);
            assert!(cells.len() <= most.max(1), "{count} {most}");
            assert!(cells.len() * per_cell >= zones.len());
        }
    }

    #[test]
    fn whoever_has_most_zones_gives_a_cell_its_colour() {
        let zones = [
            zone(0, Owner::Empty, 0, 0),
            zone(1, Owner::Empty, 0, 0),
            zone(2, Owner::Empty, 0, 0),
            zone(3, Owner::Wal, 1 << 20, 1 << 20),
        ];
        let (per_cell, cells) = cells(&zones, 1);
        assert_eq!(per_cell, 4);
        assert_eq!(
            cells,
            [Cell {
                owner: Owner::Wal,
                fill: 0.25,
                dead: 1.0
            }]
        );
    }

    #[test]
    fn a_byte_shows_and_full_is_full() {
        let shown = |owner, written| glyph(&cell(&[zone(0, owner, written, 0)]));
        assert_eq!(shown(Owner::Table, 1), '▁');
        assert_eq!(shown(Owner::Table, 1 << 19), '▄');
        assert_eq!(shown(Owner::Table, 1 << 20), '█');
        assert_eq!(shown(Owner::AtHand, 0), '□');
        assert_eq!(shown(Owner::Empty, 0), '·');
        assert_eq!(shown(Owner::Offline, 4096), 'x');
    }
}
