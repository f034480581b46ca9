//! Alignment, ends of zones and of the drive, sizes of appends, reports.

use super::{BLOCK, Bench, CAPACITY_BLOCKS, FIRST, Subject, ZONE_BLOCKS, fails, geometry};
use zone::{ByteOffset, Geometry, ZoneError, ZoneId};

pub(super) fn run(make: &dyn Fn(Geometry) -> Subject) {
    ranges_are_whole_blocks(make);
    ranges_end_with_the_drive(make);
    writes_end_with_the_capacity(make);
    reads_end_with_sequential_zones(make);
    appends_have_a_size(make);
    zones_end_with_the_drive(make);
    reports_are_clipped(make);
    errors_tell_where(make);
}

fn ranges_are_whole_blocks(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    let start = bench.at(FIRST, 0);
    let block = BLOCK as usize;
    for length in [0, 1, 512, block - 1, block + 1] {
        fails(bench.device.write(start, &vec![1; length]), "unaligned");
        fails(bench.device.read(start, &mut vec![1; length]), "unaligned");
        fails(
            bench.device.append(ZoneId(FIRST), &vec![1; length]),
            "unaligned",
        );
    }
    for shift in [1, 512, BLOCK - 1] {
        let at = ByteOffset(start.0 + shift);
        fails(bench.device.write(at, &vec![1; block]), "unaligned");
        fails(bench.device.read(at, &mut vec![1; block]), "unaligned");
    }
    assert_eq!(bench.conditions(1), "em");
}

fn ranges_end_with_the_drive(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    let end = bench.device.geometry().size_bytes();
    let two = 2 * BLOCK as usize;
    for at in [end - BLOCK, end, end + BLOCK, u64::MAX - BLOCK + 1] {
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

fn writes_end_with_the_capacity(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    fails(bench.write(FIRST, 0, CAPACITY_BLOCKS + 1), "boundary");
    fails(bench.write(FIRST, 0, ZONE_BLOCKS + 1), "boundary");
    assert_eq!(bench.conditions(1), "em");
    bench.write(FIRST, 0, CAPACITY_BLOCKS - 1).unwrap();
    fails(bench.write(FIRST, CAPACITY_BLOCKS - 1, 2), "boundary");
    fails(bench.append(FIRST, 2), "boundary");
    bench.append(FIRST, 1).unwrap();
    assert_eq!(bench.conditions(1), "fu");
    // Conventional zones hold their whole size, and a write no more than one of them.
    bench.write(0, ZONE_BLOCKS - 1, 1).unwrap();
    fails(bench.write(0, ZONE_BLOCKS - 1, 2), "boundary");
}

fn reads_end_with_sequential_zones(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    bench.read(FIRST, ZONE_BLOCKS - 1, 1).unwrap();
    fails(bench.read(FIRST, ZONE_BLOCKS - 1, 2), "boundary");
    fails(bench.read(FIRST - 1, ZONE_BLOCKS - 1, 2), "boundary");
    fails(bench.read(0, ZONE_BLOCKS - 1, ZONE_BLOCKS + 2), "boundary");
    bench.read(0, 0, u64::from(FIRST) * ZONE_BLOCKS).unwrap();
}

fn appends_have_a_size(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    let most = u64::from(bench.device.geometry().max_append_bytes) / BLOCK;
    fails(bench.append(FIRST, most + 1), "unsupported");
    assert_eq!(bench.append(FIRST, most).unwrap(), bench.at(FIRST, 0));
    assert_eq!(bench.append(FIRST, 1).unwrap(), bench.at(FIRST, most));
    let without = Geometry {
        max_append_bytes: 0,
        ..geometry()
    };
    let bench = Bench::new(make, without);
    fails(bench.append(FIRST, 1), "unsupported");
    assert_eq!(bench.conditions(1), "em");
}

fn zones_end_with_the_drive(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    for zone in [bench.device.geometry().zone_count, u32::MAX] {
        fails(bench.open(zone), "out of range");
        fails(bench.close(zone), "out of range");
        fails(bench.finish(zone), "out of range");
        fails(bench.reset(zone), "out of range");
        fails(
            bench.device.append(ZoneId(zone), &[1; BLOCK as usize]),
            "out of range",
        );
        fails(bench.device.report_zone(ZoneId(zone)), "out of range");
    }
}

fn reports_are_clipped(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
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

fn errors_tell_where(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    bench.write(FIRST + 1, 0, 3).unwrap();
    match bench.write(FIRST + 1, 1, 1) {
        Err(ZoneError::NotAtWritePointer {
            zone,
            at,
            write_pointer,
        }) => {
            assert_eq!(zone, ZoneId(FIRST + 1));
            assert_eq!(at, bench.at(FIRST + 1, 1));
            assert_eq!(write_pointer, bench.at(FIRST + 1, 3));
        }
        other => panic!("a write below the write pointer answered {other:?}"),
    }
}
