use super::found::find_place;
use super::*;
use crate::attributes::{VERSION, VERSIONING, VERSIONING_ENABLED, VERSIONING_SUSPENDED};
use crate::collections::{bucket_maker, require, versions_of};
use crate::lock::{BucketLock, Lock};
use crate::test_bucket::{BUCKET, bucket, bucket_on, geometry, with_damaged_records, written};
use device::power_cut::CrashLimits;
use device::{MemoryDrive, PowerCut, ZonedDevice};
use kv_rocksdb::RocksDb;
use proptest::prelude::*;
use runtime::Runtime;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use store::{Attributes, CollectionInfo, MountOptions, Store, Transaction};

fn version() -> impl Strategy<Value = Version> {
    (0u64..4, prop::option::of(0u64..4)).prop_map(|(number, random)| Version::new(number, random))
}

proptest! {
    /// The listing of versions merges by names and means keys.
    #[test]
    fn names_are_in_order_of_keys_and_then_the_newest_first(
        one in ("[\0\u{1}\u{2}a/é]{0,5}", version()),
        other in ("[\0\u{1}\u{2}a/é]{0,5}", version()),
    ) {
        let name = |(key, version): &(String, Version)| name_of(key, version);
        let place = |(key, version): &(String, Version)| (key.clone(), version.as_str().to_owned());
        prop_assert_eq!(name(&one).cmp(&name(&other)), place(&one).cmp(&place(&other)));
        let number = |of: &(String, Version)| of.1.number();
        if one.0 == other.0 && number(&one) > number(&other) {
            prop_assert!(name(&one) < name(&other));
        }
        prop_assert!(name(&one).starts_with(&stem(&one.0)));
        prop_assert_eq!(name(&other).starts_with(&stem(&one.0)), one.0 == other.0);
        prop_assert_eq!(parse_name(&name(&one)), Some(one));
    }

    #[test]
    fn any_name_is_read(name in "[\0\u{1}a0-9fnul]{0,60}") {
        parse_name(&name);
    }
}

#[test]
fn what_is_no_version_is_the_oldest() {
    let of = |text: &[u8]| Version::of(&Attributes::from([(VERSION.to_owned(), text.to_vec())]));
    let oldest = Version::of(&Attributes::new());
    assert_eq!((oldest.number(), oldest.id()), (0, NULL));
    for odd in [
        &b"null"[..],
        b"",
        b"\xff",
        b"0123456789abcdef",
        b"0123456789ABCDEFnull",
        b"0123456789abcdef0123456789abcde",
    ] {
        assert_eq!(of(odd), oldest);
    }
    assert_eq!(of(b"fffffffffffffffenull").number(), 1);
    assert_eq!(
        of(b"fffffffffffffffe0000000000000007").id(),
        "fffffffffffffffe0000000000000007"
    );
}

#[test]
fn what_cannot_be_read_keeps_versions() {
    let of = |word: &[u8]| {
        let attributes = Attributes::from([(VERSIONING.to_owned(), word.to_vec())]);
        Versioning::of(&CollectionInfo {
            name: "b".to_owned(),
            created_micros: 0,
            hashed: None,
            attributes,
        })
    };
    assert_eq!(of(VERSIONING_ENABLED), Versioning::Enabled);
    assert_eq!(of(VERSIONING_SUSPENDED), Versioning::Suspended);
    for odd in [&b"ENABLED"[..], b"", b"\xff", b"enabled forever"] {
        assert_eq!(of(odd), Versioning::Enabled);
    }
}

/// Puts an object, and returns its version's id.
fn put(store: &Store, locks: &Locks, bucket: &str, key: &str) -> Option<String> {
    let data = written(store, key.as_bytes());
    let change = locks.change(store, bucket, key).unwrap();
    let mut transaction = Transaction::new();
    let version = change.replace(&mut transaction, Lock::default(), |transaction, next| {
        transaction.put(bucket, key, data, next.mark(Attributes::new()));
    });
    store.commit(transaction).unwrap();
    version.unwrap().and_then(Version::told)
}

#[test]
fn a_deletion_of_what_is_gone_already_is_not_taken_back() {
    let drive = Arc::new(PowerCut::new(geometry()).unwrap());
    let (store, locks) = bucket_on(drive.clone(), Runtime::seeded(1));
    locks.set(&store, BUCKET, Versioning::Enabled).unwrap();
    let id = put(&store, &locks, BUCKET, "k").unwrap();
    let change = locks.change(&store, BUCKET, "k").unwrap();
    let gone = change.delete_version(&id, false, &[], Store::commit_readable);
    let pending = gone.unwrap().1.unwrap();
    assert!(!pending.is_durable());
    let again = change.delete_version(&id, false, &[], Store::commit);
    assert!(again.unwrap().1.is_none());
    drop(change);
    drive.cut_after(0);
    for state in drive.crash_states(CrashLimits {
        max_states: 4,
        ..Default::default()
    }) {
        let image = Arc::new(drive.image(&state));
        let store = Store::mount(image, MountOptions::new(RocksDb)).unwrap();
        assert!(store.stat(BUCKET, "k").unwrap().is_none());
    }
}

#[test]
fn a_damaged_version_keeps_its_key_writable() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let (store, locks) = bucket_on(drive.clone(), Runtime::system());
    locks.set(&store, BUCKET, Versioning::Enabled).unwrap();
    let ids: [String; 3] = std::array::from_fn(|_| put(&store, &locks, BUCKET, "k").unwrap());
    let store = with_damaged_records(store, &drive, &ids[1]);
    let delete_version = |id: &str| {
        let change = locks.change(&store, BUCKET, "k").unwrap();
        let done = change.delete_version(id, false, &[], Store::commit);
        done.is_ok()
    };
    // Behind the current version, an older one does not become current in its place; nor does a request remove it.
    assert!(!delete_version(&ids[2]) && !delete_version(&ids[1]));
    let fourth = put(&store, &locks, BUCKET, "k").unwrap();
    // What is not next to become current is looked at by its name alone.
    assert!(delete_version(&ids[0]) && delete_version(&fourth));
    for state in [Versioning::Enabled, Versioning::Suspended] {
        locks.set(&store, BUCKET, state).unwrap();
        for _ in 0..2 {
            put(&store, &locks, BUCKET, "k");
        }
        let change = locks.change(&store, BUCKET, "k").unwrap();
        change.delete(&[], Store::commit).unwrap();
    }
    let left = store
        .list_damaged(&versions_of(BUCKET), "", "", 99)
        .unwrap();
    let damaged = left.iter().filter(|(_, info)| info.is_err());
    let damaged: Vec<_> = damaged.map(|(name, _)| name.text()).collect();
    let name = name_of("k", &Version::parse(&ids[1]).unwrap());
    assert_eq!(damaged, [Some(&*name)]);
}

#[test]
fn a_damaged_null_version_keeps_its_key_writable() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let (store, locks) = bucket_on(drive.clone(), Runtime::system());
    put(&store, &locks, BUCKET, "k");
    locks.set(&store, BUCKET, Versioning::Enabled).unwrap();
    put(&store, &locks, BUCKET, "k").unwrap();
    let store = with_damaged_records(store, &drive, NULL);
    locks.set(&store, BUCKET, Versioning::Suspended).unwrap();
    for _ in 0..2 {
        // Over a version with another id, over `null`, and over a delete marker.
        for _ in 0..2 {
            assert_eq!(put(&store, &locks, BUCKET, "k"), None);
            let found = stat(&store, BUCKET, "k", Some(NULL)).unwrap();
            assert_eq!(found.collection, BUCKET);
        }
        let change = locks.change(&store, BUCKET, "k").unwrap();
        let deleted = change.delete(&[], Store::commit).unwrap().0;
        assert_eq!((deleted.marker, deleted.id.as_deref()), (true, Some(NULL)));
    }
    // What was put as `null` above it keeps that id.
    put(&store, &locks, BUCKET, "k");
    locks.set(&store, BUCKET, Versioning::Enabled).unwrap();
    assert!(put(&store, &locks, BUCKET, "k").is_some());
    let found = stat(&store, BUCKET, "k", Some(NULL)).unwrap();
    assert_eq!(found.collection, versions_of(BUCKET));
}

#[test]
fn a_bucket_that_is_held_stops_no_other() {
    let (store, locks) = bucket(Runtime::seeded(1));
    let names = (0..1000).map(|n| format!("other{n}"));
    let mut others = names.filter(|name| !std::ptr::eq(locks.switch(name), locks.switch(BUCKET)));
    let other = others.next().unwrap();
    store
        .commit(bucket_maker(&store, &other, None).unwrap())
        .unwrap();
    let (done, is_done) = channel();
    let held = locks.hold(BUCKET);
    let client = (store.clone(), locks.clone());
    let putting = std::thread::spawn(move || {
        put(&client.0, &client.1, &other, "k");
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_mins(5)).unwrap();
    drop(held);
    putting.join().unwrap();
}

/// A salvage has left a collection; who makes it a bucket must not do so from what it was before another has.
#[test]
fn of_two_who_make_a_bucket_one_does() {
    let (store, locks) = bucket(Runtime::seeded(1));
    let mut left = Transaction::new();
    left.create_collection("left", Attributes::new());
    store.commit(left).unwrap();
    let first = bucket_maker(&store, "left", Some(BucketLock::default())).unwrap();
    let changing = locks.as_they_are("left");
    let client = (store.clone(), locks.clone());
    let second = std::thread::spawn(move || client.1.create(&client.0, "left", None));
    // It waits for us.
    while locks.switch("left").try_read().is_some() && !second.is_finished() {
        std::thread::yield_now();
    }
    store.commit(first).unwrap();
    drop(changing);
    let refused = second.join().unwrap().unwrap_err();
    assert_eq!(refused.code().as_str(), "BucketAlreadyOwnedByYou");
    let made = require(&store, "left").unwrap();
    assert_eq!(
        BucketLock::of(&made.attributes),
        Ok(Some(BucketLock::default()))
    );
}

#[test]
fn a_version_that_becomes_current_meanwhile_has_its_place() {
    let is_current = Cell::new(false);
    let current = || Ok(is_current.get().then(|| "place".to_owned()));
    // The one before it is deleted between the two looks.
    let earlier = || {
        is_current.set(true);
        Ok(None)
    };
    assert_eq!(
        find_place(current, earlier).unwrap().as_deref(),
        Some("place")
    );
    assert_eq!(find_place(|| Ok(None), || Ok(None)).unwrap(), None);
}
