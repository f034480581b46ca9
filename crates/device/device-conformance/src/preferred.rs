//! Sequential-write-preferred zones: writes anywhere, a write pointer above the highest of them,
//! and no hard limits.

use super::{Bench, Make, fails, geometry};
use zone::{Geometry, ZoneKind};

pub(super) fn run(make: Make) {
    let g = Geometry {
        sequential_kind: ZoneKind::SequentialWritePreferred,
        max_open_zones: 1,
        max_active_zones: 1,
        ..geometry()
    };
    let Some(bench) = Bench::new(make, g) else {
        return;
    };
    let pointer = || bench.descriptor(bench.first()).write_pointer / bench.block();
    // Old bytes that a read of the gap must not return.
    bench.write(bench.first(), 0, 6).unwrap();
    bench.reset(bench.first()).unwrap();
    bench.write(bench.first(), 4, 1).unwrap();
    assert_eq!((bench.conditions(1).as_str(), pointer()), ("oi", 5));
    let mut expected = vec![0; (4 * bench.block()) as usize];
    expected.extend(bench.pattern(bench.first(), 4, 1));
    expected.resize((bench.zone_blocks() * bench.block()) as usize, 0);
    assert!(bench.read(bench.first(), 0, bench.zone_blocks()).unwrap() == expected);
    bench.write(bench.first(), 1, 2).unwrap();
    assert_eq!(pointer(), 5);
    bench.write(bench.first(), 4, 2).unwrap();
    assert_eq!(pointer(), 6);
    assert!(bench.read(bench.first(), 1, 2).unwrap() == bench.pattern(bench.first(), 1, 2));
    fails(
        bench.write(bench.first(), bench.capacity() - 1, 2),
        "boundary",
    );
    fails(bench.write(bench.first(), bench.capacity(), 1), "boundary");
    bench.write(bench.first(), bench.capacity() - 1, 1).unwrap();
    assert_eq!(
        (bench.conditions(1).as_str(), pointer()),
        ("fu", bench.capacity())
    );
    // A full zone still takes writes, but no appends.
    bench.write(bench.first(), 0, 1).unwrap();
    assert!(bench.read(bench.first(), 0, 1).unwrap() == bench.pattern(bench.first(), 0, 1));
    assert_eq!(
        (bench.conditions(1).as_str(), pointer()),
        ("fu", bench.capacity())
    );
    fails(bench.append(bench.first(), 1), "full");
    for zone in bench.first() + 1..bench.first() + 5 {
        bench.open(zone).unwrap();
    }
    bench.expect("fu oe oe oe oe em");
    bench.reset(bench.first()).unwrap();
    assert_eq!(pointer(), 0);
}
