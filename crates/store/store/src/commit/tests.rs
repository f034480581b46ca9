//! Removed objects of which a row is damaged, or that have many rows.

use crate::format::{extent, key};
use crate::inner::Inner;
use crate::rows::{onode_key, read_extents};
use crate::space::LARGE;
use crate::staging::{MAX_DROPPED, Staging};
use crate::test_drive::changed_database::{Calls, Unread};
use crate::test_drive::{change, drive, mount, options, options_with, put, remove};
use crate::{Attributes, Error, Store, Transaction};
use device::MemoryDrive;
use device::wrap::faults::{Fault, Faults, Plan};
use kv::{Batch, Database, Durability, Kv};
use object::Extent;
use runtime::sync::Mutex;
use std::io::ErrorKind;
use std::sync::Arc;
use zone::ZoneCommand;

/// Overwrites all extents of doomed maps.
fn damage_doomed(kv: &Kv, batch: &mut Batch) {
    for row in kv.scan(&[key::DOOMED], Some(&[key::DOOMED + 1])) {
        let map = key::map(key::parse_doomed(&row.unwrap().0).unwrap());
        for row in kv.scan(&map, key::after_prefix(&map).as_deref()) {
            batch.put(&row.unwrap().0, &[9]);
        }
    }
    assert_eq!(batch.changes().count(), 1);
}

/// Removes an object while it is open, so that its rows are left to the purge.
fn doom(store: &Store, name: &str) {
    let reader = store.open("c", name).unwrap();
    remove(store, name);
    drop(reader);
}

fn doomed(inner: &Inner) -> usize {
    let kv = inner.kv().unwrap();
    kv.scan(&[key::DOOMED], Some(&[key::DOOMED + 1])).count()
}

#[test]
fn a_damaged_row_of_a_removed_object_does_not_refuse_the_mount() {
    let drive = drive();
    let store = mount(&drive);
    put(&store, "damaged");
    put(&store, "whole");
    doom(&store, "damaged");
    drop(store);
    change(&drive, |opened, batch| damage_doomed(&opened.kv, batch));
    for _ in 0..2 {
        let store = mount(&drive);
        doom(&store, "whole");
        let named = store.health().unwrap().metadata;
        assert!(
            named.len() == 1 && named[0].contains("no extent"),
            "{named:?}"
        );
        put(&store, "whole");
        assert_eq!(doomed(&store.inner), 2);
        store.tend().unwrap();
        assert_eq!(doomed(&store.inner), 1);
        store.unmount().unwrap();
    }
}

#[test]
fn an_object_with_a_damaged_record_is_put_again_or_removed() {
    let drive = drive();
    let store = mount(&drive);
    put(&store, "o");
    put(&store, "p");
    store.unmount().unwrap();
    change(&drive, |opened, batch| {
        for row in opened.kv.scan(b"O", Some(b"P")) {
            batch.put(&row.unwrap().0, b"?");
        }
        assert_eq!(batch.changes().count(), 2);
    });
    let store = mount(&drive);
    assert!(store.stat("c", "o").is_err());
    put(&store, "o");
    assert_eq!(store.stat("c", "o").unwrap().unwrap().size, 100_000);
    let mut transaction = Transaction::new();
    transaction.remove_if_present("c", "p");
    store.commit(transaction).unwrap_err();
    let mut transaction = Transaction::new();
    transaction.remove_even_damaged("c", "p");
    transaction.remove_even_damaged("c", "none");
    store.commit(transaction).unwrap();
    assert!(store.stat("c", "p").unwrap().is_none());
}

/// A row, its new value or `None` if it is deleted, and whether that damages the object `clone`, too.
type Damage = (Vec<u8>, Option<Vec<u8>>, bool);

/// A drive with the object `o`, which has an extent of each kind; the first shows bytes of the object `clone`. And what
/// damages `o`.
fn damages() -> (Arc<MemoryDrive>, Vec<Damage>) {
    let drive = drive();
    let store = mount(&drive);
    put(&store, "clone");
    let mut tx = Transaction::new();
    tx.clone_range(("c", "clone"), 0..100_000, ("c", "o"), 0);
    for length in [100_000, 10] {
        let mut writer = store.writer(None).unwrap();
        writer.write(&vec![8; length]).unwrap();
        tx.append("c", "o", writer.finish().unwrap());
    }
    tx.punch("c", "o", 200_010, 5000);
    store.commit(tx).unwrap();
    let kv = store.inner.kv().unwrap();
    let rows = |of: u8| -> Vec<_> {
        let rows = kv.scan(&[of], Some(&[of + 1]));
        rows.map(Result::unwrap).collect()
    };
    let (extents, blobs) = (rows(key::EXTENT), rows(key::BLOB));
    // Shared, own, inline, a hole.
    let kinds: Vec<_> = extents.iter().map(|(_, value)| value[0]).collect();
    assert_eq!((&kinds[..], blobs.len()), (&[3, 3, 1, 2, 4][..], 1));
    let mut damages = Vec::new();
    for (row, _) in &extents[1..] {
        let too_long = extent::encode(&Extent::hole(u64::MAX));
        damages.push((row.clone(), Some(vec![9]), false));
        damages.push((row.clone(), Some(too_long), false));
    }
    damages.push((blobs[0].0.clone(), Some(vec![9]), true));
    damages.push((blobs[0].0.clone(), None, true));
    drop(kv);
    store.unmount().unwrap();
    (drive, damages)
}

fn live_bytes(store: &Store) -> u64 {
    store.statfs().live_bytes
}

#[test]
fn an_object_with_a_damaged_extent_is_put_again_or_removed() {
    let (whole, damages) = damages();
    let store = mount(&Arc::new(whole.snapshot()));
    let before = live_bytes(&store);
    remove(&store, "o");
    let without = live_bytes(&store);
    assert!(without < before);
    for (row, value, harms_clone) in damages {
        for is_put in [false, true] {
            let what = format!("{} {value:?} {is_put}", row.escape_ascii());
            let drive = Arc::new(whole.snapshot());
            change(&drive, |_, batch| match &value {
                Some(value) => batch.put(&row, value),
                None => batch.delete(&row),
            });
            let has_clone = |store: &Store| {
                let mut bytes = vec![0; 100_000];
                let read = store.open("c", "clone").unwrap().read_at(0, &mut bytes);
                read.is_ok() && bytes.iter().all(|byte| *byte == 7)
            };
            let store = mount(&drive);
            match is_put {
                true => put(&store, "o"),
                false => remove(&store, "o"),
            }
            let size = store.stat("c", "o").unwrap().map(|found| found.size);
            assert_eq!(size, is_put.then_some(100_000), "{what}");
            store.tend().unwrap();
            assert_eq!(doomed(&store.inner), 1, "{what}");
            assert!(is_put || live_bytes(&store) == before, "{what}");
            assert_eq!(has_clone(&store), !harms_clone, "{what}");
            assert!(!store.health().unwrap().metadata.is_empty(), "{what}");
            // A scrub of all data does not read these rows.
            store.scrub(true, |_| true).unwrap();
            assert_eq!(doomed(&store.inner), 1, "{what}");
            assert!(!store.health().unwrap().metadata.is_empty(), "{what}");
            let errors = store.fsck(false, &mut |_, _| {}).unwrap().errors;
            let held = errors.get("removed object whose space is held").copied();
            assert_eq!(held.is_some(), !harms_clone, "{what}: {errors:?}");
            assert!(!errors.is_empty(), "{what}");
            store.unmount().unwrap();
            drop(store);

            let report =
                Store::repair(drive.clone(), &options(), &mut |_| true, &mut |_, _| {}).unwrap();
            assert_eq!(!report.given_up.is_empty(), harms_clone, "{what}");
            let store = mount(&drive);
            store.tend().unwrap();
            assert_eq!(doomed(&store.inner), 0, "{what}");
            let report = store.fsck(true, &mut |_, _| {}).unwrap();
            assert!(report.is_clean(), "{what}: {report:?}");
            if !harms_clone {
                assert!(is_put || live_bytes(&store) == without, "{what}");
                assert!(has_clone(&store), "{what}");
            }
        }
    }
}

/// Its record says what it is, and whether it is locked.
#[test]
fn a_damaged_extent_counts_as_no_damage_to_a_removal() {
    let (drive, damages) = damages();
    let (row, value, _) = damages.into_iter().next().unwrap();
    change(&drive, |_, batch| batch.put(&row, &value.unwrap()));
    let store = mount(&drive);
    let damaged = store.remove_around_damage("c", &["clone", "o"]).unwrap();
    assert!(damaged.is_empty(), "{damaged:?}");
    assert!(store.list("c", "", "", 9).unwrap().is_empty());
}

#[test]
fn an_object_whose_rows_the_drive_does_not_read_is_removed() {
    let drive = Arc::new(Faults::new(drive().snapshot()));
    let unread = Arc::<Unread>::default();
    let mount = || Store::mount(drive.clone(), options_with(&unread)).unwrap();
    let store = mount();
    for name in ["extents", "record"] {
        put(&store, name);
    }
    let kv = store.inner.kv().unwrap();
    let (row, _) = kv.scan(&[key::EXTENT], None).next().unwrap().unwrap();
    drop(kv);
    let (map, _) = key::parse_extent(&row).unwrap();
    let kind = store.inner.collections()["c"].kind;
    let record = onode_key(&kind, "c", b"record").unwrap();
    unread.0.lock().extend([key::map(map), record]);
    let remove_both = || {
        let mut tx = Transaction::new();
        tx.remove_even_damaged("c", "extents");
        tx.remove_even_damaged("c", "record");
        store.commit(tx)
    };
    // The drive reads nothing at all, which is no damage.
    drive.add(Plan::from(
        ZoneCommand::Read,
        1,
        Fault::Io(ErrorKind::Other),
    ));
    let refused = remove_both().unwrap_err();
    assert!(!refused.is_damage(), "{refused}");
    drive.clear();
    assert!(store.stat("c", "extents").unwrap().is_some());
    remove_both().unwrap();
    store.tend().unwrap();
    assert_eq!(doomed(&store.inner), 1);
    unread.0.lock().clear();
    assert!(store.list("c", "", "", 9).unwrap().is_empty());
    // The drive reads them again.
    store.scrub(true, |_| true).unwrap();
    assert_eq!(doomed(&store.inner), 0);
}

/// A row that the drive does not read once.
struct UnreadOnce(Mutex<Option<Vec<u8>>>);

impl Calls for UnreadOnce {
    fn get(&self, database: &dyn Database, key: &[u8]) -> kv::Result<Option<Vec<u8>>> {
        match self.0.lock().take_if(|row| row == key) {
            Some(_) => Err(kv::Error::Io {
                message: "a sector cannot be read".to_owned(),
            }),
            None => database.get(key),
        }
    }
}

/// A store without background threads, with the object `o`.
fn with_unread_once() -> (Store, Arc<UnreadOnce>) {
    let rows = Arc::new(UnreadOnce(Mutex::new(None)));
    let store = Store::mount(drive(), options_with(&rows)).unwrap();
    put(&store, "o");
    (store, rows)
}

#[test]
fn a_row_that_is_read_at_the_second_try_ends_no_purge() {
    let (store, rows) = with_unread_once();
    let mut tx = Transaction::new();
    tx.clone_range(("c", "o"), 0..100_000, ("c", "clone"), 0);
    store.commit(tx).unwrap();
    let reader = store.open("c", "o").unwrap();
    remove(&store, "o");
    drop(reader);
    assert_eq!(doomed(&store.inner), 1);
    let kv = store.inner.kv().unwrap();
    let (row, _) = kv.scan(&[key::BLOB], None).next().unwrap().unwrap();
    drop(kv);
    *rows.0.lock() = Some(row);
    store.tend().unwrap();
    assert!(rows.0.lock().is_none());
    assert_eq!(doomed(&store.inner), 0);
    assert!(store.health().unwrap().metadata.is_empty());
}

#[test]
fn a_record_that_is_read_at_the_second_try_gives_its_space_back() {
    let (store, rows) = with_unread_once();
    let before = live_bytes(&store);
    let kind = store.inner.collections()["c"].kind;
    *rows.0.lock() = Some(onode_key(&kind, "c", b"o").unwrap());
    put(&store, "o");
    assert!(rows.0.lock().is_none());
    store.tend().unwrap();
    assert_eq!(live_bytes(&store), before);
    assert!(store.fsck(true, &mut |_, _| {}).unwrap().is_clean());
}

/// The bytes behind those that are lost would move to their place.
#[test]
fn an_object_that_has_lost_an_extent_is_not_cloned() {
    let drive = drive();
    let store = mount(&drive);
    put(&store, "o");
    for _ in 0..2 {
        let mut writer = store.writer(None).unwrap();
        writer.write(&[8; 100_000]).unwrap();
        let mut tx = Transaction::new();
        tx.append("c", "o", writer.finish().unwrap());
        store.commit(tx).unwrap();
    }
    store.unmount().unwrap();
    change(&drive, |opened, batch| {
        let rows: Vec<_> = opened
            .kv
            .scan(&[key::EXTENT], Some(&[key::EXTENT + 1]))
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(rows.len(), 3);
        batch.delete(&rows[1].0);
    });
    let store = mount(&drive);
    let mut tx = Transaction::new();
    tx.clone_object(("c", "o"), ("c", "clone"));
    let cloned = store.commit(tx);
    assert!(
        matches!(&cloned, Err(Error::CorruptMetadata { .. })),
        "{cloned:?}"
    );
    assert!(store.open("c", "clone").is_err());
    let mut tx = Transaction::new();
    tx.clone_range(("c", "o"), 0..100_000, ("c", "clone"), 0);
    store.commit(tx).unwrap();
}

#[test]
fn rows_of_a_removed_object_that_the_drive_does_not_read_do_not_refuse_the_mount() {
    let drive = drive();
    let unread = Arc::<Unread>::default();
    let mount = || Store::mount(drive.clone(), options_with(&unread)).unwrap();
    let store = mount();
    put(&store, "unread");
    doom(&store, "unread");
    let kv = store.inner.kv().unwrap();
    let rows: Vec<_> = kv.scan(&[key::DOOMED], Some(&[key::DOOMED + 1])).collect();
    drop(kv);
    let [Ok((row, _))] = &rows[..] else {
        panic!("{rows:?}")
    };
    let map = key::parse_doomed(row).unwrap();
    unread.0.lock().push(key::map(map));
    drop(store);
    let store = mount();
    put(&store, "other");
    doom(&store, "other");
    store.tend().unwrap();
    assert_eq!(doomed(&store.inner), 1);
    let told = store.health().unwrap().metadata;
    assert!(
        told.iter().any(|what| what.contains("is damaged")),
        "{told:?}"
    );
    drop(store);
    // The drive reads them again.
    unread.0.lock().clear();
    let store = mount();
    store.tend().unwrap();
    assert_eq!(doomed(&store.inner), 0);
}

#[test]
fn a_damaged_row_of_a_removed_object_stops_neither_cleaner_nor_puts() {
    let store = mount(&drive());
    let put_large = |number: u32| {
        let mut writer = store.writer(Some(512 << 10))?;
        writer.write(&[number as u8; 512 << 10])?;
        let mut tx = Transaction::new();
        tx.put("c", number.to_string(), writer.finish()?, Attributes::new());
        store.commit(tx)
    };
    put(&store, "damaged");
    let mut tx = Transaction::new();
    tx.omap_set(
        "c",
        "damaged",
        [(b"key".to_vec(), b"value".to_vec())].into(),
    );
    store.commit(tx).unwrap();
    let stored = (0..).find(|number| put_large(*number).is_err()).unwrap();
    for number in (0..stored).step_by(2) {
        remove(&store, &number.to_string());
    }
    doom(&store, "damaged");
    let inner = &store.inner;
    let mut batch = Batch::default();
    let kv = inner.kv().unwrap();
    damage_doomed(&kv, &mut batch);
    kv.write(&batch, Durability::Synced).unwrap();
    drop(kv);
    assert_eq!(doomed(inner), 2);
    // Half of each zone is dead.
    for number in (0..stored / 2).step_by(2) {
        put_large(number).unwrap();
    }
    assert_eq!(doomed(inner), 1, "the omap is purged");
    store.tend().unwrap();
    assert!(!store.health().unwrap().metadata.is_empty());
}

/// A large removal is refused if it finds no room, and nothing would ever make room for it.
#[test]
fn removing_one_object_is_no_large_change() {
    // The last two are left to the purge.
    for wanted in [MAX_DROPPED - 1, MAX_DROPPED, 4095] {
        let store = mount(&drive());
        let name = "n".repeat(200);
        let mut tx = Transaction::new();
        for _ in 0..wanted {
            let mut writer = store.writer(None).unwrap();
            writer.write(b"x").unwrap();
            tx.append("c", &name, writer.finish().unwrap());
        }
        store.commit(tx).unwrap();
        let inner = &store.inner;
        let key = onode_key(&inner.collections()["c"].kind, "c", name.as_bytes()).unwrap();
        let kv = inner.kv().unwrap();
        let mut staging = Staging::new(inner, &kv);
        let onode = staging.onode(&key).unwrap().unwrap();
        staging.set_onode(key, None);
        let mut extents = 0;
        for segment in onode.segments {
            extents += read_extents(&*kv, segment.map, 0, u64::MAX, usize::MAX)
                .unwrap()
                .len();
            staging.drop_map(segment.map, false).unwrap();
        }
        assert_eq!(extents, wanted);
        assert_eq!(staging.doomed.is_empty(), wanted < MAX_DROPPED);
        assert!(staging.taken() <= LARGE, "{}", staging.taken());
    }
}
