//! A restore that stops somewhere goes on when it is run again.

use crate::common::geometry;
use crate::stores::{
    BACKUP, all, backup, commit, fresh, history, mkfs, options, restored, try_backup, try_restore,
};
use crate::world::World;
use archive::{Error, OWN, check_finished};
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use std::io;
use std::sync::Arc;
use store::{Attributes, Store};
use zone::ZoneCommand;

/// Restores with the `k`-th flush failing, which ends the mount; then again. Answers whether it came to that.
fn cut_at(k: u64, archives: &[&[u8]], expected: &Store) -> bool {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(64)).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device, 8);
    let store = Store::mount(device.clone(), options()).unwrap();
    drive.add(Plan::at(
        ZoneCommand::Flush,
        k,
        Fault::Io(io::ErrorKind::Other),
    ));
    let (_, done) = try_restore(&store, archives);
    drop(store);
    let struck = drive.struck() > 0;
    assert_eq!(done.is_err(), struck, "{k}");
    drive.clear();
    let store = Store::mount(device, options()).unwrap();
    if struck {
        let (restored, done) = try_restore(&store, archives);
        match done {
            Ok(()) => assert!(k < 3 || restored.resumed, "{k}"),
            // It was only the last answer that was lost.
            Err(error) => assert!(matches!(error, Error::NotEmpty), "{k}: {error}"),
        }
    }
    assert!(all(&store) == all(expected), "{k}");
    struck
}

#[test]
fn a_restore_is_run_again_wherever_it_stopped() {
    let mut random = Rng::with_seed(5);
    let (_, store) = fresh(64, 7);
    let mut world = World::default();
    history(&mut random, &store, &mut world, 80);
    let (full, _) = backup(&store, None);
    history(&mut random, &store, &mut world, 60);
    let (next, _) = backup(&store, Some(&full));
    let archives = [&full[..], &next[..]];
    let cuts = (1..).take_while(|k| cut_at(*k, &archives, &store)).count();
    assert!(cuts > 10, "{cuts}");
}

/// Restores both archives with the `k`-th flush failing, then only the first one. Answers whether it came to that.
fn cut_and_shortened(k: u64, archives: [&[u8]; 2], first: &Store, both: &Store) -> bool {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(64)).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device, 8);
    let store = Store::mount(device.clone(), options()).unwrap();
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::at(ZoneCommand::Flush, k, fault));
    let done = try_restore(&store, &archives).1;
    drop(store);
    drive.clear();
    if done.is_ok() {
        return false;
    }
    let store = Store::mount(device, options()).unwrap();
    match try_restore(&store, &archives[..1]).1 {
        Ok(()) => assert!(all(&store) == all(first), "{k}"),
        Err(Error::NotEmpty) => assert!(all(&store) == all(both), "{k}"),
        Err(error) => {
            assert!(matches!(error, Error::OtherArchives), "{k}: {error}");
            try_restore(&store, &archives).1.unwrap();
            assert!(all(&store) == all(both), "{k}");
        }
    }
    true
}

#[test]
fn a_restore_that_stopped_between_two_archives_is_not_ended_by_the_first_one() {
    let (_, store) = fresh(64, 7);
    let with_objects = |name: &str| {
        commit(&store, |tx| {
            tx.create_collection(name, Attributes::new());
            (0..600).for_each(|number| _ = tx.touch(name, format!("{number}")));
        });
    };
    ["a", "goes", "z"].into_iter().for_each(with_objects);
    let (full, _) = backup(&store, None);
    let first = restored(&[&full]);
    remove_all(&store, "goes");
    with_objects("comes");
    let (next, _) = backup(&store, Some(&full));
    let cuts = (1..).take_while(|k| cut_and_shortened(*k, [&full, &next], &first, &store));
    assert!(cuts.count() > 10);
}

/// Removes a collection with its objects.
fn remove_all(store: &Store, collection: &str) {
    let objects = store.list(collection, "", "", usize::MAX).unwrap();
    commit(store, |tx| {
        for object in &objects {
            tx.remove(collection, &object.name);
        }
        tx.remove_collection(collection);
    });
}

#[test]
fn only_the_same_archives_are_gone_on_with() {
    let (_, store) = fresh(64, 7);
    let mut world = World::default();
    history(&mut Rng::with_seed(1), &store, &mut world, 60);
    let (full, _) = backup(&store, None);
    let (other, _) = {
        let (_, other) = fresh(64, 9);
        backup(&other, None)
    };
    let (_, copy) = fresh(64, 8);
    let cut = full.len() - 3000;
    assert!(matches!(
        try_restore(&copy, &[&full[..cut]]).1,
        Err(Error::CutOff { .. })
    ));
    let refused = try_restore(&copy, &[&other]).1;
    assert!(matches!(refused, Err(Error::OtherArchives)));
    assert!(matches!(
        try_backup(&copy, &BACKUP, None),
        Err(Error::Unfinished)
    ));
    try_restore(&copy, &[&full]).1.unwrap();
    assert!(all(&copy) == all(&store));
}

/// It has no progress, unlike a restore.
#[test]
fn what_a_killed_import_left_is_in_nobodys_way() {
    let (_, store) = fresh(64, 7);
    history(&mut Rng::with_seed(2), &store, &mut World::default(), 60);
    let before = all(&store);
    let leave = |names: &[&str]| {
        commit(&store, |tx| {
            tx.create_collection(OWN, Attributes::new());
            for name in names {
                tx.touch(OWN, name);
            }
        });
    };
    let without = backup(&store, None).1.objects;
    leave(&["part/0"]);
    let (full, packed) = backup(&store, None);
    assert_eq!(packed.objects, without);
    assert!(all(&restored(&[&full])) == before);
    check_finished(&store).unwrap();
    assert!(all(&store) == before);
    leave(&["part/0", "progress"]);
    let refused = try_backup(&store, &BACKUP, None);
    assert!(matches!(refused, Err(Error::Unfinished)));
    assert!(matches!(check_finished(&store), Err(Error::Unfinished)));
    assert!(store.stat(OWN, "part/0").unwrap().is_some());
}
