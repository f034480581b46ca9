//! A drive that has no room left: what takes objects away is done all the same.

use crate::support::{formatted, mount};
use device::ZonedDevice;
use device::faults::{Fault, Faults, Gate, Plan};
use kv_log::KvLog;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use store::{MountOptions, Store, Transaction};
use swift_drive::{Address, Ages, Error, ObjectHash, PolicyKind, Put, SwiftDrive};
use swift_files::{FileName, Kind, Reclaim, Timestamp};

const AGES: Ages = Ages {
    reclaim: Reclaim { age: 0, now: 0 },
    committing_since: u64::MAX,
};

fn address(number: u64) -> Address {
    let mut dice = fastrand::Rng::with_seed(number);
    Address {
        policy: 0,
        partition: 7,
        hash: ObjectHash::new(dice.u128(..).to_be_bytes()),
    }
}

fn file(ticks: u64, kind: Kind) -> FileName {
    let timestamp = Timestamp::new(ticks, 0).unwrap();
    FileName { timestamp, kind }
}

/// Puts objects that are in the metadata alone until there is no room for one.
fn fill(swift: &SwiftDrive, kind: Kind) -> u64 {
    (0..)
        .find(|&number| {
            let metadata = vec![number as u8; 8 << 10];
            match swift.put(address(number), file(1, kind), None, metadata) {
                Ok(put) => {
                    assert!(matches!(put, Put::Done));
                    false
                }
                Err(Error::Store(error)) if error.is_no_space() => true,
                Err(error) => panic!("{error}"),
            }
        })
        .unwrap()
}

#[test]
fn a_full_drive_is_emptied_hashed_and_looked_after() {
    let drive = formatted();
    let swift = SwiftDrive::new(mount(&drive));
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let count = fill(&swift, Kind::Data);
    assert!(count > 100, "{count}");
    let (hashes, computed) = swift.hashes(0, 7, &[], AGES).unwrap();
    assert!(computed > 0 && hashes.len() == computed);
    swift.quarantine(address(0), None).unwrap();
    let (deleted, purged) = (1..count / 2, count / 2..count);
    for number in deleted.clone() {
        let gone = file(2, Kind::Tombstone);
        swift.put(address(number), gone, None, Vec::new()).unwrap();
        assert_eq!(swift.files(address(number)).unwrap(), [gone]);
    }
    for number in purged {
        let data = [file(1, Kind::Data)];
        let is_gone = swift.remove_all(address(number), &data, None, false);
        assert!(is_gone.unwrap());
    }
    let (_, computed) = swift.hashes(0, 7, &[], AGES).unwrap();
    assert!(computed > 0);
    let again = swift.hashes(0, 7, &[], AGES).unwrap();
    let anew: Vec<_> = again.0.iter().map(|(suffix, _)| *suffix).collect();
    assert_eq!(again.0, swift.hashes(0, 7, &anew, AGES).unwrap().0);
    // And there is room again.
    swift
        .put(address(count), file(3, Kind::Data), None, vec![1; 8 << 10])
        .unwrap();
}

/// Fills a drive, and removes an object: only who waits for it gets its space. No thread of the store gives it back.
fn filled(drive: Arc<dyn ZonedDevice>) -> (Store, SwiftDrive, Address) {
    let options = MountOptions {
        background: false,
        ..MountOptions::new(KvLog)
    };
    let store = Store::mount(drive, options).unwrap();
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let next = address(fill(&swift, Kind::Data));
    let data = [file(1, Kind::Data)];
    assert!(swift.remove_all(address(0), &data, None, false).unwrap());
    assert!(!store.has_room(0));
    (store, swift, next)
}

#[test]
fn hashing_waits_for_no_space() {
    let (store, swift, _) = filled(formatted());
    let (_, computed) = swift.hashes(0, 7, &[], AGES).unwrap();
    assert!(computed > 0 && !store.has_room(0));
}

#[test]
fn a_put_that_waits_for_space_holds_no_other_call_up() {
    let drive = Arc::new(Faults::new(formatted()));
    let (_, swift, next) = filled(drive.clone());
    let gate = Gate::new();
    drive.add(Plan {
        command: None,
        zone: None,
        kth: 1,
        for_ever: true,
        fault: Fault::Stuck(gate.clone()),
    });
    let (answer, answered) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| swift.put(next, file(3, Kind::Data), None, vec![1]).unwrap());
        gate.wait_until_stuck(1);
        scope.spawn(|| answer.send(swift.remove_all(next, &[], None, false).unwrap()));
        let answered = answered.recv_timeout(Duration::from_mins(10));
        gate.release();
        assert_eq!(answered, Ok(false));
    });
}

#[test]
fn a_fragment_on_a_full_drive_is_made_durable() {
    let drive = formatted();
    let swift = SwiftDrive::new(mount(&drive));
    swift.add_policy(0, PolicyKind::ErasureCoding).unwrap();
    let named = |is_durable| Kind::Fragment {
        index: 1,
        is_durable,
    };
    let count = fill(&swift, named(false));
    for number in 0..count {
        swift
            .make_durable(address(number), file(1, named(false)))
            .unwrap();
    }
    let first = swift.files(address(0)).unwrap();
    assert_eq!(first, [file(1, named(true))]);
}

/// What is quarantined takes space until it is removed, and its collection is made again wherever it is needed.
#[test]
fn quarantined_objects_are_removed_and_their_collection_is_not_missed() {
    let drive = formatted();
    let store = mount(&drive);
    let swift = SwiftDrive::new(store.clone());
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let count = fill(&swift, Kind::Data);
    let all = |swift: &SwiftDrive| swift.quarantined(0, 100_000).unwrap().len();
    for number in 0..count / 2 {
        swift.quarantine(address(number), None).unwrap();
    }
    assert_eq!(all(&swift), (count / 2) as usize);
    assert_eq!(swift.empty_quarantine(0).unwrap(), count / 2);
    assert_eq!((all(&swift), swift.empty_quarantine(0).unwrap()), (0, 0));
    for number in 0..count / 4 {
        swift
            .put(address(number), file(3, Kind::Data), None, vec![1; 8 << 10])
            .unwrap();
    }
    let remove = || {
        let mut transaction = Transaction::new();
        transaction.remove_collection("swift-0-quarantined");
        store.commit(transaction).unwrap();
    };
    remove();
    assert_eq!((all(&swift), swift.empty_quarantine(0).unwrap()), (0, 0));
    swift.quarantine(address(0), None).unwrap();
    assert_eq!((all(&swift), swift.empty_quarantine(0).unwrap()), (1, 1));
    remove();
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    assert!(store.collection("swift-0-quarantined").unwrap().is_some());
    assert!(swift.quarantined(1, 9).is_err() && swift.empty_quarantine(1).is_err());
}

/// Who read the old version finds the damage only after the new one was acknowledged.
#[test]
fn damage_of_an_old_version_leaves_the_new_one() {
    let swift = SwiftDrive::new(mount(&formatted()));
    swift.add_policy(0, PolicyKind::Replication).unwrap();
    let (old, new) = (file(1, Kind::Data), file(2, Kind::Data));
    let at = address(0);
    for data in [old, new] {
        swift.put(at, data, None, Vec::new()).unwrap();
    }
    let refused = swift.quarantine(at, Some(old));
    assert!(matches!(refused, Err(Error::NoObject)), "{refused:?}");
    assert_eq!(swift.files(at).unwrap(), [new]);
    assert!(swift.quarantined(0, 9).unwrap().is_empty());
    swift.quarantine(at, Some(new)).unwrap();
    assert!(swift.files(at).unwrap().is_empty());
    assert_eq!(swift.quarantined(0, 9).unwrap(), [(at, vec![new])]);
}
