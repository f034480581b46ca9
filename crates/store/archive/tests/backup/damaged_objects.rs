//! Objects of the store that cannot be read any more.

use crate::common::{geometry, pattern, put_in, read_in};
use crate::stores::{BACKUP, commit, fresh, mkfs, options, try_backup, try_restore};
use archive::{Error, PackOptions, check};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{Attributes, Store};

/// The objects `a`, `hit` and `z`, of which the second one has a damaged byte in its second checksum block.
fn damaged() -> Store {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
    mkfs(&device, 7);
    let store = Store::mount(device.clone(), options()).unwrap();
    commit(&store, |tx| {
        _ = tx.create_collection("c", Attributes::new())
    });
    for (number, name) in ["a", "hit", "z"].into_iter().enumerate() {
        put_in(&store, "c", name, &pattern(number as u64, 200_000)).unwrap();
    }
    store.unmount().unwrap();
    drop(store);
    let wanted = pattern(1, 200_000)[100_000..100_050].to_vec();
    let geometry = device.geometry().clone();
    for zone in geometry.zones().skip(geometry.conventional_zones as usize) {
        let written = device.report_zone(zone).unwrap().write_pointer;
        let mut bytes = vec![0; written as usize];
        if written > 0 {
            device.read(geometry.start(zone), &mut bytes).unwrap();
        }
        if let Some(at) = bytes.windows(50).position(|window| *window == wanted) {
            bytes[at] ^= 1;
            device.reset(zone).unwrap();
            device.write(geometry.start(zone), &bytes).unwrap();
        }
    }
    Store::mount(device, options()).unwrap()
}

#[test]
fn a_damaged_object_ends_a_backup_or_is_named_in_it() {
    let store = damaged();
    let error = try_backup(&store, &BACKUP, None).unwrap_err();
    assert!(
        matches!(&error, Error::Unreadable { object, .. } if object == "c/hit"),
        "{error}"
    );
    let skip = PackOptions {
        skip_damaged: true,
        is_served: false,
        ..BACKUP
    };
    let (archive, packed) = try_backup(&store, &skip, None).unwrap();
    assert_eq!(packed.damaged.len(), 1);
    assert!(packed.damaged[0].starts_with("c/hit: "), "{packed:?}");
    // What can be read is there for other programs, with zeros for the rest.
    let mut expected = pattern(1, 200_000);
    expected[65_536..131_072].fill(0);
    let begins = archive
        .windows(64)
        .position(|w| *w == expected[..64])
        .unwrap();
    assert!(archive[begins..][..200_000] == expected);
    assert_eq!(check(&archive[..], &mut |_| {}).unwrap().damaged, ["c/hit"]);
    let (_, copy) = fresh(64, 8);
    let (restored, done) = try_restore(&copy, &[&archive]);
    done.unwrap();
    assert_eq!(restored.damaged, ["c/hit"]);
    assert_eq!(copy.list("c", "", "", 9).unwrap().len(), 2);
    // Stored again, it is changed, and the next backup has it.
    put_in(&store, "c", "hit", b"whole").unwrap();
    let (next, packed) = try_backup(&store, &BACKUP, Some(&archive)).unwrap();
    assert_eq!((packed.objects, packed.unchanged), (1, 2));
    let (_, copy) = fresh(64, 8);
    let (restored, done) = try_restore(&copy, &[&archive, &next]);
    done.unwrap();
    assert!(restored.damaged.is_empty());
    assert_eq!(read_in(&copy, "c", "hit").unwrap(), b"whole");
}
