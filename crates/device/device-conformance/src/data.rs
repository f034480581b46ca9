//! Written data is read back, and all other blocks read as zeros.

use super::{Bench, Make, geometry, pattern};
use std::collections::BTreeSet;
use zone::{ByteOffset, Geometry, ZoneCondition, ZoneId};

/// Number of blocks that are written where a whole zone would take too long on a real drive.
const FEW: u64 = 12;

pub(super) fn run(make: Make) {
    what_is_written_is_read_in_any_pieces(make);
    many_reads_at_once_are_as_one_after_the_other(make);
    above_the_write_pointer_are_zeros(make);
    conventional_zones_take_writes_in_any_order(make);
    a_broken_zone_keeps_what_was_written_while_it_can_be_read(make);
    zones_are_written_in_parallel(make);
    appends_in_parallel_get_places_of_their_own(make);
}

fn what_is_written_is_read_in_any_pieces(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    for (block, blocks) in [(0, 1), (1, 3), (4, 7)] {
        bench.write(bench.first(), block, blocks).unwrap();
    }
    bench.device.flush().unwrap();
    bench.append(bench.first(), 1).unwrap();
    let all = bench.pattern(bench.first(), 0, FEW);
    for blocks in 1..=FEW {
        for block in 0..=FEW - blocks {
            let (from, to) = (
                (block * bench.block()) as usize,
                ((block + blocks) * bench.block()) as usize,
            );
            assert!(bench.read(bench.first(), block, blocks).unwrap() == all[from..to]);
        }
    }
}

fn many_reads_at_once_are_as_one_after_the_other(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    let (block, zones) = (bench.block() as usize, &bench.some()[..3]);
    // Less than half of a zone; on a real drive, long enough for many requests.
    let long = (bench.capacity() / 3).max(1);
    bench.write(zones[0], 0, long).unwrap();
    bench.write(zones[1], 0, 2).unwrap();
    // One read to many, each of one to a few blocks, some of them above the write pointer.
    for count in [1, 2, 3, 7, 32, 75] {
        let asked = (0..count as u64).map(|n| {
            let zone = zones[n as usize % zones.len()];
            let at = n * 7 % (FEW - 2);
            (zone, at, 1 + (n * n) % 3)
        });
        let asked: Vec<_> = asked.collect();
        let filled = |(_, _, blocks): &(u32, u64, u64)| vec![0xee; *blocks as usize * block];
        let mut buffers: Vec<Vec<u8>> = asked.iter().map(filled).collect();
        let places = asked.iter().zip(&mut buffers);
        let mut reads: Vec<(ByteOffset, &mut [u8])> = places
            .map(|((zone, at, _), buffer)| (bench.at(*zone, *at), &mut buffer[..]))
            .collect();
        bench.device.read_many(&mut reads).unwrap();
        for ((zone, at, blocks), found) in asked.iter().zip(buffers) {
            assert!(
                bench.read(*zone, *at, *blocks).unwrap() == found,
                "{count} reads"
            );
        }
    }
    // If one read is refused, the whole call fails.
    let mut buffers = [(); 4].map(|()| vec![0; block]);
    let mut reads: Vec<_> = buffers
        .iter_mut()
        .map(|b| (bench.at(zones[0], 0), &mut b[..]))
        .collect();
    reads[2].0.0 += 1;
    super::fails(bench.device.read_many(&mut reads), "unaligned");
    let mut expected = bench.pattern(zones[0], 0, long);
    expected.resize(2 * expected.len(), 0);
    assert!(bench.read(zones[0], 0, 2 * long).unwrap() == expected);
}

fn above_the_write_pointer_are_zeros(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    let expect = |written: u64| {
        let mut all = bench.pattern(bench.first(), 0, written);
        all.resize((bench.zone_blocks() * bench.block()) as usize, 0);
        assert!(
            bench.read(bench.first(), 0, bench.zone_blocks()).unwrap() == all,
            "{written} blocks written"
        );
    };
    expect(0);
    bench.write(bench.first(), 0, 5).unwrap();
    expect(5);
    bench.finish(bench.first()).unwrap();
    expect(5);
    bench.reset(bench.first()).unwrap();
    expect(0);
    // Data from before the reset must not be read again.
    bench.write(bench.first(), 0, 2).unwrap();
    expect(2);
    bench.finish(bench.first()).unwrap();
    expect(2);
}

fn conventional_zones_take_writes_in_any_order(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    let Some([zone, last]) = bench.conventional() else {
        return;
    };
    let (block, blocks) = (bench.block() as usize, bench.zone_blocks());
    bench.blank_conventional();
    for at in [9, 3, 15, 0] {
        bench.write(last, at, 1).unwrap();
    }
    let other = vec![0x55; block];
    bench.device.write(bench.at(last, 3), &other).unwrap();
    bench.write(zone, blocks - 1, 1).unwrap();
    let mut expected = bench.pattern(zone, blocks - 1, 1);
    for at in 0..blocks {
        expected.extend(match at {
            3 => other.clone(),
            0 | 9 | 15 => bench.pattern(last, at, 1),
            _ => vec![0; block],
        });
    }
    assert!(bench.read(zone, blocks - 1, blocks + 1).unwrap() == expected);
}

fn a_broken_zone_keeps_what_was_written_while_it_can_be_read(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    let (Some(break_zone), Some([zone, last])) = (&bench.break_zone, bench.conventional()) else {
        return;
    };
    bench.write(bench.first(), 0, 2).unwrap();
    bench.write(last, 7, 1).unwrap();
    break_zone(ZoneId(bench.first()), ZoneCondition::ReadOnly);
    break_zone(ZoneId(last), ZoneCondition::ReadOnly);
    assert!(bench.read(bench.first(), 0, 2).unwrap() == bench.pattern(bench.first(), 0, 2));
    assert!(bench.read(last, 7, 1).unwrap() == bench.pattern(last, 7, 1));
    // A read fails if it touches an offline zone, even if it begins in another.
    break_zone(ZoneId(last), ZoneCondition::Offline);
    let end = bench.zone_blocks() - 1;
    super::fails(bench.read(zone, end, 2), "offline");
    bench.read(zone, end, 1).unwrap();
}

fn zones_are_written_in_parallel(make: Make) {
    let limited = Geometry {
        max_open_zones: 2,
        ..geometry()
    };
    let Some(bench) = Bench::new(make, limited) else {
        return;
    };
    let device = &*bench.device;
    let g = device.geometry();
    let (block, capacity) = (bench.block(), bench.capacity());
    // null_blk closes no zone implicitly for another when the last active one is taken.
    let zones = bench.first()..bench.first() + (bench.room() - 1).min(10);
    let piece = (capacity / FEW).max(1);
    // A real drive may report one zone after the other, so the report is not of one moment.
    let atomic = bench.leeway.is_none();
    runtime::thread::scope(|scope| {
        for zone in zones.clone() {
            scope.spawn(move || {
                let mut next = 0;
                while next < capacity {
                    let blocks = piece.min(capacity - next);
                    let at = ByteOffset(g.start(ZoneId(zone)).0 + next * block);
                    let data = pattern(block, zone, next, blocks);
                    device.write(at, &data).unwrap();
                    let all = device.report(ZoneId(0), u32::MAX).unwrap();
                    let open = all.iter().filter(|zone| zone.condition.is_open()).count();
                    assert!(open <= g.max_open_zones as usize || !atomic);
                    next += blocks;
                }
            });
        }
    });
    for zone in zones {
        let all = bench.read(zone, 0, capacity).unwrap();
        assert!(all == bench.pattern(zone, 0, capacity), "zone {zone}");
        assert_eq!(bench.descriptor(zone).condition, ZoneCondition::Full);
    }
}

fn appends_in_parallel_get_places_of_their_own(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    if !bench.has_append() {
        return bench.note("left out: zone append, the drive has none");
    }
    let device = &*bench.device;
    let (zone, block) = (ZoneId(bench.first()), bench.block() as usize);
    let mut places = BTreeSet::new();
    runtime::thread::scope(|scope| {
        let threads: Vec<_> = (0..FEW as u8)
            .map(|i| {
                let append = move || device.append(zone, &vec![i + 1; block]);
                (i, scope.spawn(append))
            })
            .collect();
        for (i, thread) in threads {
            let at = thread.join().unwrap().unwrap();
            let mut found = vec![0; block];
            device.read(at, &mut found).unwrap();
            assert!(found == vec![i + 1; block]);
            places.insert(at);
        }
    });
    let expected: BTreeSet<_> = (0..FEW).map(|at| bench.at(zone.0, at)).collect();
    assert_eq!(places, expected);
}
