//! What was written is read, and everything else is zeros.

use super::{BLOCK, Bench, CAPACITY_BLOCKS, FIRST, Subject, ZONE_BLOCKS, geometry, pattern};
use std::collections::BTreeSet;
use zone::{ByteOffset, Geometry, ZoneCondition, ZoneId};

pub(super) fn run(make: &dyn Fn(Geometry) -> Subject) {
    what_is_written_is_read_in_any_pieces(make);
    above_the_write_pointer_are_zeros(make);
    conventional_zones_take_writes_in_any_order(make);
    a_broken_zone_keeps_what_was_written_while_it_can_be_read(make);
    zones_are_written_in_parallel(make);
    appends_in_parallel_get_places_of_their_own(make);
}

fn what_is_written_is_read_in_any_pieces(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    for (block, blocks) in [(0, 1), (1, 3), (4, 7)] {
        bench.write(FIRST, block, blocks).unwrap();
    }
    bench.device.flush().unwrap();
    bench.append(FIRST, 1).unwrap();
    let all = pattern(FIRST, 0, CAPACITY_BLOCKS);
    for blocks in 1..=CAPACITY_BLOCKS {
        for block in 0..=CAPACITY_BLOCKS - blocks {
            let (from, to) = (
                (block * BLOCK) as usize,
                ((block + blocks) * BLOCK) as usize,
            );
            assert!(bench.read(FIRST, block, blocks).unwrap() == all[from..to]);
        }
    }
}

fn above_the_write_pointer_are_zeros(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    let expect = |written: u64| {
        let mut all = pattern(FIRST, 0, written);
        all.resize((ZONE_BLOCKS * BLOCK) as usize, 0);
        assert!(
            bench.read(FIRST, 0, ZONE_BLOCKS).unwrap() == all,
            "{written} blocks written"
        );
    };
    expect(0);
    bench.write(FIRST, 0, 5).unwrap();
    expect(5);
    bench.finish(FIRST).unwrap();
    expect(5);
    bench.reset(FIRST).unwrap();
    expect(0);
    // Nothing of what was before the reset shows again.
    bench.write(FIRST, 0, 2).unwrap();
    expect(2);
    bench.finish(FIRST).unwrap();
    expect(2);
}

fn conventional_zones_take_writes_in_any_order(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    for block in [9, 3, 15, 0] {
        bench.write(1, block, 1).unwrap();
    }
    bench
        .device
        .write(bench.at(1, 3), &[0x55; BLOCK as usize])
        .unwrap();
    bench.write(0, ZONE_BLOCKS - 1, 1).unwrap();
    let mut expected = pattern(0, ZONE_BLOCKS - 1, 1);
    for block in 0..ZONE_BLOCKS {
        expected.extend(match block {
            3 => vec![0x55; BLOCK as usize],
            0 | 9 | 15 => pattern(1, block, 1),
            _ => vec![0; BLOCK as usize],
        });
    }
    assert!(bench.read(0, ZONE_BLOCKS - 1, ZONE_BLOCKS + 1).unwrap() == expected);
}

fn a_broken_zone_keeps_what_was_written_while_it_can_be_read(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    let Some(break_zone) = &bench.break_zone else {
        return;
    };
    bench.write(FIRST, 0, 2).unwrap();
    bench.write(1, 7, 1).unwrap();
    break_zone(ZoneId(FIRST), ZoneCondition::ReadOnly);
    break_zone(ZoneId(1), ZoneCondition::ReadOnly);
    assert!(bench.read(FIRST, 0, 2).unwrap() == pattern(FIRST, 0, 2));
    assert!(bench.read(1, 7, 1).unwrap() == pattern(1, 7, 1));
    // A zone offline fails a read that only touches it.
    break_zone(ZoneId(1), ZoneCondition::Offline);
    super::fails(bench.read(0, ZONE_BLOCKS - 1, 2), "offline");
    bench.read(0, ZONE_BLOCKS - 1, 1).unwrap();
}

fn zones_are_written_in_parallel(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(
        make,
        Geometry {
            max_open_zones: 2,
            ..geometry()
        },
    );
    let device = &*bench.device;
    let g = device.geometry();
    std::thread::scope(|scope| {
        for zone in FIRST..g.zone_count {
            scope.spawn(move || {
                for block in 0..CAPACITY_BLOCKS {
                    let at = ByteOffset(g.start(ZoneId(zone)).0 + block * BLOCK);
                    device.write(at, &pattern(zone, block, 1)).unwrap();
                    let open = device.report(ZoneId(0), u32::MAX).unwrap();
                    assert!(open.iter().filter(|zone| zone.condition.is_open()).count() <= 2);
                }
            });
        }
    });
    for zone in FIRST..g.zone_count {
        let all = bench.read(zone, 0, CAPACITY_BLOCKS).unwrap();
        assert!(all == pattern(zone, 0, CAPACITY_BLOCKS), "zone {zone}");
        assert_eq!(bench.descriptor(zone).condition, ZoneCondition::Full);
    }
}

fn appends_in_parallel_get_places_of_their_own(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    let device = &*bench.device;
    let mut places = BTreeSet::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CAPACITY_BLOCKS as u8)
            .map(|i| {
                let append = move || device.append(ZoneId(FIRST), &[i + 1; BLOCK as usize]);
                (i, scope.spawn(append))
            })
            .collect();
        for (i, thread) in threads {
            let at = thread.join().unwrap().unwrap();
            let mut found = [0; BLOCK as usize];
            device.read(at, &mut found).unwrap();
            assert!(found == [i + 1; BLOCK as usize]);
            places.insert(at);
        }
    });
    let expected: BTreeSet<_> = (0..CAPACITY_BLOCKS)
        .map(|block| bench.at(FIRST, block))
        .collect();
    assert_eq!(places, expected);
}
