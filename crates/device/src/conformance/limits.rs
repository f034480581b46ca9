//! Most open and most active zones, and which zone is closed implicitly for another.

use super::{Bench, CAPACITY_BLOCKS, FIRST, Subject, fails, geometry};
use zone::Geometry;

const A: u32 = FIRST;
const B: u32 = FIRST + 1;
const C: u32 = FIRST + 2;
const D: u32 = FIRST + 3;

fn limited(open: u32, active: u32) -> Geometry {
    Geometry {
        max_open_zones: open,
        max_active_zones: active,
        ..geometry()
    }
}

pub(super) fn run(make: &dyn Fn(Geometry) -> Subject) {
    the_zone_opened_longest_ago_is_closed_for_another(make);
    explicitly_open_zones_are_not_closed_for_others(make);
    an_open_zone_needs_no_resource_to_be_written_or_opened(make);
    appends_open_zones_too(make);
    active_zones_are_limited_until_one_is_full_or_empty(make);
    a_refusal_for_the_active_limit_closes_nothing(make);
    no_limit_means_none(make);
}

fn the_zone_opened_longest_ago_is_closed_for_another(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, limited(2, 0));
    bench.write(B, 0, 1).unwrap();
    bench.write(A, 0, 1).unwrap();
    // Written last, but opened first.
    bench.write(B, 1, 1).unwrap();
    bench.write(C, 0, 1).unwrap();
    assert_eq!(bench.conditions(4), "oi cl oi em");
    bench.write(B, 2, 1).unwrap();
    assert_eq!(bench.conditions(4), "cl oi oi em");
    bench.open(D).unwrap();
    assert_eq!(bench.conditions(4), "cl oi cl oe");
    // Full and empty zones hold nothing.
    bench.write(B, 3, CAPACITY_BLOCKS - 3).unwrap();
    bench.write(C, 1, 1).unwrap();
    assert_eq!(bench.conditions(4), "cl fu oi oe");
    bench.reset(C).unwrap();
    bench.write(A, 1, 1).unwrap();
    assert_eq!(bench.conditions(4), "oi fu em oe");
}

fn explicitly_open_zones_are_not_closed_for_others(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, limited(2, 0));
    bench.open(A).unwrap();
    bench.write(A, 0, 1).unwrap();
    bench.open(B).unwrap();
    fails(bench.write(C, 0, 1), "too many open");
    fails(bench.append(C, 1), "too many open");
    fails(bench.open(C), "too many open");
    assert_eq!(bench.conditions(3), "oe oe em");
    bench.close(B).unwrap();
    bench.write(C, 0, 1).unwrap();
    assert_eq!(bench.conditions(3), "oe em oi");
    bench.open(B).unwrap();
    assert_eq!(bench.conditions(3), "oe oe cl");
    // Conventional zones need no resource.
    bench.write(0, 3, 1).unwrap();
    // A closed zone needs one.
    fails(bench.write(C, 1, 1), "too many open");
    // Finishing needs none.
    bench.finish(D).unwrap();
    bench.finish(C).unwrap();
    assert_eq!(bench.conditions(4), "oe oe fu fu");
}

fn an_open_zone_needs_no_resource_to_be_written_or_opened(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, limited(2, 2));
    bench.write(A, 0, 1).unwrap();
    bench.write(B, 0, 1).unwrap();
    bench.write(A, 1, 1).unwrap();
    bench.open(A).unwrap();
    bench.open(B).unwrap();
    bench.open(B).unwrap();
    bench.write(B, 1, 1).unwrap();
    assert_eq!(bench.conditions(3), "oe oe em");
}

fn appends_open_zones_too(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, limited(1, 0));
    bench.append(A, 1).unwrap();
    bench.append(B, 1).unwrap();
    assert_eq!(bench.conditions(3), "cl oi em");
}

fn active_zones_are_limited_until_one_is_full_or_empty(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, limited(1, 2));
    bench.write(A, 0, 1).unwrap();
    bench.write(B, 0, 1).unwrap();
    assert_eq!(bench.conditions(4), "cl oi em em");
    let refused = |bench: &Bench| {
        fails(bench.write(C, 0, 1), "too many active");
        fails(bench.append(C, 1), "too many active");
        fails(bench.open(C), "too many active");
        fails(bench.finish(C), "too many active");
    };
    refused(&bench);
    // Among the active ones there is no limit but that of open ones.
    bench.write(A, 1, 1).unwrap();
    assert_eq!(bench.conditions(4), "oi cl em em");
    bench.finish(B).unwrap();
    bench.write(C, 0, 1).unwrap();
    assert_eq!(bench.conditions(4), "cl fu oi em");
    fails(bench.write(D, 0, 1), "too many active");
    bench.reset(A).unwrap();
    bench.open(D).unwrap();
    assert_eq!(bench.conditions(4), "em fu cl oe");
    bench.close(D).unwrap();
    bench.write(A, 0, CAPACITY_BLOCKS).unwrap();
    bench.finish(D).unwrap();
    assert_eq!(bench.conditions(4), "fu fu cl fu");
}

fn a_refusal_for_the_active_limit_closes_nothing(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, limited(2, 2));
    bench.write(A, 0, 1).unwrap();
    bench.write(B, 0, 1).unwrap();
    fails(bench.write(C, 0, 1), "too many active");
    assert_eq!(bench.conditions(3), "oi oi em");
}

fn no_limit_means_none(make: &dyn Fn(Geometry) -> Subject) {
    let bench = Bench::new(make, geometry());
    for zone in FIRST..FIRST + 10 {
        bench.open(zone).unwrap();
    }
    assert_eq!(bench.conditions(10), ["oe"; 10].join(" "));
}
