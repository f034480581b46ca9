//! Sequential-write-preferred zones: writes anywhere, a write pointer above the highest of them,
//! and no hard limits.

use super::{BLOCK, Bench, CAPACITY_BLOCKS, FIRST, Subject, ZONE_BLOCKS, fails, geometry, pattern};
use zone::{Geometry, ZoneKind};

pub(super) fn run(make: &dyn Fn(Geometry) -> Subject) {
    let g = Geometry {
        sequential_kind: ZoneKind::SequentialWritePreferred,
        max_open_zones: 1,
        max_active_zones: 1,
        ..geometry()
    };
    let bench = Bench::new(make, g);
    let pointer = || bench.descriptor(FIRST).write_pointer / BLOCK;
    // Stale bytes that a gap must not show.
    bench.write(FIRST, 0, 6).unwrap();
    bench.reset(FIRST).unwrap();
    bench.write(FIRST, 4, 1).unwrap();
    assert_eq!((bench.conditions(1).as_str(), pointer()), ("oi", 5));
    let mut expected = vec![0; (4 * BLOCK) as usize];
    expected.extend(pattern(FIRST, 4, 1));
    expected.resize((ZONE_BLOCKS * BLOCK) as usize, 0);
    assert!(bench.read(FIRST, 0, ZONE_BLOCKS).unwrap() == expected);
    bench.write(FIRST, 1, 2).unwrap();
    assert_eq!(pointer(), 5);
    bench.write(FIRST, 4, 2).unwrap();
    assert_eq!(pointer(), 6);
    assert!(bench.read(FIRST, 1, 2).unwrap() == pattern(FIRST, 1, 2));
    fails(bench.write(FIRST, CAPACITY_BLOCKS - 1, 2), "boundary");
    fails(bench.write(FIRST, CAPACITY_BLOCKS, 1), "boundary");
    bench.write(FIRST, CAPACITY_BLOCKS - 1, 1).unwrap();
    assert_eq!(
        (bench.conditions(1).as_str(), pointer()),
        ("fu", CAPACITY_BLOCKS)
    );
    // A full one still takes writes, and no appends.
    bench.write(FIRST, 0, 1).unwrap();
    assert!(bench.read(FIRST, 0, 1).unwrap() == pattern(FIRST, 0, 1));
    assert_eq!(
        (bench.conditions(1).as_str(), pointer()),
        ("fu", CAPACITY_BLOCKS)
    );
    fails(bench.append(FIRST, 1), "full");
    for zone in FIRST + 1..FIRST + 5 {
        bench.open(zone).unwrap();
    }
    assert_eq!(bench.conditions(6), "fu oe oe oe oe em");
    bench.reset(FIRST).unwrap();
    assert_eq!(pointer(), 0);
}
