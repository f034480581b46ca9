//! Versions that move between the listings of current and of earlier ones.

use super::*;
use crate::attributes::VERSION;
use std::cell::Cell;
use store::Attributes;

fn entry(key: &str, number: u64, is_current: bool) -> Entry {
    let version = Version::parse(&format!("{:016x}null", !number)).unwrap();
    let place = versions::name_of(key, &version);
    let attributes = Attributes::from([(VERSION.to_owned(), version.as_str().into())]);
    let info = |name: &str| ObjectInfo {
        name: name.into(),
        size: 0,
        modified_micros: number,
        attributes,
    };
    match is_current {
        true => Entry::current(info(key)),
        false => Entry::earlier(info(&place)),
    }
    .unwrap()
}

/// Numbers and whether they are the latest, of what is found while version 2 of a key is there in some listings, and
/// version 1 in all, and how many listings there were.
fn merged(is_second_current: impl Fn(u32) -> bool) -> (Vec<(u64, bool)>, u32) {
    let count = Cell::new(0);
    let next = || is_second_current(count.replace(count.get() + 1));
    let current = || Ok(vec![entry("k", if next() { 2 } else { 1 }, true)]);
    let earlier = || {
        let kept = next().then(|| entry("k", 1, false));
        Ok(Some(kept.into_iter().collect()))
    };
    let mut found = merge(current, earlier).unwrap();
    find_latest(&mut found, "");
    let found = found
        .iter()
        .map(|entry| (entry.info.modified_micros, entry.is_latest));
    (found.collect(), count.get())
}

#[test]
fn a_version_that_becomes_current_meanwhile_is_listed() {
    let both = vec![(2, true), (1, false)];
    assert_eq!(merged(|_| true), (both, 3));
    // The newer one is deleted between the first two listings, or between the next two, or before all.
    for (at, listings) in [(1, 5), (2, 5), (0, 3)] {
        assert_eq!(merged(|n| n < at), (vec![(1, true)], listings), "{at}");
    }
    // The newer one is put between two listings.
    for at in 1..3 {
        assert_eq!(
            merged(|n| n >= at),
            (vec![(2, true), (1, false)], 5),
            "{at}"
        );
    }
    // It comes and goes all the time.
    for odd in [0, 1] {
        let (found, listings) = merged(|n| n / 2 % 2 == odd);
        assert!(found.iter().any(|(number, _)| *number == 1));
        assert_eq!(listings, 1 + 2 * ATTEMPTS);
    }
}

/// As where a newer version goes between the two listings.
#[test]
fn one_version_of_a_key_is_the_latest() {
    let mut found = [
        entry("k", 2, false),
        entry("k", 1, true),
        entry("l", 2, false),
        entry("l", 1, false),
    ];
    find_latest(&mut found, "");
    let latest = found.map(|entry| entry.is_latest);
    assert_eq!(latest, [false, true, true, false]);
}
