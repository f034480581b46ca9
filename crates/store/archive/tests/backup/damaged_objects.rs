//! Objects of the store that cannot be read any more.

use crate::common::{geometry, pattern, put_in, read_in};
use crate::stores::{BACKUP, all, commit, fresh, mkfs, options, restored, try_backup, try_restore};
use archive::{Error, ImportOptions, Imported, PackOptions, check, import};
use bluefs::BlueFs;
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use std::io;
use std::sync::Arc;
use store::{Attributes, MkfsOptions, MountOptions, Store};
use zone::{ZoneAddress, ZoneCommand, ZoneId};
use zone_alloc::ZonePool;

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

#[test]
fn what_came_when_it_was_read_again_is_not_damaged() {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(64)).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device, 7);
    let store = Store::mount(device, options()).unwrap();
    commit(&store, |tx| {
        _ = tx.create_collection("c", Attributes::new())
    });
    put_in(&store, "c", "o", &pattern(1, 200_000)).unwrap();
    let skip = PackOptions {
        skip_damaged: true,
        ..BACKUP
    };
    // The store itself reads again too.
    for failing in 1..12 {
        for kth in 1..=failing {
            let fault = Fault::Io(io::ErrorKind::Other);
            drive.add(Plan::at(ZoneCommand::Read, kth, fault));
        }
        let (archive, packed) = try_backup(&store, &skip, None).unwrap();
        drive.clear();
        let is_whole = all(&restored(&[&archive])) == all(&store);
        assert_eq!(packed.damaged.is_empty(), is_whole, "{failing}: {packed:?}");
        assert_eq!(check(&archive[..], &mut |_| {}).unwrap().unnamed, 0);
    }
}

const OBJECTS: u64 = 3000;

fn name(number: u64) -> String {
    format!(
        "{number:05}-{:016x}",
        fastrand::Rng::with_seed(number).u64(..)
    )
}

/// Bytes that do not compress, so that an SST is too large to be read as a whole where it is opened.
fn body(number: u64) -> Vec<u8> {
    let mut bytes = vec![0; 900];
    fastrand::Rng::with_seed(number).fill(&mut bytes);
    bytes
}

fn mount(device: &Arc<MemoryDrive>) -> store::Result<Store> {
    let options = MountOptions {
        background: false,
        ..MountOptions::new(RocksDb)
    };
    Store::mount(device.clone(), options)
}

/// A drive with a store of small objects and one copy of its metadata.
fn with_small_objects() -> Arc<MemoryDrive> {
    let device = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
    let made = MkfsOptions {
        metadata_copies: Some(1),
        runtime: Runtime::seeded(0),
        ..MkfsOptions::new(RocksDb)
    };
    Store::mkfs(device.clone(), &made).unwrap();
    let store = mount(&device).unwrap();
    commit(&store, |tx| {
        _ = tx.create_collection("c", Attributes::new());
    });
    for from in (0..OBJECTS).step_by(100) {
        commit(&store, |tx| {
            for number in from..from + 100 {
                let mut writer = store.writer(Some(900)).unwrap();
                writer.write(&body(number)).unwrap();
                let data = writer.finish().unwrap();
                tx.put("c", name(number), data, Attributes::new());
            }
        });
    }
    store.unmount().unwrap();
    device
}

/// Every 16 KiB of all SSTs: a byte of each block.
fn sst_blocks(device: &Arc<MemoryDrive>) -> Vec<ZoneAddress> {
    let geometry = device.geometry().clone();
    let report = device.report(ZoneId(0), geometry.zone_count).unwrap();
    let pool = Arc::new(ZonePool::new(geometry, &report));
    let options = bluefs::MountOptions {
        read_only: true,
        ..bluefs::MountOptions::default()
    };
    let fs = BlueFs::mount(device.clone(), pool, options).unwrap();
    let tables = fs.list("/db").unwrap().into_iter();
    let tables = tables.filter(|name| name.ends_with(".sst"));
    let extents = tables.flat_map(|name| fs.extents(&format!("/db/{name}")).unwrap());
    let blocks = extents.flat_map(|extent| {
        let offsets = (0..extent.length).step_by(16 << 10);
        offsets.map(move |at| ZoneAddress::new(extent.at.zone, extent.at.offset + at))
    });
    blocks.collect()
}

/// A drive with a damaged byte there.
fn damaged_at(device: &MemoryDrive, at: ZoneAddress) -> Arc<MemoryDrive> {
    let copy = device.snapshot();
    copy.decay(at, 1, |byte| byte[0] ^= 1);
    Arc::new(copy)
}

#[test]
fn rows_that_cannot_be_read_end_a_backup_or_are_named_in_it_as_a_range() {
    let device = with_small_objects();
    let whole = mount(&device).unwrap();
    let (full, _) = try_backup(&whole, &BACKUP, None).unwrap();
    whole.unmount().unwrap();
    let mut of_names = sst_blocks(&device);
    // The database does not open without some of the blocks, and others have no names.
    of_names.retain(|at| {
        let store = mount(&damaged_at(&device, *at));
        store.is_ok_and(|store| store.list("c", "", "", usize::MAX).is_err())
    });
    assert!(of_names.len() > 2, "{of_names:?}");
    for at in [of_names[0], of_names[of_names.len() / 2]] {
        let store = mount(&damaged_at(&device, at)).unwrap();
        let error = try_backup(&store, &BACKUP, None).unwrap_err();
        let of_collection =
            matches!(&error, Error::Unreadable { object, .. } if object.starts_with('c'));
        assert!(of_collection, "{error}");
        let skip = PackOptions {
            skip_damaged: true,
            ..BACKUP
        };
        // A restore of an incremental one would remove the objects that it cannot name.
        let refused = try_backup(&store, &skip, Some(&full)).unwrap_err();
        assert!(matches!(refused, Error::NamesLost { .. }), "{refused}");
        let (archive, packed) = try_backup(&store, &skip, None).unwrap();
        assert_eq!(packed.ranges, 1, "{:?}", packed.damaged);
        let (range, objects): (Vec<_>, Vec<_>) = packed
            .damaged
            .iter()
            .partition(|line| line.starts_with("c: the objects after c/"));
        let mut ends = range[0].split(" c/").skip(1);
        let mut end = || &ends.next().unwrap()[..22];
        let range = end()..end();
        // No line of its list tells of them, so its readers go by the number at its end.
        let unnamed = packed.damaged.len() as u64;
        let checked = check(&archive[..], &mut |_| {}).unwrap();
        assert_eq!((checked.unnamed, checked.damaged.len()), (unnamed, 0));
        let mut imported = Imported::default();
        let (source, options) = (&archive[..], ImportOptions::default());
        import(
            &fresh(64, 9).1,
            source,
            &options,
            &mut imported,
            &mut |_| {},
        )
        .unwrap();
        assert_eq!(imported.unnamed, unnamed);
        let (_, copy) = fresh(64, 8);
        let (restored, done) = try_restore(&copy, &[&archive]);
        done.unwrap();
        assert_eq!(restored.unnamed, unnamed);
        // Of several archives the last one counts, which has all of them.
        let whole = mount(&device).unwrap();
        let (next, _) = try_backup(&whole, &BACKUP, Some(&archive)).unwrap();
        let (_, other) = fresh(64, 8);
        let (restored, done) = try_restore(&other, &[&archive, &next]);
        done.unwrap();
        assert_eq!((restored.unnamed, restored.objects), (0, OBJECTS));
        let mut lost = 0;
        for number in 0..OBJECTS {
            let name = name(number);
            match read_in(&copy, "c", &name) {
                Ok(found) => assert_eq!(found, body(number)),
                Err(_) => {
                    let named = format!("c/{name}: ");
                    let is_named = objects.iter().any(|line| line.starts_with(&named));
                    let is_in_range = name.as_str() > range.start && name.as_str() < range.end;
                    assert!(is_named || is_in_range, "{name}: {:?}", packed.damaged);
                    lost += 1;
                }
            }
        }
        assert!(lost < 500, "{lost}: {:?}", packed.damaged);
    }
}
