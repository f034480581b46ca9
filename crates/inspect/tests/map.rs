//! Zones as cells of a map.

use crate::common::zone;
use inspect::{Cell, Owner, cells};

#[test]
fn every_zone_is_in_a_cell_and_they_fit() {
    for (count, most) in [(0, 10), (1, 10), (10, 10), (11, 10), (60_000, 1920), (5, 0)] {
        let zones: Vec<_> = (0..count).map(|n| zone(n, Owner::Unused, 0, 0)).collect();
        let (per_cell, cells) = cells(&zones, most);
        assert!(cells.len() <= most.max(1), "{count} {most}");
        assert!(cells.len() * per_cell >= zones.len());
    }
}

#[test]
fn whoever_has_most_zones_gives_a_cell_its_colour() {
    let zones = [
        zone(0, Owner::Unused, 0, 0),
        zone(1, Owner::Unused, 0, 0),
        zone(2, Owner::Unused, 0, 0),
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
