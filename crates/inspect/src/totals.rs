//! Sums over all zones, and the limit that is nearest.

use crate::owner::Owner;
use crate::zone_view::ZoneView;
use serde::Serialize;
use std::collections::BTreeMap;
use zone::{Geometry, ZoneCondition};

/// A limit that can prevent data from being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Limit {
    /// `max_open_zones`.
    #[serde(rename = "open_zones")]
    Open,
    /// `max_active_zones`.
    #[serde(rename = "active_zones")]
    Active,
    /// The number of empty zones.
    #[serde(rename = "empty_zones")]
    Empty,
}

/// Sums over all zones.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Totals {
    /// Number of zones in each condition.
    pub conditions: BTreeMap<&'static str, u32>,
    /// Number of open zones; `None` if the drive tells only the process that has it open.
    pub open_zones: Option<u32>,
    /// Number of open and closed zones.
    pub active_zones: u32,
    /// Number of sequential zones in the condition empty, whichever owner they have.
    pub empty_zones: u32,
    /// Number of sequential zones that are neither read-only nor offline.
    pub usable_zones: u32,
    /// The limit of which the largest part is used; `None` if there is no limit.
    pub nearest_limit: Option<Limit>,
    /// Whether that limit is reached.
    pub limit_reached: bool,
    /// Known bytes of files (on a store, its metadata) and objects.
    pub live_bytes: u64,
    /// Known bytes that are written and no longer needed.
    pub dead_bytes: u64,
    /// Whether the dead bytes of every zone with data are known.
    pub dead_is_complete: bool,
    /// Bytes that are written and not in the journal yet.
    pub unnamed_bytes: u64,
    /// Bytes taken by zones with data, for each byte of user data.
    ///
    /// User data is objects on a store (its metadata takes space but does not count), else files. Zones without
    /// a write pointer take their live bytes. `None` where the amount of user data is unknown.
    pub space_amplification: Option<f64>,
}

/// Computes the sums. `tells_open`: the report distinguishes open zones from closed ones.
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
    // Zones that hold or held data: neither metadata nor empty ones.
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

/// The limit of which the largest part is used, and whether all of it is used.
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
    // Between equals, the first.
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
