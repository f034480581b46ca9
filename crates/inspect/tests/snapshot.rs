//! What follows from what was found.

use crate::common::*;
use bluefs::ZoneContent;
use inspect::*;
use store::ZoneUse;
use zone::{ZoneCondition, ZoneId};

#[test]
fn bytes_are_live_dead_or_not_named() {
    let seen = sample();
    let of = |n: usize| {
        let z = &seen.zones[n];
        (z.owner, z.live_bytes, z.dead_bytes, z.unnamed_bytes)
    };
    assert_eq!(of(0), (Owner::Superblock, None, None, 0));
    assert_eq!(of(2), (Owner::Journal, None, None, 0));
    assert_eq!(of(3), (Owner::Wal, Some(1 << 18), Some(0), 1 << 18));
    assert_eq!(of(4), (Owner::Sst, Some(1 << 18), Some(3 << 18), 0));
    assert_eq!(of(5), (Owner::Unnamed, Some(0), Some(1 << 18), 1 << 18));
    assert_eq!(of(6).0, Owner::Offline);
    assert_eq!(of(7).0, Owner::Ready);
    assert_eq!(of(8).0, Owner::Unused);
    assert_eq!(seen.totals.live_bytes, 2 << 18);
    assert_eq!(seen.totals.dead_bytes, 4 << 18);
    assert_eq!(seen.totals.unnamed_bytes, 2 << 18);
    assert_eq!(seen.totals.space_amplification, Some(4.0));
    assert!(seen.totals.dead_is_complete);
    let most: Vec<u32> = seen.most_dead().iter().map(|z| z.zone.0).collect();
    assert_eq!(most, [4, 5]);
}

#[test]
fn where_nobody_writes_what_has_no_name_is_dead() {
    let seen = Snapshot::new(look(User::Nobody));
    assert_eq!(seen.totals.unnamed_bytes, 0);
    assert_eq!(seen.totals.dead_bytes, 6 << 18);
}

#[test]
fn zones_beside_a_store_are_objects_and_their_dead_bytes_the_stores_to_tell() {
    let mut look = look(User::Nobody);
    look.seen.superblock.role = bluefs::Role::Shared;
    look.report[9] = told(9, ZoneCondition::Full, 1 << 20);
    let use_of_9 = ZoneUse {
        zone: ZoneId(9),
        written_bytes: 1 << 20,
        live_bytes: 1 << 19,
    };
    let store = |store| Look {
        path: look.path.clone(),
        user: User::Nobody,
        geometry: geometry(),
        report: look.report.clone(),
        tells_open: true,
        seen: look.seen.clone(),
        store,
        notes: Vec::new(),
    };
    let at_rest = Snapshot::new(store(None));
    assert_eq!(at_rest.zones[9].owner, Owner::Objects);
    assert_eq!(at_rest.zones[9].dead_bytes, None);
    assert!(!at_rest.totals.dead_is_complete && at_rest.notes.len() == 1);
    let served = Snapshot::new(store(Some(vec![use_of_9])));
    assert_eq!(served.zones[9].dead_bytes, Some(1 << 19));
    assert!(served.totals.dead_is_complete && served.notes.is_empty());
    assert_eq!(served.zones[8].owner, Owner::Unused);
}

#[test]
fn write_pointers_that_went_back_count_from_the_start() {
    let before = [
        zone(0, Owner::Sst, 4096, 0),
        zone(1, Owner::Sst, 8192, 0),
        zone(2, Owner::Sst, 512, 0),
    ];
    let mut now = before;
    now[0].written_bytes = Some(8192);
    now[1].written_bytes = Some(512);
    assert_eq!(advanced(&before, &now), 4096 + 512);
}

#[test]
fn what_is_not_known_is_not_nought() {
    let mut look = look(User::Nobody);
    // Conventional zones: one of files, one of nobody. And one that has lost its write pointer.
    look.seen
        .zones
        .insert(ZoneId(1), held(ZoneContent::Sst, 1 << 16, 0));
    let seen = Snapshot::new(look);
    let of = |n: usize| (seen.zones[n].written_bytes, seen.zones[n].used_bytes());
    assert_eq!([of(0), of(6)], [(None, None); 2]);
    assert_eq!(of(1), (None, Some(1 << 16)));
    assert_eq!(of(2), (Some(1 << 17), Some(1 << 17)));
    assert_eq!(of(8), (Some(0), Some(0)));
    let superblock = seen.owners[&Owner::Superblock];
    assert_eq!(
        (superblock.written_bytes, superblock.live_bytes),
        (None, None)
    );
    // Of two zones with SSTs, one tells how much is written.
    let ssts = seen.owners[&Owner::Sst];
    assert_eq!(ssts.written_bytes, Some(1 << 20));
    assert_eq!(ssts.live_bytes, Some((1 << 18) + (1 << 16)));
    let json = serde_json::to_value(&seen).unwrap();
    assert!(json["zones"][0]["written_bytes"].is_null());
    assert!(json["owners"]["superblock"]["written_bytes"].is_null());
}

#[test]
fn metadata_of_a_store_is_taken_and_not_kept() {
    let mut look = look(User::Nobody);
    look.seen.superblock.role = bluefs::Role::Shared;
    look.report[9] = told(9, ZoneCondition::Full, 1 << 20);
    look.store = Some(vec![ZoneUse {
        zone: ZoneId(9),
        written_bytes: 1 << 20,
        live_bytes: 1 << 19,
    }]);
    // 2 MiB in zones of files, and the MiB of which half is an object's.
    let seen = Snapshot::new(look);
    assert_eq!(seen.totals.space_amplification, Some(6.0));
}

#[test]
fn empty_zones_are_unused_or_ready() {
    let totals = sample().totals;
    let owners = sample().owners;
    let empty = owners[&Owner::Unused].zones + owners[&Owner::Ready].zones;
    assert_eq!(totals.empty_zones, empty);
    assert_eq!(totals.conditions["empty"], empty);
}
