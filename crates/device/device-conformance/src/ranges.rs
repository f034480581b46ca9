//! Alignment, ends of zones and of the drive, sizes of appends, reports.

use super::{Bench, Make, fails, geometry};
use zone::{ByteOffset, Geometry, ZoneError, ZoneId};

pub(super) fn run(make: Make) {
    ranges_are_whole_blocks(make);
    ranges_end_with_the_drive(make);
    writes_end_with_the_capacity(make);
    reads_end_with_sequential_zones(make);
    appends_have_a_size(make);
    zones_end_with_the_drive(make);
    reports_are_clipped(make);
    errors_tell_where(make);
}

fn ranges_are_whole_blocks(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    let start = bench.at(bench.first(), 0);
    let block = bench.block() as usize;
    let odd = |bytes: &usize| !bytes.is_multiple_of(block) || *bytes == 0;
    for length in [0, 1, 512, block - 1, block + 1].into_iter().filter(odd) {
        fails(bench.device.write(start, &vec![1; length]), "unaligned");
        fails(bench.device.read(start, &mut vec![1; length]), "unaligned");
        fails(
            bench.device.append(ZoneId(bench.first()), &vec![1; length]),
            "unaligned",
        );
    }
    for shift in [1, 512, block - 1].into_iter().filter(odd) {
        let at = ByteOffset(start.0 + shift as u64);
        fails(bench.device.write(at, &vec![1; block]), "unaligned");
        fails(bench.device.read(at, &mut vec![1; block]), "unaligned");
    }
    bench.expect("em");
}

fn ranges_end_with_the_drive(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    let end = bench.device.geometry().size_bytes();
    let two = 2 * bench.block() as usize;
    for at in [
        end - bench.block(),
        end,
        end + bench.block(),
        u64::MAX - bench.block() + 1,
    ] {
        fails(
            bench.device.read(ByteOffset(at), &mut vec![1; two]),
            "out of range",
        );
        fails(
            bench.device.write(ByteOffset(at), &vec![1; two]),
            "out of range",
        );
    }
}

fn writes_end_with_the_capacity(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    fails(
        bench.write(bench.first(), 0, bench.capacity() + 1),
        "boundary",
    );
    fails(
        bench.write(bench.first(), 0, bench.zone_blocks() + 1),
        "boundary",
    );
    bench.expect("em");
    bench.write(bench.first(), 0, bench.capacity() - 1).unwrap();
    fails(
        bench.write(bench.first(), bench.capacity() - 1, 2),
        "boundary",
    );
    fails(bench.append(bench.first(), 2), "boundary");
    bench.append(bench.first(), 1).unwrap();
    bench.expect("fu");
    // Conventional zones hold their whole size, and a write may not cross into the next one.
    if let Some([zone, _]) = bench.conventional() {
        bench.write(zone, bench.zone_blocks() - 1, 1).unwrap();
        fails(bench.write(zone, bench.zone_blocks() - 1, 2), "boundary");
    }
}

fn reads_end_with_sequential_zones(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    bench
        .read(bench.first(), bench.zone_blocks() - 1, 1)
        .unwrap();
    fails(
        bench.read(bench.first(), bench.zone_blocks() - 1, 2),
        "boundary",
    );
    let Some([zone, last]) = bench.conventional() else {
        return;
    };
    let blocks = bench.zone_blocks();
    fails(bench.read(last, blocks - 1, 2), "boundary");
    fails(bench.read(zone, blocks - 1, blocks + 2), "boundary");
    bench.read(zone, 0, 2 * blocks).unwrap();
}

fn appends_have_a_size(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    if bench.has_append() {
        let most = u64::from(bench.device.geometry().max_append_bytes) / bench.block();
        let zone = bench.first();
        fails(bench.append(zone, most + 1), "unsupported");
        assert_eq!(bench.append(zone, most).unwrap(), bench.at(zone, 0));
        assert_eq!(bench.append(zone, 1).unwrap(), bench.at(zone, most));
    }
    let without = Geometry {
        max_append_bytes: 0,
        ..geometry()
    };
    let Some(bench) = Bench::new(make, without) else {
        return;
    };
    let block = vec![1; bench.block() as usize];
    fails(
        bench.device.append(ZoneId(bench.first()), &block),
        "unsupported",
    );
    bench.expect("em");
}

fn zones_end_with_the_drive(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    for zone in [bench.device.geometry().zone_count, u32::MAX] {
        fails(bench.open(zone), "out of range");
        fails(bench.close(zone), "out of range");
        fails(bench.finish(zone), "out of range");
        fails(bench.reset(zone), "out of range");
        fails(
            bench
                .device
                .append(ZoneId(zone), &vec![1; bench.block() as usize]),
            "out of range",
        );
        fails(bench.device.report_zone(ZoneId(zone)), "out of range");
    }
}

fn reports_are_clipped(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    let zones = bench.device.geometry().zone_count;
    let ids = |first, count| -> Vec<u32> {
        let report = bench.device.report(ZoneId(first), count).unwrap();
        report.iter().map(|zone| zone.id.0).collect()
    };
    assert_eq!(ids(0, u32::MAX), (0..zones).collect::<Vec<_>>());
    assert_eq!(ids(3, 2), [3, 4]);
    assert_eq!(ids(zones - 1, 5), [zones - 1]);
    assert_eq!(ids(2, 0), [0; 0]);
    assert_eq!(ids(zones, 5), [0; 0]);
}

fn errors_tell_where(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    bench.write(bench.first() + 1, 0, 3).unwrap();
    match bench.write(bench.first() + 1, 1, 1) {
        Err(ZoneError::NotAtWritePointer {
            zone,
            at,
            write_pointer,
        }) => {
            assert_eq!(zone, ZoneId(bench.first() + 1));
            assert_eq!(at, bench.at(bench.first() + 1, 1));
            assert_eq!(write_pointer, bench.at(bench.first() + 1, 3));
        }
        other => panic!("a write below the write pointer answered {other:?}"),
    }
}
