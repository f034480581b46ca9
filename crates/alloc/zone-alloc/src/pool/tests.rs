use super::*;

fn pool(written: &[u32]) -> ZonePool {
    let geometry = Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 12,
        conventional_zones: 2,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 6,
        max_active_zones: 6,
        max_append_bytes: 0,
    };
    let report: Vec<_> = geometry
        .zones()
        .map(|id| ZoneDescriptor {
            id,
            kind: geometry.kind(id),
            condition: match id.0 {
                0 | 1 => ZoneCondition::NotWritePointer,
                z if written.contains(&z) => ZoneCondition::Closed,
                _ => ZoneCondition::Empty,
            },
            size: geometry.zone_size,
            capacity: geometry.zone_capacity,
            write_pointer: if written.contains(&id.0) { 4096 } else { 0 },
        })
        .collect();
    ZonePool::new(geometry, &report)
}

fn empty(geometry: &Geometry, id: ZoneId) -> ZoneDescriptor {
    let kind = geometry.kind(id);
    ZoneDescriptor {
        id,
        kind,
        condition: match kind {
            ZoneKind::Conventional => ZoneCondition::NotWritePointer,
            _ => ZoneCondition::Empty,
        },
        size: geometry.zone_size,
        capacity: geometry.capacity(id),
        write_pointer: 0,
    }
}

#[test]
fn written_zones_wait_for_a_claim() {
    let pool = pool(&[3, 5]);
    assert_eq!(pool.unclaimed(), [ZoneId(3), ZoneId(5)]);
    pool.claim(ZoneId(3), Owner::Store).unwrap();
    assert!(pool.claim(ZoneId(3), Owner::BlueFs).is_err());
    assert!(pool.claim(ZoneId(12), Owner::BlueFs).is_err());
    assert_eq!(pool.unclaimed(), [ZoneId(5)]);
    assert_eq!(pool.take(Purpose::Data), Some(ZoneId(2)));
    assert_eq!(pool.take(Purpose::Data), Some(ZoneId(4)));
    assert_eq!(pool.take(Purpose::Data), Some(ZoneId(6)));
}

#[test]
fn each_purpose_reaches_as_deep_as_it_may() {
    let pool = pool(&[]);
    pool.reserve(3);
    assert_eq!(pool.data_zones(), 5);
    for _ in 0..5 {
        assert!(pool.take(Purpose::Data).is_some());
    }
    assert_eq!(pool.take(Purpose::Data), None);
    assert!(pool.take(Purpose::Cleaning).is_some());
    assert!(pool.take(Purpose::Cleaning).is_some());
    assert_eq!(pool.take(Purpose::Cleaning), None);
    let for_files: Vec<_> = std::iter::from_fn(|| pool.take(Purpose::Journal))
        .map(|z| z.0)
        .collect();
    assert_eq!(for_files, [0, 1, 9, 10, 11]);
}

#[test]
fn a_reserve_that_grows_over_what_is_free_does_not_stop_the_cleaner() {
    let pool = pool(&[]);
    pool.reserve(3);
    while pool.take(Purpose::Data).is_some() {}
    pool.reserve(8);
    assert!(pool.take(Purpose::Cleaning).is_some());
    assert_eq!(pool.take(Purpose::Cleaning), None);
}

#[test]
fn what_bluefs_has_counts_against_its_reservation() {
    let pool = pool(&[]);
    pool.reserve(3);
    let before = pool.free_for_data();
    let zone = pool.take(Purpose::Files).unwrap();
    assert_eq!(pool.free_for_data(), before);
    pool.give_back(zone);
    assert_eq!(pool.free_for_data(), before);
}

#[test]
fn bluefs_leaves_sequential_zones_to_data_only_beside_a_store() {
    let pool = pool(&[]);
    pool.reserve(1);
    assert!(!pool.prefers_conventional());
    let own = pool.take(Purpose::Files).unwrap();
    assert_eq!(pool.geometry().kind(own), ZoneKind::SequentialWriteRequired);
    assert!(pool.prefers_conventional() && !pool.bluefs_is_in_the_way());
    for conventional in [0, 1] {
        assert_eq!(pool.take(Purpose::Files), Some(ZoneId(conventional)));
    }
    pool.take(Purpose::Files).unwrap();
    assert!(!pool.bluefs_is_in_the_way(), "no conventional zone is free");
    pool.give_back(ZoneId(0));
    assert!(pool.bluefs_is_in_the_way());
    pool.set_bluefs_alone();
    assert!(!pool.bluefs_is_in_the_way() && !pool.prefers_conventional());
}

#[test]
fn the_state_of_a_zone_fits_in_far_less_than_64_bytes() {
    assert!(size_of::<State>() <= 2);
}

#[test]
fn quotas_add_up_to_the_drives_limit() {
    let pool = pool(&[]);
    assert_eq!(pool.active_quota(Owner::Store), Some(2));
    assert_eq!(pool.active_quota(Owner::BlueFs), Some(4));
    pool.set_bluefs_alone();
    assert_eq!(pool.active_quota(Owner::Store), Some(0));
    assert_eq!(pool.active_quota(Owner::BlueFs), Some(6));
}

#[test]
fn a_pair_lies_far_apart_and_never_in_one_zone_of_the_drive() {
    let geometry = Geometry {
        conventional_parts: 4,
        zone_count: 12 + 3 * 2,
        ..pool(&[]).geometry().clone()
    };
    let report: Vec<_> = geometry.zones().map(|id| empty(&geometry, id)).collect();
    let pool = ZonePool::new(geometry.clone(), &report);
    pool.reserve(u32::MAX);
    assert_eq!(pool.free_pairs(), 4 + 5);
    let files = pool.take_pair(Purpose::Files).unwrap();
    assert_eq!(files, [ZoneId(2), ZoneId(11)]);
    // As often as `free_pairs` says, whichever zones were given back in between.
    let mut taken = Vec::new();
    for round in 0..3 {
        while let Some(pair) = pool.take_pair(Purpose::Journal) {
            let [one, other] = pair.map(|zone| geometry.zone_of_drive(zone).0);
            assert_ne!(one, other);
            assert_eq!(geometry.kind(pair[0]), geometry.kind(pair[1]));
            taken.push(pair);
        }
        assert_eq!((taken.len(), pool.free_pairs()), (8, 0));
        for pair in taken.drain(round..) {
            pair.into_iter().for_each(|zone| pool.give_back(zone));
        }
        assert_eq!(pool.free_pairs(), 8 - round as u32);
    }
}

#[test]
fn a_zone_that_another_has_goes_to_who_claims_it_next() {
    let pool = pool(&[]);
    pool.reserve(3);
    let zone = pool.take(Purpose::Files).unwrap();
    for kept in [true, false] {
        pool.claim_next(zone, Some(Owner::Store));
        assert_eq!(pool.owner(zone), Some(Owner::BlueFs));
        if !kept {
            pool.claim_next(zone, None);
        }
        pool.give_back(zone);
        assert_eq!(pool.owner(zone), kept.then_some(Owner::Store));
        // Only once.
        pool.give_back(zone);
        assert_eq!(pool.take(Purpose::Files), Some(zone));
    }
}
