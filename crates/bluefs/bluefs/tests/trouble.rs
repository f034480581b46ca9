//! Drives that fail, drives that are shared, full drives, many threads: what the file system owes
//! its users when things go wrong, one small story each.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::{BlueFs, Error, FormatOptions, Role};
use device::faults::{Fault, Faults, Plan};
use device::power_cut::CrashLimits;
use device::{MemoryDrive, PowerCut, ZonedDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{assert_clean, format, geometry, mount, mount_in, pool, read};
use zone::{Geometry, ZoneCommand, ZoneCondition, ZoneError, ZoneId};
use zone_alloc::{Owner, Purpose, ZonePool};

fn memory(g: Geometry) -> Arc<MemoryDrive> {
    let device = Arc::new(MemoryDrive::new(g).unwrap());
    format(&*device, Role::Alone);
    device
}

fn write(fs: &BlueFs, path: &str, data: &[u8]) -> Result<(), Error> {
    let mut writer = fs.create(path)?;
    writer.append(data)?;
    writer.sync()?;
    writer.close()
}

#[test]
fn after_unmounting_a_writer_that_is_still_open_touches_nothing() {
    let device = memory(geometry(40, 0, 0));
    let fs = mount(device.clone()).unwrap();
    let mut writer = fs.create("/000001.log").unwrap();
    writer.append(b"synced").unwrap();
    writer.sync().unwrap();
    writer.append(b" and not").unwrap();
    fs.unmount().unwrap();
    let before = device.report(ZoneId(0), 40).unwrap();
    assert!(matches!(writer.append(b"late"), Err(Error::Unmounted)));
    assert!(matches!(writer.sync(), Err(Error::Unmounted)));
    assert!(matches!(writer.close(), Err(Error::Unmounted)));
    drop(writer);
    assert_eq!(before, device.report(ZoneId(0), 40).unwrap());
    assert_eq!(
        read(&mount(device).unwrap(), "/000001.log").unwrap(),
        b"synced and not"
    );
}

#[test]
fn a_file_of_very_many_pieces_can_be_cut() {
    let mut g = geometry(600, 0, 0);
    g.zone_size = 64 << 10;
    g.zone_capacity = 64 << 10;
    let device = memory(g);
    let fs = mount(device.clone()).unwrap();
    let mut writer = fs.create("/LOG").unwrap();
    for i in 0..9000u32 {
        writer.append(&i.to_le_bytes()).unwrap();
        writer.sync().unwrap();
    }
    writer.truncate(35_000).unwrap();
    writer.sync().unwrap();
    write(&fs, "/later", b"x").unwrap();
    drop((writer, fs));
    let fs = mount(device).unwrap();
    assert_eq!(read(&fs, "/later").unwrap(), b"x");
    let expected: Vec<u8> = (0..8750u32).flat_map(u32::to_le_bytes).collect();
    assert!(read(&fs, "/LOG").unwrap() == expected);
    assert_clean(&fs);
}

#[test]
fn formatting_twice_with_one_uuid_brings_nothing_back() {
    for conventional in [0, 40] {
        let device = memory(geometry(40, conventional, 0));
        let fs = mount(device.clone()).unwrap();
        for i in 0..5 {
            write(&fs, &format!("/{i:06}.log"), &[i; 5000]).unwrap();
        }
        drop(fs);
        let options = FormatOptions {
            uuid: [3; 16],
            role: Role::Alone,
            force: true,
        };
        BlueFs::format(&*device, &options).unwrap();
        let fs = mount(device.clone()).unwrap();
        assert!(fs.list("/").unwrap().is_empty());
        let mut writer = fs.create("/000001.log").unwrap();
        writer.append(&[9; 100]).unwrap();
        writer.sync().unwrap();
        drop((writer, fs));
        let fs = mount(device).unwrap();
        assert_eq!(fs.list("/").unwrap(), ["000001.log"]);
        assert_eq!(read(&fs, "/000001.log").unwrap(), [9; 100]);
    }
}

#[test]
fn a_log_never_shows_what_an_earlier_file_left_in_a_conventional_zone() {
    // The first log writes two whole records and is never journalled, so that the second gets its
    // number and, after a few mounts, its place; its first record is as long as the stale one.
    let mut g = geometry(12, 12, 0);
    g.zone_size = 4 << 20;
    g.zone_capacity = 4 << 20;
    const RECORD: usize = bluefs::format::log_record::MAX_PAYLOAD;
    for mounts in 0..4 {
        let device = memory(g.clone());
        let fs = mount(device.clone()).unwrap();
        let mut writer = fs.create("/000001.log").unwrap();
        writer.append(&vec![1; 2 * RECORD]).unwrap();
        drop((writer, fs));
        for _ in 0..mounts {
            mount(device.clone()).unwrap();
        }
        let fs = mount(device.clone()).unwrap();
        let mut writer = fs.create("/000002.log").unwrap();
        writer.append(&vec![2; RECORD]).unwrap();
        writer.sync().unwrap();
        drop((writer, fs));
        let data = read(&mount(device).unwrap(), "/000002.log").unwrap();
        assert!(
            data == vec![2; RECORD],
            "{} bytes after {mounts} mounts",
            data.len()
        );
    }
}

#[test]
fn a_failed_flush_is_never_made_good_by_the_next() {
    let device = Arc::new(Faults::new(memory(geometry(40, 0, 0))));
    let fs = mount(device.clone()).unwrap();
    let mut a = fs.create("/000001.log").unwrap();
    a.append(b"a").unwrap();
    a.sync().unwrap();
    device.add(Plan::at(
        ZoneCommand::Flush,
        1,
        Fault::Io(std::io::ErrorKind::Other),
    ));
    a.append(b"b").unwrap();
    assert!(matches!(a.sync(), Err(Error::Drive(ZoneError::Io { .. }))));
    assert!(a.sync().is_err());
    assert!(fs.sync_metadata().is_err());
    assert!(fs.create("/x").is_err());
    drop((a, fs));
    let data = read(&mount(device).unwrap(), "/000001.log").unwrap();
    assert!(b"ab".starts_with(&data[..]) && !data.is_empty());
}

#[test]
fn writers_and_journal_go_on_elsewhere_when_a_zone_breaks() {
    for kth in 1..25 {
        for condition in [ZoneCondition::ReadOnly, ZoneCondition::Offline] {
            // Two zones break in a row. What lay in an offline zone is gone, and that is not
            // what this test is about.
            let device = Arc::new(Faults::new(memory(geometry(60, 0, 0))));
            let fs = mount(device.clone()).unwrap();
            let fault = || Fault::Break(condition);
            device.add(Plan::at(ZoneCommand::Write, kth, fault()));
            device.add(Plan::at(ZoneCommand::Write, kth + 2, fault()));
            let mut log = fs.create("/000001.log").unwrap();
            let mut written = Vec::new();
            for i in 0..6 {
                match log.append(&[i; 700]).and_then(|()| log.sync()) {
                    Ok(()) => {}
                    // Behind what is lost nothing counts; another log does.
                    Err(Error::ZoneLost { .. }) if condition == ZoneCondition::Offline => {
                        log = fs.create(&format!("/00002{i}.log")).unwrap();
                    }
                    Err(e) => panic!("{kth} {condition:?}: {e}"),
                }
                written.extend([i; 700]);
                write(&fs, &format!("/{i}.sst"), &[i; 3000])
                    .unwrap_or_else(|e| panic!("{kth} {condition:?}: {e}"));
            }
            if condition == ZoneCondition::ReadOnly {
                assert!(read(&fs, "/000001.log").unwrap() == written);
                drop((log, fs));
                let fs =
                    mount(device.clone()).unwrap_or_else(|e| panic!("{kth} {condition:?}: {e}"));
                assert!(read(&fs, "/000001.log").unwrap() == written, "{kth}");
                for i in 0..6 {
                    assert!(read(&fs, &format!("/{i}.sst")).unwrap() == [i; 3000]);
                }
                assert_clean(&fs);
            }
        }
    }
}

#[test]
fn an_open_file_without_a_name_does_not_stop_the_cleaning_of_other_zones() {
    let device = memory(geometry(40, 0, 0));
    let fs = mount(device).unwrap();
    write(&fs, "/open.sst", &[1; 3000]).unwrap();
    let reader = fs.open("/open.sst").unwrap();
    let mut i = 0;
    while write(&fs, &format!("/{i:03}.sst"), &[2; 12_000]).is_ok() {
        i += 1;
    }
    assert!(i > 50, "{i} files fit");
    fs.delete("/open.sst").unwrap();
    for j in (0..i).step_by(2) {
        fs.delete(&format!("/{j:03}.sst")).unwrap();
    }
    for j in 0..i / 2 - 4 {
        write(&fs, &format!("/again{j:03}.sst"), &[3; 12_000])
            .unwrap_or_else(|e| panic!("file {j} of {}: {e}", i / 2));
    }
    let mut data = [0; 3000];
    assert_eq!(reader.read_at(0, &mut data).unwrap(), 3000);
    assert_eq!(data, [1; 3000]);
    assert_clean(&fs);
}

#[test]
fn readers_do_not_keep_zones_from_being_reset() {
    let device = memory(geometry(60, 0, 0));
    let fs = mount(device).unwrap();
    write(&fs, "/read.sst", &[7; 20_000]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let reader = fs.open("/read.sst").unwrap();
                let mut data = vec![0; 20_000];
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(reader.read_at(0, &mut data).unwrap(), 20_000);
                }
            });
        }
        for i in 0..200 {
            write(&fs, "/again.sst", &[i as u8; 24_000]).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(fs.statistics().resets > 100);
}

#[test]
fn many_threads_write_sync_delete_and_read() {
    let mut g = geometry(300, 4, 14);
    g.block_size = 4096;
    g.zone_size = 256 << 10;
    g.zone_capacity = 192 << 10;
    let device = memory(g);
    let fs = mount(device.clone()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6u8 {
            let fs = &fs;
            scope.spawn(move || {
                for round in 0..30u8 {
                    let name = match thread % 2 {
                        0 => format!("/{thread:03}{round:03}.log"),
                        _ => format!("/{thread:03}{round:03}.sst"),
                    };
                    let mut writer = fs.create(&name).unwrap();
                    let mut expected = Vec::new();
                    for i in 0..10u8 {
                        let data = vec![thread ^ round ^ i; 3000 + 1000 * usize::from(i)];
                        writer.append(&data).unwrap();
                        expected.extend(data);
                        if i % 3 == 0 {
                            writer.sync().unwrap();
                        }
                        assert!(read(fs, &name).unwrap() == expected);
                    }
                    writer.sync().unwrap();
                    writer.close().unwrap();
                    if round >= 3 {
                        let old =
                            name.replace(&format!("{round:03}."), &format!("{:03}.", round - 3));
                        fs.delete(&old).unwrap();
                    }
                }
            });
        }
    });
    fs.sync_metadata().unwrap();
    assert_clean(&fs);
    let before: Vec<_> = fs.list("/").unwrap();
    assert_eq!(before.len(), 18);
    drop(fs);
    let fs = mount(device).unwrap();
    assert_eq!(fs.list("/").unwrap(), before);
    assert_clean(&fs);
}

/// A store beside BlueFS that always has as many zones active as it may.
struct Neighbour {
    zones: Vec<(ZoneId, u64)>,
}

impl Neighbour {
    /// After BlueFS has mounted and worked: claims what is its own, resets what is nobody's.
    fn mount(device: &dyn ZonedDevice, pool: &ZonePool, known: &[ZoneId]) -> Self {
        let mut zones = Vec::new();
        for zone in known {
            let report = device.report_zone(*zone).unwrap();
            if report.condition.is_active() {
                pool.claim(*zone, Owner::Store).unwrap();
                zones.push((*zone, report.write_pointer));
            }
        }
        for zone in pool.unclaimed() {
            device.reset(zone).unwrap();
            pool.give_back(zone);
        }
        Self { zones }
    }

    fn fill(&mut self, device: &dyn ZonedDevice, pool: &ZonePool) -> Result<(), ZoneError> {
        while self.zones.len() < pool.active_quota(Owner::Store).unwrap() as usize {
            let zone = pool.take(Purpose::Data).unwrap();
            self.zones.push((zone, 0));
            let at = device.geometry().start(zone);
            device.write(at, &[5; 512])?;
        }
        Ok(())
    }
}

#[test]
fn a_neighbour_always_finds_its_active_zones() {
    let limits = CrashLimits {
        max_states: 10,
        max_choices_per_zone: 6,
        seed: 3,
    };
    let mut states = 0;
    for (conventional, active) in [(0, 6), (4, 6), (0, 14)] {
        for cut in (1..260).step_by(3) {
            let device = Arc::new(PowerCut::new(geometry(60, conventional, active)).unwrap());
            format(&*device, Role::Shared);
            let pool_ = pool(&*device);
            let fs = mount_in(device.clone(), pool_.clone(), false).unwrap();
            let mut neighbour = Neighbour { zones: Vec::new() };
            neighbour.fill(&*device, &pool_).unwrap();
            device.flush().unwrap();
            let known: Vec<_> = neighbour.zones.iter().map(|(zone, _)| *zone).collect();
            device.cut_after(cut);
            let error = work(&fs);
            assert!(
                matches!(
                    error,
                    Ok(()) | Err(Error::Drive(ZoneError::PowerLost { .. }))
                ),
                "{error:?}"
            );
            for state in device.crash_states(limits) {
                states += 1;
                let image = Arc::new(device.image(&state));
                let pool = pool(&*image);
                let told = |e: &dyn std::fmt::Debug| format!("{e:?}, cut {cut}, {state:?}");
                let fs = mount_in(image.clone(), pool.clone(), false)
                    .unwrap_or_else(|e| panic!("{}", told(&e)));
                work(&fs).unwrap_or_else(|e| panic!("{}", told(&e)));
                let mut neighbour = Neighbour::mount(&*image, &pool, &known);
                neighbour
                    .fill(&*image, &pool)
                    .unwrap_or_else(|e| panic!("{}", told(&e)));
                work(&fs).unwrap_or_else(|e| panic!("{}", told(&e)));
                assert_clean(&fs);
            }
        }
    }
    println!("beside a neighbour: {states} states after power cuts");
}

/// Logs and SSTs, several open at once, deleted again.
fn work(fs: &BlueFs) -> Result<(), Error> {
    let names = [
        "/000001.log",
        "/a.sst",
        "/MANIFEST-1",
        "/b.sst",
        "/000002.log",
    ];
    let mut writers = Vec::new();
    for name in names {
        writers.push(fs.create(name)?);
    }
    for _ in 0..6 {
        for writer in &mut writers {
            writer.append(&[7; 4000])?;
            writer.sync()?;
        }
    }
    drop(writers);
    for name in names {
        fs.delete(name)?;
        fs.sync_metadata()?;
        write(fs, "/CURRENT", b"small")?;
    }
    Ok(())
}

#[test]
fn a_full_drive_can_be_mounted_again_and_again() {
    for (conventional, role) in [(0, Role::Alone), (0, Role::Shared), (4, Role::Shared)] {
        for point in 1..12 {
            let g = geometry(30, conventional, 0);
            let mut device = Arc::new(PowerCut::new(g).unwrap());
            format(&*device, role);
            let fs = mount(device.clone()).unwrap();
            let mut i = 0;
            while write(&fs, &format!("/{i:03}.sst"), &[1; 11_000]).is_ok() {
                i += 1;
            }
            drop(fs);
            for round in 0..8 {
                device.cut_after(point);
                let _ = mount(device.clone());
                let left = device.crash_states(CrashLimits::default());
                // Mostly everything was kept: what an aborted mount wrote is in the way.
                let choice = usize::from(round % 4 != 3) % left.len();
                device = Arc::new(device.restart(&left[choice]));
            }
            let fs = mount(device).unwrap_or_else(|e| panic!("{role:?}, cut at {point}: {e}"));
            fs.delete("/000.sst").unwrap();
            fs.delete("/001.sst").unwrap();
            fs.delete("/002.sst").unwrap();
            fs.delete("/003.sst").unwrap();
            write(&fs, "/new.sst", &[2; 11_000]).unwrap_or_else(|e| panic!("{e}"));
            assert_clean(&fs);
        }
    }
}

#[test]
fn a_log_of_messages_goes_on_when_the_drive_does_not() {
    // RocksDB appends to its info log after everything else has failed, and aborts if that fails.
    let device = Arc::new(PowerCut::new(geometry(40, 0, 0)).unwrap());
    format(&*device, Role::Alone);
    let fs = mount(device.clone()).unwrap();
    let mut messages = fs.create("/LOG").unwrap();
    let mut log = fs.create("/000001.log").unwrap();
    device.cut_after(0);
    log.append(b"x").unwrap();
    assert!(log.sync().is_err());
    for _ in 0..100 {
        messages.append(b"the drive has no power").unwrap();
        messages.flush().unwrap();
    }
    assert!(messages.sync().is_err());
}
