//! Limits of open and active zones, and the choice of the zone that is closed implicitly for another.

use super::{Bench, Make, fails, geometry};
use zone::Geometry;

fn limited(open: u32, active: u32) -> Geometry {
    Geometry {
        max_open_zones: open,
        max_active_zones: active,
        ..geometry()
    }
}

pub(super) fn run(make: Make) {
    the_zone_opened_longest_ago_is_closed_for_another(make);
    explicitly_open_zones_are_not_closed_for_others(make);
    an_open_zone_needs_no_resource_to_be_written_or_opened(make);
    appends_open_zones_too(make);
    active_zones_are_limited_until_one_is_full_or_empty(make);
    a_refusal_for_the_active_limit_closes_nothing(make);
    no_limit_means_none(make);
}

fn the_zone_opened_longest_ago_is_closed_for_another(make: Make) {
    let Some(bench) = Bench::new(make, limited(2, 0)) else {
        return;
    };
    let [a, b, c, d] = bench.some();
    bench.write(b, 0, 1).unwrap();
    bench.write(a, 0, 1).unwrap();
    // Zone b was written last, but it was opened first.
    bench.write(b, 1, 1).unwrap();
    bench.write(c, 0, 1).unwrap();
    bench.expect("oi cl oi em");
    bench.write(b, 2, 1).unwrap();
    bench.expect("cl oi oi em");
    bench.open_in_place_of(d, c);
    bench.expect("cl oi cl oe");
    // Full and empty zones count against no limit.
    bench.write(b, 3, bench.capacity() - 3).unwrap();
    bench.write(c, 1, 1).unwrap();
    bench.expect("cl fu oi oe");
    bench.reset(c).unwrap();
    bench.write(a, 1, 1).unwrap();
    bench.expect("oi fu em oe");
}

fn explicitly_open_zones_are_not_closed_for_others(make: Make) {
    let Some(bench) = Bench::new(make, limited(2, 0)) else {
        return;
    };
    let [a, b, c, d] = bench.some();
    bench.open(a).unwrap();
    bench.write(a, 0, 1).unwrap();
    bench.open(b).unwrap();
    fails(bench.write(c, 0, 1), "too many open");
    fails(bench.append(c, 1), "too many open");
    fails(bench.open(c), "too many open");
    bench.expect("oe oe em");
    bench.close_untouched(b);
    bench.write(c, 0, 1).unwrap();
    bench.expect("oe em oi");
    bench.open_in_place_of(b, c);
    bench.expect("oe oe cl");
    // Conventional zones need no open resource.
    if let Some([zone, _]) = bench.conventional() {
        bench.write(zone, 3, 1).unwrap();
    }
    // A write to a closed zone needs an open resource.
    fails(bench.write(c, 1, 1), "too many open");
    // Finishing needs no open resource.
    if !bench.done("finish", "em at the open limit", bench.finish(d)) {
        return;
    }
    if bench.done("finish", "cl at the open limit", bench.finish(c)) {
        bench.expect("oe oe fu fu");
    }
}

fn an_open_zone_needs_no_resource_to_be_written_or_opened(make: Make) {
    let Some(bench) = Bench::new(make, limited(2, 2)) else {
        return;
    };
    let [a, b, ..] = bench.some();
    bench.write(a, 0, 1).unwrap();
    bench.write(b, 0, 1).unwrap();
    bench.write(a, 1, 1).unwrap();
    bench.open(a).unwrap();
    bench.open(b).unwrap();
    bench.open(b).unwrap();
    bench.write(b, 1, 1).unwrap();
    bench.expect("oe oe em");
}

fn appends_open_zones_too(make: Make) {
    let Some(bench) = Bench::new(make, limited(1, 0)) else {
        return;
    };
    let [a, b, ..] = bench.some();
    bench.append(a, 1).unwrap();
    bench.append(b, 1).unwrap();
    bench.expect("cl oi em");
}

fn active_zones_are_limited_until_one_is_full_or_empty(make: Make) {
    let Some(bench) = Bench::new(make, limited(1, 2)) else {
        return;
    };
    let [a, b, c, d] = bench.some();
    bench.write(a, 0, 1).unwrap();
    bench.write(b, 0, 1).unwrap();
    bench.expect("cl oi em em");
    let refused = |bench: &Bench| {
        fails(bench.write(c, 0, 1), "too many active");
        fails(bench.append(c, 1), "too many active");
        fails(bench.open(c), "too many active");
        if bench.finish(c).is_ok() {
            bench.differs(
                "finish",
                "em at the active limit",
                "!too many active",
                "fu all",
            );
            bench.reset(c).unwrap();
        } else {
            fails(bench.finish(c), "too many active");
        }
    };
    refused(&bench);
    // Between active zones only the limit of open ones applies.
    if !bench.done("write", "cl at the active limit", bench.write(a, 1, 1)) {
        return;
    }
    bench.expect("oi cl em em");
    bench.finish(b).unwrap();
    bench.write(c, 0, 1).unwrap();
    bench.expect("cl fu oi em");
    fails(bench.write(d, 0, 1), "too many active");
    bench.reset(a).unwrap();
    bench.open(d).unwrap();
    bench.expect("em fu cl oe");
    bench.close_untouched(d);
    bench.write(a, 0, bench.capacity()).unwrap();
    bench.finish(d).unwrap();
    bench.expect("fu fu cl fu");
}

fn a_refusal_for_the_active_limit_closes_nothing(make: Make) {
    let Some(bench) = Bench::new(make, limited(2, 2)) else {
        return;
    };
    let [a, b, c, ..] = bench.some();
    bench.write(a, 0, 1).unwrap();
    bench.write(b, 0, 1).unwrap();
    fails(bench.write(c, 0, 1), "too many active");
    bench.expect("oi oi em");
}

fn no_limit_means_none(make: Make) {
    let Some(bench) = Bench::new(make, geometry()) else {
        return;
    };
    let real = bench.device.geometry();
    if (real.max_open_zones, real.max_active_zones) != (0, 0) {
        return bench.note("left out: that no limit is none, the drive has one");
    }
    for zone in bench.first()..bench.first() + 10 {
        bench.open(zone).unwrap();
    }
    bench.expect(&["oe"; 10].join(" "));
}
