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
    list.apply(&BTreeMap::from([(ZoneId(2), delta)]), 7);
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
