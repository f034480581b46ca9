//! Steps of a zone's life: those that a stage allows, and that all others change nothing.

use super::stage::Stage;
use super::table::ZoneTable;
use crate::Error;
use crate::slot::{Class, Slot};
use proptest::prelude::*;
use runtime::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{Geometry, ZoneId, ZoneKind};

const ZONES: u32 = 6;

fn table() -> ZoneTable {
    ZoneTable::new(Geometry {
        block_size: 512,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: ZONES,
        conventional_zones: 1,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 4,
        max_active_zones: 4,
        max_append_bytes: 0,
    })
}

fn slot(zone: ZoneId, used: u64) -> Arc<Slot> {
    Arc::new(Slot::new(zone, Class::Short, 4, used, 1, 1))
}

#[test]
fn a_stage_takes_sixteen_bytes() {
    assert_eq!(size_of::<Stage>(), 16);
}

#[test]
fn a_zone_is_written_to_only_behind_the_flush_that_made_it_ours() {
    let (mut table, zone) = (table(), ZoneId(2));
    table.take(zone, 7).unwrap();
    table.is_in_journal(6, 1);
    assert_eq!(
        table.ready(false, u64::MAX - 1),
        None,
        "its batch is in no frame"
    );
    table.is_in_journal(7, 3);
    assert_eq!(
        (table.ready(false, 2), table.ready(false, 3)),
        (None, Some(zone))
    );
    let refused = table.open(slot(zone, 0), 2).unwrap_err();
    assert_eq!(refused.to_string(), "zone 2 is ready and cannot be opened");
    table.open(slot(zone, 0), 3).unwrap();
}

#[test]
fn a_zone_is_reset_only_behind_the_batch_that_freed_it() {
    let (mut table, zone) = (table(), ZoneId(2));
    table.claim_data(zone, 8, 1).unwrap();
    table.claim_data(zone, 9, 2).unwrap();
    assert!(table.files_in(zone).eq([(8, 1), (9, 1)]));
    table.remove(zone, 8, 1, 1, 4).unwrap();
    assert_eq!(table.live_blocks(), 2);
    assert!(
        table.remove(zone, 8, 1, 1, 4).is_err(),
        "it has nothing there any more"
    );
    table.remove(zone, 9, 1, 2, 5).unwrap();
    assert!(table.has_freed_in(5));
    assert!(table.begin_resets(4, |_| true).is_empty());
    assert_eq!(table.begin_resets(5, |z| z != zone), []);
    assert!(table.freed(4).next().is_none() && table.freed(5).eq([zone]));
    assert_eq!(table.begin_resets(5, |_| true), [zone]);
    assert!(matches!(
        table.add(zone, 8, 1, 1),
        Err(Error::ZoneStage { .. })
    ));
    table.was_reset(zone, 9).unwrap();
    assert_eq!(
        (table.ready(false, 8), table.ready(false, 9)),
        (None, Some(zone))
    );
}

#[test]
fn what_the_journal_did_not_need_waits_for_what_it_waited_for_before() {
    let (mut table, zone) = (table(), ZoneId(2));
    table.take(zone, 7).unwrap();
    let (ours, of_the_pool) = (table.set_aside(zone), table.set_aside(ZoneId(3)));
    assert!(!table.put_back(ours.unwrap()) && table.put_back(of_the_pool.unwrap()));
    assert!(matches!(table.stage(zone), Stage::Taken { batch: 7 }));
    assert!(table.is_foreign(ZoneId(3)));
}

/// Takes a step, or is refused and changes nothing.
fn step(
    table: &mut ZoneTable,
    held: &mut HashMap<ZoneId, Vec<Arc<Slot>>>,
    extents: &mut BTreeMap<(ZoneId, u64), u32>,
    (op, zone, inode): (u8, ZoneId, u64),
) {
    let slots = held.entry(zone).or_default();
    let before = format!("{:?}", table.stage(zone));
    let done = match op {
        0 => table.take(zone, 1),
        1 => table.claim_metadata(zone),
        2 => table.claim_data(zone, inode, 1),
        3 => {
            let slot = slot(zone, 0);
            *slot.fill() = u64::from(zone.0);
            table.open(slot.clone(), 1).map(|()| slots.push(slot))
        }
        4 => table.enter(zone).map(|slot| slots.push(slot)),
        5 => table.add(zone, inode, 1, 1),
        6 => table.remove(zone, inode, 1, 1, 1),
        7 => match slots.pop() {
            Some(slot) => table.release(&slot, 1).map(drop),
            None => Ok(()),
        },
        8 => table.was_reset(zone, 1),
        9 => table.forget(zone),
        10 => table.give(zone, 1),
        11 => table.set_aside(zone).map(drop),
        _ => {
            table.is_in_journal(1, 1);
            table.begin_resets(u64::from(op - 12), |_| true);
            table.leave(u64::from(op - 12));
            Ok(())
        }
    };
    match (op, &done) {
        (_, Err(_)) => assert_eq!(before, format!("{:?}", table.stage(zone))),
        (2 | 5, Ok(())) => *extents.entry((zone, inode)).or_default() += 1,
        (6, Ok(())) => *extents.entry((zone, inode)).or_default() -= 1,
        _ => {}
    }
}

proptest! {
    #[test]
    fn counts_and_indexes_follow_the_stages(
        steps in prop::collection::vec((0..14u8, 0..ZONES, 1..3u64), 0..300),
    ) {
        let (mut table, mut held, mut extents) = (table(), HashMap::default(), BTreeMap::new());
        for (op, zone, inode) in steps {
            step(&mut table, &mut held, &mut extents, (op, ZoneId(zone), inode));
            extents.retain(|_, count| *count > 0);
            let files = (0..ZONES).map(ZoneId).flat_map(|zone| {
                table.files_in(zone).map(move |(inode, count)| ((zone, inode), count))
            });
            prop_assert!(files.eq(extents.clone()));
            let stages: Vec<_> = (0..ZONES).map(|zone| (ZoneId(zone), table.stage(ZoneId(zone)))).collect();
            let data = stages.iter().filter(|(_, s)| s.is_data()).count();
            prop_assert_eq!(table.data_zones() as usize, data);
            let passing = stages.iter().filter(|(_, s)| s.is_passing()).map(|(zone, _)| *zone);
            prop_assert!(passing.eq(table.passing().map(|(zone, _)| zone)));
            let mut open: Vec<_> = table.opened().map(|o| o.slot.zone).collect();
            open.sort_unstable();
            let opened = stages.iter().filter(|(_, s)| matches!(s, Stage::Open(_)));
            prop_assert!(opened.map(|(zone, _)| *zone).eq(open));
            let live = |s: &Stage| match s {
                Stage::Open(o) => o.content.live_blocks,
                Stage::Holding(content) => content.live_blocks,
                _ => 0,
            };
            let blocks: u64 = stages.iter().map(|(_, s)| u64::from(live(s))).sum();
            prop_assert_eq!(table.live_blocks(), blocks);
        }
    }
}
