//! What several do to one suffix at a time.

use crate::support::{formatted, mount};
use fastrand::Rng;
use swift_drive::{Address, Ages, Error, ObjectHash, PolicyKind, SwiftDrive};
use swift_files::{FileName, Kind, Reclaim, Timestamp};

const NOTHING_IS_OLD: Ages = Ages {
    reclaim: Reclaim { age: 0, now: 0 },
    committing_since: 0,
};

fn drive(kind: PolicyKind) -> SwiftDrive {
    let swift = SwiftDrive::new(mount(&formatted()));
    swift.add_policy(0, kind).unwrap();
    swift
}

fn address(hash: u128) -> Address {
    Address {
        policy: 0,
        partition: 7,
        hash: ObjectHash::new(hash.to_be_bytes()),
    }
}

fn file(ticks: u64, kind: Kind) -> FileName {
    let timestamp = Timestamp::new(ticks, 0).unwrap();
    FileName { timestamp, kind }
}

/// Many times a few changes: only the last change of a suffix can be missed for good.
#[test]
fn what_is_hashed_beside_changes_is_not_kept_longer_than_it_is_true() {
    let swift = drive(PolicyKind::Replication);
    for round in 0..150 {
        let put = |thread: u64| {
            let mut dice = Rng::with_seed(round << 8 | thread);
            for ticks in 0..3 {
                let hash = u128::from(dice.u32(..2)) | u128::from(dice.u32(..16)) << 64;
                let data = file(round * 3 + ticks, Kind::Data);
                swift.put(address(hash), data, None, Vec::new()).unwrap();
            }
        };
        std::thread::scope(|scope| {
            let put = &put;
            for thread in 0..2 {
                scope.spawn(move || put(thread));
                scope.spawn(|| {
                    for _ in 0..3 {
                        swift.hashes(0, 7, &[], NOTHING_IS_OLD).unwrap();
                    }
                });
            }
        });
        let (kept, _) = swift.hashes(0, 7, &[], NOTHING_IS_OLD).unwrap();
        let suffixes: Vec<_> = kept.iter().map(|(suffix, _)| *suffix).collect();
        let (anew, computed) = swift.hashes(0, 7, &suffixes, NOTHING_IS_OLD).unwrap();
        assert_eq!((kept, computed), (anew, suffixes.len()), "round {round}");
    }
    assert_eq!(swift.hashes(0, 7, &[], NOTHING_IS_OLD).unwrap().1, 0);
}

/// A reconstructor writes fragments of old objects.
#[test]
fn an_old_fragment_waits_for_its_commit() {
    let swift = drive(PolicyKind::ErasureCoding);
    let fragment = Kind::Fragment {
        index: 2,
        is_durable: false,
    };
    let reclaim = Reclaim {
        age: 10,
        now: 1_000,
    };
    let hash = |committing_since| {
        let ages = Ages {
            reclaim,
            committing_since,
        };
        swift.hashes(0, 7, &[], ages).unwrap()
    };
    let (young, old) = (address(1), address(2));
    swift
        .put(young, file(5, fragment), None, Vec::new())
        .unwrap();
    hash(0);
    swift.make_durable(young, file(5, fragment)).unwrap();
    swift.put(old, file(5, fragment), None, Vec::new()).unwrap();
    hash(u64::MAX);
    let gone = swift.make_durable(old, file(5, fragment));
    assert!(matches!(gone, Err(Error::NoFile { .. })));
    assert_eq!(swift.files(young).unwrap().len(), 1);
}

/// Between the listing of a handoff whose files are home and their removal.
#[test]
fn what_comes_before_a_handoff_goes_keeps_all_of_it() {
    let meta = |ticks| file(ticks, Kind::Meta { content_type: None });
    let fragment = |ticks, index| {
        let is_durable = true;
        file(ticks, Kind::Fragment { index, is_durable })
    };
    let (data, gone) = (
        |ticks| file(ticks, Kind::Data),
        |ticks| file(ticks, Kind::Tombstone),
    );
    let typed = Timestamp::new(14, 0).unwrap();
    let typed = file(
        14,
        Kind::Meta {
            content_type: Some(typed),
        },
    );
    // What is there, what comes then, and whether what was there is removed.
    for (number, (listed, later, is_removed)) in [
        (vec![data(10), meta(20)], vec![], true),
        (vec![data(10)], vec![meta(30)], false),
        (vec![data(10), meta(20)], vec![meta(30)], false),
        (vec![data(10), meta(20)], vec![typed], false),
        (vec![data(10), meta(20)], vec![data(15)], false),
        (vec![data(10), meta(20)], vec![gone(15)], false),
        (vec![gone(10)], vec![meta(30)], true),
        (vec![fragment(10, 4)], vec![fragment(10, 5), meta(30)], true),
        (vec![fragment(10, 4), meta(20)], vec![meta(30)], false),
        (vec![], vec![meta(30)], false),
    ]
    .into_iter()
    .enumerate()
    {
        let is_coded = listed
            .iter()
            .any(|file| matches!(file.kind, Kind::Fragment { .. }));
        let swift = drive(match is_coded {
            true => PolicyKind::ErasureCoding,
            false => PolicyKind::Replication,
        });
        for file in listed.iter().chain(&later) {
            swift.put(address(1), *file, None, Vec::new()).unwrap();
        }
        let before = swift.files(address(1)).unwrap();
        let removed = swift.remove_all(address(1), &listed, None, false).unwrap();
        let after = swift.files(address(1)).unwrap();
        let left: Vec<_> = before
            .into_iter()
            .filter(|file| !is_removed || later.contains(file))
            .collect();
        assert_eq!((removed, after), (is_removed, left), "{number}");
    }
}
