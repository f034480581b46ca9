//! The mechanics against their closed forms (yardsticks: hard drive mechanics).

use super::*;

fn shape(zones: u32) -> Shape {
    Shape {
        rpm: 7200,
        heads: 4,
        cylinders: 200_000,
        recording_zones: zones,
        innermost_zone_width: 1.0,
        outer_track_blocks: 400,
        inner_track_blocks: if zones == 1 { 400 } else { 200 },
        stroke_tracks: 20,
        stroke: Stroke::Alternating,
        serpentine_part: 0.0,
        head_density: Vec::new(),
        track_skew_us: 1_200.0,
        head_skew_us: 1_500.0,
    }
}

const TIMES: SeekTimes = SeekTimes {
    track_to_track_ms: 1.0,
    average_ms: 8.5,
    full_stroke_ms: 17.0,
    head_switch_ms: 1.3,
    write_settle_ms: 0.0,
};

fn disk(zones: u32) -> Mechanics {
    let geometry = Geometry::new(&shape(zones)).unwrap();
    let seek = SeekCurve::new(&TIMES, geometry.cylinders());
    Mechanics::new(geometry, seek, Turn(0))
}

/// Xorshift: places that are random enough, the same in every run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn random_reads_take_what_the_closed_form_says() {
    for zones in [1, 20] {
        let mut disk = disk(zones);
        let blocks = disk.geometry().blocks();
        let mut seed = 0x2545_F491_4F6C_DD1D;
        let mut now = Time::START;
        const READS: u64 = 200_000;
        for _ in 0..READS {
            now = disk.access(now, Pba(random(&mut seed) % blocks), 1, Access::Read);
        }
        let mean = now.seconds() / READS as f64;
        let expected = disk.random_access_mean(1, Access::Read, Span::ZERO);
        let off = mean / expected.seconds() - 1.0;
        assert!(
            off.abs() < 0.02,
            "{zones} zones: {mean} s, {expected}: {off}"
        );
        if zones == 1 {
            // With tracks of one length the mean seek is the data sheet's.
            let plain = 0.0085 + 60.0 / 7200.0 / 2.0;
            assert!((mean / plain - 1.0).abs() < 0.02, "{mean} {plain}");
        }
    }
}

#[test]
fn sequential_reads_run_at_the_layouts_own_rate() {
    let ways = [Stroke::Alternating, Stroke::Inwards, Stroke::TowardsMiddle];
    for (stroke, narrowing) in ways.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        let mut shape = shape(20);
        shape.stroke = stroke;
        if narrowing {
            // The innermost has 75 tracks: fewer than a stroke may have, unless that is of a few.
            (shape.recording_zones, shape.innermost_zone_width) = (1_500, 0.4);
            shape.serpentine_part = 0.2;
        }
        if stroke != Stroke::Alternating {
            shape.stroke_tracks = 5_000;
        }
        let geometry = Geometry::new(&shape).unwrap();
        let seek = SeekCurve::new(&TIMES, geometry.cylinders());
        let mut disk = Mechanics::new(geometry, seek, Turn(0));
        for part in [0, 3, 6, 9] {
            let from = Pba(disk.geometry().blocks() / 10 * part);
            let start = disk.access(Time::START, from, 1, Access::Read);
            let blocks = 4 << 20 >> 2;
            let end = disk.access(start, from.plus(1), blocks, Access::Read);
            let rate = (blocks * 4096) as f64 / end.since(start).seconds();
            let formula = disk.geometry().sequential_bytes_per_second(from);
            let off = rate / formula - 1.0;
            assert!(
                off.abs() < 0.01,
                "{stroke:?} {narrowing} at {part}/10: {rate} {formula}: {off}"
            );
        }
    }
}

#[test]
fn the_next_block_asked_for_too_late_costs_a_turn() {
    let mut disk = disk(1);
    let first = disk.access(Time::START, Pba(10), 1, Access::Read);
    let late = first + Span::from_micros(50.0);
    let second = disk.access(late, Pba(11), 1, Access::Read);
    let turn = disk.geometry().rotation();
    let passed = second.since(first);
    assert!(
        passed > turn && passed < turn + Span::from_micros(50.0),
        "{passed}"
    );
    let at_once = disk.access(second, Pba(12), 1, Access::Read);
    assert!(at_once.since(second) < Span::from_micros(30.0));
}

#[test]
fn positioning_is_what_access_then_does() {
    let mut disk = disk(20);
    let mut seed = 7;
    let mut now = Time::START;
    for _ in 0..10_000 {
        let pba = Pba(random(&mut seed) % disk.geometry().blocks());
        let expected = disk.positioning(now, pba, Access::Write);
        let sweep = disk.sweep(&disk.geometry().place(pba).track, 1);
        let end = disk.access(now, pba, 1, Access::Write);
        assert_eq!(end, now + expected + sweep);
        now = end;
    }
}

#[test]
fn reading_ahead_makes_small_reads_as_fast_as_large_ones() {
    let mut disk = disk(20);
    let mut ahead = LookAhead::new(4096);
    let mut now = disk.access(Time::START, Pba(0), 16, Access::Read);
    ahead.read(Pba(0), Pba(16), now);
    let start = now;
    let mut next = Pba(16);
    for _ in 0..10_000 {
        now = ahead
            .hit(&mut disk, now + Span::from_micros(20.0), next, 16)
            .unwrap();
        next = next.plus(16);
    }
    let rate = 10_000.0 * 16.0 * 4096.0 / now.since(start).seconds();
    let formula = disk.geometry().sequential_bytes_per_second(Pba(0));
    assert!((rate / formula - 1.0).abs() < 0.01, "{rate} {formula}");
    assert!(ahead.hit(&mut disk, now, Pba(0), 16).is_none(), "long gone");
    assert!(
        ahead.hit(&mut disk, now, next.plus(1), 16).is_none(),
        "not in order"
    );
    ahead.stop(&disk, now + Span::from_micros(500.0));
    assert!(
        ahead.hit(&mut disk, now, next, 8).is_some(),
        "had been read on"
    );
    ahead.written(next, 1);
    assert!(ahead.hit(&mut disk, now, next, 8).is_none(), "old bytes");
}
