//! The zones as cells of a map: one each, or as many to a cell as it takes to fit.

use crate::owner::Owner;
use crate::zone_view::ZoneView;
use std::collections::BTreeMap;

/// What is drawn in one place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Who has most of its zones; unused ones count only if there are no others.
    pub owner: Owner,
    /// How much of its capacity is written, 0 to 1; without a write pointer, live.
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
        .filter(|(owner, _)| !matches!(owner, Owner::Unused | Owner::Conventional))
        // Of equals the one that is listed first.
        .reduce(|a, b| if b.1 > a.1 { b } else { a });
    let owner = used.or(owners.iter().next()).map(|(owner, _)| *owner);
    let sum = |of: &dyn Fn(&ZoneView) -> u64| zones.iter().map(of).sum::<u64>();
    let written = sum(&|z| z.used_bytes().unwrap_or(0));
    let share = |part: u64, whole: u64| {
        if whole == 0 {
            0.0
        } else {
            (part as f64 / whole as f64).min(1.0)
        }
    };
    Cell {
        owner: owner.unwrap_or(Owner::Unused),
        fill: share(written, sum(&|z| z.capacity)),
        dead: share(sum(&|z| z.dead_bytes.unwrap_or(0)), written),
    }
}
