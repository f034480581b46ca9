//! Sums over all zones, and the limit that binds.

use crate::owner::Owner;
use crate::zone_view::ZoneView;
use serde::Serialize;
use std::collections::BTreeMap;
use zone::{Geometry, ZoneCondition};

/// What could keep data from being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Limit {
    /// `max_open_zones`.
    #[serde(rename = "open_zones")]
    Open,
    /// `max_active_zones`.
    #[serde(rename = "active_zones")]
    Active,
    /// Empty zones are few.
    #[serde(rename = "empty_zones")]
    Empty,
}

/// Sums over all zones.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Totals {
    /// Zones in each condition.
    pub conditions: BTreeMap<&'static str, u32>,
    /// Open zones; unknown where the drive does not say it to others than its user.
    pub open_zones: Option<u32>,
    /// Open and closed zones.
    pub active_zones: u32,
    /// Sequential zones in the condition empty, whoever has them.
    pub empty_zones: u32,
    /// Sequential zones that are neither read-only nor offline.
    pub usable_zones: u32,
    /// The limit that is nearest, if any is there.
    pub nearest_limit: Option<Limit>,
    /// Whether it is reached.
    pub limit_reached: bool,
    /// Bytes of files (on a store, its metadata) and objects, as far as it is known.
    pub live_bytes: u64,
    /// Written and no longer needed, as far as it is known.
    pub dead_bytes: u64,
    /// Whether every zone with data says how much of it is dead.
    pub dead_is_complete: bool,
    /// Written and not in the journal yet.
    pub unnamed_bytes: u64,
    /// Bytes that zones with data take, for each byte that somebody keeps there: of objects on a store, whose metadata
    /// is taken and not kept, else of files. Zones without a write pointer take what is live in them. Unknown where
    /// what is kept is.
    pub space_amplification: Option<f64>,
}

/// Sums. `tells_open`: the report tells open zones from closed ones.
pub(crate) fn totals(
    geometry: &Geometry,
    zones: &[ZoneView],
    tells_open: bool,
    has_store: bool,
) -> Totals {
    let mut conditions: BTreeMap<&'static str, u32> = BTreeMap::new();
    for zone in zones {
        *conditions.entry(zone.condition.name()).or_default() += 1;
    }
    let count = |what: &dyn Fn(&ZoneView) -> bool| zones.iter().filter(|z| what(z)).count() as u32;
    let open = tells_open.then(|| count(&|z| z.condition.is_open()));
    let active = count(&|z| z.condition.is_active());
    let empty = count(&|z| z.condition == ZoneCondition::Empty);
    let usable = count(&|z| {
        !matches!(
            z.condition,
            ZoneCondition::ReadOnly | ZoneCondition::Offline | ZoneCondition::NotWritePointer
        )
    });
    let (nearest_limit, limit_reached) = nearest(geometry, open, active, empty, usable);
    // Zones that hold data, or did: not metadata, not what is empty.
    let data = || {
        zones
            .iter()
            .filter(|z| z.used_bytes().is_some_and(|bytes| bytes > 0) && holds_data(z))
    };
    let live: u64 = data().filter_map(|z| z.live_bytes).sum();
    let taken: u64 = data().filter_map(ZoneView::used_bytes).sum();
    let mut keeping = data().filter(|z| !has_store || z.owner == Owner::Objects);
    let kept = keeping.try_fold(0, |sum, z| Some(sum + z.live_bytes?));
    let kept = kept.filter(|kept| *kept > 0);
    Totals {
        conditions,
        open_zones: open,
        active_zones: active,
        empty_zones: empty,
        usable_zones: usable,
        nearest_limit,
        limit_reached,
        live_bytes: live,
        dead_bytes: data().filter_map(|z| z.dead_bytes).sum(),
        dead_is_complete: data().all(|z| z.dead_bytes.is_some()),
        unnamed_bytes: data().map(|z| z.unnamed_bytes).sum(),
        space_amplification: kept.map(|kept| taken as f64 / kept as f64),
    }
}

fn holds_data(zone: &ZoneView) -> bool {
    !matches!(zone.owner, Owner::Superblock | Owner::Journal)
}

/// The limit of which the largest part is used, and whether all of it is.
fn nearest(
    geometry: &Geometry,
    open: Option<u32>,
    active: u32,
    empty: u32,
    usable: u32,
) -> (Option<Limit>, bool) {
    let used_up = usable.saturating_sub(empty);
    [
        (Limit::Active, active, geometry.max_active_zones),
        (Limit::Open, open.unwrap_or(0), geometry.max_open_zones),
        (Limit::Empty, used_up, usable),
    ]
    .into_iter()
    .filter(|(_, _, most)| *most > 0)
    .map(|(limit, used, most)| (limit, f64::from(used) / f64::from(most)))
    // Of equals the first.
    .reduce(|a, b| if b.1 > a.1 { b } else { a })
    .map_or((None, false), |(limit, used)| (Some(limit), used >= 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zone::ZoneKind;

    const GEOMETRY: Geometry = Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 16,
        conventional_zones: 2,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 4,
        max_active_zones: 4,
        max_append_bytes: 0,
    };

    #[test]
    fn the_limit_of_which_most_is_used_binds() {
        let mut g = GEOMETRY.clone();
        assert_eq!(nearest(&g, None, 3, 10, 14), (Some(Limit::Active), false));
        assert_eq!(nearest(&g, Some(4), 4, 10, 14), (Some(Limit::Active), true));
        assert_eq!(nearest(&g, Some(1), 1, 1, 14), (Some(Limit::Empty), false));
        g.max_active_zones = 0;
        assert_eq!(nearest(&g, Some(4), 9, 10, 14), (Some(Limit::Open), true));
        g.max_open_zones = 0;
        assert_eq!(nearest(&g, Some(4), 9, 0, 14), (Some(Limit::Empty), true));
        assert_eq!(nearest(&g, None, 0, 0, 0), (None, false));
    }
}
