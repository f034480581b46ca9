//! What follows from what was found.

use super::*;

pub fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 16,
        conventional_zones: 2,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 4,
        max_active_zones: 4,
        max_append_bytes: 0,
    }
}

pub fn zone(number: u32, owner: Owner, written: u64, dead: u64) -> ZoneView {
    ZoneView {
        zone: ZoneId(number),
        owner,
        condition: match written {
            0 => ZoneCondition::Empty,
            w if w < 1 << 20 => ZoneCondition::Closed,
            _ => ZoneCondition::Full,
        },
        capacity: 1 << 20,
        written_bytes: written,
        live_bytes: Some(written - dead),
        dead_bytes: Some(dead),
        unnamed_bytes: 0,
    }
}

fn told(number: u32, condition: ZoneCondition, write_pointer: u64) -> ZoneDescriptor {
    let g = geometry();
    ZoneDescriptor {
        id: ZoneId(number),
        kind: g.kind(ZoneId(number)),
        condition,
        size: g.zone_size,
        capacity: g.zone_capacity,
        write_pointer,
    }
}

fn held(content: ZoneContent, live_bytes: u64, unnamed_bytes: u64) -> ObservedZone {
    ObservedZone {
        content,
        live_bytes,
        unnamed_bytes,
    }
}

fn look(user: User) -> Look {
    use ZoneCondition as C;
    let mut report: Vec<ZoneDescriptor> = (0..16).map(|n| told(n, C::Empty, 0)).collect();
    for (number, condition, pointer) in [
        (0, C::NotWritePointer, 0),
        (1, C::NotWritePointer, 0),
        (2, C::Closed, 1 << 17),
        (3, C::Closed, 1 << 19),
        (4, C::Full, 1 << 20),
        (5, C::Closed, 1 << 19),
        (6, C::Offline, 0),
    ] {
        report[number as usize] = told(number, condition, pointer);
    }
    let zones = [
        (0, held(ZoneContent::Superblock, 0, 0)),
        (1, held(ZoneContent::Superblock, 0, 0)),
        (2, held(ZoneContent::Journal, 0, 0)),
        (3, held(ZoneContent::Wal, 1 << 18, 1 << 18)),
        (4, held(ZoneContent::Table, 1 << 18, 0)),
        (5, held(ZoneContent::Unnamed, 0, 1 << 18)),
        (7, held(ZoneContent::Unnamed, 0, 0)),
    ];
    let superblock = bluefs::SuperblockInfo {
        version: bluefs::FORMAT_VERSION,
        uuid: [0; 16],
        role: bluefs::Role::Alone,
        generation: 1,
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 16,
        journal_epoch: 1,
        journal_zone: ZoneId(2),
        journal_frames: 1,
        spare_zone: ZoneId(7),
    };
    Look {
        path: "d.zoned".to_owned(),
        user,
        geometry: geometry(),
        report,
        tells_open: false,
        seen: Observation {
            superblock,
            zones: zones.map(|(n, zone)| (ZoneId(n), zone)).into(),
            files: 3,
            journal_frames: 1,
            whole: true,
        },
        store: None,
        notes: Vec::new(),
    }
}

pub fn sample() -> Snapshot {
    Snapshot::new(look(User::Process {
        pid: 7,
        name: Some("db_bench".to_owned()),
    }))
}

#[test]
fn bytes_are_live_dead_or_not_named() {
    let seen = sample();
    let of = |n: usize| {
        let z = &seen.zones[n];
        (z.owner, z.live_bytes, z.dead_bytes, z.unnamed_bytes)
    };
    assert_eq!(of(2), (Owner::Journal, None, None, 0));
    assert_eq!(of(3), (Owner::Wal, Some(1 << 18), Some(0), 1 << 18));
    assert_eq!(of(4), (Owner::Table, Some(1 << 18), Some(3 << 18), 0));
    assert_eq!(of(5), (Owner::Unnamed, Some(0), Some(1 << 18), 1 << 18));
    assert_eq!(of(6).0, Owner::Offline);
    assert_eq!(of(7).0, Owner::AtHand);
    assert_eq!(of(8).0, Owner::Empty);
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
    assert_eq!(served.zones[8].owner, Owner::Empty);
}

#[test]
fn the_limit_of_which_most_is_used_binds() {
    let mut g = geometry();
    assert_eq!(nearest(&g, None, 3, 10, 14), (Some(Limit::Active), false));
    assert_eq!(nearest(&g, Some(4), 4, 10, 14), (Some(Limit::Active), true));
    assert_eq!(nearest(&g, Some(1), 1, 1, 14), (Some(Limit::Empty), false));
    g.max_active_zones = 0;
    assert_eq!(nearest(&g, Some(4), 9, 10, 14), (Some(Limit::Open), true));
    g.max_open_zones = 0;
    assert_eq!(nearest(&g, Some(4), 9, 0, 14), (Some(Limit::Empty), true));
    assert_eq!(nearest(&g, None, 0, 0, 0), (None, false));
}

#[test]
fn write_pointers_that_went_back_count_from_the_start() {
    let before = [
        zone(0, Owner::Table, 4096, 0),
        zone(1, Owner::Table, 8192, 0),
        zone(2, Owner::Table, 512, 0),
    ];
    let mut now = before;
    now[0].written_bytes = 8192;
    now[1].written_bytes = 512;
    assert_eq!(advanced(&before, &now), 4096 + 512);
}
