//! Builds the drive that a crash state leaves: durable content plus the kept commands.

use super::crash_state::{CrashState, ZoneChoice};
use super::{State, Unflushed};
use crate::rules::{RestedZone, ZoneTable};
use crate::sparse::SparseBytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{Geometry, ZoneCondition, ZoneId, ZoneKind};

pub(super) fn make(
    state: &State,
    geometry: &Geometry,
    choice: &CrashState,
) -> (ZoneTable, Vec<Arc<SparseBytes>>) {
    let mut bytes: Vec<_> = state
        .durable
        .iter()
        .map(|zone| Arc::clone(&zone.bytes))
        .collect();
    let mut rested: Vec<_> = state.durable.iter().map(|zone| zone.rested).collect();
    for (zone, kept) in settle(state, geometry, choice) {
        let Some(log) = state.unflushed.get(&zone) else {
            continue;
        };
        let (bytes, rested) = (&mut bytes[zone.index()], &mut rested[zone.index()]);
        match &kept {
            ZoneChoice::Prefix {
                operations,
                torn_bytes,
            } => {
                let (whole, rest) = log.split_at(*operations.min(&log.len()));
                for what in whole {
                    apply(geometry, zone, bytes, rested, what, u64::MAX);
                }
                if let (Some(torn @ Unflushed::Write { .. }), 1..) = (rest.first(), *torn_bytes) {
                    apply(geometry, zone, bytes, rested, torn, *torn_bytes);
                }
            }
            ZoneChoice::Blocks { kept } => {
                let mut kept = kept.iter();
                for what in log {
                    let Unflushed::Write { offset, data } = what else {
                        continue;
                    };
                    let blocks = data.chunks(geometry.block_size as usize);
                    for (block, at) in blocks.zip((*offset..).step_by(geometry.block_size as usize))
                    {
                        if kept.next().is_some_and(|kept| *kept) {
                            Arc::make_mut(bytes).write(at, block);
                        }
                    }
                }
            }
        }
    }
    (table(geometry, &rested), bytes)
}

/// `choice` with as many further commands as the active limit requires. Where too many zones would be active,
/// zones are advanced, lowest first, to the next point at which their commands leave them empty or full. That
/// always suffices: a zone that stays active is active after all of its commands too, and after all commands
/// the limit held.
fn settle(state: &State, geometry: &Geometry, choice: &CrashState) -> BTreeMap<ZoneId, ZoneChoice> {
    let mut choices = choice.zones.clone();
    if geometry.max_active_zones == 0 {
        return choices;
    }
    let active = |zone: ZoneId, choice: Option<&ZoneChoice>| {
        rested_after(state, geometry, zone, choice)
            .condition
            .is_active()
    };
    let mut count = geometry
        .zones()
        .filter(|zone| active(*zone, choices.get(zone)))
        .count();
    for (zone, log) in &state.unflushed {
        if count <= geometry.max_active_zones as usize {
            break;
        }
        let kept = match choices.get(zone) {
            Some(ZoneChoice::Prefix { operations, .. }) => *operations,
            Some(ZoneChoice::Blocks { .. }) => continue,
            None => 0,
        };
        if active(*zone, choices.get(zone)) {
            let mut further = (kept + 1..=log.len()).map(|operations| ZoneChoice::Prefix {
                operations,
                torn_bytes: 0,
            });
            if let Some(settled) = further.find(|choice| !active(*zone, Some(choice))) {
                choices.insert(*zone, settled);
                count -= 1;
            }
        }
    }
    choices
}

/// The state of `zone` after its kept commands, without its bytes.
fn rested_after(
    state: &State,
    geometry: &Geometry,
    zone: ZoneId,
    choice: Option<&ZoneChoice>,
) -> RestedZone {
    let mut rested = state.durable[zone.index()].rested;
    if let (
        Some(ZoneChoice::Prefix {
            operations,
            torn_bytes,
        }),
        Some(log),
    ) = (choice, state.unflushed.get(&zone))
    {
        let (whole, rest) = log.split_at(*operations.min(&log.len()));
        for what in whole {
            advance(geometry, zone, &mut rested, what, u64::MAX);
        }
        if let (Some(torn @ Unflushed::Write { .. }), 1..) = (rest.first(), *torn_bytes) {
            advance(geometry, zone, &mut rested, torn, *torn_bytes);
        }
    }
    rested
}

fn apply(
    geometry: &Geometry,
    zone: ZoneId,
    bytes: &mut Arc<SparseBytes>,
    rested: &mut RestedZone,
    what: &Unflushed,
    at_most: u64,
) {
    match what {
        Unflushed::Write { offset, data } => {
            let take = at_most.min(data.len() as u64) as usize;
            Arc::make_mut(bytes).write(*offset, &data[..take]);
        }
        Unflushed::Reset => *bytes = Arc::default(),
        Unflushed::Finish => {}
    }
    advance(geometry, zone, rested, what, at_most);
}

fn advance(
    geometry: &Geometry,
    zone: ZoneId,
    rested: &mut RestedZone,
    what: &Unflushed,
    at_most: u64,
) {
    if geometry.kind(zone) == ZoneKind::Conventional {
        return;
    }
    let capacity = geometry.capacity(zone);
    rested.write_pointer = match what {
        Unflushed::Write { offset, data } => rested
            .write_pointer
            .max(offset + at_most.min(data.len() as u64)),
        Unflushed::Reset => 0,
        Unflushed::Finish => capacity,
    };
    // A broken zone stays broken, whatever commands are kept.
    if !matches!(
        rested.condition,
        ZoneCondition::ReadOnly | ZoneCondition::Offline
    ) {
        rested.condition = match rested.write_pointer {
            0 => ZoneCondition::Empty,
            pointer if pointer == capacity => ZoneCondition::Full,
            _ => ZoneCondition::Closed,
        };
    }
}

fn table(geometry: &Geometry, rested: &[RestedZone]) -> ZoneTable {
    let Ok(mut table) = ZoneTable::new(geometry.clone()) else {
        unreachable!("the geometry was valid when the drive was made")
    };
    for (zone, rested) in geometry.zones().zip(rested) {
        assert!(
            table.restore(zone, *rested),
            "zone {zone} cannot be {rested:?}"
        );
    }
    table
}
