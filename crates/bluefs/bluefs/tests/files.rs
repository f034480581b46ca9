//! Files and names, one behaviour at a time, on a drive in memory.

#![allow(clippy::unwrap_used)]

use bluefs::{
    BlueFs, Error, FORMAT_VERSION, FormatOptions, Lifetime, MountOptions, Role, SuperblockInfo,
};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use std::sync::Arc;
use zone::{Geometry, ZoneId, ZoneKind};
use zone_alloc::ZonePool;

fn geometry(conventional_zones: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 64,
        conventional_zones,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

fn formatted(g: Geometry) -> Arc<MemoryDrive> {
    let device = Arc::new(MemoryDrive::new(g).unwrap());
    BlueFs::format(
        &*device,
        &FormatOptions {
            uuid: [3; 16],
            role: Role::Alone,
            force: false,
        },
    )
    .unwrap();
    device
}

fn mount(device: &Arc<MemoryDrive>) -> BlueFs {
    let g = device.geometry().clone();
    let pool = ZonePool::new(g.clone(), &device.report(ZoneId(0), g.zone_count).unwrap());
    BlueFs::mount(
        device.clone(),
        Arc::new(pool),
        MountOptions {
            read_only: false,
            runtime: Runtime::seeded(0),
            ..MountOptions::default()
        },
    )
    .unwrap()
}

fn fresh() -> (Arc<MemoryDrive>, BlueFs) {
    let device = formatted(geometry(4, 0));
    let fs = mount(&device);
    (device, fs)
}

fn bytes(seed: u8, length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| {
            (i as u8)
                .wrapping_mul(31)
                .wrapping_add(seed)
                .wrapping_add((i >> 8) as u8)
        })
        .collect()
}

fn write(fs: &BlueFs, path: &str, data: &[u8]) {
    let mut w = fs.create(path).unwrap();
    w.append(data).unwrap();
    w.sync().unwrap();
    w.close().unwrap();
}

fn read(fs: &BlueFs, path: &str) -> Vec<u8> {
    let r = fs.open(path).unwrap();
    let mut data = vec![0; r.size() as usize];
    assert_eq!(r.read_at(0, &mut data).unwrap(), data.len());
    data
}

#[track_caller]
fn clean(fs: &BlueFs) {
    let report = fs.check(true).unwrap();
    assert!(report.is_clean(), "{:#?}", report.details);
}

#[test]
fn synced_files_of_all_sizes_and_kinds_survive_a_crash() {
    let device = formatted(geometry(4, 0));
    let names = ["/a.sst", "/000001.log", "/MANIFEST-000001"];
    for size in [0, 1, 4095, 4096, 4097, 70_000, 1 << 20, 2_500_000] {
        let fs = mount(&device);
        for name in names {
            write(&fs, name, &bytes(size as u8, size));
        }
        drop(fs);
        device.power_cycle();
        let fs = mount(&device);
        for name in names {
            assert!(
                read(&fs, name) == bytes(size as u8, size),
                "{name} with {size} bytes"
            );
        }
        clean(&fs);
    }
}

#[test]
fn many_small_synced_appends_are_one_log() {
    let (device, fs) = fresh();
    let mut w = fs.create("/000007.log").unwrap();
    let mut model = Vec::new();
    for i in 0..700u32 {
        let piece = bytes(i as u8, 1 + (i as usize * 37) % 9000);
        w.append(&piece).unwrap();
        model.extend_from_slice(&piece);
        if i % 3 != 0 {
            w.sync().unwrap();
        }
    }
    w.sync().unwrap();
    assert!(read(&fs, "/000007.log") == model);
    let reader = fs.open("/000007.log").unwrap();
    let mut part = vec![0; 5000];
    for at in [0u64, 1, 4096, 100_001, model.len() as u64 - 10] {
        let got = reader.read_at(at, &mut part).unwrap();
        assert_eq!(
            part[..got],
            model[at as usize..(at as usize + 5000).min(model.len())]
        );
    }
    drop((w, reader, fs));
    let fs = mount(&device);
    assert!(read(&fs, "/000007.log") == model);
    clean(&fs);
    // Appending goes on behind it.
    let mut w = fs.reopen("/000007.log").unwrap();
    w.append(b"more").unwrap();
    w.sync().unwrap();
    model.extend_from_slice(b"more");
    drop((w, fs));
    assert!(read(&mount(&device), "/000007.log") == model);
}

#[test]
fn two_logs_in_one_zone_are_told_apart() {
    // Six active zones less two of the store: ring, journal, and two for data.
    let device = formatted(geometry(0, 6));
    let fs = mount(&device);
    let mut a = fs.create("/000001.log").unwrap();
    let mut b = fs.create("/000002.log").unwrap();
    let mut c = fs.create("/x.sst").unwrap();
    let mut d = fs.create("/y.sst").unwrap();
    for i in 0..40 {
        for (w, seed) in [(&mut a, 1), (&mut b, 2), (&mut c, 3), (&mut d, 4)] {
            w.append(&bytes(seed + i, 20_000)).unwrap();
            w.sync().unwrap();
        }
    }
    let expected = |seed: u8| {
        (0..40)
            .flat_map(|i| bytes(seed + i, 20_000))
            .collect::<Vec<_>>()
    };
    drop((a, b, c, d, fs));
    let fs = mount(&device);
    for (name, seed) in [
        ("/000001.log", 1),
        ("/000002.log", 2),
        ("/x.sst", 3),
        ("/y.sst", 4),
    ] {
        assert!(read(&fs, name) == expected(seed), "{name}");
    }
    clean(&fs);
}

#[test]
fn names_do_what_names_do() {
    let (device, fs) = fresh();
    fs.create_directory("/db").unwrap();
    assert!(matches!(
        fs.create_directory("/db/"),
        Err(Error::Exists { .. })
    ));
    assert!(matches!(fs.create("/nope/x"), Err(Error::NotFound { .. })));
    assert!(matches!(fs.list("/nope"), Err(Error::NotFound { .. })));
    write(&fs, "/db/CURRENT", b"MANIFEST-1");
    write(&fs, "/db/tmp", b"MANIFEST-2");
    fs.rename("/db/tmp", "/db/CURRENT").unwrap();
    fs.link("/db/CURRENT", "/db/other").unwrap();
    assert!(matches!(
        fs.link("/db/CURRENT", "/db/other"),
        Err(Error::Exists { .. })
    ));
    assert_eq!(fs.metadata("/db/other").unwrap().links, 2);
    assert!(fs.is_same("/db/CURRENT", "/db/other").unwrap());
    assert!(!fs.is_same("/db", "/db/other").unwrap());
    fs.create_directory("/db/log").unwrap();
    assert!(fs.is_same("/db/log", "/db//log/").unwrap());
    assert!(!fs.is_same("/db", "/db/log").unwrap());
    assert!(matches!(
        fs.is_same("/db", "/nope"),
        Err(Error::NotFound { .. })
    ));
    fs.remove_directory("/db/log").unwrap();
    fs.delete("/db/CURRENT").unwrap();
    assert_eq!(read(&fs, "/db/other"), b"MANIFEST-2");
    assert!(matches!(
        fs.remove_directory("/db"),
        Err(Error::DirectoryNotEmpty { .. })
    ));
    fs.rename("/db", "/db2").unwrap();
    fs.sync_metadata().unwrap();
    fs.unmount().unwrap();
    assert!(matches!(fs.create("/late"), Err(Error::Unmounted)));
    let fs = mount(&device);
    assert_eq!(fs.list("/").unwrap(), ["db2"]);
    assert_eq!(fs.list("/db2").unwrap(), ["other"]);
    assert_eq!(read(&fs, "/db2//./other"), b"MANIFEST-2");
    assert!(fs.metadata("/db2").unwrap().is_directory);
    fs.lock("/db2/LOCK").unwrap();
    assert!(matches!(fs.lock("/db2/LOCK"), Err(Error::Locked { .. })));
    fs.unlock("/db2/LOCK");
    fs.lock("/db2/LOCK").unwrap();
}

#[test]
fn a_deleted_file_stays_readable_while_it_is_open_and_then_gives_its_zones_back() {
    let (_device, fs) = fresh();
    let before = fs.usage();
    write(&fs, "/x.sst", &bytes(1, 3 << 20));
    let r = fs.open("/x.sst").unwrap();
    fs.delete("/x.sst").unwrap();
    fs.sync_metadata().unwrap();
    let mut data = vec![0; 3 << 20];
    assert_eq!(r.read_at(0, &mut data).unwrap(), data.len());
    assert!(data == bytes(1, 3 << 20));
    drop(r);
    fs.sync_metadata().unwrap();
    let after = fs.usage();
    assert_eq!(after.live_bytes, before.live_bytes);
    assert!(after.free_bytes + (1 << 20) >= before.free_bytes);
}

#[test]
fn what_was_not_synced_may_be_lost_but_what_was_is_there() {
    let (device, fs) = fresh();
    let mut w = fs.create("/a.sst").unwrap();
    w.append(&bytes(1, 10_000)).unwrap();
    w.sync().unwrap();
    w.append(&bytes(2, 5_000)).unwrap();
    assert_eq!(read(&fs, "/a.sst").len(), 15_000);
    drop((w, fs));
    let fs = mount(&device);
    assert_eq!(read(&fs, "/a.sst"), bytes(1, 10_000));
}

#[test]
fn truncating_cuts_logs_and_plain_files_for_good() {
    let (device, fs) = fresh();
    for name in ["/t.sst", "/000003.log"] {
        let mut w = fs.create(name).unwrap();
        for i in 0..5 {
            w.append(&bytes(i, 50_000)).unwrap();
            w.sync().unwrap();
        }
        let all = read(&fs, name);
        w.truncate(123_456).unwrap();
        assert!(read(&fs, name) == all[..123_456]);
        w.append(b"tail").unwrap();
        w.sync().unwrap();
        drop(w);
        let again = mount(&device.snapshot().into());
        assert!(
            read(&again, name) == [&all[..123_456], b"tail"].concat(),
            "{name}"
        );
    }
    fs.truncate("/t.sst", 10).unwrap();
    assert_eq!(read(&fs, "/t.sst").len(), 10);
    clean(&fs);
}

#[test]
fn the_journal_is_compacted_and_its_zones_come_back() {
    let (device, fs) = fresh();
    for i in 0..4000 {
        write(&fs, &format!("/f{}", i % 7), &bytes(i as u8, 10));
    }
    let s = fs.statistics();
    assert!(s.journal_bytes_written > 4 << 20, "{s:?}");
    assert!(fs.zones().len() < 20, "{:?}", fs.zones());
    clean(&fs);
    drop(fs);
    let fs = mount(&device);
    assert_eq!(read(&fs, "/f0"), bytes((3999 / 7 * 7) as u8, 10));
}

#[test]
fn deleting_and_filling_never_runs_out_early() {
    let (device, fs) = fresh();
    let mut model: std::collections::VecDeque<(String, u8, usize)> = Default::default();
    let mut live = 0;
    for i in 0..600usize {
        let size = 40_000 + (i * 7919) % 500_000;
        while live + size > 38 << 20 {
            let at = (i * 31) % model.len();
            let (name, _, s) = model.remove(at).unwrap();
            fs.delete(&name).unwrap();
            live -= s;
        }
        let name = format!("/{i:06}.sst");
        let mut w = fs.create(&name).unwrap();
        w.set_lifetime([Lifetime::Medium, Lifetime::Long][i % 2]);
        w.append(&bytes(i as u8, size)).unwrap();
        w.sync().unwrap();
        w.close().unwrap();
        model.push_back((name, i as u8, size));
        live += size;
    }
    for (name, seed, size) in &model {
        assert!(read(&fs, name) == bytes(*seed, *size));
    }
    assert!(fs.statistics().moved_bytes_written > 0);
    clean(&fs);
    drop(fs);
    clean(&mount(&device));
}

#[test]
fn a_full_drive_says_so_and_deleting_helps() {
    let (_device, fs) = fresh();
    let mut i = 0;
    let error = loop {
        let mut w = fs.create(&format!("/{i:06}.sst")).unwrap();
        if let Err(error) = w.append(&bytes(0, 1 << 20)).and_then(|()| w.sync()) {
            break error;
        }
        i += 1;
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(i >= 53, "{i} files of 1 MiB on 64 zones");
    for j in 0..10 {
        fs.delete(&format!("/{j:06}.sst")).unwrap();
    }
    write(&fs, "/again.sst", &bytes(5, 6 << 20));
    clean(&fs);
}

#[test]
fn synchronous_appends_to_a_log_are_one_write_and_one_flush_each() {
    let (_device, fs) = fresh();
    let mut w = fs.create("/000001.log").unwrap();
    w.append(b"first").unwrap();
    w.sync().unwrap();
    let before = fs.statistics();
    for _ in 0..100 {
        w.append(&[7; 450]).unwrap();
        w.sync().unwrap();
    }
    let after = fs.statistics();
    assert_eq!(after.flushes - before.flushes, 100);
    assert_eq!(after.bytes_written() - before.bytes_written(), 100 * 4096);
}

#[test]
fn a_directory_that_has_not_changed_since_a_flush_costs_none() {
    let (_device, fs) = fresh();
    let flushes = || fs.statistics().flushes;
    let mut w = fs.create("/MANIFEST-000001").unwrap();
    w.append(b"first").unwrap();
    let before = flushes();
    // Also the first record of a run: the frame that names it needs no flush of its own.
    w.sync().unwrap();
    assert_eq!(flushes(), before + 1);
    write(&fs, "/000002.sst", &bytes(1, 3000));
    assert_eq!(flushes(), before + 2);
    fs.sync_metadata().unwrap();
    assert_eq!(flushes(), before + 2);
    w.append(b"second").unwrap();
    w.sync().unwrap();
    assert_eq!(flushes(), before + 3);
    fs.delete("/000002.sst").unwrap();
    fs.sync_metadata().unwrap();
    assert_eq!(flushes(), before + 4);
}

#[test]
fn asynchronous_logs_and_tables_cost_next_to_no_padding() {
    let (_device, fs) = fresh();
    for round in 0..6 {
        let mut log = fs.create(&format!("/{round:06}.log")).unwrap();
        for _ in 0..9000 {
            log.append(&[7; 445]).unwrap();
            log.flush().unwrap();
        }
        log.close().unwrap();
        write(&fs, &format!("/{round:06}.sst"), &bytes(1, 4_000_000));
        fs.delete(&format!("/{round:06}.log")).unwrap();
    }
    let s = fs.statistics();
    let ratio = s.bytes_written() as f64 / s.bytes_asked() as f64;
    assert!(ratio < 1.01, "{ratio} {s:?}");
}

#[test]
fn drives_that_are_not_ours_are_told_from_damaged_ones() {
    let device = Arc::new(MemoryDrive::new(geometry(4, 0)).unwrap());
    assert!(matches!(BlueFs::probe(&*device), Err(Error::NotFormatted)));
    let options = FormatOptions {
        uuid: [1; 16],
        role: Role::Alone,
        force: false,
    };
    BlueFs::format(&*device, &options).unwrap();
    assert!(matches!(
        BlueFs::format(&*device, &options),
        Err(Error::NotEmpty { .. })
    ));
    let fs = mount(&device);
    write(&fs, "/x", b"data");
    drop(fs);
    BlueFs::format(
        &*device,
        &FormatOptions {
            uuid: [2; 16],
            force: true,
            ..options
        },
    )
    .unwrap();
    assert_eq!(BlueFs::probe(&*device).unwrap().uuid, [2; 16]);
    assert!(mount(&device).list("/").unwrap().is_empty());
}

#[test]
fn another_version_is_refused_by_name() {
    let device = formatted(geometry(0, 0));
    let g = device.geometry().clone();
    let old = SuperblockInfo {
        version: FORMAT_VERSION - 1,
        ..BlueFs::probe(&*device).unwrap()
    };
    for zone in [0, 1, g.zone_count - 2, g.zone_count - 1].map(ZoneId) {
        device.reset(zone).unwrap();
    }
    device.write(g.start(ZoneId(0)), &old.encode()).unwrap();
    let refused = BlueFs::probe(&*device);
    let Err(Error::UnsupportedVersion { found, supported }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((found, supported), (FORMAT_VERSION - 1, FORMAT_VERSION));
}
