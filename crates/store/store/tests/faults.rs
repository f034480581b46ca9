//! Zones that cannot be read, written or reset any more: the objects in them are reported as lost, and all other
//! operations succeed.

use crate::common::*;
use device::changed::{Change, Changed};
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use store::{Store, Transaction};
use zone::{
    ByteOffset, ZoneAddress, ZoneCommand, ZoneCondition, ZoneError, ZoneId, ZoneKind, ZoneResult,
};

fn remove(store: &Store, name: &str) {
    let mut tx = Transaction::new();
    tx.remove("c", name);
    store.commit(tx).unwrap();
}

const OBJECT: usize = 300_000;

/// Fills the drive and removes every other object, so that each zone is worth cleaning and none is free. Returns the
/// numbers of the objects that were kept.
fn half_dead(store: &Store) -> Vec<u64> {
    let objects = store.statfs().available_bytes / OBJECT as u64 * 15 / 16;
    for i in 0..objects {
        put(store, &i.to_string(), &pattern(i, OBJECT)).unwrap();
    }
    for i in (0..objects).step_by(2) {
        remove(store, &i.to_string());
    }
    (1..objects).step_by(2).collect()
}

/// Overwrites eight objects until `bytes` bytes have been written.
fn write_on(store: &Store, bytes: u64) {
    let mut written = 0;
    for i in 0.. {
        if written >= bytes {
            return;
        }
        put(store, &format!("on{}", i % 8), &pattern(i, OBJECT)).unwrap();
        written += OBJECT as u64;
    }
}

/// The zone that the cleaner will choose next: the full one with the fewest live bytes.
fn next_victim(store: &Store) -> ZoneId {
    let zones = store.zones().into_iter();
    let full = zones.filter(|z| z.live_bytes > 0 && z.written_bytes == 1 << 20);
    full.min_by_key(|z| z.live_bytes).unwrap().zone
}

#[test]
fn a_zone_that_cannot_be_read_stops_nothing_else() {
    for fault in [
        Fault::Io(io::ErrorKind::Other),
        Fault::Break(ZoneCondition::Offline),
    ] {
        let (drive, store) = on_failing_drive(96);
        let kept = half_dead(&store);
        let bad = next_victim(&store);
        drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(bad));
        let capacity = store.statfs().capacity_bytes;
        // These puts need every zone to be cleaned.
        let more = store.statfs().available_bytes / OBJECT as u64 * 5 / 8;
        for i in 0..more {
            put(&store, &format!("more{i}"), &pattern(i, OBJECT)).unwrap();
        }
        write_on(&store, capacity / 2);
        let space = store.statfs();
        assert!(space.set_aside_bytes > 0, "{space:?}");
        assert!(space.capacity_bytes < capacity);
        let lost = kept
            .iter()
            .filter(|i| read(&store, &i.to_string()).is_err());
        let lost: Vec<_> = lost.collect();
        assert!(!lost.is_empty() && lost.len() < kept.len(), "{lost:?}");
        // Once the lost objects are removed, the zone is not set aside any more.
        for i in lost {
            remove(&store, &i.to_string());
        }
        while store.clean_one().unwrap() {}
        assert_eq!(store.statfs().set_aside_bytes, 0);
    }
}

#[test]
fn an_upload_is_refused_when_a_zone_with_a_part_of_it_is_lost() {
    let (drive, store) = on_failing_drive(48);
    put(&store, "before", &pattern(0, OBJECT)).unwrap();
    let mut upload = store.writer(None).unwrap();
    upload.write(&pattern(1, 1 << 20)).unwrap();
    let zones = store.zones().into_iter();
    let open = zones.min_by_key(|z| z.written_bytes);
    let zone = open.unwrap().zone;
    drive.break_zone(zone, ZoneCondition::Offline);
    // The store notices the offline zone at its next write to it.
    upload.write(&pattern(2, 1 << 20)).unwrap();
    let mut tx = Transaction::new();
    tx.put(
        "c",
        "lost",
        upload.finish().unwrap(),
        store::Attributes::new(),
    );
    let refused = store.commit(tx);
    let is_lost = matches!(refused, Err(store::Error::WrittenLost { zone: lost }) if lost == zone);
    assert!(is_lost, "{refused:?}");
    put(&store, "again", &pattern(3, OBJECT)).unwrap();
}

/// What is written to a zone after that would be lost with it.
#[test]
fn a_zone_that_cannot_be_read_is_written_no_more() {
    let (drive, store) = on_failing_drive(48);
    put(&store, "before", &pattern(0, OBJECT)).unwrap();
    let zone = store.zones()[0].zone;
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
    read(&store, "before").unwrap_err();
    put(&store, "behind", &pattern(1, OBJECT)).unwrap();
    assert!(read(&store, "behind").unwrap() == pattern(1, OBJECT));
}

/// The cleaner reads again, as it does for users, before it gives a zone up.
#[test]
fn a_read_that_fails_once_costs_the_cleaner_no_zone() {
    let (drive, store) = on_failing_drive(96);
    half_dead(&store);
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::at(ZoneCommand::Read, 1, fault).in_zone(next_victim(&store)));
    assert!(store.clean_one().unwrap());
    assert_eq!(store.clean_status().set_aside_zones, 0);
    assert_eq!(store.health().unwrap().wear.reads_repeated, 1);
}

#[test]
fn a_drive_that_reads_nothing_loses_no_zone() {
    let (drive, store) = on_failing_drive(96);
    let kept = half_dead(&store);
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::from(ZoneCommand::Read, 1, fault));
    store.clean_one().unwrap_err();
    read(&store, &kept[0].to_string()).unwrap_err();
    drive.clear();
    assert_eq!(store.clean_status().set_aside_zones, 0);
    assert!(store.clean_one().unwrap());
}

/// The next mount, which does not know of it, would go on writing into it.
#[test]
fn an_unmount_leaves_a_zone_in_which_a_read_failed() {
    // So small that it has no place for a summary, for which the stream would leave the zone, too.
    let (drive, store) = on_failing_drive(32);
    put(&store, "0", &pattern(0, OBJECT)).unwrap();
    let zone = store.zones()[0].zone;
    drive.add(Plan::from(ZoneCommand::Read, 1, Fault::Io(io::ErrorKind::Other)).in_zone(zone));
    assert!(read(&store, "0").is_err());
    drive.clear();
    let is_full = || drive.report_zone(zone).unwrap().condition == ZoneCondition::Full;
    assert!(!is_full());
    store.unmount().unwrap();
    assert!(is_full());
}

/// Bytes of the drive that it cannot read.
#[derive(Default)]
struct Unreadable(Mutex<Vec<ByteOffset>>);

impl Change<MemoryDrive> for Unreadable {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let end = at.0 + buffer.len() as u64;
        match self
            .0
            .lock()
            .unwrap()
            .iter()
            .find(|byte| (at.0..end).contains(&byte.0))
        {
            None => drive.read(at, buffer),
            Some(_) => Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: Arc::new(io::ErrorKind::Other.into()),
            }),
        }
    }
}

type Worn = Arc<Changed<MemoryDrive, Unreadable>>;

fn on_worn_drive() -> (Worn, Arc<dyn ZonedDevice>, Store) {
    let drive = Arc::new(Changed {
        drive: MemoryDrive::new(geometry(96)).unwrap(),
        change: Unreadable::default(),
    });
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (drive, device, store)
}

/// Where the bytes that begin with this block lie.
fn place_of(drive: &MemoryDrive, bytes: &[u8]) -> ZoneAddress {
    let geometry = drive.geometry().clone();
    for told in drive.report(ZoneId(0), geometry.zone_count).unwrap() {
        if geometry.kind(told.id) == ZoneKind::Conventional || told.write_pointer == 0 {
            continue;
        }
        let mut found = vec![0; told.write_pointer as usize];
        drive.read(geometry.start(told.id), &mut found).unwrap();
        if let Some(block) = found.chunks(4096).position(|block| *block == bytes[..4096]) {
            return ZoneAddress::new(told.id, block as u64 * 4096);
        }
    }
    panic!("the bytes are nowhere");
}

/// A bit flips, or the drive cannot read the block.
fn spoil(worn: &Worn, at: ZoneAddress, flips: bool) {
    if flips {
        worn.drive.decay(at, 100, |bytes| bytes[90] ^= 1);
    } else {
        let at = worn.drive.geometry().absolute(at);
        worn.change.0.lock().unwrap().push(at);
    }
}

/// The zone may be failing, and its dead bytes are given up with it. What is damaged stays where it is, and is named.
#[test]
fn behind_what_cannot_be_read_the_rest_of_a_zone_is_moved() {
    const SIZE: u64 = 100_000;
    const SPOILED: [u64; 3] = [2, 3, 6];
    for flips in [true, false] {
        let (worn, device, store) = on_worn_drive();
        let data = |n: u64| pattern(n, SIZE as usize);
        (0..9).for_each(|n| put(&store, &n.to_string(), &data(n)).unwrap());
        store.seal_open_zones().unwrap();
        let zone = place_of(&worn.drive, &data(0)).zone;
        for n in 0..9 {
            let at = place_of(&worn.drive, &data(n));
            assert_eq!(at.zone, zone);
            if SPOILED.contains(&n) {
                spoil(&worn, at, flips);
            }
        }
        remove(&store, "0");
        let capacity = store.statfs().capacity_bytes;
        let check = |store: &Store| {
            while store.clean_one().unwrap() {}
            let health = store.health().unwrap();
            let [at_risk] = &health.zones[..] else {
                panic!("{health:?}")
            };
            let left = 3 * SIZE.next_multiple_of(4096);
            assert_eq!((at_risk.zone, at_risk.live_bytes), (zone, left));
            assert_eq!(health.object_names, ["c/2", "c/3", "c/6"]);
            let space = store.statfs();
            assert_eq!(space.set_aside_bytes, (1 << 20) - left);
            assert_eq!(space.capacity_bytes, capacity - space.set_aside_bytes);
            for n in 1..9 {
                let found = read(store, &n.to_string());
                match SPOILED.contains(&n) {
                    true => _ = found.unwrap_err(),
                    false => assert!(found.unwrap() == data(n), "{n}"),
                }
            }
            let report = store.fsck(false, &mut |_, _| {}).unwrap();
            assert!(report.is_clean(), "{:?}", report.details);
        };
        check(&store);
        let moved = store.clean_status().bytes_moved;
        assert_eq!(moved, 5 * SIZE.next_multiple_of(4096));
        // The cleaner does not try the zone again.
        assert!(!store.clean_one().unwrap());
        store.unmount().unwrap();
        let store = mount(&device);
        assert_eq!(store.health().unwrap().lost_objects, 3);
        check(&store);
        assert_eq!(store.clean_status().bytes_moved, 0);
        SPOILED.iter().for_each(|n| remove(&store, &n.to_string()));
        while store.clean_one().unwrap() {}
        assert!(store.health().unwrap().is_healthy());
        let space = store.statfs();
        assert_eq!((space.set_aside_bytes, space.capacity_bytes), (0, capacity));
        assert!(store.zones().iter().all(|used| used.zone != zone));
    }
}

/// The zone is a candidate again, although something in it cannot be read.
#[test]
fn behind_what_cannot_be_read_the_next_turn_goes_on() {
    const SIZE: u64 = 100_000;
    let (worn, _, store) = on_worn_drive();
    let data = |n: u64| pattern(n, SIZE as usize);
    (0..9).for_each(|n| put(&store, &n.to_string(), &data(n)).unwrap());
    store.seal_open_zones().unwrap();
    let spoiled = place_of(&worn.drive, &data(2));
    spoil(&worn, spoiled, true);
    remove(&store, "0");
    store.clean_start().unwrap();
    let mut stopped = false;
    let tended = store.tend_with(&mut |_| {
        if !stopped && store.clean_status().set_aside_zones > 0 {
            store.clean_stop();
            stopped = true;
        }
    });
    tended.unwrap();
    let moved = || store.clean_status().bytes_moved / SIZE.next_multiple_of(4096);
    assert!(stopped && moved() < 7, "{}", moved());
    while store.clean_one().unwrap() {}
    assert_eq!(moved(), 7);
    let health = store.health().unwrap();
    assert_eq!(
        (health.zones.len(), health.zones[0].zone),
        (1, spoiled.zone)
    );
}

/// Each read that a drive fails may take it seconds.
#[test]
fn behind_sixteen_reads_that_the_drive_fails_the_rest_of_a_zone_stays() {
    const SIZE: u64 = 40_000;
    for (flips, moved) in [(false, 0), (true, 3)] {
        let (worn, _, store) = on_worn_drive();
        let data = |n: u64| pattern(n, SIZE as usize);
        (0..20).for_each(|n| put(&store, &n.to_string(), &data(n)).unwrap());
        store.seal_open_zones().unwrap();
        let zone = place_of(&worn.drive, &data(0)).zone;
        for n in 0..20 {
            let at = place_of(&worn.drive, &data(n));
            assert_eq!(at.zone, zone);
            if (1..=16).contains(&n) {
                spoil(&worn, at, flips);
            }
        }
        remove(&store, "0");
        while store.clean_one().unwrap() {}
        let found = store.clean_status().bytes_moved;
        assert_eq!(found, moved * SIZE.next_multiple_of(4096));
        (17..20).for_each(|n| assert!(read(&store, &n.to_string()).unwrap() == data(n)));
    }
}

/// Only what is damaged is refused.
#[test]
fn behind_what_cannot_be_read_of_an_upload_others_are_moved() {
    let (worn, _, store) = on_worn_drive();
    put(&store, "dead", &pattern(9, OBJECT)).unwrap();
    let uploads = [1, 2].map(|n| {
        let mut upload = store.writer(None).unwrap();
        upload.write(&pattern(n, OBJECT)).unwrap();
        upload.finish().unwrap()
    });
    store.seal_open_zones().unwrap();
    spoil(&worn, place_of(&worn.drive, &pattern(1, OBJECT)), true);
    remove(&store, "dead");
    while store.clean_one().unwrap() {}
    let done = uploads.map(|data| {
        let mut tx = Transaction::new();
        tx.put("c", "upload", data, store::Attributes::new());
        store.commit(tx)
    });
    assert!(
        matches!(done[0], Err(store::Error::WrittenLost { .. })),
        "{done:?}"
    );
    assert!(done[1].is_ok(), "{done:?}");
    assert!(read(&store, "upload").unwrap() == pattern(2, OBJECT));
    while store.clean_one().unwrap() {}
    assert_eq!(store.statfs().set_aside_bytes, 0);
    assert_clean(&store);
}

/// Whether the rest of these zones is moved or not.
#[test]
fn damage_in_many_zones_of_a_full_drive_stops_nothing_else() {
    for flips in [true, false] {
        let (worn, _, store) = on_worn_drive();
        let kept = half_dead(&store);
        let mut lost = BTreeMap::new();
        for n in &kept {
            let at = place_of(&worn.drive, &pattern(*n, OBJECT));
            if at.zone.0.is_multiple_of(6) && !lost.contains_key(&at.zone) {
                spoil(&worn, at, flips);
                lost.insert(at.zone, *n);
            }
        }
        assert!(lost.len() > 8, "{lost:?}");
        let capacity = store.statfs().capacity_bytes;
        let more = store.statfs().available_bytes / OBJECT as u64 * 5 / 8;
        for n in 0..more {
            put(&store, &format!("more{n}"), &pattern(n, OBJECT)).unwrap();
        }
        write_on(&store, capacity / 2);
        for n in kept {
            let found = read(&store, &n.to_string());
            match lost.values().any(|lost| *lost == n) {
                true => _ = found.unwrap_err(),
                false => assert!(found.unwrap() == pattern(n, OBJECT), "{n}"),
            }
        }
        let report = store.fsck(false, &mut |_, _| {}).unwrap();
        assert!(report.is_clean(), "{:?}", report.details);
        lost.values().for_each(|n| remove(&store, &n.to_string()));
        // What was left in these zones for want of room can be moved now.
        store.clean_start().unwrap();
        while store.clean_one().unwrap() {}
        let space = store.statfs();
        assert_eq!((space.set_aside_bytes, space.capacity_bytes), (0, capacity));
    }
}

/// Whichever write it is: of a mount that finds an object lost, of a put that reserves numbers, or of an unmount that
/// writes a summary.
#[test]
fn a_write_that_the_drive_fails_once_costs_nothing() {
    let drive = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    put(&store, "lost", &pattern(1, OBJECT)).unwrap();
    store.unmount().unwrap();
    let zone = place_of(&drive, &pattern(1, OBJECT)).zone;
    set_back(&drive, zone, 8192);
    for kth in 1.. {
        let failing = Arc::new(Faults::new(drive.snapshot()));
        let fault = Fault::Io(io::ErrorKind::Other);
        failing.add(Plan::at(ZoneCommand::Write, kth, fault));
        let device: Arc<dyn ZonedDevice> = failing.clone();
        let store = mount(&device);
        put(&store, "new", &pattern(2, OBJECT)).unwrap();
        store.unmount().unwrap();
        let store = mount(&device);
        assert_eq!(store.health().unwrap().lost_objects, 1, "write {kth}");
        assert!(read(&store, "new").unwrap() == pattern(2, OBJECT));
        if failing.struck() == 0 {
            assert!(kth > 5, "{kth}");
            break;
        }
    }
}

/// It would take the space of what is stored: the zone gives none back.
#[test]
fn on_a_full_drive_the_rest_of_a_damaged_zone_stays() {
    let (worn, _, store) = on_worn_drive();
    let data = |n: u64| pattern(n, 1 << 18);
    let stored = (0..).find(|n| put(&store, &n.to_string(), &data(*n)).is_err());
    let zone_of = |n: u64| place_of(&worn.drive, &data(n)).zone;
    // Three that begin in one zone.
    let first = (4..stored.unwrap() - 8).find(|n| zone_of(*n) == zone_of(n + 2));
    let first = first.unwrap();
    let zone = zone_of(first);
    spoil(&worn, place_of(&worn.drive, &data(first)), true);
    remove(&store, &(first + 2).to_string());
    while store.clean_one().unwrap() {}
    let health = store.health().unwrap();
    assert_eq!((health.zones.len(), health.zones[0].zone), (1, zone));
    // What lies in front of the damage was moved before that was met.
    let moved = store.clean_status().bytes_moved;
    assert!(moved < 1 << 18, "{moved}");
    assert!(read(&store, &(first + 1).to_string()).unwrap() == data(first + 1));
}
