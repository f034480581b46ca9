//! A backup while others go on: the archive is what there was when it began, or there is none.

use crate::common::{assert_clean, pattern, put_in};
use crate::stores::{BACKUP, Device, all, backup, commit, fresh, history, options, restored};
use crate::world::World;
use archive::{Error, PackOptions, Packed, Since, pack, restore};
use fastrand::Rng;
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use std::io::{self, Cursor, Write};
use std::sync::mpsc;
use store::{Attributes, MkfsOptions, MountOptions, Store};

/// What something else is done between writes to it.
struct Slow<F> {
    bytes: Vec<u8>,
    meanwhile: F,
}

impl<F: FnMut()> Write for Slow<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.meanwhile)();
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn slow_backup(
    store: &Store,
    since: Option<&[u8]>,
    meanwhile: impl FnMut(),
) -> Result<(Vec<u8>, Packed), Error> {
    let bytes = Vec::new();
    let mut target = Slow { bytes, meanwhile };
    let mut since = since.map(|since| Since::open(Cursor::new(since)).unwrap());
    let options = PackOptions {
        is_served: true,
        ..BACKUP
    };
    let packed = pack(store, &mut target, &options, since.as_mut(), &mut |_| {})?;
    Ok((target.bytes, packed))
}

/// Chains of backups, each made while a history goes on; answers how many were given up.
fn run(seed: u64) -> usize {
    let mut random = Rng::with_seed(seed);
    let (_, store) = fresh(160, 7);
    let mut world = World::default();
    history(&mut random, &store, &mut world, 60);
    let mut archives: Vec<Vec<u8>> = Vec::new();
    let mut given_up = 0;
    for _ in 0..4 {
        let begin = all(&store);
        assert_eq!(begin.0, world);
        let since = archives.last().map(Vec::as_slice);
        let made = slow_backup(&store, since, || {
            if random.u8(..4) == 0 {
                history(&mut random, &store, &mut world, 2);
            }
        });
        match made {
            Ok((archive, _)) => {
                archives.push(archive);
                let chain: Vec<&[u8]> = archives.iter().map(Vec::as_slice).collect();
                let copy = restored(&chain);
                assert!(all(&copy) == begin, "seed {seed}");
                assert_clean(&copy);
            }
            Err(Error::Store(store::Error::MomentGivenUp)) => given_up += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        assert_eq!(all(&store).0, world);
    }
    assert_clean(&store);
    given_up
}

#[test]
fn an_archive_is_the_moment_at_which_it_began() {
    let given_up: usize = (0..12)
        .map(|number| run(crate::common::seed() * 100 + number))
        .sum();
    assert!(given_up < 24, "{given_up}");
}

/// Objects of 300 kB, `o0` and so on.
fn fill(store: &Store, objects: u64) {
    commit(store, |tx| {
        _ = tx.create_collection("c", Attributes::new());
    });
    for number in 0..objects {
        overwrite(store, number, 0);
    }
}

fn overwrite(store: &Store, number: u64, round: u64) {
    let data = pattern(number * 1000 + round, 300_000);
    put_in(store, "c", format!("o{number}"), &data).unwrap();
}

#[test]
fn all_changes_at_once_and_the_archive_has_none_of_them() {
    let (_, store) = fresh(160, 7);
    fill(&store, 40);
    commit(&store, |tx| {
        tx.omap_set("c", "o1", [(b"k".to_vec(), b"v".to_vec())].into());
    });
    let begin = all(&store);
    let mut is_first = true;
    let (archive, packed) = slow_backup(&store, None, || {
        if !std::mem::take(&mut is_first) {
            return;
        }
        commit(&store, |tx| {
            tx.remove("c", "o0")
                .truncate("c", "o2", 5)
                .punch("c", "o3", 7, 100_000)
                .rename(("c", "o4"), ("c", "a-first"))
                .rename(("c", "o5"), ("c", "z-last"))
                .omap_set("c", "o1", [(b"k".to_vec(), b"w".to_vec())].into())
                .create_collection("d", Attributes::new())
                .clone_object(("c", "o6"), ("d", "o6"));
        });
        (7..40).for_each(|number| overwrite(&store, number, 1));
        store.seal_open_zones().unwrap();
        while store.clean_one().unwrap() {}
    })
    .unwrap();
    assert_eq!((packed.objects, packed.damaged.len()), (40, 0));
    assert!(all(&restored(&[&archive])) == begin);
    // What was held is given back.
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    assert!(
        store
            .zones()
            .iter()
            .all(|zone| zone.live_bytes > 0 || zone.written_bytes == 0)
    );
    assert_clean(&store);
}

#[test]
fn nearly_full_the_moment_goes_and_writes_do_not() {
    let (_, store) = fresh(64, 7);
    fill(&store, 30);
    while store.statfs().free_zones_for_data > 6 {
        let objects = store.list("c", "", "", usize::MAX).unwrap().len() as u64;
        overwrite(&store, objects, 0);
    }
    let objects = store.list("c", "", "", usize::MAX).unwrap().len() as u64;
    let mut round = 0;
    let made = slow_backup(&store, None, || {
        round += 1;
        // What is written meanwhile and replaced is cleaned. What was there when the backup began is not.
        (0..6).for_each(|number| overwrite(&store, (number * 7 + round * 2) % objects, round));
    });
    assert!(matches!(
        made.map(|(_, packed)| packed),
        Err(Error::Store(store::Error::MomentGivenUp))
    ));
    assert!(round > 3);
    assert_clean(&store);
    // In a quieter hour.
    let (archive, _) = backup(&store, None);
    let (_, copy) = fresh(64, 8);
    restore(
        &copy,
        vec![&archive[..]],
        &mut archive::Restored::default(),
        &mut |_| {},
    )
    .unwrap();
    assert!(all(&copy) == all(&store));
}

#[test]
fn zones_that_were_held_when_the_power_went_are_reset_at_the_next_mount() {
    let (device, store) = fresh(160, 7);
    fill(&store, 60);
    let held: Vec<_> = store.zones().iter().map(|zone| zone.zone).collect();
    let dead = store.at_moment(|moment| {
        (0..60)
            .filter(|number| *number >= 8 || number % 2 == 1)
            .for_each(|number| overwrite(&store, number, 1));
        store.seal_open_zones().unwrap();
        while store.clean_one().unwrap() {}
        assert_eq!(moment.list_damaged("c", "", "", 99)?.len(), 60);
        let zones = store.zones().into_iter();
        // To move what is live out of a zone that is not reset would take space and give none.
        let zones_held = zones.clone().filter(|zone| held.contains(&zone.zone));
        assert!(zones_held.map(|zone| zone.live_bytes).sum::<u64>() >= 4 * 300_000);
        Ok::<_, store::Error>(zones.filter(|zone| zone.live_bytes == 0).count())
    });
    assert!(dead.unwrap() >= 10);
    let state = all(&store);
    drop(store);
    let store = Store::mount(device, options()).unwrap();
    assert!(store.clean_status().mount_zones_reset >= 10);
    assert!(all(&store) == state);
    assert_clean(&store);
}

#[test]
fn the_cleaner_goes_at_full_pace_meanwhile() {
    let device: Device =
        std::sync::Arc::new(device::MemoryDrive::new(crate::common::geometry(160)).unwrap());
    Store::mkfs(device.clone(), &MkfsOptions::new(RocksDb)).unwrap();
    let options = MountOptions {
        background: true,
        runtime: Runtime::system(),
        ..MountOptions::new(RocksDb)
    };
    let store = Store::mount(device, options).unwrap();
    fill(&store, 40);
    let begin = all(&store);
    let mut round = 0;
    let (archive, _) = slow_backup(&store, None, || {
        round += 1;
        (0..4).for_each(|number| overwrite(&store, number + round % 36, round));
        store.clean_start().unwrap();
        if round % 8 == 0 {
            store.flush().unwrap();
        }
    })
    .unwrap();
    assert!(round > 40);
    assert!(all(&restored(&[&archive])) == begin);
    store.unmount().unwrap();
}

#[test]
fn what_was_given_up_is_not_read() {
    let (_, store) = fresh(64, 7);
    fill(&store, 100);
    let begin = pattern(0, 300_000);
    let read = store.at_moment(|moment| {
        let object = moment.open("c", "o0")?;
        let mut found = vec![0; 300_000];
        object.read_at(0, &mut found)?;
        assert!(found == begin);
        for number in 0..100 {
            overwrite(&store, number, 1);
        }
        // The zone may still have it, and nobody knows.
        match object.read_at(0, &mut found) {
            Err(store::Error::MomentGivenUp) => {}
            other => panic!("{other:?}"),
        }
        moment.watch().check()
    });
    assert!(matches!(read, Err(store::Error::MomentGivenUp)));
}

#[test]
fn a_zone_that_was_being_emptied_when_the_moment_began_is_not_reset() {
    let (_, store) = fresh(64, 7);
    fill(&store, 20);
    (0..20)
        .step_by(2)
        .for_each(|number| overwrite(&store, number, 1));
    store.clean_start().unwrap();
    let begin = crate::common::contents(&store);
    let (begun, has_begun) = mpsc::channel();
    let (go, goes) = mpsc::channel();
    std::thread::scope(|scope| {
        let (store, begun) = (&store, begun);
        let cleaner = scope.spawn(move || {
            let mut pieces = 0;
            let tended = store.tend_with(&mut |_| {
                pieces += 1;
                if pieces == 2 {
                    begun.send(()).unwrap();
                    goes.recv().unwrap();
                }
            });
            tended.unwrap();
            pieces
        });
        has_begun.recv().unwrap();
        let read = store.at_moment(|moment| {
            go.send(()).unwrap();
            assert!(cleaner.join().unwrap() > 2);
            for (name, bytes) in &begin {
                let mut found = vec![0; bytes.len()];
                moment.open("c", name)?.read_at(0, &mut found)?;
                assert!(found == *bytes, "{name}");
            }
            Ok::<_, store::Error>(())
        });
        read.unwrap();
    });
    assert!(store.clean_status().bytes_moved > 0);
    assert_clean(&store);
}
