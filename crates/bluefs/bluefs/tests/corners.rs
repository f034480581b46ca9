//! Rare combinations: two handles on one file, damage in a file that is moved, names that grow by renames, a superblock
//! zone that can only be read. Synced data stays, and damaged data stays known as damaged.

use crate::support::{assert_clean, formatted, geometry, mount, read, write};
use bluefs::Error;
use device::ZonedDevice;
use device::faults::{Fault, Faults, Gate, Plan};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use zone::{ByteOffset, ZoneCommand, ZoneCondition, ZoneId};

#[test]
fn a_log_that_is_truncated_by_its_name_goes_on_in_its_open_writer() {
    let device = formatted(geometry(40, 0, 0));
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create("/000001.log").unwrap();
    log.append(&[1; 1000]).unwrap();
    log.sync().unwrap();
    fs.truncate("/000001.log", 300).unwrap();
    log.append(&[2; 500]).unwrap();
    log.sync().unwrap();
    drop((log, fs));
    let fs = mount(device).unwrap();
    let expected = [[1; 300].as_slice(), &[2; 500]].concat();
    assert!(read(&fs, "/000001.log").unwrap() == expected);
}

#[test]
fn two_writers_of_one_log_take_turns() {
    for active in [0, 6] {
        let device = formatted(geometry(40, 0, active));
        let fs = mount(device.clone()).unwrap();
        let mut writers = [
            fs.create("/000001.log").unwrap(),
            fs.reopen("/000001.log").unwrap(),
        ];
        let mut expected = Vec::new();
        for i in 0..6u8 {
            let writer = &mut writers[usize::from(i) % 2];
            writer.append(&[i; 700]).unwrap();
            writer.sync().unwrap();
            expected.extend([i; 700]);
        }
        drop((writers, fs));
        let found = read(&mount(device).unwrap(), "/000001.log").unwrap();
        assert!(
            found == expected,
            "{} bytes of {}",
            found.len(),
            expected.len()
        );
    }
}

#[test]
fn a_sync_waits_for_the_frame_that_another_sync_is_writing() {
    let device = Arc::new(Faults::new(formatted(geometry(40, 0, 0))));
    let fs = mount(device.clone()).unwrap();
    let mut first = fs.create("/a.sst").unwrap();
    first.append(&[1; 700]).unwrap();
    first.close().unwrap();
    let (mut one, mut two) = (fs.reopen("/a.sst").unwrap(), fs.reopen("/a.sst").unwrap());
    let gate = Gate::new();
    device.add(Plan::at(ZoneCommand::Write, 1, Fault::Stuck(gate.clone())));
    let (done, second) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| one.sync().unwrap());
        gate.wait_until_stuck(1);
        scope.spawn(|| {
            two.sync().unwrap();
            done.send(()).unwrap();
        });
        // The frame is stuck, so no metadata is durable and the second sync must wait. A longer wait would prove no
        // more.
        let early = second.recv_timeout(Duration::from_millis(50)).is_ok();
        gate.release();
        assert!(
            !early,
            "synced although the frame that names the data is not written"
        );
    });
}

#[test]
fn damage_stays_known_when_the_file_is_moved() {
    // Conventional zones, for their blocks can be changed from outside.
    let device = formatted(geometry(24, 24, 0));
    let fs = mount(device.clone()).unwrap();
    let marks: Vec<u8> = (0..9000u32).map(|i| (i * 7 + 13) as u8 | 1).collect();
    let mut i = 0;
    write(&fs, "/marked.sst", &marks).unwrap();
    while write(&fs, &format!("/{i:03}.sst"), &[2; 9000]).is_ok() {
        i += 1;
    }
    let at = find(&*device, &marks[..512]);
    device.write(at, &[0xee; 512]).unwrap();
    assert_eq!(fs.check(true).unwrap().errors["checksum mismatch"], 1);
    for j in 0..i {
        fs.delete(&format!("/{j:03}.sst")).unwrap();
        fs.sync_metadata().unwrap();
        let _ = write(&fs, &format!("/again{j:03}.sst"), &[3; 12_000]);
        let _ = write(&fs, &format!("/more{j:03}.sst"), &[3; 12_000]);
    }
    let moved = fs.statistics().moved_bytes_written;
    assert!(moved > 0);
    assert_eq!(
        fs.check(true).unwrap().errors.get("checksum mismatch"),
        Some(&1)
    );
}

/// The address of the first block with these bytes.
fn find(device: &dyn ZonedDevice, block: &[u8]) -> ByteOffset {
    let g = device.geometry();
    for zone in g.zones() {
        let mut bytes = vec![0; g.capacity(zone) as usize];
        device.read(g.start(zone), &mut bytes).unwrap();
        if let Some(n) = bytes.chunks(512).position(|b| b == block) {
            return g.absolute(zone::ZoneAddress::new(zone, n as u64 * 512));
        }
    }
    panic!("not on the drive");
}

#[test]
fn renaming_directories_never_makes_a_path_that_cannot_be_written_down() {
    let device = formatted(geometry(40, 0, 0));
    let fs = mount(device.clone()).unwrap();
    let long = "x".repeat(4000);
    fs.create_directory("/d").unwrap();
    write(&fs, "/d/f", b"here").unwrap();
    for _ in 0..20 {
        // Renames /d to /e/xxx… and that to /d again, so that the path of the file gets 4,000 bytes longer each time.
        fs.create_directory("/e").unwrap();
        let moved = fs.rename("/d", &format!("/e/{long}"));
        if moved.is_err() {
            assert!(matches!(moved, Err(Error::BadPath { .. })), "{moved:?}");
            break;
        }
        fs.rename("/e", "/d").unwrap();
    }
    fs.sync_metadata().unwrap();
    write(&fs, "/after", b"too").unwrap();
    drop(fs);
    let fs = mount(device).unwrap();
    assert_eq!(read(&fs, "/after").unwrap(), b"too");
    assert_clean(&fs);
}

#[test]
fn a_superblock_zone_that_can_only_be_read_is_still_read() {
    for zone in [ZoneId(0), ZoneId(1)] {
        let device = Arc::new(Faults::new(formatted(geometry(40, 0, 0))));
        let fs = mount(device.clone()).unwrap();
        write(&fs, "/a", b"kept").unwrap();
        drop(fs);
        let mut broken = device.report_zone(zone).unwrap();
        let commands = if broken.write_pointer == 0 {
            ZoneCommand::Open
        } else {
            ZoneCommand::Write
        };
        device.add(Plan::at(commands, 1, Fault::Break(ZoneCondition::ReadOnly)).in_zone(zone));
        let at = device
            .geometry()
            .absolute(zone::ZoneAddress::new(zone, broken.write_pointer));
        let _ = device.open(zone);
        let _ = device.write(at, &[0; 512]);
        broken = device.report_zone(zone).unwrap();
        assert_eq!(broken.condition, ZoneCondition::ReadOnly, "zone {zone}");
        for _ in 0..3 {
            let fs = mount(device.clone()).unwrap_or_else(|e| panic!("{e}, zone {zone}"));
            assert_eq!(read(&fs, "/a").unwrap(), b"kept");
            write(&fs, "/b", b"more").unwrap();
        }
    }
}

#[test]
fn a_journal_in_a_zone_that_can_only_be_read_is_still_read() {
    for zone in 2..12 {
        let device = formatted(geometry(40, 0, 0));
        let fs = mount(device.clone()).unwrap();
        let mut log = fs.create("/000001.log").unwrap();
        for i in 0..4u8 {
            write(&fs, &format!("/{i}"), &[i; 5000]).unwrap();
            log.append(&[i; 900]).unwrap();
            log.sync().unwrap();
        }
        drop((log, fs));
        device
            .set_condition(ZoneId(zone), ZoneCondition::ReadOnly)
            .unwrap();
        for _ in 0..3 {
            let fs = mount(device.clone()).unwrap_or_else(|e| panic!("{e}, zone {zone}"));
            for i in 0..4u8 {
                assert_eq!(
                    read(&fs, &format!("/{i}")).unwrap(),
                    [i; 5000],
                    "zone {zone}"
                );
            }
            assert_eq!(read(&fs, "/000001.log").unwrap().len(), 3600, "zone {zone}");
            write(&fs, "/new", &[9; 3000]).unwrap();
            assert_clean(&fs);
        }
    }
}

#[test]
fn a_writer_waits_for_a_zone_that_somebody_else_is_resetting() {
    let device = Arc::new(Faults::new(formatted(geometry(40, 0, 0))));
    let fs = mount(device.clone()).unwrap();
    // Each file fills a zone, so that cleaning cannot free any.
    let zone = [5; 24 << 10];
    let mut i = 0;
    while write(&fs, &format!("/{i}"), &zone).is_ok() {
        i += 1;
    }
    fs.delete(&format!("/{i}")).unwrap();
    fs.sync_metadata().unwrap();
    assert!(matches!(
        write(&fs, "/more", &zone),
        Err(Error::NoSpace { .. })
    ));
    fs.delete("/more").unwrap();
    for j in 0..3 {
        fs.delete(&format!("/{j}")).unwrap();
    }
    let gate = Gate::new();
    device.add(Plan::at(ZoneCommand::Reset, 1, Fault::Stuck(gate.clone())));
    let (done, second) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| fs.sync_metadata().unwrap());
        gate.wait_until_stuck(1);
        scope.spawn(|| done.send(write(&fs, "/more", &zone)).unwrap());
        let early = second.recv_timeout(Duration::from_millis(50)).ok();
        gate.release();
        let result = early.unwrap_or_else(|| second.recv().unwrap());
        assert!(result.is_ok(), "{result:?}");
    });
    assert_clean(&fs);
}

/// A mount writes all paths below the directory anew.
#[test]
fn a_directory_gets_a_longer_name_only_if_a_mount_has_room_for_it() {
    let device = formatted(geometry(40, 0, 0));
    let fs = mount(device.clone()).unwrap();
    fs.create_directory("/d").unwrap();
    for n in 0..200 {
        fs.create(&format!("/d/{n}")).unwrap();
    }
    let (mut from, mut refused) = ("/d".to_owned(), 0);
    for length in [300, 900, 1500, 3900] {
        let to = format!("/{}", "x".repeat(length));
        match fs.rename(&from, &to) {
            Ok(()) => from = to,
            Err(Error::NoSpace { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        fs.sync_metadata().unwrap();
        mount(Arc::new(device.snapshot())).unwrap();
    }
    assert!((1..4).contains(&refused), "{refused}");
    // Nor do files take the zones that a mount needs.
    while write(&fs, &format!("/{}.sst", fs.usage().files), &[1; 20_000]).is_ok() {}
    drop(fs);
    let fs = mount(device).unwrap();
    assert_eq!(fs.list(&from).unwrap().len(), 200);
    assert_clean(&fs);
}

#[test]
fn a_directory_gets_a_longer_name_in_zones_that_wait_for_a_reset() {
    let fs = mount(formatted(geometry(40, 0, 0))).unwrap();
    fs.create_directory("/d").unwrap();
    for n in 0..100 {
        fs.create(&format!("/d/{n}")).unwrap();
    }
    fs.sync_metadata().unwrap();
    let mut files = Vec::new();
    loop {
        let path = format!("/{}.sst", files.len());
        if write(&fs, &path, &[1; 20_000]).is_err() {
            break;
        }
        files.push(path);
    }
    for path in files {
        fs.delete(&path).unwrap();
    }
    fs.rename("/d", &format!("/{}", "x".repeat(400))).unwrap();
    assert_clean(&fs);
}

#[test]
fn what_is_left_of_a_truncated_extent_is_scrubbed() {
    let device = Arc::new(Faults::new(formatted(geometry(40, 0, 0))));
    let fs = mount(device.clone()).unwrap();
    write(&fs, "/a.sst", &[1; 5000]).unwrap();
    fs.truncate("/a.sst", 3000).unwrap();
    fs.sync_metadata().unwrap();
    let zone = fs.extents("/a.sst").unwrap()[0].at.zone;
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
    let scrubbed = fs.scrub(&mut |_| true).unwrap().unwrap();
    assert_eq!(scrubbed.lost, ["/a.sst"]);
}
