//! Of a damaged archive nothing is stored but what is whole, and what is whole is told.

use crate::common::{geometry, pattern, put_in};
use crate::stores::{BACKUP, all, backup, commit, fresh, mkfs, options, try_backup, try_restore};
use archive::{Error, check};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Attributes, Store};

/// Every kind of member: folders, objects with and without holes, omaps, two parts of the list.
fn archives() -> (Vec<Vec<u8>>, Store) {
    let (_, store) = fresh(64, 7);
    commit(&store, |tx| {
        let attributes = Attributes::from([("a".to_owned(), b"\xff".to_vec())]);
        tx.create_collection("c", attributes);
    });
    for number in 0..3 {
        put_in(&store, "c", format!("o{number}"), &pattern(number, 700)).unwrap();
    }
    commit(&store, |tx| {
        tx.punch("c", "o1", 600, 2000)
            .omap_set("c", "o2", [(b"k".to_vec(), b"v".to_vec())].into());
    });
    let (full, _) = backup(&store, None);
    commit(&store, |tx| {
        tx.remove("c", "o0").rename(("c", "o2"), ("c", "o3"));
    });
    let (next, _) = backup(&store, Some(&full));
    (vec![full, next], store)
}

/// Every object that is there is as it was once.
fn assert_nothing_wrong(copy: &Store) {
    for collection in copy.collections().unwrap() {
        if collection.name == ".zonestore-restore" {
            continue;
        }
        assert_eq!(collection.name, "c");
        for object in copy.list("c", "", "", 9).unwrap() {
            let name = object.name.text().unwrap().to_owned();
            let mut bytes = vec![0; object.size as usize];
            copy.open("c", &name)
                .unwrap()
                .read_at(0, &mut bytes)
                .unwrap();
            let number = if name == "o3" {
                2
            } else {
                name[1..].parse().unwrap()
            };
            let mut expected = pattern(number, 700);
            if number == 1 {
                expected.truncate(600);
                expected.resize(2600, 0);
            }
            assert!(bytes == expected, "{name}");
            let rows = copy.omap("c", &name, b"", 9).unwrap();
            assert_eq!(rows.len(), usize::from(number == 2));
        }
    }
}

/// An empty store that can be had again and again.
fn empty() -> impl Fn() -> Store {
    let drive = Arc::new(MemoryDrive::new(geometry(40)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device, 8);
    move || Store::mount(Arc::new(drive.snapshot()), options()).unwrap()
}

#[test]
fn a_flipped_bit_anywhere_is_an_error() {
    let (archives, _) = archives();
    for archive in &archives {
        check(&archive[..], &mut |_| {}).unwrap();
        for at in 0..archive.len() {
            let mut bad = archive.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(check(&bad[..], &mut |_| {}).is_err(), "byte {at}");
        }
    }
}

#[test]
fn an_archive_that_is_cut_off_anywhere_is_an_error() {
    let (archives, _) = archives();
    for archive in &archives {
        for length in 0..archive.len() {
            let error = check(&archive[..length], &mut |_| {}).unwrap_err();
            assert!(matches!(error, Error::CutOff { .. }), "{length}: {error}");
        }
        let longer = [&archive[..], &[0]].concat();
        assert!(check(&longer[..], &mut |_| {}).is_err());
    }
}

#[test]
fn nothing_wrong_is_restored_and_the_whole_archives_restore_the_rest() {
    let (archives, store) = archives();
    let (full, next) = (&archives[0], &archives[1]);
    let empty = empty();
    for at in (0..full.len() + next.len()).step_by(211) {
        let copy = empty();
        let (mut bad_full, mut bad_next) = (full.clone(), next.clone());
        match at.checked_sub(full.len()) {
            None if at % 2 == 0 => bad_full.truncate(at),
            None => bad_full[at] ^= 4,
            Some(at) if at % 2 == 0 => bad_next.truncate(at),
            Some(at) => bad_next[at] ^= 4,
        }
        try_restore(&copy, &[&bad_full, &bad_next]).1.unwrap_err();
        assert_nothing_wrong(&copy);
        try_restore(&copy, &[full, next]).1.unwrap();
        assert!(all(&copy) == all(&store), "{at}");
    }
}

#[test]
fn damaged_objects_are_named_and_other_versions_and_files_refused() {
    let (archives, _) = archives();
    let full = &archives[0];
    let data = pattern(0, 700);
    let at = full
        .windows(99)
        .position(|bytes| *bytes == data[..99])
        .unwrap();
    let mut bad = full.clone();
    bad[at] ^= 1;
    let error = check(&bad[..], &mut |_| {}).unwrap_err();
    assert!(
        matches!(&error, Error::Content { objects } if *objects == ["c/o0"]),
        "{error}"
    );
    let refused = |bytes: &[u8]| check(bytes, &mut |_| {}).unwrap_err();
    assert!(matches!(
        refused(b"\x1f\x8b rest"),
        Error::Compressed { with: "gzip" }
    ));
    assert!(matches!(refused(b"papers/2016"), Error::NoArchive));
    assert!(matches!(refused(b""), Error::CutOff { at: 0 }));
}

/// Sets the size in the tar header at this byte.
fn announce(archive: &mut [u8], at: usize, size: u64) {
    let header = &mut archive[at..at + 512];
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:07o}\0").as_bytes());
}

#[test]
fn a_list_or_a_map_of_a_gibibyte_is_not_read_into_memory() {
    let (archives, store) = archives();
    let block = |begins: &[u8]| {
        let mut blocks = archives[0].chunks(512);
        blocks.position(|block| block.starts_with(begins)).unwrap() * 512
    };
    let is_refused =
        |error: &Error, wanted| matches!(error, Error::Corrupt { what, .. } if *what == wanted);
    let mut bad = archives[0].clone();
    announce(&mut bad, block(b".zonestore/part/"), 1 << 30);
    let error = try_backup(&store, &BACKUP, Some(&bad)).unwrap_err();
    assert!(is_refused(&error, "a list of more than 256 MiB"), "{error}");
    let mut bad = archives[0].clone();
    let map = block(b"2\n0\n");
    bad[map..map + 11].copy_from_slice(b"1000000000\n");
    announce(&mut bad, map - 512, 1 << 30);
    let error = check(&bad[..], &mut |_| {}).unwrap_err();
    assert!(is_refused(&error, "a map of more than 256 MiB"), "{error}");
}
