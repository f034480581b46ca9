//! A summary with a valid checksum that no store has written.

use super::{InPlaceOptions, Lost, Salvage, SalvageOptions};
use crate::format::{key, summary};
use crate::test_drive;
use crate::{Attributes, Error, MountOptions, Store, Transaction};
use device::changed::{Change, Changed};
use device::{MemoryDrive, ZonedDevice};
use kv_log::KvLog;
use std::sync::Arc;
use zone::{ByteOffset, ZoneCommand, ZoneError, ZoneKind, ZoneResult};

/// A drive whose metadata is lost, with a summary of the store that has the deletion of this row.
fn drive_with(row: &[u8]) -> Arc<MemoryDrive> {
    let drive = test_drive::drive();
    let store = test_drive::mount(&drive);
    test_drive::put(&store, "a");
    let uuid = store.uuid();
    lose_metadata(&drive, store);
    let geometry = drive.geometry().clone();
    let mut bytes = summary::encode(uuid, 1, [(row, None)].into_iter()).unwrap();
    bytes.resize(4096, 0);
    let empty = |zone: &zone::ZoneId| drive.report_zone(*zone).unwrap().write_pointer == 0;
    let mut zones = geometry.zones().skip(10);
    let zone = zones.find(empty).unwrap();
    drive.write(geometry.start(zone), &bytes).unwrap();
    drive
}

/// Unmounts, and erases all zones without object data.
fn lose_metadata(drive: &MemoryDrive, store: Store) {
    let data: Vec<_> = store.zones().iter().map(|used| used.zone).collect();
    store.unmount().unwrap();
    drop(store);
    let geometry = drive.geometry().clone();
    for zone in geometry.zones().filter(|zone| !data.contains(zone)) {
        match geometry.kind(zone) {
            ZoneKind::Conventional => {
                let zeros = vec![0; geometry.zone_size as usize];
                drive.write(geometry.start(zone), &zeros).unwrap();
            }
            _ => drive.reset(zone).unwrap(),
        }
    }
}

/// The next number is not 0, nor one in use.
#[test]
fn numbers_without_a_next_one_are_refused_in_place() {
    let rows = [
        (key::extent(1 << 40, 9), true),
        (key::extent(u64::MAX, 9), false),
        (key::extent(u64::MAX - 1, 9), false),
        (key::onode(1 << 20, b"a"), true),
        (key::onode(u32::MAX, b"a"), false),
        (key::onode(u32::MAX - 1, b"a"), false),
    ];
    for (row, is_taken) in rows {
        let device: Arc<dyn ZonedDevice> = drive_with(&row);
        let options = MountOptions::new(KvLog);
        let lost = Lost::look(&device, &options).unwrap();
        let salvage = Salvage::scan(device, &mut |_, _| {}).unwrap();
        let report = salvage.copy(SalvageOptions::default(), &mut |_, _| {});
        let how = InPlaceOptions {
            uuid: [1; 16],
            damaged: false,
            drop_unplaced: false,
        };
        let plan = salvage.plan(&lost, &report.unwrap(), &options, how);
        let is_refused = matches!(plan, Err(Error::Invalid { .. }));
        assert!(
            plan.is_ok() == is_taken && is_refused != is_taken,
            "{row:?}"
        );
    }
}

/// Summaries count their own numbers, beyond those of all maps that are left.
#[test]
fn after_a_repair_of_the_next_number_new_summaries_are_newer_than_old_ones() {
    let drive = test_drive::drive();
    let store = test_drive::mount(&drive);
    test_drive::put(&store, "kept");
    let kept = store.inner.take_number().unwrap();
    for _ in 0..100 {
        test_drive::put(&store, "x");
        test_drive::remove(&store, "x");
    }
    store.unmount().unwrap();
    drop(store);
    let plant = |value: &[u8]| {
        test_drive::change(&drive, |_, batch| batch.put(key::SUPER_NEXT_NUMBER, value));
    };
    let repair = || {
        Store::repair(
            drive.clone(),
            &test_drive::options(),
            &mut |_| true,
            &mut |_, _| {},
        )
        .unwrap()
    };
    let is_clean = |deep| {
        let store = test_drive::mount(&drive);
        let report = store.fsck(deep, &mut |_, _| {}).unwrap();
        store.unmount().unwrap();
        report.is_clean()
    };
    // Above all maps, and not above all summaries: only a deep check reads these.
    plant(&(kept + 1).to_le_bytes());
    assert_eq!((is_clean(false), is_clean(true)), (true, false));
    plant(b"?");
    assert_eq!(repair().repaired["number that is in use"], 1);
    assert!(is_clean(true));
    assert!(repair().repaired.is_empty());
    let store = test_drive::mount(&drive);
    test_drive::put(&store, "x");
    lose_metadata(&drive, store);
    let salvage = Salvage::scan(drive.clone(), &mut |_, _| {}).unwrap();
    let report = salvage.copy(SalvageOptions::default(), &mut |_, _| {});
    assert_eq!(report.unwrap().objects, 2);
}

/// A client may put summaries, also one within another.
#[test]
fn summaries_that_overlap_within_an_object_are_counted_once() {
    let drive = test_drive::drive();
    let store = test_drive::mount(&drive);
    let mut random = fastrand::Rng::with_seed(0);
    let mut noise = |bytes| -> Vec<u8> { (0..bytes).map(|_| random.u8(..)).collect() };
    let of = |value: &[u8]| {
        let rows = [(&b"Cother"[..], Some(value))];
        summary::encode([9; 16], 1, rows.into_iter()).unwrap()
    };
    let inner = of(&noise(60_000));
    let place = |outer: &[u8]| {
        let mut windows = outer.windows(inner.len());
        windows.position(|bytes| bytes == inner).unwrap()
    };
    // Noise is stored as it is, so the inner one can begin with a block.
    let (front, end) = (noise(4096), noise(100));
    let with = |front: &[u8]| of(&[front, &inner, &end].concat());
    let front = &front[..4096 - place(&with(&[])) % 4096];
    let outer = with(front);
    assert_eq!(place(&outer) % 4096, 0);
    let mut writer = store.writer(None).unwrap();
    writer.write(&outer).unwrap();
    let mut tx = Transaction::new();
    tx.put("c", "image", writer.finish().unwrap(), Attributes::new());
    store.commit(tx).unwrap();
    lose_metadata(&drive, store);
    let salvage = Salvage::scan(drive, &mut |_, _| {}).unwrap();
    assert_eq!(salvage.scanned.foreign_summaries, 2);
}

/// What a client put within objects decides nothing about the memory that a scan takes.
#[test]
fn a_scan_keeps_no_rows_of_summaries_within_objects() {
    const CHILD: &str = "ZONESTORE_TEST_SCAN";
    const FAKES: usize = 64;
    if std::env::var_os(CHILD).is_none() {
        // Other tests of this program take memory too.
        let name = "salvage::tests::a_scan_keeps_no_rows_of_summaries_within_objects";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", name]).env(CHILD, "1").output();
        let child = child.unwrap();
        // A name that no test has is no failure.
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{child:?}"
        );
        return;
    }
    let drive = test_drive::drive();
    let store = test_drive::mount(&drive);
    let zeros = vec![0; 8_000_000];
    let rows = [(&b"Cother"[..], Some(&zeros[..]))];
    let mut fake = summary::encode([9; 16], 1, rows.into_iter()).unwrap();
    assert!(fake.len() <= 4096);
    fake.resize(4096, 0);
    let mut writer = store.writer(None).unwrap();
    writer.write(&fake.repeat(FAKES)).unwrap();
    let mut tx = Transaction::new();
    tx.put("c", "image", writer.finish().unwrap(), Attributes::new());
    store.commit(tx).unwrap();
    lose_metadata(&drive, store);
    let salvage = Salvage::scan(drive, &mut |_, _| {}).unwrap();
    assert_eq!(salvage.scanned.foreign_summaries, FAKES as u64);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = most.unwrap().trim().trim_end_matches(" kB");
    let kibibytes: usize = kibibytes.parse().unwrap();
    // All rows are half a gibibyte.
    assert!(kibibytes < 300 << 10, "{kibibytes}");
}

/// Fails reads of single summaries: the scan reads them among other blocks.
struct Once;

impl Change<MemoryDrive> for Once {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        drive.read(at, buffer)?;
        match buffer.len() == 4096 && summary::begins(buffer) {
            false => Ok(()),
            true => Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: std::sync::Arc::new(std::io::ErrorKind::Other.into()),
            }),
        }
    }
}

#[test]
fn summaries_that_can_be_read_only_once_are_counted() {
    let drive = test_drive::drive();
    let store = test_drive::mount(&drive);
    test_drive::put(&store, "a");
    lose_metadata(&drive, store);
    let scan = |device: Arc<dyn ZonedDevice>| Salvage::scan(device, &mut |_, _| {}).unwrap();
    let found = scan(drive.clone()).scanned.summaries;
    assert!(found > 0);
    let drive = drive.snapshot();
    let salvage = scan(Arc::new(Changed {
        drive,
        change: Once,
    }));
    let counts = (
        salvage.scanned.summaries,
        salvage.scanned.unreadable_summaries,
    );
    assert_eq!(counts, (0, found));
    let report = salvage.copy(SalvageOptions::default(), &mut |_, _| {});
    let lines = report.unwrap().lines(false).join("\n");
    assert!(lines.contains("not readable any more"), "{lines}");
}
