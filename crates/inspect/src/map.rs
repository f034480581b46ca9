//! The zones as cells of a map: one zone in each cell, or as many as are needed to keep the number of cells
//! within a limit.

use crate::owner::Owner;
use crate::zone_view::ZoneView;
use std::collections::BTreeMap;

/// One cell of the map.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// The owner of most of its zones; unused and conventional zones count only if there are no others.
    pub owner: Owner,
    /// Written share of its capacity, 0 to 1; zones without a write pointer count with their live bytes.
    pub fill: f64,
    /// Dead share of the written bytes, 0 to 1.
    pub dead: f64,
}

/// The cells of `zones`, at most `most`, and the number of zones in each.
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
        // Between equals, the owner listed first.
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
