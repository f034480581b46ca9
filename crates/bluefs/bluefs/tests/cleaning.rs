//! Cleaning ahead of need: what it moves, under which budget, and that nobody waits for it.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::{BlueFs, Cleaning, Error, Lifetime, MountOptions, Role, Writer};
use device::faults::{Fault, Faults, Gate, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use support::{assert_clean, format, geometry, mount, pool, read};
use zone::{ZoneCommand, ZoneId};

fn formatted() -> Arc<MemoryDrive> {
    let device = Arc::new(MemoryDrive::new(geometry(60, 0, 0)).unwrap());
    format(&*device, Role::Alone);
    device
}

fn mount_with(device: Arc<dyn ZonedDevice>, cleaning: Option<Cleaning>) -> BlueFs {
    let pool = pool(&*device);
    let options = MountOptions {
        cleaning,
        ..MountOptions::default()
    };
    BlueFs::mount(device, pool, options).unwrap()
}

fn write(fs: &BlueFs, path: &str, data: &[u8]) -> Result<(), Error> {
    let mut writer = fs.create(path)?;
    writer.append(data)?;
    writer.sync()?;
    writer.close()
}

/// A zone of `/old.sst`, of which a fifth is live: the rest of it was another file's. Answers where
/// it begins.
fn mostly_dead(fs: &BlueFs) -> ZoneId {
    write(fs, "/old.sst", &[1; 5000]).unwrap();
    write(fs, "/gone.sst", &[2; 30_000]).unwrap();
    fs.delete("/gone.sst").unwrap();
    fs.sync_metadata().unwrap();
    zone_of(fs, "/old.sst")
}

fn zone_of(fs: &BlueFs, path: &str) -> ZoneId {
    fs.extents(path).unwrap()[0].at.zone
}

#[test]
fn what_is_live_in_a_zone_that_is_mostly_dead_is_moved() {
    let device = formatted();
    let fs = mount(device.clone()).unwrap();
    let zone = mostly_dead(&fs);
    assert!(fs.clean_ahead().unwrap());
    assert_ne!(zone_of(&fs, "/old.sst"), zone);
    assert_eq!(device.report_zone(zone).unwrap().write_pointer, 0);
    let s = fs.statistics();
    assert_eq!(s.zones_cleaned_ahead, 1);
    assert_eq!(s.moved_ahead_bytes_written, 5120);
    assert_eq!(s.moved_bytes_written, 5120);
    assert!(!fs.clean_ahead().unwrap());
    assert!(read(&fs, "/old.sst").unwrap() == [1; 5000]);
    assert_clean(&fs);
    drop(fs);
    let fs = mount(device).unwrap();
    assert!(read(&fs, "/old.sst").unwrap() == [1; 5000]);
    assert_clean(&fs);
}

#[test]
fn nothing_is_moved_with_zones_to_spare_or_without_an_allowance() {
    for (percent, begin_below) in [(100, None), (0, Some(1000))] {
        let cleaning = Cleaning {
            in_background: false,
            percent,
            tidy_per_mille: 0,
            begin_below,
        };
        let fs = mount_with(formatted(), Some(cleaning));
        mostly_dead(&fs);
        // A zone is allowed from the start, whatever the share of what users write.
        assert_eq!(fs.clean_ahead().unwrap(), begin_below.is_some());
        for i in 0..12 {
            write(&fs, &format!("/a{i}.sst"), &[1; 6000]).unwrap();
            write(&fs, &format!("/b{i}.sst"), &[2; 18_000]).unwrap();
        }
        for i in 0..12 {
            fs.delete(&format!("/b{i}.sst")).unwrap();
        }
        let mut cleaned = 0;
        while fs.clean_ahead().unwrap() {
            cleaned += 1;
        }
        // The first left some of its allowance.
        assert!(cleaned <= if begin_below.is_some() { 4 } else { 0 });
        assert!(fs.statistics().moved_ahead_bytes_written <= (24 << 10) + 24_000);
    }
}

/// Runs `meanwhile` while a copy of what `before` left in a zone waits in the middle of a read.
fn held_up_in(
    before: impl FnOnce(&BlueFs) -> ZoneId,
    meanwhile: impl FnOnce(&BlueFs),
) -> (BlueFs, ZoneId) {
    let device = Arc::new(Faults::new(formatted()));
    let fs = mount(device.clone()).unwrap();
    let zone = before(&fs);
    let gate = Gate::new();
    let stuck = Fault::Stuck(gate.clone());
    device.add(Plan::at(ZoneCommand::Read, 1, stuck).in_zone(zone));
    std::thread::scope(|scope| {
        let cleaner = scope.spawn(|| fs.clean_ahead().unwrap());
        gate.wait_until_stuck(1);
        meanwhile(&fs);
        gate.release();
        assert!(cleaner.join().unwrap());
    });
    (fs, zone)
}

/// The same of `/old.sst`.
fn held_up(meanwhile: impl FnOnce(&BlueFs)) -> (BlueFs, ZoneId) {
    held_up_in(mostly_dead, meanwhile)
}

fn goes_on(fs: &BlueFs, zone: ZoneId) {
    assert_clean(fs);
    fs.sync_metadata().unwrap();
    write(fs, "/later.sst", &[9; 60_000]).unwrap();
    let device = fs.device().clone();
    assert!(
        fs.zones()
            .iter()
            .all(|(z, purpose)| { *z != zone || *purpose != bluefs::ZonePurpose::Freed })
    );
    let again = mount(device).unwrap();
    assert!(read(&again, "/later.sst").unwrap() == [9; 60_000]);
    assert_clean(&again);
}

#[test]
fn everybody_goes_on_while_a_zone_is_copied() {
    let (fs, zone) = held_up(|fs| {
        write(fs, "/new.sst", &[3; 50_000]).unwrap();
        write(fs, "/000001.log", &[4; 500]).unwrap();
        let mut old = fs.reopen("/old.sst").unwrap();
        old.append(&[5; 700]).unwrap();
        old.sync().unwrap();
        fs.rename("/old.sst", "/renamed.sst").unwrap();
        fs.sync_metadata().unwrap();
    });
    // None of that has touched the piece.
    assert_ne!(zone_of(&fs, "/renamed.sst"), zone);
    let data = read(&fs, "/renamed.sst").unwrap();
    assert!(data[..5000] == [1; 5000] && data[5000..] == [5; 700]);
    goes_on(&fs, zone);
}

#[test]
fn the_copy_of_a_file_that_was_deleted_is_dropped() {
    let (fs, zone) = held_up(|fs| {
        fs.delete("/old.sst").unwrap();
        fs.sync_metadata().unwrap();
        write(fs, "/old.sst", &[6; 5000]).unwrap();
    });
    assert!(read(&fs, "/old.sst").unwrap() == [6; 5000]);
    goes_on(&fs, zone);
}

#[test]
fn the_copy_of_a_file_that_was_cut_is_dropped() {
    for size in [4999, 512, 0] {
        let (fs, zone) = held_up(|fs| {
            let mut old = fs.reopen("/old.sst").unwrap();
            old.truncate(size).unwrap();
            old.append(&[7; 9000]).unwrap();
            old.sync().unwrap();
        });
        let data = read(&fs, "/old.sst").unwrap();
        let (kept, new) = data.split_at(size as usize);
        assert!(kept.iter().all(|b| *b == 1) && new == [7; 9000], "{size}");
        goes_on(&fs, zone);
    }
}

#[test]
fn a_reader_that_is_open_sees_the_same_bytes_before_and_after() {
    let mut reader = None;
    let (fs, zone) = held_up(|fs| reader = Some(fs.open("/old.sst").unwrap()));
    let mut data = vec![0; 5000];
    assert_eq!(reader.unwrap().read_at(0, &mut data).unwrap(), 5000);
    assert!(data == [1; 5000]);
    goes_on(&fs, zone);
}

fn byte(i: usize) -> u8 {
    (i * 7 + i / 251) as u8
}

/// Appends and syncs little at a time, so that a log takes much more room than it holds.
fn append(log: &mut Writer, count: usize) {
    for _ in 0..count {
        let from = log.size() as usize;
        log.append(&(from..from + 90).map(byte).collect::<Vec<_>>())
            .unwrap();
        log.sync().unwrap();
    }
}

#[track_caller]
fn has(fs: &BlueFs, path: &str, size: usize) {
    let data = read(fs, path).unwrap();
    assert_eq!(data.len(), size);
    assert!(data.iter().enumerate().all(|(i, b)| *b == byte(i)));
}

#[test]
fn a_manifest_that_is_open_does_not_keep_its_old_zones() {
    let device = formatted();
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create("/MANIFEST-000001").unwrap();
    append(&mut log, 500);
    let zones = |fs: &BlueFs| {
        let logs = fs.zones();
        let logs = logs.iter().filter(|(_, p)| *p == bluefs::ZonePurpose::Log);
        logs.count()
    };
    assert_eq!(zones(&fs), 11);
    // What is allowed follows from what is written.
    for _ in 0..2 {
        while fs.clean_ahead().unwrap() {}
        append(&mut log, 10);
    }
    // 43,200 bytes of old records fit two zones; the third is being written.
    assert_eq!(zones(&fs), 3);
    has(&fs, "/MANIFEST-000001", 46_800);
    assert_clean(&fs);
    append(&mut log, 80);
    while fs.clean_ahead().unwrap() {}
    has(&fs, "/MANIFEST-000001", 54_000);
    let reader = fs.open("/MANIFEST-000001").unwrap();
    fs.delete("/MANIFEST-000001").unwrap();
    assert_eq!(reader.size(), 54_000);
    fs.create("/MANIFEST-000001").unwrap();
    drop((log, reader));
    let mut log = fs.create("/MANIFEST-000002").unwrap();
    append(&mut log, 200);
    log.close().unwrap();
    assert!(fs.clean_ahead().unwrap());
    for _ in 0..2 {
        let fs = mount(device.clone()).unwrap();
        has(&fs, "/MANIFEST-000002", 18_000);
        assert_clean(&fs);
        // It goes on behind what was moved, and that is moved again.
        while fs.clean_ahead().unwrap() {}
        let mut log = fs.reopen("/MANIFEST-000002").unwrap();
        append(&mut log, 100);
        log.truncate(18_000).unwrap();
        log.sync().unwrap();
        has(&fs, "/MANIFEST-000002", 18_000);
    }
}

#[test]
fn logs_that_share_zones_are_moved_one_by_one() {
    let device = Arc::new(MemoryDrive::new(geometry(60, 0, 6)).unwrap());
    format(&*device, Role::Alone);
    let fs = mount(device.clone()).unwrap();
    let names = [
        "/000001.log",
        "/000002.log",
        "/MANIFEST-000003",
        "/000004.log",
    ];
    let mut logs: Vec<_> = names.iter().map(|n| fs.create(n).unwrap()).collect();
    for round in 1..=20 {
        for log in &mut logs {
            append(log, 9);
        }
        while fs.clean_ahead().unwrap() {}
        for name in names {
            has(&fs, name, round * 9 * 90);
        }
        assert_clean(&fs);
        let again = mount(Arc::new(device.snapshot())).unwrap();
        for name in names {
            has(&again, name, round * 9 * 90);
        }
        assert_clean(&again);
    }
    let s = fs.statistics();
    assert!(s.zones_cleaned_ahead > 5, "{s:?} {:?}", fs.zones());
    assert!(fs.usage().live_bytes < s.log_bytes_written / 2, "{s:?}");
}

fn old_log(fs: &BlueFs) -> ZoneId {
    let mut log = fs.create("/000001.log").unwrap();
    append(&mut log, 60);
    log.close().unwrap();
    zone_of(fs, "/000001.log")
}

#[test]
fn a_log_that_changes_while_it_is_copied_loses_nothing() {
    let name = "/000001.log";
    let (fs, zone) = held_up_in(old_log, |fs| append(&mut fs.reopen(name).unwrap(), 5));
    has(&fs, name, 65 * 90);
    assert_ne!(zone_of(&fs, name), zone);
    goes_on(&fs, zone);
    let (fs, zone) = held_up_in(old_log, |fs| {
        let mut log = fs.reopen(name).unwrap();
        log.truncate(1000).unwrap();
        log.sync().unwrap();
        append(&mut log, 5);
    });
    has(&fs, name, 1450);
    goes_on(&fs, zone);
    let (fs, zone) = held_up_in(old_log, |fs| {
        fs.delete(name).unwrap();
        fs.sync_metadata().unwrap();
        append(&mut fs.create(name).unwrap(), 5);
    });
    has(&fs, name, 450);
    goes_on(&fs, zone);
}

#[test]
fn damaged_records_are_not_moved() {
    let device = formatted();
    let fs = mount(device.clone()).unwrap();
    old_log(&fs);
    let at = fs.extents("/000001.log").unwrap()[20].at;
    let start = device.geometry().start(at.zone);
    let mut bytes = vec![0; 24 << 10];
    device.read(start, &mut bytes).unwrap();
    bytes[at.offset as usize] ^= 1;
    device.reset(at.zone).unwrap();
    device.write(start, &bytes).unwrap();
    fs.clean_ahead().unwrap();
    assert!(!fs.clean_ahead().unwrap(), "it is not tried again");
    assert_eq!(fs.extents("/000001.log").unwrap()[20].at, at);
    assert!(!fs.check(true).unwrap().is_clean());
}

#[test]
fn a_zone_that_breaks_under_a_copy_is_left_for_another() {
    for kth in 1..4 {
        let device = Arc::new(Faults::new(formatted()));
        let fs = mount(device.clone()).unwrap();
        let zone = mostly_dead(&fs);
        let fault = Fault::Io(std::io::ErrorKind::Other);
        device.add(Plan::at(ZoneCommand::Write, kth, fault));
        assert!(fs.clean_ahead().unwrap());
        assert_ne!(zone_of(&fs, "/old.sst"), zone, "{kth}");
        goes_on(&fs, zone);
    }
}

#[test]
fn what_cannot_be_read_stays_where_it_is_and_is_not_tried_again() {
    let device = Arc::new(Faults::new(formatted()));
    let fs = mount(device.clone()).unwrap();
    let zone = mostly_dead(&fs);
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
    fs.clean_ahead().unwrap();
    assert_eq!(zone_of(&fs, "/old.sst"), zone);
    assert!(!fs.clean_ahead().unwrap());
    // Nor does it keep others from finding space.
    let before = device.struck();
    write(&fs, "/new.sst", &[3; 600_000]).unwrap();
    while write(&fs, &format!("/{}.sst", fs.usage().files), &[4; 20_000]).is_ok() {}
    assert_eq!(device.struck(), before);
    device.clear();
    assert!(read(&fs, "/old.sst").unwrap() == [1; 5000]);
    goes_on_reading(&fs);
}

fn goes_on_reading(fs: &BlueFs) {
    assert!(read(fs, "/new.sst").unwrap() == [3; 600_000]);
    assert_clean(fs);
}

#[test]
fn a_thread_cleans_before_it_is_urgent_and_ends_with_the_file_system() {
    for unmounts in [true, false] {
        let device = formatted();
        let by_a_mount = {
            let _without_a_thread = mount_with(device.clone(), None);
            Arc::strong_count(&device)
        };
        let cleaning = Cleaning {
            percent: 400,
            begin_below: Some(u32::MAX),
            ..Cleaning::default()
        };
        let fs = mount_with(device.clone(), Some(cleaning));
        let mut rounds = 0;
        while fs.statistics().zones_cleaned_ahead < 3 {
            write(&fs, &format!("/keep{}.sst", rounds % 10), &[1; 3000]).unwrap();
            write(&fs, &format!("/goes{}.sst", rounds % 10), &[2; 20_000]).unwrap();
            fs.delete(&format!("/goes{}.sst", rounds % 10)).unwrap();
            rounds += 1;
            assert!(rounds < 100_000, "{:?}", fs.statistics());
            std::thread::yield_now();
        }
        let reader = fs.open("/keep0.sst").unwrap();
        let clone = fs.clone();
        drop(fs);
        if unmounts {
            clone.unmount().unwrap();
            let before = device.report(ZoneId(0), 60).unwrap();
            assert!(matches!(clone.clean_ahead(), Err(Error::Unmounted)));
            assert_eq!(before, device.report(ZoneId(0), 60).unwrap());
        }
        drop(clone);
        // The reader has the drive, and nobody else.
        let held = Arc::strong_count(&device);
        drop(reader);
        assert_eq!((held, Arc::strong_count(&device)), (by_a_mount, 1));
        let fs = mount_with(device, None);
        assert!(read(&fs, "/keep0.sst").unwrap() == [1; 3000]);
        assert!(!fs.clean_ahead().unwrap());
        assert_clean(&fs);
    }
}

#[test]
fn a_zone_that_somebody_is_emptying_is_left_to_them() {
    let (fs, zone) = held_up(|fs| assert!(!fs.clean_ahead().unwrap()));
    goes_on(&fs, zone);
}

/// What a history of files costs, of which most that go are young.
struct Cost {
    /// Files for which something had to be moved first.
    waits: u64,
    moved: u64,
    amplification: f64,
}

fn history(percent_live: u64, cleaning: Option<Cleaning>) -> Cost {
    let mut g = geometry(256, 0, 14);
    (g.zone_size, g.zone_capacity) = (128 << 10, 128 << 10);
    let device = Arc::new(MemoryDrive::new(g).unwrap());
    format(&*device, Role::Alone);
    let fs = mount_with(device, cleaning);
    let mut state = 1u64;
    let mut random = |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let most = fs.usage().capacity_bytes * percent_live / 100;
    let mut files: Vec<(String, u64)> = Vec::new();
    let (mut live, mut waits) = (0, 0);
    for i in 0..4000u64 {
        let size = 512 + random(31_000);
        while live + size > most {
            let count = files.len() as u64;
            let is_young = random(10) < 8;
            let age = random(if is_young { count / 5 + 1 } else { count });
            let (name, size) = files.remove((count - 1 - age.min(count - 1)) as usize);
            fs.delete(&name).unwrap();
            live -= size;
        }
        let in_need = || {
            let s = fs.statistics();
            s.moved_bytes_written - s.moved_ahead_bytes_written
        };
        let (name, before) = (format!("/{i:06}.sst"), in_need());
        let mut writer = fs.create(&name).unwrap();
        writer.set_lifetime([Lifetime::Medium, Lifetime::Long][(i % 2) as usize]);
        writer.append(&vec![i as u8; size as usize]).unwrap();
        writer.sync().unwrap();
        writer.close().unwrap();
        waits += u64::from(in_need() > before);
        files.push((name, size));
        live += size;
        while fs.clean_ahead().unwrap() {}
    }
    assert_clean(&fs);
    let s = fs.statistics();
    Cost {
        waits,
        moved: s.moved_bytes_written,
        amplification: s.bytes_written() as f64 / s.bytes_asked() as f64,
    }
}

#[test]
fn nobody_waits_for_a_move_when_zones_are_cleaned_ahead_of_need() {
    for percent_live in [70, 90] {
        let stepwise = Cleaning {
            in_background: false,
            ..Cleaning::default()
        };
        let [without, with] = [None, Some(stepwise)].map(|c| history(percent_live, c));
        for (name, cost) in [("in need", &without), ("ahead", &with)] {
            println!(
                "{percent_live} % live, {name}: {} files waited, {} KiB moved, written {:.2} times",
                cost.waits,
                cost.moved >> 10,
                cost.amplification
            );
        }
        assert!(without.waits > 100);
        assert_eq!(with.waits, 0);
        assert!(with.amplification < without.amplification * 1.25);
    }
}
