//! Salvage in place: the metadata of a store is rebuilt on its own drive from the data zones. It finds what a salvage
//! to another drive does, and after a kill the same command completes it.

mod damaged;

use crate::common::*;
use damaged::*;
use device::power_cut::{CrashState, PowerCut};
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io::ErrorKind;
use std::sync::Arc;
use store::{Error, Lost, SalvageOptions, Store, Transaction};
use zone::{ZoneCommand, ZoneCondition, ZoneId, ZoneKind};

#[test]
fn it_gives_what_a_copy_gives() {
    for round in 0..4_u8 {
        let mut random = fastrand::Rng::with_seed(seed() + u64::from(round));
        let device: Drive = Arc::new(MemoryDrive::new(geometry(160)).unwrap());
        mkfs_with(&device, 1 + u32::from(round % 2), [7; 16]);
        let data = fill(&device, &mut random, 240);
        let before = everything(&mount(&device));
        destroy(&device, &data, &mut random);
        let expected = salvage_to(&device);
        // Rows that were in the database alone are lost to both.
        let count = |all: &Everything| all.values().map(|(_, o)| o.len()).sum::<usize>();
        assert!(count(&expected) * 10 > count(&before) * 8);
        in_place(&device, round % 3 == 2, false, 100 + round).unwrap();
        let store = mount(&device);
        assert_same(&everything(&store), &expected, &format!("round {round}"));
        assert_eq!(store.uuid(), [7; 16]);
        assert_usable(&store);
        store.unmount().unwrap();
        // The new summaries are this store's, so it can be salvaged again.
        let store = mount(&device);
        let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
        store.unmount().unwrap();
        destroy(&device, &data, &mut random);
        let expected = salvage_to(&device);
        in_place(&device, true, false, 200 + round).unwrap();
        let store = mount(&device);
        assert_same(
            &everything(&store),
            &expected,
            &format!("round {round}, again"),
        );
        assert_clean(&store);
    }
}

#[test]
fn a_kill_at_any_write_leaves_what_the_same_command_ends() {
    let drive = Arc::new(PowerCut::new(geometry(160)).unwrap());
    let device: Drive = drive.clone();
    let mut random = fastrand::Rng::with_seed(seed());
    mkfs_with(&device, 1, [7; 16]);
    let data = fill(&device, &mut random, 80);
    destroy(&device, &data, &mut random);
    let expected = salvage_to(&device);
    let restart = |from: &PowerCut, choice: &CrashState| Arc::new(from.restart(choice));
    let whole = drive.random_crash_state(0);

    let through = restart(&drive, &whole);
    let device: Drive = through.clone();
    in_place(&device, false, false, 1).unwrap();
    let writes = through.operation_count();
    let step = (writes / 40).max(1);
    println!("{writes} operations");
    for cut in (0..writes).step_by(step as usize) {
        let killed = restart(&drive, &whole);
        killed.cut_after(cut);
        let device: Drive = killed.clone();
        let ended = in_place(&device, false, false, 2);
        // Background threads send commands at other times in each run: the last cuts may come too late.
        assert_eq!(ended.is_err(), killed.is_cut(), "cut {cut}: {ended:?}");
        let again = restart(&killed, &killed.random_crash_state(cut));
        let device: Drive = again.clone();
        match in_place(&device, false, false, 3) {
            Ok(_) => {}
            // It was complete.
            Err(Error::StillOpens) => {}
            Err(error) => panic!("cut {cut}: {error}"),
        }
        let store = mount(&device);
        assert_same(&everything(&store), &expected, &format!("cut {cut}"));
        assert_clean(&store);
    }
}

#[test]
fn a_store_that_opens_is_refused_and_so_is_a_mount_of_half_of_one() {
    let device: Drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs_with(&device, 1, [7; 16]);
    let mut random = fastrand::Rng::with_seed(seed());
    fill(&device, &mut random, 20);
    let refused = Lost::look(&device, &options());
    assert!(matches!(refused, Err(Error::StillOpens)));
    let (fs, kv) = database(&device);
    let mut batch = kv::Batch::default();
    batch.put(b"Ssalvage", &1_u64.to_le_bytes());
    kv.write(&batch, kv::Durability::Synced).unwrap();
    kv.close().unwrap();
    fs.unmount().unwrap();
    let refused = Store::mount(device.clone(), options());
    assert!(matches!(refused, Err(Error::SalvageUnfinished)));
    let before = salvage_to(&device);
    in_place(&device, false, false, 1).unwrap();
    assert!(everything(&mount(&device)) == before);
}

/// An object that stays where it is lacks its omap like one that is copied.
#[test]
fn a_lost_omap_is_told_in_place_and_when_a_copy_goes_on() {
    let device: Drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs_with(&device, 1, [7; 16]);
    let store = mount(&device);
    create_collection(&store);
    put(&store, "o", &pattern(1, 65_536)).unwrap();
    let mut tx = Transaction::new();
    tx.omap_set("c", "o", [(b"key".to_vec(), b"value".to_vec())].into());
    store.commit(tx).unwrap();
    let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    store.unmount().unwrap();
    destroy(&device, &data, &mut fastrand::Rng::with_seed(seed()));
    let other: Drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs_with(&other, 1, [9; 16]);
    let to = mount(&other);
    let found = plan(&device, false, false, 1).unwrap();
    for already_there in 0..2 {
        let options = SalvageOptions {
            to: Some(&to),
            ..SalvageOptions::default()
        };
        let copied = found.salvage.copy(options, &mut |_, _| {}).unwrap();
        assert_eq!(
            (copied.already_there, copied.without_omap),
            (already_there, 1)
        );
    }
    let mut progress = |_, _| {};
    let (lost, plan) = (&found.lost, &found.plan);
    let placed = found
        .salvage
        .in_place(lost, plan, &options(), &mut progress);
    let placed = placed.unwrap();
    assert_eq!((placed.already_there, placed.without_omap), (1, 1));
    assert!(!placed.is_whole());
}

/// A drive that does not answer for a while says nothing about the metadata.
#[test]
fn a_store_that_cannot_be_read_at_present_is_not_lost() {
    let drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    let device: Drive = drive.clone();
    mkfs_with(&device, 1, [7; 16]);
    fill(&device, &mut fastrand::Rng::with_seed(seed()), 20);
    for kth in 1.. {
        let faulty = Arc::new(Faults::new(drive.snapshot()));
        let fault = Fault::Io(ErrorKind::Other);
        faulty.add(Plan::from(ZoneCommand::Read, kth, fault));
        let device: Drive = faulty.clone();
        let looked = Lost::look(&device, &options());
        assert!(looked.is_err(), "read {kth}");
        if faulty.struck() == 0 {
            assert!(matches!(looked, Err(Error::StillOpens)) && kth > 10);
            break;
        }
    }
}

/// Nothing was given up for it: the same command ends what it left.
#[test]
fn a_drive_that_stops_answering_has_lost_nothing() {
    let drive = Arc::new(MemoryDrive::new(geometry(160)).unwrap());
    let device: Drive = drive.clone();
    mkfs_with(&device, 1, [7; 16]);
    let mut random = fastrand::Rng::with_seed(seed());
    let data = fill(&device, &mut random, 40);
    destroy(&device, &data, &mut random);
    let expected = salvage_to(&device);
    let failing_from = |kth, fault| {
        let faulty = Arc::new(Faults::new(drive.snapshot()));
        faulty.add(Plan::from(ZoneCommand::Read, kth, fault));
        faulty
    };
    let counting = failing_from(1, Fault::Slow(Arc::new(|_| {})));
    let device: Drive = counting.clone();
    in_place(&device, true, false, 1).unwrap();
    let reads = counting.struck();
    assert!(reads > 40, "{reads}");
    for kth in (1..reads).step_by((reads / 40) as usize) {
        let faulty = failing_from(kth, Fault::Io(ErrorKind::Other));
        let device: Drive = faulty.clone();
        let ended = in_place(&device, true, false, 2);
        faulty.clear();
        if ended.is_err() {
            match in_place(&device, true, false, 3) {
                // It was complete.
                Ok(_) | Err(Error::StillOpens) => {}
                Err(error) => panic!("read {kth}: {ended:?}, then {error}"),
            }
        }
        let store = mount(&device);
        assert_same(&everything(&store), &expected, &format!("read {kth}"));
    }
}

/// As a repair of a damaged journal leaves it.
#[test]
fn a_database_that_has_lost_a_file_is_missing_and_can_be_salvaged() {
    for file in ["CURRENT", "MANIFEST"] {
        let device: Drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
        mkfs_with(&device, 1, [7; 16]);
        fill(&device, &mut fastrand::Rng::with_seed(seed()), 20);
        let (fs, kv) = database(&device);
        kv.close().unwrap();
        let files = fs.list("/db").unwrap();
        for name in files.iter().filter(|name| name.starts_with(file)) {
            fs.delete(&format!("/db/{name}")).unwrap();
        }
        fs.unmount().unwrap();
        let refused = Store::mount(device.clone(), options()).err();
        println!("{file}: {refused:?}");
        assert!(matches!(
            refused,
            Some(
                Error::Incomplete | Error::Kv(kv::Error::Io { .. } | kv::Error::Corruption { .. })
            )
        ));
        let expected = salvage_to(&device);
        in_place(&device, false, false, 1).unwrap();
        let store = mount(&device);
        assert_same(&everything(&store), &expected, file);
        // All old metadata was recognized.
        assert_usable(&store);
    }
}

#[test]
fn what_is_not_placed_stays_on_the_drive_until_somebody_gives_it_up() {
    for drop_unplaced in [false, true] {
        let device: Drive = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
        mkfs_with(&device, 1, [7; 16]);
        let store = mount(&device);
        create_collection(&store);
        for index in 0..30 {
            put(&store, &format!("o{index}"), &pattern(index, 100_000)).unwrap();
        }
        store.unmount().unwrap();
        // An object that is in no summary.
        let store = mount(&device);
        let newest = pattern(77, 3 << 20);
        put(&store, "newest", &newest).unwrap();
        let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
        drop(store);
        hit(&device, data[0], &pattern(3, 100_000)[4096..8192]);
        destroy(&device, &data, &mut fastrand::Rng::with_seed(1));

        let report = in_place(&device, drop_unplaced, true, 5).unwrap();
        assert_eq!((report.damaged.len(), report.is_whole()), (1, false));
        let store = mount(&device);
        assert_clean(&store);
        assert_eq!(store.stat("c", "o3").unwrap(), None);
        let rest = read_in(&store, "salvaged-damaged", "c/o3").unwrap();
        assert!(rest[65_536..] == pattern(3, 100_000)[65_536..]);
        let kept = contents_of(&store, UNPLACED);
        let has = |wanted: &[u8]| {
            let mut blocks = kept.iter().flat_map(|(_, bytes)| bytes.chunks(4096));
            blocks.any(|block| block == wanted)
        };
        let wanted = newest.chunks(4096).filter(|wanted| has(wanted)).count();
        match drop_unplaced {
            false => assert_eq!(wanted, newest.len() / 4096),
            // Only unplaced blocks beside bytes that had to be copied are kept.
            true => assert!(wanted < newest.len() / 8192, "{wanted}"),
        }
        // Once removed, their space is free.
        let mut tx = Transaction::new();
        for (name, _) in &kept {
            tx.remove(UNPLACED, name);
        }
        store.commit(tx).unwrap();
        assert_usable(&store);
    }
}

#[test]
fn a_drive_without_room_for_new_metadata_is_left_as_it_is() {
    let drive = Arc::new(PowerCut::new(geometry(64)).unwrap());
    let device: Drive = drive.clone();
    mkfs_with(&device, 1, [7; 16]);
    let store = mount(&device);
    create_collection(&store);
    let mut index = 0;
    while put(&store, &format!("o{index}"), &pattern(index, 300_000)).is_ok() {
        index += 1;
    }
    store.unmount().unwrap();
    let geometry = device.geometry().clone();
    // Every sequential zone is written to, and no superblock is left.
    for zone in geometry.zones() {
        match geometry.kind(zone) {
            ZoneKind::Conventional => {
                let zeros = vec![0; geometry.zone_size as usize];
                device.write(geometry.start(zone), &zeros).unwrap();
            }
            _ if zone.0 + 2 >= geometry.drive_zones() => device.reset(zone).unwrap(),
            _ if device.report_zone(zone).unwrap().write_pointer == 0 => {
                device
                    .write(geometry.start(zone), &pattern(1, 8192))
                    .unwrap();
                device.finish(zone).unwrap();
            }
            _ => {}
        }
    }
    let before = drive.operation_count();
    let refused = plan(&device, false, false, 1);
    assert!(matches!(refused, Err(Error::NoRoomForMetadata { .. })));
    assert_eq!(drive.operation_count(), before);
    let expected = salvage_to(&device);
    let report = in_place(&device, true, false, 1).unwrap();
    let store = mount(&device);
    assert!(everything(&store) == expected, "{:#?}", report.lines(true));
    assert_clean(&store);
}

/// With offline zones, superblock zones among them: it succeeds, or has written nothing.
#[test]
fn a_drive_that_cannot_be_formatted_is_left_as_it_is() {
    let mut refusals = 0;
    let geometry = geometry(96);
    let last = geometry.drive_zones() - 1;
    let (first, conventional) = (geometry.conventional_zones, geometry.conventional_zones > 1);
    assert!(conventional);
    for offline in [
        vec![0],
        vec![1],
        vec![0, 1],
        vec![first],
        vec![last],
        vec![last - 1, last],
        vec![0, 1, last - 1, last],
    ] {
        let drive = Arc::new(PowerCut::new(geometry.clone()).unwrap());
        let device: Drive = drive.clone();
        mkfs_with(&device, 1, [7; 16]);
        let mut random = fastrand::Rng::with_seed(seed());
        let data = fill(&device, &mut random, 20);
        destroy(&device, &data, &mut random);
        for zone in &offline {
            if !data.contains(&ZoneId(*zone)) {
                drive
                    .set_condition(ZoneId(*zone), ZoneCondition::Offline)
                    .unwrap();
            }
        }
        let expected = salvage_to(&device);
        let before = drive.operation_count();
        match in_place(&device, false, false, 1) {
            Ok(_) => assert_same(
                &everything(&mount(&device)),
                &expected,
                &format!("{offline:?}"),
            ),
            Err(error) => {
                println!("{offline:?}: {error}");
                refusals += 1;
                assert_eq!(drive.operation_count(), before, "{offline:?}: {error}");
                assert_same(&salvage_to(&device), &expected, "refused");
            }
        }
    }
    assert!(refusals > 0);
}

/// Damaged objects that are not to be kept take no space.
#[test]
fn damaged_objects_on_a_full_drive_are_in_nobodys_way() {
    let device: Drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs_with(&device, 1, [7; 16]);
    let store = mount(&device);
    create_collection(&store);
    for index in 0.. {
        let name = format!("o{index}");
        if put(&store, &name, &pattern(index, 225 * 4096)).is_err() {
            break;
        }
        let mut tx = Transaction::new();
        tx.append("c", &name, written(&store, &pattern(index, 500)).unwrap());
        store.commit(tx).unwrap();
    }
    store.unmount().unwrap();
    let store = mount(&device);
    let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    store.unmount().unwrap();
    destroy(&device, &data, &mut fastrand::Rng::with_seed(1));
    let report = in_place(&device, false, false, 1).unwrap();
    assert!(report.damaged.len() > 30, "{:#?}", report.lines(true));
    assert!(report.without_room.is_empty());
    assert_clean(&mount(&device));
}

/// The plan names the objects that find no room before the first write; the report names the same.
#[test]
fn what_does_not_fit_is_named_before_anything_is_written() {
    let mut all = Vec::new();
    for objects in [60, 120, 150, 180] {
        let drive = Arc::new(PowerCut::new(geometry(96)).unwrap());
        let device: Drive = drive.clone();
        mkfs_with(&device, 1, [7; 16]);
        let store = mount(&device);
        create_collection(&store);
        for index in 0..objects {
            let name = format!("o{index:03}");
            put(&store, &name, &pattern(index, 300_000)).unwrap();
        }
        let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
        store.unmount().unwrap();
        damage_each(&device, &data, 300_000 / 4096 + 1);
        destroy(&device, &data, &mut fastrand::Rng::with_seed(1));
        let before = drive.operation_count();
        let salvaging = plan(&device, false, true, 1).unwrap();
        assert_eq!(drive.operation_count(), before);
        let mut planned: Vec<&str> = salvaging.plan.without_room().collect();
        println!("{objects} objects, no room for {}", planned.len());
        all.push(planned.len());
        let report = salvaging.carry_out().unwrap();
        let mut missed: Vec<&str> = report.without_room.iter().map(String::as_str).collect();
        planned.sort_unstable();
        missed.sort_unstable();
        assert_eq!(missed, planned);
        let store = mount(&device);
        let rest = contents_of(&store, "salvaged-damaged");
        assert_eq!(rest.len(), report.damaged.len());
        assert_clean(&store);
    }
    assert!(all[0] == 0 && all[3] > 10, "{all:?}");
}

#[test]
fn a_damaged_object_with_a_long_name_is_in_nobodys_way() {
    let device: Drive = Arc::new(MemoryDrive::new(geometry(128)).unwrap());
    mkfs_with(&device, 1, [7; 16]);
    let store = mount(&device);
    create_collection(&store);
    put(&store, &"x".repeat(4096), &pattern(1, 100_000)).unwrap();
    put(&store, "o", &pattern(2, 100_000)).unwrap();
    let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    store.unmount().unwrap();
    destroy(&device, &data, &mut fastrand::Rng::with_seed(seed()));
    hit(&device, data[0], &pattern(1, 100_000)[8192..12288]);
    let report = in_place(&device, false, true, 1).unwrap();
    assert_eq!(report.damaged.len(), 1);
    let store = mount(&device);
    assert!(read(&store, "o").unwrap() == pattern(2, 100_000));
    let kept = store.list("salvaged-damaged", "c/x", "", 9).unwrap();
    assert_eq!(kept.len(), 1);
}

/// Rows that are not as a summary has them, such as those of bytes that nothing describes.
#[test]
fn what_it_makes_anew_is_copied_to_summaries() {
    let device: Drive = Arc::new(MemoryDrive::new(geometry(160)).unwrap());
    mkfs_with(&device, 1, [7; 16]);
    let mut random = fastrand::Rng::with_seed(seed());
    let data = fill(&device, &mut random, 80);
    destroy(&device, &data, &mut random);
    in_place(&device, false, false, 1).unwrap();
    let store = mount(&device);
    let checked = || store.fsck(true, &mut |_, _| {}).unwrap();
    assert!(checked().rows_without_copy > 0);
    assert!(store.copy_uncopied(|_| true).unwrap());
    assert_eq!(checked().rows_without_copy, 0);
}
