use super::*;

#[test]
fn a_zone_is_no_candidate_while_it_is_written_to() {
    let list = Freelist::new(4, 100);
    list.open(ZoneId(2));
    list.pin(ZoneId(2), 60);
    list.seal(ZoneId(2));
    assert!(list.candidates().is_empty());
    list.add_uncommitted(ZoneId(2), 60);
    list.unpin(ZoneId(2));
    assert_eq!(list.candidates()[0].live, 60);
    let delta = Delta {
        written: 60,
        dead: 20,
    };
    list.apply(&BTreeMap::from([(ZoneId(2), delta)]), 7, 0);
    assert_eq!(list.totals().inline, 7);
    list.drop_uncommitted(ZoneId(2), 60);
    let candidates = list.candidates();
    assert_eq!((candidates[0].live, candidates[0].written), (40, 100));
    assert_eq!(list.totals().tails, 40);
}

#[test]
fn reservations_stop_at_capacity() {
    let list = Freelist::new(4, 100);
    assert!(list.reserve(70, 100));
    assert!(!list.reserve(31, 100));
    list.unreserve(70);
    list.adopt(ZoneId(1), 90, 80);
    assert!(list.reserve(20, 100));
    list.forget(ZoneId(1));
    assert!(list.reserve(80, 100));
}

#[test]
fn sums_and_victims_follow_every_change() {
    let list = Freelist::new(16, 100);
    let mut state = 7_u32;
    let mut random = |below: u32| {
        state = state.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
        (state >> 16) % below
    };
    for _ in 0..5_000 {
        let zone = ZoneId(random(16));
        let live = list.zone(zone).1;
        match random(9) {
            0 => list.adopt(zone, 90, random(90).into()),
            1 => list.open(zone),
            2 => list.seal(zone),
            3 => list.add_summary(zone, 1),
            4 => list.add_uncommitted(zone, random(10).into()),
            5 => list.drop_uncommitted(zone, list.wanted_in(zone) - live),
            6 => _ = list.set_aside(zone, SetAside::ReadOnly, String::new()),
            7 if random(4) == 0 => list.try_all_again(),
            7 => list.forget(zone),
            _ => {
                let dead = (live / 2).cast_signed();
                let delta = Delta { written: 0, dead };
                list.apply(&BTreeMap::from([(zone, delta)]), 0, 0);
            }
        }
        let (kept, counted) = list.audit();
        assert_eq!(kept, counted);
        let zones = (0..16).filter_map(|zone| list.table.lock().candidate(ZoneId(zone)));
        let (dead, others): (Vec<_>, Vec<_>) = zones.partition(|c| c.live == 0);
        assert_eq!(list.dead_zones(), dead);
        // As many dead bytes as any has, to a 256th.
        let dead = |c: Candidate| (c.written.saturating_sub(c.live) * 256).div_ceil(c.written);
        let most = others.into_iter().map(dead).max();
        let found = list.candidates().into_iter().map(dead).max();
        assert_eq!(found, most.filter(|dead| *dead > 0));
    }
}

/// The cleaner may have come by before a stream left the zone.
#[test]
fn a_zone_that_is_left_after_it_was_set_aside_is_news() {
    let list = Freelist::new(4, 100);
    for zone in [1, 2].map(ZoneId) {
        list.open(zone);
        assert!(list.takes_news() && !list.takes_news());
        list.open(zone);
        assert!(!list.takes_news());
    }
    list.set_aside(ZoneId(2), SetAside::ReadOnly, String::new());
    assert!(list.takes_news());
    list.seal(ZoneId(1));
    assert!(!list.takes_news());
    list.seal(ZoneId(2));
    assert!(list.takes_news() && !list.takes_news());
}

#[test]
fn a_zone_that_the_drive_does_not_have_changes_nothing() {
    let list = Freelist::new(4, 100);
    let (zone, delta) = (
        ZoneId(9999),
        Delta {
            written: 60,
            dead: 0,
        },
    );
    list.apply(&BTreeMap::from([(zone, delta)]), 0, 0);
    assert_eq!((list.zone(zone), list.live()), ((0, 0), 0));
    assert_eq!(list.totals(), list.audit().1);
}
