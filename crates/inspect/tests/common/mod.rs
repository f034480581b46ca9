//! A drive at one moment, put together by hand.
#![allow(dead_code)]

use bluefs::{Observation, ObservedZone, ZoneContent};
use inspect::{Look, Owner, Snapshot, User, ZoneView};
use zone::{Geometry, ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};

pub fn geometry() -> Geometry {
    Geometry {
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
        written_bytes: Some(written),
        live_bytes: Some(written - dead),
        dead_bytes: Some(dead),
        unnamed_bytes: 0,
    }
}

pub fn told(number: u32, condition: ZoneCondition, write_pointer: u64) -> ZoneDescriptor {
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

pub fn held(content: ZoneContent, live_bytes: u64, unnamed_bytes: u64) -> ObservedZone {
    ObservedZone {
        content,
        live_bytes,
        unnamed_bytes,
    }
}

pub fn look(user: User) -> Look {
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
        (4, held(ZoneContent::Sst, 1 << 18, 0)),
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
        conventional_parts: 1,
        journal_epoch: 1,
        journal_zone: ZoneId(2),
        journal_frames: 1,
        spare_zone: ZoneId(7),
        journal_twin: None,
        spare_twin: None,
    };
    Look {
        path: "d.zoned".to_owned(),
        user,
        geometry: geometry(),
        report,
        tells_open: false,
        seen: Observation {
            twins: Default::default(),
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
